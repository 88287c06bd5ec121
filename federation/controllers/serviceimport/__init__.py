"""ServiceImports → placements of the Service and of its imported EndpointSlices (docs/reference/multicluster.md):
`controller.py` watches, `reconcile.py` acts.
"""
