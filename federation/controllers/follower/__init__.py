"""Followers go where their leaders go (docs/reference/followers.md): `controller.py` watches and keeps the
index, `reconcile.py` acts.
"""
