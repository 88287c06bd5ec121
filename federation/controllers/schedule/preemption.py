"""Let workloads of lower priority give way to one that waits for room in a member (docs/reference/preemption.md).

Off unless configured. One reconcile, once per interval, serves all clusters. It writes how many replicas a workload
keeps in a cluster to an annotation of its federated object; the scheduler places the others elsewhere or leaves them
unplaced, and sync removes them within the budget of the workload.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Conflict
from federation.apimachinery.resources import PRIORITY_CLASSES, Object
from federation.controllers.schedule.guard import BY_CLUSTER
from federation.controllers.schedule.inputcache import InputCache
from federation.planning.failover.podbudgets import unavailable_max
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.preemption.yielding import Victim, Yield, choose_victims, yields_from, yields_to_annotation
from federation.planning.rollout.strategy import is_rolling_kind, strategy_of
from federation.runtime.controller import DONE, Controller, Key, Result, key_of
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.scheduling.engine import Decision
from federation.scheduling.framework.capacity import capacity_of
from federation.scheduling.framework.types import Cluster
from federation.scheduling.podrequest import pod_spec_of, request_of, shape_of

GIVING = "schedule/gives-way"
"""The index of federated objects that give way."""
_ALL = ""
_PODS = "PodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class PreemptionOptions:
    """How often workloads give way."""

    interval_s: float = 0.0
    """Time between two rounds; 0 turns preemption off. Members must have reported the effect of the one before."""


class Preemption:
    """Knows which workloads wait, and writes who gives way."""

    def __init__(
        self,
        objects: FederatedObjects,
        informers: Informers,
        cache: InputCache,
        recorder: Recorder,
        clock: Clock,
        options: PreemptionOptions,
    ) -> None:
        self._objects = objects
        self._cache = cache
        self._recorder = recorder
        self._options = options
        self._waiting: dict[Key, Mapping[str, int]] = {}
        self.controller: Controller[str] = Controller("preemption", self.reconcile, workers=1, clock=clock)
        if options.interval_s:
            self._classes = informers.for_resource(PRIORITY_CLASSES)
            objects.add_index(GIVING, _gives_way)

    async def run(self) -> None:
        """Run the rounds; without an interval nothing is ever enqueued."""
        if self._options.interval_s:
            await self._classes.wait_synced()
            self.controller.enqueue(_ALL)
        await self.controller.run()

    def decided(self, key: Key, decision: Decision) -> None:
        """Record the replicas of a decision that wait for room, by cluster."""
        if self._options.interval_s:
            self._waiting.pop(key, None)
            if decision.waiting:
                self._waiting[key] = decision.waiting

    async def reconcile(self, _: str) -> Result:
        """End what is over, and let replicas give way to the workloads that wait, the highest priority first."""
        if not self._options.interval_s:
            return DONE
        clusters = self._cache.clusters.snapshot().by_name
        for federated in self._objects.by_index(GIVING, "true"):
            await self._release(federated, clusters)
        for key in sorted(self._waiting, key=lambda key: (-self._priority(self._objects.get(key)), key)):
            federated = self._objects.get(key)
            if federated is None:
                del self._waiting[key]
                continue
            for cluster, count in self._waiting[key].items():
                if cluster in clusters and self._may_preempt(federated):
                    await self._make_room(federated, clusters[cluster], count)
        return Result(self._options.interval_s)

    async def _make_room(self, winner: Object, cluster: Cluster, count: int) -> None:
        """Let others give way in one cluster, for as many replicas as still wait there."""
        request = request_of(winner["spec"]["template"])
        missing = {name: min(amount * count, cluster.waiting.get(name, 0)) for name, amount in request.items()}
        if not any(missing.values()):
            return
        placed = {key_of(obj): obj for obj in self._objects.by_index(BY_CLUSTER, cluster.name)}
        placed.pop(key_of(winner), None)
        victims = [victim for obj in placed.values() if (victim := self._victim(obj, cluster.name)) is not None]
        for key, gone in choose_victims(missing, self._priority(winner), victims).items():
            await self._give_way(placed[Key(*key)], cluster.name, gone, winner)

    def _victim(self, federated: Object, cluster: str) -> Victim | None:
        """Return what a workload may give in a cluster, None if nothing."""
        type_, template = self._objects.type_of(federated), federated["spec"]["template"]
        if type_ is None or not is_rolling_kind(type_.resource) or federated["metadata"].get("deletionTimestamp"):
            return None
        wanted, held = type_.replicas(template) or 0, current_clusters(federated, type_).get(cluster)
        if not wanted or not held:
            return None
        namespace = federated["metadata"].get("namespace", "")
        listed = self._objects.of_kind("policy/v1", _PODS, namespace)
        allowed = strategy_of(type_.resource, template).budget(wanted).unavailable
        guarded = unavailable_max((each["spec"]["template"] for each in listed), template, wanted)
        given = sum(entry.count for entry in _yields(federated).values())
        most = min(held, (allowed if guarded is None else min(allowed, guarded)) - given)
        return Victim(key_of(federated), self._priority(federated), request_of(template), most)

    async def _give_way(self, federated: Object, cluster: str, count: int, winner: Object) -> None:
        type_ = self._objects.type_of(federated)
        assert type_ is not None
        held = current_clusters(federated, type_).get(cluster) or 0
        yields, to = _yields(federated), _title(winner)
        earlier = yields.get(cluster, Yield(held, 0, to))
        yields[cluster] = replace(earlier, keeps=max(0, held - count), count=earlier.count + count, to=to)
        if await self._write(federated, yields):
            message = f"{count} of {held} replicas in {cluster} give way to {to}, which has a higher priority"
            self._recorder.event(federated, WARNING, names.EVENT_GIVES_WAY, message)
            message = f"{count} replicas of {_title(federated)} give way in {cluster}"
            self._recorder.event(winner, NORMAL, names.EVENT_PREEMPTS, message)

    async def _release(self, federated: Object, clusters: Mapping[str, Cluster]) -> None:
        """End the limits whose winner is gone from the cluster, and those for which there is room again."""
        yields, shape = _yields(federated), shape_of(federated["spec"]["template"])
        winners = {
            name: {_title(obj) for obj in self._objects.by_index(BY_CLUSTER, name)}
            for name in yields
            if name in clusters
        }
        over = [
            name
            for name, entry in yields.items()
            if name not in clusters
            or entry.to not in winners[name]
            or (shape is not None and not clusters[name].waiting and capacity_of(clusters[name], shape) >= entry.count)
        ]
        left = {name: entry for name, entry in yields.items() if name not in over}
        if over and await self._write(federated, left):
            message = f"replicas may return to {', '.join(sorted(over))}: nobody needs the room any more"
            self._recorder.event(federated, NORMAL, names.EVENT_GIVES_WAY, message)

    async def _write(self, federated: Object, yields: Mapping[str, Yield]) -> bool:
        body = {"metadata": {"annotations": {names.GIVES_WAY: yields_to_annotation(yields)}}}
        try:
            return await self._objects.patch(key_of(federated), federated, body) is not None
        except Conflict:
            return False  # the next round sees the new version

    def _may_preempt(self, federated: Object) -> bool:
        own = self._class_of(federated)
        return own is None or own.get("preemptionPolicy") != "Never"

    def _priority(self, federated: Object | None) -> int:
        own = self._class_of(federated) if federated is not None else None
        return int((own or {}).get("value") or 0)

    def _class_of(self, federated: Object) -> Object | None:
        """Return the PriorityClass of a workload's pods on the host: the one they name, else the global default."""
        name = (pod_spec_of(federated["spec"]["template"]) or {}).get("priorityClassName")
        if name:
            return self._classes.get("", str(name))
        return next((each for each in self._classes.list() if each.get("globalDefault")), None)


def _yields(federated: Object) -> dict[str, Yield]:
    return yields_from((federated["metadata"].get("annotations") or {}).get(names.GIVES_WAY))


def _gives_way(federated: Object) -> tuple[str, ...]:
    return ("true",) if names.GIVES_WAY in (federated["metadata"].get("annotations") or {}) else ()


def _title(federated: Object) -> str:
    template: Any = federated["spec"]["template"]
    return f"{template['kind']} {federated['metadata'].get('namespace', '')}/{template['metadata'].get('name', '')}"
