"""What the caches show of one workload in one member: its numbers, its pods that wait, and the room on the nodes.

A member whose caches are incomplete or cut off shows nothing, and nothing follows from that (D8). ReplicaSets are only
followed in members where a workload was seen that is not all ready. The room of a member is summed anew when its nodes
or pods changed and somebody asks.
"""

from collections.abc import Mapping
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
from federation.runtime.informer import Informer
from federation.runtime.members import BY_CONTROLLER, Members


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload that is looked for. `placed` has the scheduler's replicas per cluster."""

    type_: FederatedType
    template: Object
    placed: Mapping[str, int]
    threshold_s: float


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

    def count(self, cluster: str, pod_spec: Mapping[str, Any]) -> int | None:
        """Return how many more such pods fit; None when the caches do not say."""
        informers = self._members.capacity_informers(cluster)
        if informers is None or not all(informer.has_synced and informer.is_connected for informer in informers):
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

    def __init__(self, members: Members, clock: Clock) -> None:
        self._members = members
        self._clock = clock
        self.rooms = Rooms(members)

    def look(self, cluster: str, workload: Workload, *, has_belief: bool) -> View | None:
        """Return what there is to see, None when the caches do not show it; the room only where it matters."""
        if not _is_current(self._members.informer(cluster, workload.type_.resource)):
            return None
        metadata, paths = workload.template["metadata"], workload.type_.paths
        copy = self._members.get_cached(
            cluster, workload.type_.resource, metadata.get("namespace", ""), metadata["name"]
        )
        placed = workload.placed.get(cluster, 0)
        if copy is None or copy["metadata"].get("deletionTimestamp"):
            return View(Sight(placed=placed, room=self._room(cluster, workload.template) if has_belief else None))
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
            room=self._room(cluster, copy) if has_belief or pods.unschedulable else None,
        )
        return View(sight, pods.scheduled, pods.next_crossing_s)

    def _room(self, cluster: str, workload: Mapping[str, Any]) -> int | None:
        return self.rooms.count(cluster, workload["spec"]["template"].get("spec") or {})

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
