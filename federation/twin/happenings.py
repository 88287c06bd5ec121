"""What happens in a twin: placements, moves and their causes, missing replicas, holds, rollouts and cost.

Decisions come from the journal. What holds over time comes from the federated objects: replicas without a cluster, and
cost; and from the users' objects: replicas that do not run. Both are added up at every change of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_ROLLOUTS, PLACEMENT_HOLDS
from federation.apimachinery import dotpaths
from federation.apimachinery.clock import Clock
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import Object
from federation.journal.decisions import DecisionRecord, Identity, JournalOptions
from federation.journal.memoryjournal import MemoryJournal
from federation.planning.cost.rates import from_nano, rates_from
from federation.planning.federatedobject.placements import current_clusters
from federation.runtime.informer import Informer
from federation.scheduling.engine import Placements
from federation.scheduling.podrequest import request_of
from federation.scheduling.replay.comparison import left_replicas, missing_replicas
from federation.scheduling.triggerwords import describe_triggers
from federation.wiring import Wiring

_JOURNAL = JournalOptions(rows_per_object_max=2, inputs_bytes_max=0)
"""The schedule controller reads the last decision about an object; nobody reads more."""
_QUIET = "nothing of the object changed: a cluster has room again, or came back"


@dataclass(frozen=True, slots=True)
class Move:
    """A decision that took replicas out of a cluster, or placed an object for the first time (`left` is 0)."""

    at: datetime
    identity: Identity
    before: Placements
    after: Placements
    left: int
    """Replicas that left a cluster."""
    cause: str


@dataclass(slots=True)
class _Sum:
    """A number of replicas by object, and what it adds up to over time."""

    by_key: dict[Any, int] = field(default_factory=dict)
    now: int = 0
    total: float = 0.0
    """Of number times seconds."""
    since_s: float = 0.0

    def put(self, key: Any, number: int, now_s: float) -> None:
        """Take over the number of an object."""
        self.add_up(now_s)
        self.now += number - self.by_key.pop(key, 0)
        if number:
            self.by_key[key] = number

    def add_up(self, now_s: float) -> None:
        """Add what held until now."""
        self.total += self.now * (now_s - self.since_s)
        self.since_s = now_s


class Observation:
    """Follows one twin. Totals count from `restart`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.journal = _ObservedJournal(self)
        self.moves: list[Move] = []
        self.placements: list[Move] = []
        self.outcomes: Counter[str] = Counter()
        self.holds: dict[str, tuple[datetime, str, int]] = {}
        """By name: when it was first seen, its cause, and how many objects waited at most."""
        self.rollouts: dict[tuple[str, str], list[tuple[datetime, str]]] = {}
        """Namespace and name of rollouts, and their states with the time at which each began."""
        self.unplaced, self.waiting, self.unreachable, self.cost = _Sum(), _Sum(), _Sum(), _Sum()
        """Replicas without a cluster; that do not run; in silent clusters; billionths per hour."""
        self._silent: frozenset[str] = frozenset()
        self.cost_at_start = 0
        self._plane: Wiring | None = None
        self._clusters: Informer | None = None

    def begin(self, plane: Wiring) -> None:
        """Follow a control plane, whose caches are filled."""
        self._plane, self._clusters = plane, plane.informers.for_resource(FEDERATED_CLUSTERS)
        plane.objects.subscribe(self._on_federated, None)
        plane.informers.for_resource(PLACEMENT_HOLDS).add_handler(self._on_hold)
        plane.informers.for_resource(FEDERATED_ROLLOUTS).add_handler(self._on_rollout)
        for type_ in plane.types.all():
            if type_.paths.replicas_spec and (path := type_.paths.available_replicas_status):
                informer = plane.informers.for_resource(type_.resource)
                informer.add_handler(partial(self._on_source, type_, path))

    def restart(self) -> None:
        """Forget what happened so far, not what holds."""
        now_s = self._clock.monotonic()
        self.moves, self.placements, self.outcomes = [], [], Counter()
        self.holds.clear()
        for each in self._sums:
            each.add_up(now_s)
            each.total = 0.0
        self.cost_at_start = self.cost.now

    def add_up(self) -> None:
        """Bring the totals up to now."""
        for each in self._sums:
            each.add_up(self._clock.monotonic())

    @property
    def _sums(self) -> tuple[_Sum, ...]:
        return self.unplaced, self.waiting, self.unreachable, self.cost

    def silence(self, clusters: Iterable[str]) -> None:
        """Take over which clusters do not answer: what is placed there may not run."""
        self._silent = frozenset(clusters)
        for federated in list(self._plane.objects.scan()) if self._plane is not None else ():
            self._on_federated(None, federated)

    @property
    def moved_replicas(self) -> int:
        """Replicas that left a cluster."""
        return sum(move.left for move in self.moves)

    def hourly_cost(self, *, is_at_start: bool = False) -> float:
        """Return the price of all replicas per hour, now or at the start."""
        return from_nano(self.cost_at_start if is_at_start else self.cost.now)

    def decided(self, record: DecisionRecord) -> None:
        """Take over a decision."""
        self.outcomes[record.outcome] += 1
        found: Mapping[str, Any] = orjson.loads(record.explanation)
        before, after = found.get("previous") or {}, found.get("placements") or {}
        if not after or before == after:
            return
        wanted = int((found.get("unit") or {}).get("desiredReplicas") or 0)
        left = left_replicas(before, after, wanted)
        because = [describe_triggers(found.get("because") or ())]
        because += [f"{each['name']}, of {each['of']}" for each in found.get("changes") or ()]
        cause = "; ".join(filter(None, because)) or _QUIET
        move = Move(record.at, record.identity, before, after, left, cause)
        if left or (before and not before.keys() <= after.keys()):
            self.moves.append(move)
        elif not before:
            self.placements.append(move)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        plane = self._plane
        metadata = (new if new is not None else old or {})["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        now_s = self._clock.monotonic()
        type_ = plane.objects.type_of(new) if plane is not None and new is not None else None
        if new is None or type_ is None or plane is None or (wanted := self._wanted(new, type_)) is None:
            for each in (self.unplaced, self.unreachable, self.cost):
                each.put(key, 0, now_s)
            return
        placed = current_clusters(new, type_)
        silent = sum(wanted if placed[name] is None else placed[name] or 0 for name in self._silent & placed.keys())
        self.unreachable.put(key, silent, now_s)
        self.unplaced.put(key, missing_replicas(placed, wanted), now_s)
        self.cost.put(key, self._cost(new, type_, placed, wanted), now_s)

    @staticmethod
    def _wanted(federated: Object, type_: FederatedType) -> int | None:
        """Return the replicas of an object that a policy selects, None for others."""
        labels = federated["metadata"].get("labels") or {}
        has_policy = labels.keys() & {names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL}
        if not has_policy and not federated["spec"].get("placements"):
            return None
        return type_.replicas(federated["spec"]["template"])

    def _cost(self, federated: Object, type_: FederatedType, placed: Placements, wanted: int) -> int:
        """Return billionths per hour for a placement."""
        request, total = None, 0
        for name, count in placed.items():
            cluster = self._clusters.get("", name) if self._clusters is not None else None
            labels = (cluster["metadata"].get("labels") or {}) if cluster is not None else {}
            rates = rates_from(labels, names.PRICE_PREFIX)
            if rates.per_hour:
                request = request_of(federated["spec"]["template"], type_) if request is None else request
                total += (rates.cost_of(request) or 0) * (wanted if count is None else count)
        return total

    def _on_source(self, type_: FederatedType, path: dotpaths.Path, old: Object | None, new: Object | None) -> None:
        metadata = (new if new is not None else old or {})["metadata"]
        key = (type_.name, metadata.get("namespace") or "", metadata["name"])
        waiting = 0
        if new is not None:
            available = dotpaths.get(new, path)
            waiting = max(0, (type_.replicas(new) or 0) - (available if isinstance(available, int) else 0))
        self.waiting.put(key, waiting, self._clock.monotonic())

    def _on_hold(self, old: Object | None, new: Object | None) -> None:
        del old
        if new is not None:
            spec, name = new["spec"], str(new["metadata"]["name"])
            at, _, most = self.holds.get(name, (self._clock.now(), "", 0))
            self.holds[name] = at, str(spec.get("cause") or ""), max(most, int(spec.get("count") or 0))

    def _on_rollout(self, old: Object | None, new: Object | None) -> None:
        del old
        if new is None:
            return
        metadata = new["metadata"]
        states = self.rollouts.setdefault((str(metadata.get("namespace") or ""), str(metadata["name"])), [])
        state = _state_of(new)
        if state and (not states or states[-1][1] != state):
            states.append((self._clock.now(), state))


def _state_of(rollout: Object) -> str:
    """Return how far a rollout is: RolledBack or Paused, or why it progresses or not."""
    held = (rollout.get("status") or {}).get("conditions")
    for type_ in ("RolledBack", "Paused"):
        if (find(held, type_) or {}).get("status") == "True":
            return type_
    return str((find(held, "Progressing") or {}).get("reason") or "")


class _ObservedJournal(MemoryJournal):
    """A journal that tells the observation of each decision."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(_JOURNAL)
        self._observation = observation

    async def append(self, record: DecisionRecord) -> None:
        await super().append(record)
        self._observation.decided(record)
