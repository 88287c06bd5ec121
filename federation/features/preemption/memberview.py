"""Read a Deployment's pods and the free room of members, from caches only.

Victims are chosen pod by pod, so all pods of members are cached once preemption needs them. If the caches of a member
are incomplete or stale, no replica gives way there.
"""

from collections import Counter
from dataclasses import dataclass

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import DEPLOYMENTS, REPLICA_SETS, Object
from federation.apimachinery.selectors import SelectorError
from federation.features.preemption.rules.victims import Resources
from federation.planning.automigration.podanalysis import count_pods, is_live
from federation.planning.automigration.replicasets import slim_replica_set
from federation.planning.clusters.clusterresources import Collectors, has_ended
from federation.runtime.informer import Informer
from federation.runtime.members import BY_CONTROLLER, Members
from federation.scheduling.framework.types import PodShape
from federation.scheduling.podrequest import request_of


@dataclass(frozen=True, slots=True)
class Room:
    """The room of a cluster for pods of one shape: the nodes, the sum that they have free, how many pods fit."""

    nodes: frozenset[str]
    free: Resources
    fitting: int
    leaving: Resources
    """The requests of pods that are being removed there, and their number as `pods`."""


class Observer:
    """Reads the caches of members. A pod waits when its scheduler found no node for `waiting_s`."""

    def __init__(self, members: Members, collectors: Collectors, clock: Clock, waiting_s: float) -> None:
        self._members = members
        self._collectors = collectors
        self._clock = clock
        self._waiting_s = waiting_s

    def available(self, cluster: str, namespace: str, name: str) -> int:
        """Return the available replicas that the member reports for what it is to run now."""
        if not _is_current(self._members.informer(cluster, DEPLOYMENTS)):
            return 0
        found = self._members.get_cached(cluster, DEPLOYMENTS, namespace, name) or {}
        status = found.get("status") or {}
        is_observed = status.get("observedGeneration", 0) >= (found.get("metadata") or {}).get("generation", 0)
        return int(status.get("availableReplicas") or 0) if is_observed else 0

    def pods(self, cluster: str, namespace: str, name: str) -> list[Object] | None:
        """Return the live pods of a Deployment; None while that is not known."""
        replica_sets = self._members.ensure_owned_informer(cluster, REPLICA_SETS, slim_replica_set)
        cached = self._members.ensure_pods(cluster)
        if cached is None or not all(map(_is_current, (replica_sets, cached))):
            return None
        found = self._members.get_cached(cluster, DEPLOYMENTS, namespace, name)
        if found is None or replica_sets is None:
            return None
        owned = replica_sets.by_index(BY_CONTROLLER, found["metadata"]["uid"])
        pods = (pod for each in owned for pod in cached.by_index(BY_CONTROLLER, each["metadata"]["uid"]))
        return [pod for pod in pods if is_live(pod)]

    def waiting(self, pods: list[Object]) -> int:
        """Return how many of the pods wait for room."""
        return count_pods(pods, self._clock.now(), self._waiting_s).unschedulable

    def room(self, cluster: str, shape: PodShape) -> Room | None:
        """Return the room for pods of a shape; None while that is not known."""
        collector, capacity = self._collectors.get(cluster), self._members.capacity(cluster)
        cached = self._members.ensure_pods(cluster)
        if (
            collector is None
            or capacity is None
            or cached is None
            or not capacity.are_current
            or not _is_current(cached)
        ):
            return None
        try:
            by_node = collector.free_by_node(shape.needs.admit)
            fitting = collector.count_fitting(shape.request, shape.needs.admit)
        except SelectorError:
            return None
        free, leaving = Counter[str](), Counter[str]()
        for amounts in by_node.values():
            free.update(amounts)
        for pod in cached.list():
            if pod["metadata"].get("deletionTimestamp") and node_of(pod) in by_node and not has_ended(pod):
                leaving.update(request_of({"kind": "Pod", "spec": pod["spec"]}))
                leaving["pods"] += 1
        return Room(frozenset(by_node), free, fitting, leaving)


def node_of(pod: Object) -> str:
    """Return the node of a pod, "" without one."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _is_current(informer: Informer | None) -> bool:
    return informer is not None and informer.has_synced and informer.is_connected
