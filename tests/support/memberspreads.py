"""Builders for WorkloadSpreads in a simulated member, and counts of their pods."""

from collections import Counter
from typing import Any

from federation.api.resources import KRUISE_GROUP, WORKLOAD_SPREADS
from federation.apimachinery.resources import NODES, PODS, Object, Resource
from federation.features.workloadspread.rules.ledger import parse_match
from federation.simulator.options import NodeShape
from tests.support.simulatedmember import Member, an_object


def a_node(name: str, pool: str, **fields: Any) -> NodeShape:
    return NodeShape(name, labels={"pool": pool}, **fields)


def a_subset(pool: str, limit: int | str | None = None, *, required: bool = True, **fields: Any) -> Object:
    """Return a subset whose pods run in the pool of its name."""
    subset = {"name": pool, **fields}
    if required:
        subset["requiredNodeSelectorTerm"] = {"matchExpressions": [{"key": "pool", "operator": "In", "values": [pool]}]}
    return subset if limit is None else {**subset, "maxReplicas": limit}


def a_spread(
    *subsets: Object, name: str = "web", kind: str = "Deployment", api_version: str = "apps/v1", **spec: Any
) -> Object:
    target_ref = {"apiVersion": api_version, "kind": kind, "name": "web"}
    spread = an_object(WORKLOAD_SPREADS, name, spec={"targetRef": target_ref, "subsets": list(subsets), **spec})
    return {**spread, "apiVersion": "apps.kruise.io/v1alpha1"}


async def create_spread(member: Member, spread: Object) -> None:
    await member.create(Resource(KRUISE_GROUP, "v1alpha1", "WorkloadSpread", "workloadspreads"), spread)


async def pools(member: Member) -> Counter[str]:
    """Return the number of pods per node pool, "" for pods without a node."""
    nodes = {"": ""}
    nodes |= {node["metadata"]["name"]: node["metadata"]["labels"]["pool"] for node in await member.all(NODES)}
    return Counter(nodes[pod["spec"].get("nodeName", "")] for pod in await member.all(PODS))


async def subset_sizes(member: Member) -> Counter[str]:
    """Return the number of pods per subset."""
    matches = [parse_match(pod) for pod in await member.all(PODS)]
    return Counter(match.subset for match in matches if match is not None)
