"""Override policies → overrides of federated objects (docs/reference/overrides.md): `controller.py` watches,
`reconcile.py` acts.
"""
