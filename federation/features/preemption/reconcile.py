"""One round: end what is over, then let replicas give way to Deployments that wait, at most one of them per cluster.

How many replicas a workload keeps in a cluster is an annotation of its federated object: the memory after a restart.
The scheduler follows it and places the others elsewhere or leaves them unplaced. Whether pods wait, fit or are being
removed is read from the members in each round, so nothing is counted twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.errors import Conflict
from federation.apimachinery.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, Object
from federation.features.preemption.memberview import Observer, Room, node_of
from federation.features.preemption.reports import Reports, name_of, title
from federation.features.preemption.rules.priority import may_preempt, priority_of
from federation.features.preemption.rules.victims import (
    Need,
    Victim,
    choose_victims,
    most_to_give,
)
from federation.planning.failover.podbudgets import unavailable_max
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.rendering.memberobject import Renderer, RenderError
from federation.planning.steps.strategy import strategy_of
from federation.runtime.controller import DONE, Result, key_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informer import Informer
from federation.scheduling.framework.types import PodShape
from federation.scheduling.podrequest import pod_spec_of, shape_of
from federation.scheduling.yields import Yield, Yields, yields_from, yields_to_text

_GIVING = "preemption/gives-way"
"""The index of federated objects that give way."""
_YES = "true"


@dataclass(frozen=True, slots=True)
class _Workload:
    """A divided Deployment: its priority, its replicas by cluster, and what it gave."""

    federated: Object
    type_: FederatedType
    priority: int
    may_preempt: bool
    placed: Mapping[str, int]
    yields: Yields

    def shape(self, cluster: str) -> PodShape | None:
        """Return the shape of its pods with the cluster's overrides; None if they cannot be applied."""
        try:
            return shape_of(Renderer(self.federated, self.type_).render(cluster).object)
        except (RenderError, AttributeError, TypeError):
            return None


