"""The caches of members as inputs of the planner of sharded services (`planning/shardtopology`).

Nodes and pods come from the slim informers of capacity, StatefulSets from the informers of managed objects. Nothing is
requested from a member. A cluster whose caches are incomplete gives no observation, so that absent objects are not
mistaken for deleted ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.resources import STATEFUL_SETS, Object
from federation.planning.shardtopology.check import Distribution
from federation.planning.shardtopology.observation import (
    Member,
    ShardSet,
    distribution_of,
    service_of,
    shards_of,
    zone_key_of,
)
from federation.planning.shardtopology.service import Service
from federation.runtime.members import Members


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a service: its shards on the host, its pods in members, and the service for the planner."""

    shards: Sequence[ShardSet]
    members: Sequence[Member]
    distribution: Distribution
    service: Service
    zone_key: str


class SpreadObserver:
    """Observes the service of a plan."""

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
        spec, namespace = plan["spec"], plan["metadata"]["namespace"]
        members = [self._member(cluster, namespace) for cluster in self._clusters(spec)]
        shards = shards_of(spec, stateful_sets)
        zone_key = zone_key_of(spec, members)
        distribution = distribution_of(members, namespace, shards, zone_key)
        service = service_of(spec, shards, distribution.nodes)
        return Observation(shards, members, distribution, service, zone_key)

    def _clusters(self, spec: Mapping[str, Any]) -> list[str]:
        return list(spec.get("clusters") or ()) or self._members.clusters

    def _member(self, cluster: str, namespace: str) -> Member:
        informers = self._members.capacity_informers(cluster)
        managed = self._members.informer(cluster, STATEFUL_SETS)
        nodes, pods = (informers[0].list(), informers[1].list(namespace)) if informers is not None else ([], [])
        return Member(cluster, nodes, pods, managed.list(namespace) if managed is not None else [])
