"""The guard over decisions: one that takes an object away from clusters goes on, waits a moment, or is held.

The arithmetic is in `planning/guard`. A held decision is recorded in an annotation of the federated object; a
PlacementHold, which `holds.py` writes, lists all of one cause and takes the approval. After a restart the annotations
are read again, so nothing held goes on and the window is counted further. Reference: docs/reference/guard.md.
"""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

from federation.api import names
from federation.api.resources import PLACEMENT_HOLDS
from federation.apimachinery.clock import Clock, from_rfc3339, to_rfc3339
from federation.apimachinery.resources import Object
from federation.controllers.schedule.decider import AttemptContext
from federation.controllers.schedule.inputcache import InputCache
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.guard.ledger import Cause, GuardOptions, Ledger, Verdict
from federation.planning.guard.losses import Blame, blame, held_placement, lost_clusters
from federation.planning.guard.record import HeldMove, PastMove, held_move, held_text, past_move, past_text
from federation.planning.guard.undo import requested_undo, undo_problem, undone_placement
from federation.runtime.controller import Key, key_of
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.scheduling.attempt import Annotations, Due
from federation.scheduling.engine import Decision, Placements
from federation.scheduling.snapshot import Snapshot

BY_HOLD = "schedule/hold"
"""The index of federated objects by the PlacementHold that they wait for."""
_BY_CLUSTER = "schedule/placed-in"
_SLUG_LENGTH_MAX = 40


@dataclass(frozen=True, slots=True)
class Ruling:
    """The placement to write, unless the verdict is WAIT, with the guard's annotations; `message` says what is held."""

    verdict: Verdict
    placements: Placements
    annotations: Annotations
    wait_s: float = 0.0
    message: str = ""


