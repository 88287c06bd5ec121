"""The caches of members as inputs of the planner of sharded services (`features/topologyspreadplan/rules`).

Nodes come from the informers of capacity, StatefulSets from those of managed objects; the pods of a plan's namespace
are cached. Nothing is requested from a member. While a cache is incomplete there is no observation, so that absent
objects are not mistaken for deleted ones.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from federation.apimachinery.resources import STATEFUL_SETS, Object
from federation.features.topologyspreadplan.rules.observation import Member, Observation, observe
from federation.features.topologyspreadplan.rules.planner import Slices
from federation.runtime.informer import Informer
from federation.runtime.members import Members

T = TypeVar("T")


class SpreadObserver:
    """Observes the services of TopologySpreadPlans."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def missing_cache(self, plan: Object) -> str:
        """Return a cluster of the plan whose nodes or pods are not known yet, "" when all are."""
        for cluster in self._clusters(plan["spec"]):
            capacity, pods = self._members.capacity(cluster), self._pods(cluster, plan["metadata"]["namespace"])
            if capacity is None or pods is None or not (capacity.nodes.has_synced and pods.has_synced):
                return cluster
        return ""

    def observe(self, plan: Object, stateful_sets: Iterable[Object]) -> Observation:
        """Return the observation of a plan whose caches are complete; `stateful_sets` are those of its namespace."""
        namespace = plan["metadata"].get("namespace", "")
        return observe(plan, stateful_sets, [self._member(each, namespace) for each in self._clusters(plan["spec"])])

    def _clusters(self, spec: Mapping[str, Any]) -> list[str]:
        return list(spec.get("clusters") or ()) or self._members.clusters

    def _member(self, cluster: str, namespace: str) -> Member:
        capacity, pods = self._members.capacity(cluster), self._pods(cluster, namespace)
        managed = self._members.informer(cluster, STATEFUL_SETS)
        nodes = capacity.nodes.list() if capacity is not None else []
        found = pods.list() if pods is not None else []
        return Member(cluster, nodes, found, managed.list(namespace) if managed is not None else [])

    def _pods(self, cluster: str, namespace: str) -> Informer | None:
        return self._members.ensure_pods(cluster, namespace)


async def in_slices(work: Slices[T]) -> T:
    """Do the work, and let other tasks run between its slices."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value
        await asyncio.sleep(0)
