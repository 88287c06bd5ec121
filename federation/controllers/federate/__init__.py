"""Source objects ⇄ federated objects (spec §3): `controller.py` watches and maps keys, `reconcile.py` acts."""
