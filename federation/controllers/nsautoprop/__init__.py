"""Namespaces → every joined cluster (docs/reference/federation.md): `controller.py` watches and maps keys,
`reconcile.py` acts.
"""
