"""Federated objects → the counts in the status of their policies (docs/reference/status.md): `controller.py` watches,
`reconcile.py` acts.
"""
