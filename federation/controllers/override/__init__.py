"""Override policies → overrides of federated objects (spec §8): `controller.py` watches, `reconcile.py` acts."""
