"""What the caches show of one workload in one member: its numbers, its pods that wait, and the room on the nodes.

A member that is not ready, or whose caches are incomplete, shows nothing, and nothing follows from that (D8).
ReplicaSets are only followed in members where a workload was seen that is not all ready. The room is counted node by
node from the sums that the cluster controller keeps of the member (`planning/clusterresources.py`), not from its pods.
What only the member's own scheduler knows (volumes, affinity between pods, spread) is not modelled, so the room may be
too high, and `belief.py` never trusts it twice after it was wrong.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import paths as dotpaths
from federation.api.federatedtype import FederatedType
from federation.api.resources import REPLICA_SETS, Object
from federation.api.selectors import SelectorError
from federation.base.clock import Clock
from federation.planning.automigration.belief import Sight
from federation.planning.automigration.pods import PodCount, count_pods
from federation.planning.automigration.replicasets import newest_replica_set, slim_replica_set
from federation.planning.clusterresources import Collectors
from federation.planning.memberobject import Renderer, RenderError
from federation.runtime.informer import Informer
from federation.runtime.members import BY_CONTROLLER, Members
from federation.scheduling.framework.types import PodShape
from federation.scheduling.request import shape_of
from federation.scheduling.unit import current_clusters

Shapes = dict[str, tuple[int, PodShape]]
"""Cluster → generation of the federated object that was looked at, and shape of the pods of the cluster's copy."""


class Workload:
    """The workload that is looked for, during one reconcile: `total` replicas, `placed` by the scheduler per cluster.

    `shapes` lives as long as what is believed: the overrides of a cluster that has no copy any more are not stored.
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
        """Return the shape of the pods that the cluster has with its overrides, had, or would have; None if unknown."""
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
class View:
    """One member's part. `scheduled` is None without a copy; `next_s` is when a waiting pod becomes unschedulable."""

    sight: Sight
    scheduled: int | None = None
    next_s: float | None = None


class Looker:
    """Looks at members through their caches."""

    def __init__(self, members: Members, collectors: Collectors, is_ready: Callable[[str], bool], clock: Clock) -> None:
        self._members = members
        self._collectors = collectors
        self._is_ready = is_ready
        self._clock = clock

    def look(self, cluster: str, workload: Workload, *, has_belief: bool) -> View | None:
        """Return what there is to see, None when the caches do not show it; the room only where it matters."""
        if not self._is_ready(cluster) or not _is_current(self._members.informer(cluster, workload.type_.resource)):
            return None
        name, paths = workload.template["metadata"]["name"], workload.type_.paths
        copy = self._members.get_cached(cluster, workload.type_.resource, workload.namespace, name)
        placed = workload.placed.get(cluster, 0)
        if copy is None or copy["metadata"].get("deletionTimestamp"):
            return View(Sight(placed=placed, room=self._room(cluster, workload) if has_belief else None))
        desired, total, ready = (
            _number(copy, path) for path in (paths.replicas_spec, paths.replicas_status, paths.ready_replicas_status)
        )
        pods = PodCount(total, total)
        if total != ready:
            counted = self._count(cluster, copy, workload.threshold_s)
            if counted is None:
                return None
            pods = counted
        sight = Sight(
            placed=placed,
            desired=desired,
            ready=ready,
            pods=pods.total,
            unschedulable=pods.unschedulable,
            room=self._room(cluster, workload) if has_belief or pods.unschedulable else None,
        )
        return View(sight, pods.scheduled, pods.next_crossing_s)

    def _room(self, cluster: str, workload: Workload) -> int | None:
        """Return how many more of the workload's pods fit; None when that cannot be known."""
        informers, collector = self._members.capacity_informers(cluster), self._collectors.get(cluster)
        if informers is None or collector is None or not all(map(_is_current, informers)):
            return None
        shape = workload.shape(cluster)
        if shape is None:
            return None
        try:
            return collector.count_fitting(shape.request, shape.needs.admit)
        except SelectorError:
            return 0

    def _count(self, cluster: str, copy: Object, threshold_s: float) -> PodCount | None:
        """Count the pods of the newest ReplicaSet; None while the caches or the member's controller are behind."""
        replica_sets = self._members.ensure_owned_informer(cluster, REPLICA_SETS, slim_replica_set)
        informers = self._members.capacity_informers(cluster)
        if replica_sets is None or informers is None or not all(map(_is_current, (replica_sets, informers[1]))):
            return None
        owned = replica_sets.by_index(BY_CONTROLLER, copy["metadata"].get("uid", ""))
        newest = newest_replica_set(copy, owned)
        if newest is None:
            return None
        pods = informers[1].by_index(BY_CONTROLLER, newest["metadata"]["uid"])
        return count_pods(pods, self._clock.now(), threshold_s)


def _is_current(informer: Informer | None) -> bool:
    return informer is not None and informer.has_synced and informer.is_connected


def _number(obj: Mapping[str, Any], path: dotpaths.Path) -> int:
    value = dotpaths.get(obj, path) if path else None
    return value if isinstance(value, int) else 0
