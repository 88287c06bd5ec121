"""Aggregated API servers: group versions that a server behind a Service answers, as in kube-aggregator.

`aggregator.py` owns the loops and is what the server composes; `proxy.py` forwards requests.
"""
