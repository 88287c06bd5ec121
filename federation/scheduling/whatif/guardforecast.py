"""Foresee which moves of a plan the guard would hold, by the rules that the schedule controller follows. Pure.

Moves of the last minutes and held ones count, as they do there: federated objects record them. Moves away from clusters
with NoExecute taints do not, because failover limits these.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from federation.api import names
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, group_kind_of
from federation.planning.federatedobject.placements import effective_placement, placement_of
from federation.planning.guard.causes import Mover, blamed_for, causes_of_move
from federation.planning.guard.ledger import Cause, GuardOptions
from federation.planning.guard.losses import lost_clusters
from federation.planning.guard.record import held_move, past_move
from federation.scheduling.answers import Due
from federation.scheduling.framework.types import Effect
from federation.scheduling.volumefacts import permit_of_decision
from federation.scheduling.whatif.pipelinerun import PipelineRun
from federation.scheduling.whatif.planresult import PlannedHold
from federation.scheduling.whatif.state import CompiledState, Name, ObjectSet

_CLAIM = PERSISTENT_VOLUME_CLAIMS.group_kind


@dataclass(frozen=True, slots=True)
class _Move:
    """One object that loses clusters: what it counts for, and the volumes that it would leave behind."""

    key: Name
    causes: tuple[Cause, ...]
    volumes: str


@dataclass
class GuardForecast:
    """The moves of one plan, counted by cause. `before` and `after` are the objects without and with the changes."""

    before: ObjectSet
    after: ObjectSet
    state: CompiledState
    options: GuardOptions
    now: datetime
    _moves: list[_Move] = field(default_factory=list)

    def add(self, key: Name, run: PipelineRun) -> None:
        """Count what the run takes away from clusters."""
        attempt, due, decision = run.attempt, run.assessment, run.decision
        if attempt is None or not isinstance(due, Due) or decision is None or not decision.is_success:
            return
        snapshot = decision.snapshot
        evicting = {cluster.name for cluster in snapshot.clusters if _is_evicted(cluster.taints)}
        held = held_move(run.federated)
        permit = permit_of_decision(
            attempt,
            due,
            decision,
            self._modes(key[0]),
            evicting=evicting,
            held=frozenset() if held is None else held.clusters,
        )
        counted = {each.name for each in snapshot.clusters if not each.is_terminating} - evicting - snapshot.left.keys()
        counted |= permit.waits.keys()
        before = {name: count for name, count in attempt.current().items() if name in counted}
        lost = lost_clusters(before, decision.placements) | permit.waits.keys()
        if blamed := blamed_for(due.comparison.changed, before, lost, permit, self.options.share):
            ref = due.policy.ref
            project = snapshot.project
            mover = Mover(ref.namespace, ref.name, due.policy.profile, run.type_.name, key[0], project)
            volumes = permit.volumes if permit.waits else ""
            self._moves.append(_Move(key, tuple(causes_of_move(blamed, mover, lost)), volumes))

    def holds(self) -> list[PlannedHold]:
        """Return what would be held. An object is held for its first cause that exceeds its limit."""
        if not self._moves:
            return []
        counted: dict[Cause, set[Name]] = {}
        for recorded, key in self._recorded:
            counted.setdefault(recorded, set()).add(key)
        for move in self._moves:
            for each in () if move.volumes else move.causes:
                counted.setdefault(each, set()).add(move.key)
        found: dict[tuple[Cause, str], list[_Move]] = {}
        for move in self._moves:
            exceeded = (each for each in move.causes if self._is_exceeded(each, counted))
            cause: Cause | None = move.causes[0] if move.volumes else next(exceeded, None)
            if cause is not None:
                found.setdefault((cause, move.volumes), []).append(move)
        return [
            PlannedHold(
                str(held_for),
                tuple(sorted(move.key for move in moves)),
                volumes=volumes,
                counted=len(counted.get(held_for, ())),
                size=self._size(held_for),
                allowed=self.options.allowed(self._size(held_for)),
            )
            for (held_for, volumes), moves in sorted(found.items(), key=lambda entry: (str(entry[0][0]), entry[0][1]))
        ]

    def _is_exceeded(self, cause: Cause, counted: Mapping[Cause, AbstractSet[Name]]) -> bool:
        count = len(counted.get(cause, ()))
        return count > self.options.count and count > self.options.allowed(self._size(cause))

    @cached_property
    def _recorded(self) -> Sequence[tuple[Cause, Name]]:
        """The moves of the window, and those that are held."""
        found = []
        since = self.now - timedelta(seconds=self.options.window_s)
        for federated in self.before.federated():
            key = _key(federated)
            if (held := held_move(federated)) is not None:
                found.append((held.cause, key))
            past = past_move(federated)
            if past is not None and not past.hold and _is_since(past.at, since):
                found += [(cause, key) for cause in past.causes]
        return found

    def _size(self, cause: Cause) -> int:
        if cause not in self._sizes:
            self._sizes[cause] = sum(self._counts(federated, cause) for federated in self.after.federated())
        return self._sizes[cause]

    @cached_property
    def _sizes(self) -> dict[Cause, int]:
        return {}

    def _counts(self, federated: Mapping[str, Any], cause: Cause) -> bool:
        """Return whether the object is one of the cause's."""
        match cause.kind:
            case "Project":
                project = self.state.scoped.projects.of(federated["metadata"].get("namespace", ""))
                return project is not None and project.name == cause.name
            case "Namespace":
                is_placed = bool(placement_of(federated, names.GLOBAL_SCHEDULER))
                return federated["metadata"].get("namespace", "") == cause.name and is_placed
            case "FederatedCluster":
                return cause.name in effective_placement(federated)
            case "FederatedTypeConfig":
                type_ = self.state.type_of(federated["spec"].get("template") or {})
                return type_ is not None and type_.name == cause.name
        ref = self.state.policies.match(federated)
        if cause.kind != "SchedulingProfile":
            return ref is not None and (ref.namespace, ref.name) == (cause.namespace, cause.name)
        policy = self.state.policies.policy_of(federated, ref)
        return policy is not None and (policy.profile or "default") == cause.name

    def _modes(self, namespace: str) -> "_ClaimModes":
        return _ClaimModes(self._claims, namespace)

    @cached_property
    def _claims(self) -> Mapping[Name, Sequence[str]]:
        """The access modes of the host's claims."""
        found = {}
        for federated in self.after.federated():
            template = federated["spec"].get("template") or {}
            if group_kind_of(template) == _CLAIM:
                key = (federated["metadata"].get("namespace", ""), template["metadata"]["name"])
                found[key] = (template.get("spec") or {}).get("accessModes") or ()
        return found


@dataclass(frozen=True, slots=True)
class _ClaimModes:
    claims: Mapping[Name, Sequence[str]]
    namespace: str

    def __call__(self, name: str) -> Sequence[str] | None:
        return self.claims.get((self.namespace, name))


def _is_evicted(taints: Iterable[Any]) -> bool:
    return any(taint.effect == Effect.NO_EXECUTE for taint in taints)


def _is_since(at: str, since: datetime) -> bool:
    try:
        return from_rfc3339(at) > since
    except ValueError:
        return False


def _key(federated: Mapping[str, Any]) -> Name:
    return federated["metadata"].get("namespace") or "", federated["metadata"]["name"]
