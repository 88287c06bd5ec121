"""Source objects ⇄ federated objects (docs/reference/federation.md): `controller.py` watches and maps keys,
`reconcile.py` acts.
"""
