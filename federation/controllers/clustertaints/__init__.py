"""Health taints: FederatedClusters that are not ready get NoSchedule and NoExecute taints (docs/reference/clusters.md).

`controller.py` watches FederatedClusters; `reconcile.py` writes the taints of one.
"""
