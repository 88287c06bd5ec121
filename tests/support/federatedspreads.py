"""Builders for WorkloadSpreads on the host of a world, and counts of the pods in its members."""

from collections import Counter
from typing import Any

from federation.api.names import POD_DELETION_COST
from federation.api.resources import KRUISE_GROUP, PROPAGATION_POLICIES, WORKLOAD_SPREADS
from federation.apimachinery.resources import DEPLOYMENTS, PODS, Object, Resource
from federation.features.workloadspread.names import CLUSTER_NAME_TERM
from federation.features.workloadspread.rules.ledger import parse_match
from federation.simulator.options import NodeShape
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World

V1ALPHA1 = Resource(KRUISE_GROUP, "v1alpha1", "WorkloadSpread", "workloadspreads")


def a_node(pool: str, **fields: Any) -> NodeShape:
    """Return a node of a pool; it has the name of the pool."""
    return NodeShape(pool, **{"cpu": "64", "pods": 500, "labels": {"pool": pool}, **fields})


POOLS = {"east": (a_node("base"), a_node("spot")), "north": (a_node("base"), a_node("spot"))}


def a_subset(name: str, cluster: str, pool: str = "", limit: int | str | None = None, **fields: Any) -> Object:
    """Return a subset of the nodes of a pool in a cluster; all nodes without a pool, all clusters without a cluster."""
    expressions = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in ((CLUSTER_NAME_TERM, cluster), ("pool", pool))
        if value
    ]
    subset = {"name": name, **fields}
    if expressions:
        subset["requiredNodeSelectorTerm"] = {"matchExpressions": expressions}
    return subset if limit is None else {**subset, "maxReplicas": limit}


def a_spread(*subsets: Object, kind: str = "Deployment", api_version: str = "apps/v1", **spec: Any) -> Object:
    target = {"apiVersion": api_version, "kind": kind, "name": "web"}
    return {
        "apiVersion": V1ALPHA1.api_version,
        "kind": V1ALPHA1.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"targetRef": target, "subsets": list(subsets), **spec},
    }


async def begin(world: World, spread: Object | None, replicas: int, *, cpu: str = "100m") -> None:
    """Create the WorkloadSpread, and a Deployment `web` that is divided over all members."""
    if spread is not None:
        await world.create(V1ALPHA1, spread)
    await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(world.members, 1)))
    deployment = a_deployment("web", replicas=replicas)
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    await world.create(DEPLOYMENTS, deployment)


async def pods(world: World) -> list[tuple[str, Object]]:
    """Return the pods of all members that are not being deleted, with their clusters."""
    return [
        (cluster, pod)
        for cluster, member in world.members.items()
        for pod in (await member.admin.list(PODS, "default")).items
        if "deletionTimestamp" not in pod["metadata"]
    ]


async def layout(world: World) -> dict[tuple[str, str, str], int]:
    """Return the number of pods by cluster, pool ("" without a node) and subset ("" without one)."""
    found: Counter[tuple[str, str, str]] = Counter()
    for cluster, pod in await pods(world):
        match = parse_match(pod)
        found[cluster, pod["spec"].get("nodeName", ""), match.subset if match is not None else ""] += 1
    return dict(found)


async def until_layout(world: World, expected: dict[tuple[str, str, str], int]) -> None:
    await world.until_equal(lambda: layout(world), expected)


async def statuses(world: World) -> list[tuple[str, int, int]]:
    """Return name, replicas and missing replicas of each subset on the host."""
    spread = await world.find(WORKLOAD_SPREADS, "web") or {}
    entries = (spread.get("status") or {}).get("subsetStatuses") or ()
    return [(entry["name"], entry["replicas"], entry["missingReplicas"]) for entry in entries]


async def costs(world: World) -> dict[tuple[str, str], list[int]]:
    """Return the deletion costs of the pods by cluster and subset, in ascending order."""
    found: dict[tuple[str, str], list[int]] = {}
    for cluster, pod in await pods(world):
        match = parse_match(pod)
        cost = int(pod["metadata"].get("annotations", {}).get(POD_DELETION_COST, "0"))
        found.setdefault((cluster, match.subset if match is not None else ""), []).append(cost)
    return {key: sorted(values) for key, values in found.items()}


async def member_status(world: World, cluster: str) -> list[Object]:
    """Return the statuses of the subsets in a member."""
    spread = await world.members[cluster].find(WORKLOAD_SPREADS, "web") or {}
    return (spread.get("status") or {}).get("subsetStatuses") or []