class Guard:
    """Rules about the decisions of all federated objects. It lives as long as the schedule controller."""

    def __init__(
        self,
        objects: FederatedObjects,
        informers: Informers,
        cache: InputCache,
        recorder: Recorder,
        clock: Clock,
        options: GuardOptions,
    ) -> None:
        self._objects = objects
        self._recorder = recorder
        self._cache = cache
        self._clock = clock
        self._options = options
        self._holds = informers.for_resource(PLACEMENT_HOLDS)
        self._ledger: Ledger[Key] = Ledger(options)
        self._open: dict[Cause, str] = {}
        """The PlacementHold that takes further moves of a cause, until it is approved."""
        objects.add_index(BY_HOLD, _hold_of)
        objects.add_index(_BY_CLUSTER, effective_placement)

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Count what an object recorded before the restart, and forget a deleted one."""
        if new is None:
            self._ledger.withdraw(key_of(old or {}))
        elif old is None:
            if (held := held_move(new)) is not None and not self._approval(held.hold):
                self._ledger.hold(key_of(new), held.cause)
                self._open.setdefault(held.cause, held.hold)
            if (past := past_move(new)) is not None and not past.hold:
                with contextlib.suppress(ValueError):  # somebody edited the annotation
                    self._ledger.record(key_of(new), past.causes, from_rfc3339(past.at).timestamp())

    def withdraw(self, key: Key) -> None:
        """Forget the move of an object that stays where it is."""
        self._ledger.withdraw(key)

    def rule(self, context: AttemptContext, due: Due, decision: Decision, snapshot: Snapshot) -> Ruling:
        """Return what is written for a successful decision."""
        existing = {cluster.name for cluster in snapshot.clusters if not cluster.is_terminating}
        before = {name: count for name, count in context.attempt.current().items() if name in existing}
        lost = lost_clusters(before, decision.placements)
        go = Ruling(Verdict.GO, decision.placements, {names.HELD_PLACEMENT: None})
        blamed = blame(frozenset(due.comparison.changed), before) if lost else frozenset()
        if not blamed or self._options.share >= 1:
            self._ledger.withdraw(context.key)
            return go
        sizes, held = self._sizes(context, due, lost, blamed), held_move(context.federated)
        if held is not None and self._is_approved(held, lost):
            self._ledger.withdraw(context.key)
            return replace(go, annotations=self._moved(before, sizes, held.hold))
        judgement = self._ledger.propose(context.key, sizes, self._clock.now().timestamp())
        if judgement.verdict is Verdict.GO:
            return replace(go, annotations=self._moved(before, sizes, ""))
        if judgement.verdict is Verdict.WAIT:
            return replace(go, verdict=Verdict.WAIT, wait_s=judgement.wait_s)
        assert judgement.cause is not None
        move = self._held(held, judgement.cause, lost)
        message = (
            f"{move.cause} would move more objects at a time than the guard allows; this one would lose clusters "
            f"[{','.join(sorted(lost))}]. To let them go on: fedctl approve {move.hold} --reason TEXT"
        )
        placements = held_placement(before, decision.placements, decision.unit.desired_replicas)
        return Ruling(Verdict.HOLD, placements, {names.HELD_PLACEMENT: held_text(move)}, message=message)

    def undo(self, context: AttemptContext, snapshot: Snapshot) -> Placements | None:
        """Return the placement to restore because the user asks to undo the last move, None otherwise."""
        past, attempt = requested_undo(context.federated), context.attempt
        if past is None or attempt.policy is None:
            return None
        existing = [cluster.name for cluster in snapshot.clusters if not cluster.is_terminating]
        problem = undo_problem(past, existing, self._clock.now())
        if not problem and not self._cache.annotation_policy.allows(context.key.namespace):
            problem = "annotations may not override policies in this namespace"
        if problem:
            self._recorder.event(context.federated, WARNING, names.EVENT_UNDO_REFUSED, problem)
            return None
        self._ledger.withdraw(context.key)
        wanted = attempt.federated_type.replicas(context.federated["spec"]["template"])
        return undone_placement(past, attempt.current(), wanted)

    def _sizes(
        self, context: AttemptContext, due: Due, lost: frozenset[str], blamed: frozenset[Blame]
    ) -> Mapping[Cause, int]:
        """Return the number of objects by cause, in the order in which one of them is named."""
        ref, type_, profile = due.policy.ref, context.attempt.federated_type, due.policy.profile
        sizes: dict[Cause, int] = {}
        if Blame.POLICY in blamed:
            kind = "PropagationPolicy" if ref.namespace else "ClusterPropagationPolicy"
            sizes[Cause(kind, ref.namespace, ref.name)] = self._cache.count_bound_to(ref)
        if Blame.PROFILE in blamed:
            sizes[Cause("SchedulingProfile", "", profile or "default")] = len(self._cache.using_profile(profile))
        if Blame.TYPE in blamed:
            sizes[Cause("FederatedTypeConfig", "", type_.name)] = len(self._objects.of_type(type_))
        if Blame.CLUSTERS in blamed:
            for cluster in sorted(lost):
                sizes[Cause("FederatedCluster", "", cluster)] = len(self._objects.by_index(_BY_CLUSTER, cluster))
        return sizes

    def _moved(self, before: Placements, causes: Mapping[Cause, int], hold: str) -> Annotations:
        past = PastMove(to_rfc3339(self._clock.now()), tuple(causes), before, hold)
        return {names.HELD_PLACEMENT: None, names.PREVIOUS_PLACEMENT: past_text(past)}

    def _held(self, before: HeldMove | None, cause: Cause, lost: frozenset[str]) -> HeldMove:
        """Return the record of the held move; it stays as it is while the same is held."""
        if before is not None and before.cause == cause and lost <= before.clusters and not self._approval(before.hold):
            return before
        now = self._clock.now()
        name = self._open.get(cause)
        if name is None or self._approval(name):
            name = self._open[cause] = _hold_name(cause, int(now.timestamp()))
        return HeldMove(name, cause, lost, to_rfc3339(now))

    def _is_approved(self, held: HeldMove, lost: frozenset[str]) -> bool:
        """Return whether exactly this move was approved: no other cluster, and not held after the approval."""
        approval = self._approval(held.hold)
        return bool(approval) and lost <= held.clusters and held.since < str(approval.get("at", ""))

    def _approval(self, hold: str) -> Mapping[str, object]:
        stored = self._holds.get("", hold)
        return (stored or {}).get("spec", {}).get("approval") or {}


def _hold_of(federated: Object) -> tuple[str, ...]:
    held = held_move(federated)
    return (held.hold,) if held is not None else ()


def _hold_name(cause: Cause, second: int) -> str:
    """Return a name that people recognise and that no earlier hold has."""
    slug = re.sub("[^a-z0-9]+", "-", f"{cause.namespace}-{cause.name}".lower()).strip("-")
    digest = blake2b(f"{cause} {second}".encode(), digest_size=4).hexdigest()
    return f"{slug[:_SLUG_LENGTH_MAX].rstrip('-')}-{digest}"
