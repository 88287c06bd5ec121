"""UnitedDeployments → a workload per subset (docs/reference/uniteddeployment.md).

It runs inside a cluster and on the host. `controller.py` watches and maps keys, `reconcile.py` acts, `children.py`
reads caches, `subsetwriter.py` writes. Pods are in the cluster (`localpods.py`) or in members (`memberpods.py`).
"""
