"""The sums of a cluster's nodes and pods, all at once."""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.planning.clusters.clusterresources import ClusterResources, Collector, NodeFilter


def aggregate(
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    *,
    is_left_out: NodeFilter | None = None,
) -> ClusterResources:
    """Return the sums over the nodes that count and the pods that have not ended."""
    collector = Collector(is_left_out)
    for number, node in enumerate(nodes):
        collector.set_node((node.get("metadata") or {}).get("name") or str(number), node)
    for number, pod in enumerate(pods):
        collector.set_pod(("", str(number)), pod)
    return collector.resources()
