"""Clusters: joining, leaving, and the state of each member (docs/reference/clusters.md).

`controller.py` wires triggers; `reconcile.py` has the steps of joining and leaving, `memberjoin.py` the claim on a
member, `memberaccount.py` our account in it, and `tokenrenewal.py` renews its token. `monitor.py` monitors one
member's health, resources, API (`apidiscovery.py`) and our rights (`rightscheck.py`); `statuswriter.py` writes
FederatedCluster statuses.
"""
