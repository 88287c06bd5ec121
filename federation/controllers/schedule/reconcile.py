"""The steps that place one federated object (spec §5.3).

In order: is it our turn, which policy applies, did anything change that matters, decide, write. What a turn comes to is
`scheduling/turn.py`'s, deciding is the engine's; here decisions meet the world. Whatever goes wrong on the way to a
decision — no policy, no profile, a failing plugin, no cluster that fits — keeps the last placement, passes the turn on
so that the object's other changes still reach its clusters, and is told (D8). Such an object waits: it is looked at
again when something changes that could help, and never by polling.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, Object
from federation.base.clock import Clock
from federation.client.protocol import Client, PatchType
from federation.controllers.schedule.driving import PluginCaller, drive
from federation.controllers.schedule.facts import Facts
from federation.controllers.schedule.parking import Parking
from federation.controllers.schedule.report import Reporter, Subject
from federation.controllers.schedule.waiting import Told, Waiting
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.federatedtypes import FederatedTypes
from federation.scheduling import persist
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.explain import digest_of_failure, to_explanation
from federation.scheduling.framework.types import Change
from federation.scheduling.hope import NO_CLUSTER_HELPS, Hope, hope_of
from federation.scheduling.inputs import inputs_of, object_hash
from federation.scheduling.shortage import is_short, with_added_only
from federation.scheduling.snapshot import Snapshot, changes
from federation.scheduling.triggers import IGNORED_PLUGINS
from federation.scheduling.turn import (
    Deferred,
    Due,
    Finding,
    Stuck,
    Turn,
    UnitOptions,
    Untouched,
    assess,
    copied_because,
    kept,
    open_turn,
    placed,
    reserve,
)

REPORTED = Change.RESOURCES | Change.ANNOTATIONS
"""What members change every few seconds."""
_ANYTHING_HELPS = Hope(other=Change.ANY)


class FederatedObjects(Protocol):
    """The cached federated objects."""

    def federated(self, key: Key) -> Object | None:
        """Return the object; without a namespace in the key it is a ClusterFederatedObject."""
        ...


@dataclass(frozen=True, slots=True)
class _Case:
    """One object at its turn, with what applies to it."""

    key: Key
    subject: Subject
    turn: Turn
    started_s: float
    is_first: bool
    """Whether it is looked at for the first time since the start: what is known without a decision is not known yet."""

    @property
    def fed_object(self) -> Object:
        return self.subject.fed_object

    def context(self, **more: Any) -> dict[str, Any]:
        """Return what the journal says in front of the explanation."""
        ref = self.turn.ref
        policy = {"namespace": ref.namespace, "name": ref.name} if ref else None
        return {"policy": policy, "generation": self.fed_object["metadata"].get("generation"), **more}

    def undecided(self, outcome: str, reason: str, **more: Any) -> dict[str, Any]:
        """Return the explanation of there being nothing to decide, or of a decision being impossible."""
        return {**self.context(**more), "outcome": outcome, "reason": reason, "placements": self.turn.current()}


class Reconciler:
    """Places one federated object per call."""

    def __init__(
        self,
        client: Client,
        objects: FederatedObjects,
        types: FederatedTypes,
        facts: Facts,
        engine: Engine,
        reporter: Reporter,
        *,
        clock: Clock,
        options: UnitOptions | None = None,
        reports_wait_s: float,
        parking: Parking,
        caller: PluginCaller | None = None,
    ) -> None:
        self._client = client
        self._objects = objects
        self._types = types
        self._facts = facts
        self._engine = engine
        self._reporter = reporter
        self._clock = clock
        self._options = options or UnitOptions()
        self._caller = caller
        self._parking = parking
        self._reports_wait_s = reports_wait_s

    async def reconcile(self, key: Key) -> Result:
        """Look at the object when it is our turn; write at most one patch of it, and one of its status on trouble."""
        self._parking.leave(key)
        case = self._open(key)
        if case is None:
            return DONE
        snapshot = self._facts.clusters.snapshot()
        promised = self._facts.reservations.promised(self._clock.monotonic())
        finding = assess(
            case.turn,
            self._facts,
            snapshot,
            is_waiting=key in self._facts.waiting,
            is_short=self._facts.short.is_due(key, self._clock.now()),
            is_plugin_back=any(map(self._parking.may_answer, case.turn.ignored_plugins())),
            options=self._options,
            reserved=promised,
        )
        match finding:
            case Due() if self._is_hopeless(case, finding):
                await self._keep(case, Stuck("", ""))
                return self._await_time(self._facts.waiting, key)
            case Due():
                return await self._schedule(case, finding, snapshot)
            case Stuck():
                await self._fail(case, finding)
            case Deferred():
                await self._defer(case, finding)
                parked = self._await_ignored(case, case.turn.ignored_plugins())
                return self._await_time(self._facts.short, key) if parked == DONE else parked
            case Untouched():
                self._facts.waiting.discard(key)
                self._facts.short.discard(key)
                await self._reporter.recovered(case.subject, await self._keep(case, finding))
        return DONE

    # -- the steps

    def _open(self, key: Key) -> _Case | None:
        """Return the object with its policy, None when it is gone, not ours, or not our turn."""
        fed_object = self._objects.federated(key)
        if fed_object is None or fed_object["metadata"].get("deletionTimestamp"):
            self._facts.forget(key)
            return None
        federated_type = self._types.for_federated(fed_object)
        turn = open_turn(fed_object, federated_type, self._facts.policies) if federated_type is not None else None
        if federated_type is None or turn is None:
            return None
        resource = FEDERATED_OBJECTS if key.namespace else CLUSTER_FEDERATED_OBJECTS
        subject = Subject(resource, federated_type, fed_object)
        is_first = self._facts.bind(key, turn.ref)
        if turn.problem:
            message = f"annotation {names.MIGRATION_CONFIGURATION} is not followed: {turn.problem}"
            self._reporter.event(subject, WARNING, names.EVENT_PARSE_MIGRATION_CONFIGURATION, message)
        return _Case(key, subject, turn, self._clock.monotonic(), is_first)

    def _is_hopeless(self, case: _Case, due: Due) -> bool:
        """Say whether it was decided that the object cannot be scheduled, and nothing has happened that could help."""
        told = self._facts.waiting.told(case.key)
        if told is None or self._facts.waiting.is_helped(case.key) or told.basis != self._basis_of(case, due):
            return False
        return told.hope.at is None or told.hope.at > self._clock.now()

    def _basis_of(self, case: _Case, due: Due) -> str:
        """Return what a decision depends on besides the clusters, whose changes are looked at one by one."""
        profile_hash = self._facts.profiles.hash(due.policy.profile)
        return f"{object_hash(case.fed_object)} {due.policy.ref} {due.policy.content_hash} {profile_hash}"

    async def _schedule(self, case: _Case, due: Due, snapshot: Snapshot) -> Result:
        """Decide, and put the decision in force; what helps from now on is looked at the next time."""
        helped = [known for known in (self._facts.waiting, self._facts.short) if known.is_helped(case.key)]
        for known in helped:
            known.unmark(case.key)
        try:
            return await self._decide(case, due, snapshot)
        except BaseException:
            for known in helped:
                known.mark((case.key,))  # What has helped was not made use of.
            raise

    async def _decide(self, case: _Case, due: Due, snapshot: Snapshot) -> Result:
        now = self._clock.now()
        decision, has_asked = await drive(self._engine.run(due.unit, snapshot, due.profile, now=now), self._caller)
        if due.only_adds:
            decision = with_added_only(decision)
        inputs = inputs_of(
            case.fed_object,
            snapshot,
            policy_hash=due.policy.content_hash,
            profile_hash=self._facts.profiles.hash(due.policy.profile),
            reserved=due.unit.reserved,
        )
        context = case.context(because=due.verdict.changed, inputs=inputs)
        if copied := copied_because(case.turn, due):
            context["copiedBecause"] = copied
        if due.ignored:
            self._tell_ignored(case, due)
            context["ignoredAnnotations"] = due.ignored
        explanation = {**context, **to_explanation(decision)}
        if decision.outcome is Outcome.PLUGIN_FAILED:
            return await self._await_plugin(case, due, decision, explanation, has_asked=has_asked)
        if decision.is_success:
            without = [ignored.plugin for ignored in decision.ignored if self._parking.is_silent(ignored.plugin)]
            await self._place(case, due, decision, explanation, without)
            parked = self._await_ignored(case, without)
            if not is_short(decision):
                self._facts.short.discard(case.key)
                return parked
            hope = hope_of(decision, self._engine.framework(due.profile), now)
            self._facts.short.add(case.key, Told("", b"", now, hope=hope))
            helped = self._await_help(self._facts.short, case.key, hope, snapshot)
            return helped if parked == DONE else parked
        hope = hope_of(decision, self._engine.framework(due.profile), now)
        stuck = Stuck(decision.outcome, decision.reason)
        await self._fail(case, stuck, explanation, basis=self._basis_of(case, due), hope=hope)
        return self._await_help(self._facts.waiting, case.key, hope, snapshot)

    def _await_help(self, known: Waiting, key: Key, hope: Hope, seen: Snapshot) -> Result:
        """Return when the object is looked at again: soon when what helps has happened while it was decided."""
        happened = changes(seen, self._facts.clusters.snapshot())
        helped = [change for name, change in happened if hope.is_helped_by(name, change)]
        if helped:
            known.mark((key,))
            return Result(0.0 if any(change & ~REPORTED for change in helped) else self._reports_wait_s)
        return self._await_time(known, key)

    def _await_time(self, known: Waiting, key: Key) -> Result:
        """Return when time alone can help the object, each time anew: the queue keeps one moment, the next, per key."""
        told = known.told(key)
        if told is None or told.hope.at is None:
            return DONE
        return Result(max(0.0, (told.hope.at - self._clock.now()).total_seconds()))

    def _await_ignored(self, case: _Case, plugins: Sequence[str]) -> Result:
        """Let an object that was decided without plugins wait for any of them, if its policy would follow that."""
        policy = case.turn.policy
        if not plugins or policy is None or not policy.follows_content or self._caller is None:
            return DONE
        return self._parking.park(case.key, plugins, case.started_s)

    async def _await_plugin(
        self, case: _Case, due: Due, decision: Decision, explanation: dict[str, Any], *, has_asked: bool
    ) -> Result:
        """Let the object wait for the plugin that failed, or for anything when the profile cannot work."""
        if due.only_adds:
            self._facts.short.mark((case.key,))  # What has helped was not made use of.
            await self._reporter.tried_again(case.subject, decision.outcome, explanation, case.started_s)
        else:
            stuck = Stuck(decision.outcome, decision.reason)
            await self._fail(case, stuck, explanation, hope=NO_CLUSTER_HELPS if has_asked else _ANYTHING_HELPS)
        if has_asked and decision.failure is not None:
            return self._parking.park(case.key, (decision.failure.plugin,), case.started_s)
        return DONE

    def _tell_ignored(self, case: _Case, due: Due) -> None:
        is_allowed = self._facts.switch.allows(case.key.namespace)
        reason = names.EVENT_INVALID_SCHEDULING_ANNOTATION if is_allowed else names.EVENT_SCHEDULING_ANNOTATION_IGNORED
        for annotation, why in due.ignored.items():
            self._reporter.event(case.subject, WARNING, reason, f"annotation {annotation} is ignored: {why}")

    # -- the endings

    async def _place(
        self, case: _Case, due: Due, decision: Decision, explanation: dict[str, Any], without: Sequence[str]
    ) -> None:
        before = decision.unit.current
        patch, is_moved = placed(case.turn, due, decision.placements, decision.reason, without)
        reserve(self._facts.reservations, case.key, decision, self._clock.monotonic())
        try:
            fed_object = await self._write(case, patch)
        except BaseException:
            self._facts.reservations.release(case.key)  # It was not put in force.
            raise
        self._facts.waiting.discard(case.key)
        await self._reporter.recovered(case.subject, fed_object)
        if is_moved or (decision.shortage and _summary(fed_object) != _summary(case.fed_object)):
            move = persist.describe_move(before, decision.placements) or "it stays as it was"
            message = "; ".join(filter(None, (f"{move} ({case.turn.ref})", decision.shortage)))
            type_ = WARNING if decision.shortage else NORMAL
            self._reporter.event(case.subject, type_, names.EVENT_SCHEDULED, message)
        explanation["isChanged"] = is_moved
        is_retry = due.only_adds or (bool(without) and due.verdict.changed == (IGNORED_PLUGINS,))
        if is_retry and not is_moved:
            await self._reporter.tried_again(case.subject, decision.outcome, explanation, case.started_s)
        else:
            await self._reporter.journal(case.subject, decision.outcome, explanation, case.started_s)

    async def _defer(self, case: _Case, finding: Deferred) -> None:
        """Keep the placement: nothing changed, or only what the policy says not to follow."""
        deferred = finding.verdict.deferred_reasons
        present = case.fed_object["metadata"].get("annotations") or {}
        if case.is_first and case.turn.is_short():
            # Which changes help is not known any more: the first one leads to a decision that knows.
            self._facts.short.add(case.key, Told("", b"", self._clock.now(), hope=_ANYTHING_HELPS))
        fed_object = await self._keep(case, finding)
        await self._reporter.recovered(case.subject, fed_object)
        if deferred and present.get(names.SCHEDULING_DEFERRED_REASONS) != deferred:
            explanation = case.undecided("Deferred", deferred, because=finding.verdict.changed)
            await self._reporter.journal(case.subject, "Deferred", explanation, case.started_s)

    async def _fail(
        self,
        case: _Case,
        stuck: Stuck,
        decided: dict[str, Any] | None = None,
        *,
        basis: str = "",
        hope: Hope = NO_CLUSTER_HELPS,
    ) -> None:
        """Keep the placement because no decision was possible, and tell it once; the journal counts repetitions."""
        fed_object, why = await self._keep(case, stuck), f"{stuck.reason}: {stuck.message}"
        explanation = decided or case.undecided(stuck.reason, stuck.message)
        digest, told = digest_of_failure(explanation), self._facts.waiting.told(case.key)
        if told is not None and told.digest == digest:
            if decided is not None:
                await self._reporter.repeated(case.subject, told.at)
            self._facts.waiting.add(case.key, Told(why, digest, told.at, basis, hope))
            return
        if told is None or told.why != why:
            has_place = bool(case.turn.current())
            await self._reporter.failed(case.subject, fed_object, stuck.reason, stuck.message, has_place=has_place)
        at = await self._reporter.journal(case.subject, stuck.reason, explanation, case.started_s)
        self._facts.waiting.add(case.key, Told(why, digest, at, basis, hope))

    async def _keep(self, case: _Case, finding: Finding) -> Object:
        return await self._write(case, kept(case.turn, finding))

    async def _write(self, case: _Case, patch: Object | None) -> Object:
        """Send the patch, if any; return the object as it is then."""
        if patch is None:
            return case.fed_object
        return await self._client.patch(
            case.subject.resource,
            case.key.name,
            patch,
            patch_type=PatchType.MERGE,
            namespace=case.key.namespace,
        )


def _summary(fed_object: Object) -> str | None:
    """Return what was last told about the object's placement."""
    found: str | None = (fed_object["metadata"].get("annotations") or {}).get(names.SCHEDULING_SUMMARY)
    return found
