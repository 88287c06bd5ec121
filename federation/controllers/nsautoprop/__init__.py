"""Namespaces → every joined cluster (spec §4): `controller.py` watches and maps keys, `reconcile.py` acts."""
