"""The caches of members as inputs of the planner of sharded services (`planning/shardtopology`).

Nodes and pods come from the slim informers of capacity, StatefulSets from the informers of managed objects. Nothing is
requested from a member. While a cache is incomplete there is no observation, so that absent objects are not mistaken
for deleted ones.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from federation.apimachinery.resources import STATEFUL_SETS, Object
from federation.planning.shardtopology.observation import Member, Observation, observe
from federation.planning.shardtopology.planner import Slices
from federation.runtime.members import Members

T = TypeVar("T")


class SpreadObserver:
    """Observes the services of TopologySpreadPlans."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def missing_cache(self, spec: Mapping[str, Any]) -> str:
        """Return a cluster of the plan whose nodes or pods are not known yet, "" when all are."""
        for cluster in self._clusters(spec):
            informers = self._members.capacity_informers(cluster)
            if informers is None or not all(informer.has_synced for informer in informers):
                return cluster
        return ""

    def observe(self, plan: Object, stateful_sets: Iterable[Object]) -> Observation:
        """Return the observation of a plan whose caches are complete; `stateful_sets` are those of its namespace."""
        namespace = plan["metadata"].get("namespace", "")
        return observe(plan, stateful_sets, [self._member(each, namespace) for each in self._clusters(plan["spec"])])

    def _clusters(self, spec: Mapping[str, Any]) -> list[str]:
        return list(spec.get("clusters") or ()) or self._members.clusters

    def _member(self, cluster: str, namespace: str) -> Member:
        informers = self._members.capacity_informers(cluster)
        managed = self._members.informer(cluster, STATEFUL_SETS)
        nodes, pods = (informers[0].list(), informers[1].list(namespace)) if informers is not None else ([], [])
        return Member(cluster, nodes, pods, managed.list(namespace) if managed is not None else [])


async def in_slices(work: Slices[T]) -> T:
    """Do the work, and let other tasks run between its slices."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value
        await asyncio.sleep(0)
