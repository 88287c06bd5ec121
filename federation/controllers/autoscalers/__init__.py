"""Autoscalers of federated workloads that do not act → a condition that says so (docs/reference/status.md):
`controller.py` watches, `reconcile.py` acts.
"""
