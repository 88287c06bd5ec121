"""Services that members export → copies of their EndpointSlices on the host (docs/reference/multicluster.md):
`controller.py` watches, `reconcile.py` acts.
"""
