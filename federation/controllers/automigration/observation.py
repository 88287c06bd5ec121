"""Observation of one workload in one member, from caches only: replicas, unschedulable pods, free capacity.

A member that is not ready, or whose caches are incomplete, gives no observation, and no decision follows from that.
ReplicaSets are watched only in members where a workload was not entirely ready. Their status has the number of pods,
and only pods without a node are cached. Free capacity is counted node by node
from the sums of the cluster controller (`clusterresources.py`), not from pods. It does not model volumes, affinity
between pods or topology spread, so it may be too high; `capacityestimate.py` does not use it again after it was wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import REPLICA_SETS, Object
from federation.apimachinery.selectors import SelectorError
from federation.planning.automigration.capacityestimate import Observation
from federation.planning.automigration.podanalysis import PodCount, count_replica_set
from federation.planning.automigration.replicasets import newest_replica_set, slim_replica_set
from federation.planning.clusters.clusterresources import Collectors
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.rendering.memberobject import Renderer, RenderError
from federation.runtime.informer import Informer
from federation.runtime.members import BY_CONTROLLER, Members
from federation.scheduling.framework.types import PodShape
from federation.scheduling.podrequest import shape_of

Shapes = dict[str, tuple[int, PodShape]]
"""Cluster → generation of the federated object, and pod shape of the member object rendered from it."""


class Workload:
    """The workload of one reconcile: `total` replicas, `placed` by the scheduler per cluster.

    `shapes` outlives the reconcile: the overrides of a cluster that left the placement are not stored elsewhere.
    """

    def __init__(self, federated: Object, type_: FederatedType, threshold_s: float, shapes: Shapes) -> None:
        self._federated = federated
        self._shapes = shapes
        self._renderer: Renderer | None = None
        self.type_ = type_
        self.threshold_s = threshold_s
        self.namespace: str = federated["metadata"].get("namespace", "")
        self.template: Object = federated["spec"]["template"]
        self.total = total = type_.replicas(self.template) or 0
        self.placed = {c: total if n is None else n for c, n in current_clusters(federated, type_).items()}

    def shape(self, cluster: str) -> PodShape | None:
        """Return the pod shape with the cluster's overrides, the last one for a departed cluster; None if unknown."""
        generation = self._federated["metadata"].get("generation", 0)
        known = self._shapes.get(cluster)
        if known is not None and (known[0] == generation or cluster not in self.placed):
            return known[1]
        if self._renderer is None:
            self._renderer = Renderer(self._federated, self.type_)
        try:
            shape = shape_of(self._renderer.render(cluster).object)
        except (RenderError, AttributeError, TypeError):
            return None
        if shape is not None:
            self._shapes[cluster] = (generation, shape)
        return shape


@dataclass(frozen=True, slots=True)
class MemberObservation:
    """One member's observation. `scheduled` is None without a member object.

    `next_s` is the time until the next pending pod counts as unschedulable.
    """

    observation: Observation
    scheduled: int | None = None
    next_s: float | None = None


class Observer:
    """Observes workloads in members through caches."""

    def __init__(self, members: Members, collectors: Collectors, is_ready: Callable[[str], bool], clock: Clock) -> None:
        self._members = members
        self._collectors = collectors
        self._is_ready = is_ready
        self._clock = clock

    def observe(self, cluster: str, workload: Workload, *, has_estimate: bool) -> MemberObservation | None:
        """Return the observation, None while caches are incomplete.

        Free capacity is counted only for clusters with an estimate or with unschedulable pods: it is expensive.
        """
        if not self._is_ready(cluster) or not _is_current(self._members.informer(cluster, workload.type_.resource)):
            return None
        name, paths = workload.template["metadata"]["name"], workload.type_.paths
        member_object = self._members.get_cached(cluster, workload.type_.resource, workload.namespace, name)
        placed = workload.placed.get(cluster, 0)
        if member_object is None or member_object["metadata"].get("deletionTimestamp"):
            free = self._count_free(cluster, workload) if has_estimate else None
            return MemberObservation(Observation(placed=placed, free=free))
        desired, total, ready = (
            _number(member_object, path)
            for path in (paths.replicas_spec, paths.replicas_status, paths.ready_replicas_status)
        )
        pods = PodCount(total, total)
        if total != ready:
            counted = self._count_pods(cluster, member_object, workload.threshold_s)
            if counted is None:
                return None
            pods = counted
        observation = Observation(
            placed=placed,
            desired=desired,
            ready=ready,
            pods=pods.total,
            unschedulable=pods.unschedulable,
            free=self._count_free(cluster, workload) if has_estimate or pods.unschedulable else None,
        )
        return MemberObservation(observation, pods.scheduled, pods.next_crossing_s)

    def _count_free(self, cluster: str, workload: Workload) -> int | None:
        """Return the number of further pods of the workload that fit, None if unknown."""
        capacity, collector = self._members.capacity(cluster), self._collectors.get(cluster)
        if capacity is None or collector is None or not capacity.are_current:
            return None
        shape = workload.shape(cluster)
        if shape is None:
            return None
        try:
            return collector.count_fitting(shape.request, shape.needs.admit)
        except SelectorError:
            return 0

    def _count_pods(self, cluster: str, member_object: Object, threshold_s: float) -> PodCount | None:
        """Count the pods of the newest ReplicaSet; None while the caches or the member's controller lag."""
        replica_sets = self._members.ensure_owned_informer(cluster, REPLICA_SETS, slim_replica_set)
        capacity = self._members.capacity(cluster)
        if replica_sets is None or capacity is None or not all(map(_is_current, (replica_sets, capacity.waiting))):
            return None
        owned = replica_sets.by_index(BY_CONTROLLER, member_object["metadata"].get("uid", ""))
        newest = newest_replica_set(member_object, owned)
        if newest is None:
            return None
        waiting = capacity.waiting.by_index(BY_CONTROLLER, newest["metadata"]["uid"])
        return count_replica_set(newest, waiting, self._clock.now(), threshold_s)


def _is_current(informer: Informer | None) -> bool:
    return informer is not None and informer.has_synced and informer.is_connected


def _number(obj: Mapping[str, Any], path: dotpaths.Path) -> int:
    value = dotpaths.get(obj, path) if path else None
    return value if isinstance(value, int) else 0
