"""KubeFed's federated objects → native objects with policies, and their status (docs/reference/kubefed.md):
`controller.py` watches, `reconcile.py` acts.
"""