class Reconciler:
    """Runs the rounds. `classes` are the host's PriorityClasses; without an interval everything ends."""

    def __init__(
        self,
        objects: FederatedObjects,
        clusters: Informer,
        classes: Informer | None,
        observer: Observer,
        reports: Reports,
        interval_s: float,
    ) -> None:
        self._objects = objects
        self._clusters = clusters
        self._classes = classes
        self._observer = observer
        self._reports = reports
        self._interval_s = interval_s
        self._gave: set[str] = set()
        """Workloads that gave way in this round, so the pods and replicas that it has read for them are stale."""
        objects.add_index(_GIVING, _gives_way)

    async def reconcile(self, _: str) -> Result:
        """Run a round."""
        for federated in self._objects.by_index(_GIVING, _YES):
            await self._review(federated)
        if not self._interval_s:
            return DONE
        by_cluster: dict[str, list[_Workload]] = {}
        for workload in self._workloads():
            for cluster in workload.placed:
                by_cluster.setdefault(cluster, []).append(workload)
        self._gave.clear()
        for cluster, workloads in sorted(by_cluster.items()):
            if self._is_ready(cluster):
                await self._serve(cluster, workloads)
        return Result(self._interval_s)

    async def _serve(self, cluster: str, workloads: list[_Workload]) -> None:
        """Make room for the first workload that waits and that others can give way to, the highest priority first."""
        lowest = min(workload.priority for workload in workloads)
        for winner in sorted(workloads, key=lambda each: (-each.priority, key_of(each.federated))):
            if winner.priority <= lowest:
                return
            if winner.may_preempt and self._available(winner, cluster) < winner.placed[cluster]:
                chosen = self._choose(winner, cluster, workloads)
                if chosen and await self._give_way(winner, cluster, chosen, workloads):
                    return

    def _choose(self, winner: _Workload, cluster: str, workloads: list[_Workload]) -> dict[str, int]:
        """Return the replicas that give way to a workload in a cluster, by workload."""
        pods, shape = self._observer.pods(cluster, *name_of(winner.federated)), winner.shape(cluster)
        room = self._observer.room(cluster, shape) if shape is not None else None
        if shape is None or room is None or not pods:
            return {}
        waiting = min(self._observer.waiting(pods), winner.placed[cluster]) - room.fitting
        if waiting <= 0:
            return {}
        leaving, victims = dict(room.leaving), []
        for other in workloads:
            if other.priority < winner.priority and (found := self._victim(other, cluster, room)) is not None:
                victim, going = found
                if victim.key not in self._gave:
                    victims.append(victim)
                for name, amount in {**victim.request, "pods": 1}.items():
                    leaving[name] = leaving.get(name, 0) + going * amount
        need = Need(waiting, winner.priority, dict(shape.request), room.free, leaving)
        return choose_victims(need, victims)

    def _victim(self, other: _Workload, cluster: str, room: Room) -> tuple[Victim, int] | None:
        """Return the replicas that a workload may lose, and its pods that still have to leave; None if unknown.

        All its pods must be on nodes that the other workload can use, as the member chooses which ones it removes.
        """
        pods, shape = self._observer.pods(cluster, *name_of(other.federated)), other.shape(cluster)
        running = [pod for pod in pods or () if node_of(pod)]
        if shape is None or not running or not room.nodes.issuperset(map(node_of, running)):
            return None
        wanted, template = other.type_.replicas(other.federated["spec"]["template"]) or 0, other.federated["spec"]
        allowed = strategy_of(DEPLOYMENTS, template["template"]).budget(wanted).unavailable
        budgets = self._objects.of_kind(POD_DISRUPTION_BUDGETS.group_kind, name_of(other.federated)[0])
        guarded = unavailable_max((each["spec"]["template"] for each in budgets), template["template"], wanted)
        allowed = allowed if guarded is None else min(allowed, guarded)
        available = {name: self._available(other, name) for name in other.placed}
        most = most_to_give(cluster, wanted, allowed, available, other.placed, other.yields)
        going = max(0, len(running) - other.yields[cluster].keeps) if cluster in other.yields else 0
        return Victim(title(other.federated), other.priority, dict(shape.request), most), going

    async def _give_way(
        self, winner: _Workload, cluster: str, chosen: Mapping[str, int], workloads: list[_Workload]
    ) -> bool:
        """Write the replicas that each victim keeps; return True if any was. The next round retries conflicts."""
        by_title = {title(each.federated): each for each in workloads}
        written: dict[str, int] = {}
        for who, count in chosen.items():
            other = by_title[who]
            stay = min(self._available(other, cluster), other.placed[cluster])
            before = other.yields.get(cluster)
            keeps = (stay if before is None else min(stay, before.keeps)) - count
            given = count + (before.count if before is not None else 0)
            yields = {**other.yields, cluster: Yield(keeps, given, title(winner.federated))}
            if await self._write(other.federated, yields):
                self._reports.gives_way(other.federated, count, cluster, winner.federated)
                written[who] = count
        if written:
            await self._reports.makes_room(winner.federated, winner.placed, cluster, written)
        self._gave.update(written)
        return bool(written)

    async def _review(self, federated: Object) -> None:
        """End what is over for a workload that gave way, and keep its condition right."""
        yields = _yields(federated)
        left = {name: entry for name, entry in yields.items() if not self._is_over(federated, name, entry)}
        if left != yields or not left:
            if not await self._write(federated, left):
                return
            self._reports.returns(federated, sorted(yields.keys() - left.keys()))
        await self._reports.state(federated, left)

    def _is_over(self, federated: Object, cluster: str, entry: Yield) -> bool:
        """Return whether replicas may return: the other workload has left, or runs and there is room again."""
        type_ = self._objects.type_of(federated)
        if not self._interval_s or self._clusters.get("", cluster) is None or type_ is None:
            return True
        namespace, _, name = entry.to.removeprefix(f"{DEPLOYMENTS.kind} ").partition("/")
        other = self._objects.get(self._objects.key_for(type_, namespace, name))
        held = (current_clusters(other, type_).get(cluster) or 0) if other is not None else 0
        if not held:
            return True
        shape = shape_of(federated["spec"]["template"])
        room = self._observer.room(cluster, shape) if shape is not None and self._is_ready(cluster) else None
        return (
            room is not None
            and room.fitting >= entry.count
            and self._observer.available(cluster, namespace, name) >= held
        )

    async def _write(self, federated: Object, yields: Yields) -> bool:
        body: Object = {"metadata": {"annotations": {names.GIVES_WAY: yields_to_text(yields)}}}
        try:
            return await self._objects.patch(key_of(federated), federated, body) is not None
        except Conflict:
            return False

    def _workloads(self) -> Iterator[_Workload]:
        """Return the Deployments whose replicas are divided."""
        type_ = self._objects.types.for_resource(DEPLOYMENTS)
        classes = self._classes.list() if self._classes is not None else ()
        by_name = {each["metadata"]["name"]: each for each in classes}
        default = next((each for each in classes if each.get("globalDefault")), None)
        if type_ is None or not classes:
            return
        for federated in self._objects.of_type(type_):
            placed = current_clusters(federated, type_)
            counts = {cluster: count for cluster, count in placed.items() if count}
            if len(counts) != len(placed) or federated["metadata"].get("deletionTimestamp"):
                continue
            named = (pod_spec_of(federated["spec"]["template"]) or {}).get("priorityClassName")
            own = by_name.get(named) if named else default
            yield _Workload(federated, type_, priority_of(own), may_preempt(own), counts, _yields(federated))

    def _available(self, workload: _Workload, cluster: str) -> int:
        if not self._is_ready(cluster):
            return 0
        return self._observer.available(cluster, *name_of(workload.federated))

    def _is_ready(self, cluster: str) -> bool:
        status = (self._clusters.get("", cluster) or {}).get("status") or {}
        return conditions.is_true(status.get("conditions"), names.CLUSTER_READY)


def _yields(federated: Object) -> dict[str, Yield]:
    return yields_from((federated["metadata"].get("annotations") or {}).get(names.GIVES_WAY))


def _gives_way(federated: Object) -> tuple[str, ...]:
    return (_YES,) if names.GIVES_WAY in (federated["metadata"].get("annotations") or {}) else ()
