"""What the caches show of one workload in one member: its numbers, its pods that wait, and the room on the nodes.

A member that is not ready, or whose caches are incomplete, shows nothing, and nothing follows from that (D8).
ReplicaSets are only followed in members where a workload was seen that is not all ready. The room of a member is summed
anew when its nodes or pods changed and somebody asks.
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
from federation.planning.automigration.room import NodeRoom, count_room, free_by_node
from federation.planning.memberobject import Renderer, RenderError
from federation.runtime.informer import Informer
from federation.runtime.members import BY_CONTROLLER, Members
from federation.scheduling.unit import current_clusters


class Workload:
    """The workload that is looked for, during one reconcile. `placed` has the scheduler's replicas per cluster.

    `specs` remembers the pods that clusters were given: the overrides of one that has no copy any more are not stored.
    """

    def __init__(
        self, federated: Object, type_: FederatedType, threshold_s: float, specs: dict[str, Mapping[str, Any]]
    ) -> None:
        self._specs = specs
        self.type_ = type_
        self.threshold_s = threshold_s
        self.namespace: str = federated["metadata"].get("namespace", "")
        self.template: Object = federated["spec"]["template"]
        total = type_.replicas(self.template) or 0
        self.placed = {c: total if n is None else n for c, n in current_clusters(federated, type_).items()}
        self._renderer = Renderer(federated, type_)

    def pod_spec(self, cluster: str) -> Mapping[str, Any] | None:
        """Return the pod spec of the cluster's copy with its overrides, of the last one when there is none now."""
        if cluster not in self.placed and cluster in self._specs:
            return self._specs[cluster]
        try:
            pod: Mapping[str, Any] = self._renderer.render(cluster).object["spec"]["template"]["spec"]
        except (RenderError, KeyError, TypeError):
            return None
        self._specs[cluster] = pod
        return pod


@dataclass(frozen=True, slots=True)
class View:
    """One member's part. `scheduled` is None without a copy; `next_s` is when a waiting pod becomes unschedulable."""

    sight: Sight
    scheduled: int | None = None
    next_s: float | None = None


class Rooms:
    """The free resources of members, each summed at most once per change."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._rooms: dict[str, list[NodeRoom]] = {}

    def forget(self, cluster: str) -> None:
        """Take down that a node or pod of the cluster changed."""
        self._rooms.pop(cluster, None)

    def count(self, cluster: str, workload: Workload) -> int | None:
        """Return how many more of the workload's pods fit; None when that cannot be known."""
        informers, pod_spec = self._members.capacity_informers(cluster), workload.pod_spec(cluster)
        if informers is None or pod_spec is None or not all(map(_is_current, informers)):
            return None
        rooms = self._rooms.get(cluster)
        if rooms is None:
            nodes, pods = informers
            rooms = self._rooms[cluster] = free_by_node(nodes.list(), pods.list())
        try:
            return count_room(rooms, pod_spec)
        except SelectorError:
            return 0


class Looker:
    """Looks at members through their caches."""

    def __init__(self, members: Members, is_ready: Callable[[str], bool], clock: Clock) -> None:
        self._members = members
        self._is_ready = is_ready
        self._clock = clock
        self.rooms = Rooms(members)

    def look(self, cluster: str, workload: Workload, *, has_belief: bool) -> View | None:
        """Return what there is to see, None when the caches do not show it; the room only where it matters."""
        if not self._is_ready(cluster) or not _is_current(self._members.informer(cluster, workload.type_.resource)):
            return None
        name, paths = workload.template["metadata"]["name"], workload.type_.paths
        copy = self._members.get_cached(cluster, workload.type_.resource, workload.namespace, name)
        placed = workload.placed.get(cluster, 0)
        if copy is None or copy["metadata"].get("deletionTimestamp"):
            return View(Sight(placed=placed, room=self.rooms.count(cluster, workload) if has_belief else None))
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
            room=self.rooms.count(cluster, workload) if has_belief or pods.unschedulable else None,
        )
        return View(sight, pods.scheduled, pods.next_crossing_s)

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
