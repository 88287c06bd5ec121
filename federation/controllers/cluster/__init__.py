"""Clusters: joining, leaving, and how each member is doing (docs/reference/clusters.md).

`controller.py` wires triggers; `reconcile.py` holds the steps of joining and leaving, `membership.py` what they do in
the member; `monitor.py` watches one member's health, resources and API, `discovery.py` asks what it serves,
`publish.py` writes FederatedCluster statuses.
"""
