"""Followers go where their leaders go (spec §9): `controller.py` watches and keeps the index, `reconcile.py` acts."""
