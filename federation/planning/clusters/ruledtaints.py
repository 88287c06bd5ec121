"""The taints of a FederatedCluster that ClusterTaintPolicies and Remedies have set. Pure.

Replicas leave such a cluster as they leave a drained one, or as a lost one if it is not ready: within the rate of
failover, its halts and the ClusterDisruptionBudgets.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names


def taint_id(taint: Mapping[str, Any]) -> str:
    """Return what identifies a taint in a cluster: `key:Effect`."""
    return f"{taint.get('key', '')}:{taint.get('effect', '')}"


def ruled_taints(cluster: Mapping[str, Any]) -> frozenset[str]:
    """Return which taints of a FederatedCluster rules have set."""
    text = (cluster["metadata"].get("annotations") or {}).get(names.RULED_TAINTS) or ""
    return frozenset(filter(None, text.split(",")))
