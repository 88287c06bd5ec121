"""The end of a FederatedTypeConfig: `controller.py` watches, `reconcile.py` acts.

Reference: docs/reference/kinds.md.
"""
