"""Decide about one federated object: start an attempt, assess it, run the engine, and collect the explanation.

It reads the input cache and calls remote plugins; it writes nothing. `reconcile.py` acts on the results.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from msgspec import structs

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import NotFound, PluginError, is_refusal
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.reporting import WRITER, Subject
from federation.planning.failover.completion import Completion
from federation.planning.failover.returning import Returns
from federation.planning.projects.projectindex import namespace_of
from federation.plans.plugincalls import PluginCaller, call_all, drive
from federation.runtime.controller import Key, key_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.scheduling.affinity.relations import relations_of
from federation.scheduling.answers import Assessment, Due, Leave, Wait
from federation.scheduling.assessment import assess, tolerated_until
from federation.scheduling.attempt import SchedulingAttempt, assume, start_attempt
from federation.scheduling.chain import permit
from federation.scheduling.changenames import causing_changes
from federation.scheduling.decisioninputs import inputs_of, object_hash
from federation.scheduling.engine import Decision, Engine
from federation.scheduling.explain import to_explanation
from federation.scheduling.framework.relations import RELATIONS
from federation.scheduling.framework.types import PluginRequest, PluginResponse
from federation.scheduling.occasions import Occasion
from federation.scheduling.pendingreplicas import completed, duplicate_reason
from federation.scheduling.proposal import Proposal
from federation.scheduling.queueinghints import QueueingHint, queueing_hint_for
from federation.scheduling.quotas import describe_withheld
from federation.scheduling.recalledgangs import recalled_pods
from federation.scheduling.relatedworkloads import placed_in, to_workload
from federation.scheduling.replay.recorder import InputRecorder
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.worldobjects import ClaimModes
from federation.scheduling.yields import named_in, yields_from


class Unwritten(NamedTuple):
    """The object as it is stored, where an attempt sees changes that go with its write, and who wants to write them."""

    stored: Object
    writer: str


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """One object under reconciliation, with its scheduling attempt."""

    key: Key
    subject: Subject
    attempt: SchedulingAttempt
    started_s: float
    is_first: bool
    """Whether it is the object's first attempt since the start of the process: it has no queueing hint in memory."""
    project: str
    """The project whose clusters alone the decision sees, "" for all clusters."""
    unwritten: Unwritten | None = None

    @property
    def federated(self) -> Object:
        return self.subject.federated

    def head(self, **more: Any) -> dict[str, Any]:
        """Return the fields that the journal has before the explanation."""
        ref = self.attempt.ref
        policy = {"namespace": ref.namespace, "name": ref.name} if ref else None
        if policy is not None and self.attempt.policy is not None and self.attempt.policy.version:
            policy["version"] = self.attempt.policy.version
        if self.project:
            more["project"] = self.project
        return {"policy": policy, "generation": self.federated["metadata"].get("generation"), **more}

    def undecided(self, outcome: str, reason: str, **more: Any) -> dict[str, Any]:
        """Return the explanation for an attempt without a decision."""
        return {**self.head(**more), "outcome": outcome, "reason": reason, "placements": self.attempt.current()}


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision with its explanation for the journal."""

    decision: Decision
    explanation: dict[str, Any]
    has_called_plugins: bool


class _RecordingCaller:
    """Calls remote plugins, and keeps their answers for the records."""

    def __init__(self, caller: PluginCaller | None) -> None:
        self._caller = caller
        self.answers: list[Sequence[PluginResponse]] = []

    async def call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        """Return the answers; without a caller every call fails."""
        answers = await call_all(requests, self._caller)
        self.answers.append(answers)
        return answers


class Decider:
    """Runs scheduling attempts."""

    def __init__(
        self,
        cache: InputCache,
        objects: FederatedObjects,
        engine: Engine,
        caller: PluginCaller | None,
        clock: Clock,
        inputs: InputRecorder,
    ) -> None:
        self._inputs = inputs
        self._cache = cache
        self._objects = objects
        self._engine = engine
        self._caller = caller
        self._clock = clock

    def dated(self, patch: Object | None) -> Object | None:
        """Return the patch of a federated object with the time of the decision if it changes the placement."""
        if patch is None or "placements" not in (patch.get("spec") or {}):
            return patch
        decided = {names.DECIDED_AT: to_rfc3339(self._clock.now())}
        return {**patch, "metadata": apply_merge_patch(patch["metadata"], {"annotations": decided})}

    def start(self, key: Key, federated: Object, unwritten: Unwritten | None = None) -> AttemptContext | None:
        """Return the attempt for the object; None when it is not pending for the scheduler."""
        federated_type = self._objects.type_of(federated)
        if federated_type is None:
            return None
        volumes = self._cache.earlier_volumes.find(key, federated)
        attempt = start_attempt(federated, federated_type, self._cache.policies, volumes)
        if attempt is None:
            return None
        is_first = self._cache.bind(key, attempt.ref)
        subject = Subject(key, federated_type, federated)
        project = self._cache.scoped.projects.of(namespace_of(federated))
        name = project.name if project is not None else ""
        return AttemptContext(key, subject, attempt, self._clock.monotonic(), is_first, name, unwritten)

    def returns(self, context: AttemptContext) -> tuple[Returns, Completion]:
        """Return what may return to clusters that were lost, and whether a placement that lacks some is completed."""
        modes, now = ClaimModes(self._objects, context.key.namespace), self._clock.now()
        evictions = self._cache.evictions
        return evictions.returns(context.attempt, modes, now), evictions.completion(context.attempt, modes, now)

    def assess(
        self,
        context: AttemptContext,
        snapshot: Snapshot,
        *,
        is_plugin_back: bool,
        homes: frozenset[str] = frozenset(),
        completes: bool = False,
    ) -> Assessment:
        """Return whether the object is to be scheduled."""
        occasion = Occasion(
            self._clock.now(),
            is_unschedulable=context.key in self._cache.unschedulable,
            can_place_more=self._cache.unplaced.is_due(context.key, self._clock.now()),
            is_plugin_back=is_plugin_back,
            homes=homes,
            completes=completes,
            assumed=self._cache.assume_cache.snapshot(self._clock.monotonic()),
        )
        return assess(context.attempt, self._cache, self._cache.chain, snapshot, occasion)

    def tolerated_until(self, key: Key) -> dict[str, datetime]:
        """Return until when the object, as it is now, tolerates the taints of its clusters; {} without an end."""
        snapshot = self._cache.clusters.snapshot()
        federated = self._objects.get(key) if snapshot.with_taint_times else None
        federated_type = self._objects.type_of(federated) if federated is not None else None
        if federated is None or federated_type is None:
            return {}
        policies = self._cache.policies
        ref = policies.match(federated)
        attempt = SchedulingAttempt(federated, federated_type, ref, policies.policy_of(federated, ref), {})
        return tolerated_until(attempt, self._cache, snapshot)

    def has_other_relations(self, context: AttemptContext, due: Due, snapshot: Snapshot) -> bool:
        """Return whether workloads that the object has to do with moved since the decision.

        A workload that moves enqueues the objects that wait for it, and this object did not wait yet.
        """
        workloads = self._cache.workloads
        if not workloads.is_active:
            return False
        workload = to_workload(context.federated, context.attempt.federated_type, context.attempt.policy)
        return relations_of(workloads, workload, due.unit, snapshot.by_name) != RELATIONS.of(due.unit)

    def inputs_hash(self, context: AttemptContext, due: Due) -> str:
        """Return a hash of the decision's inputs other than clusters, whose changes have queueing hints."""
        profile_hash = self._cache.profiles.hash(due.policy.profile)
        own = f"{object_hash(context.federated)} {due.policy.ref} {due.policy.content_hash} {profile_hash}"
        return f"{own} {hash(RELATIONS.of(due.unit))}" if RELATIONS.of(due.unit) else own

    async def decide(self, context: AttemptContext, due: Due, snapshot: Snapshot) -> Decided:
        """Run the engine, and remote plugins on its behalf."""
        assert due.occasion is not None  # `assess` made it
        run = self._engine.run(due.unit, snapshot, due.profile, now=due.occasion.now)
        caller = _RecordingCaller(self._caller)
        decision, has_called_plugins = await drive(run, caller)
        decision = completed(decision, context.attempt, due)
        self._inputs.decided(context.attempt, due, decision, caller.answers)
        inputs = inputs_of(
            context.federated,
            snapshot,
            policy_hash=due.policy.content_hash,
            profile_hash=self._cache.profiles.hash(due.policy.profile),
            assumed=due.unit.assumed,
        )
        head = context.head(because=due.comparison.changed, inputs=inputs)
        if changes := causing_changes(context.federated, due.policy, due.comparison.changed):
            head["changes"] = changes
        if duplicated := duplicate_reason(context.attempt, due):
            head["copiedBecause"] = duplicated
        if gives_way := yields_from((context.federated["metadata"].get("annotations") or {}).get(names.GIVES_WAY)):
            namespace = context.key.namespace
            head["givesWay"] = {
                cluster: {**structs.asdict(entry), "to": named_in(namespace, entry.to)}
                for cluster, entry in gives_way.items()
            }
        if due.ignored_annotations:
            head["ignoredAnnotations"] = due.ignored_annotations
        return Decided(decision, {**head, **to_explanation(decision)}, has_called_plugins)

    def propose(
        self, context: AttemptContext, due: Due, decision: Decision, snapshot: Snapshot
    ) -> tuple[Proposal, Wait | Leave | None]:
        """Return what the permits leave of a decision now, and the answer of the one that stops it."""
        proposal = Proposal(context.attempt, due, decision, snapshot, self._cache, self._clock.now())
        return permit(self._cache.chain.permits, proposal)

    def is_local(self, due: Due) -> bool:
        """Return whether the decision needs no remote plugin."""
        try:
            return self._engine.framework(due.profile).is_local
        except PluginError:
            return False

    def is_retry_pointless(self, context: AttemptContext, due: Due) -> bool:
        """Return whether the object is unschedulable and neither its inputs nor matching clusters have changed."""
        unschedulable = self._cache.unschedulable
        record = unschedulable.get(context.key)
        if record is None or unschedulable.is_due(context.key, self._clock.now()):
            return False
        return record.inputs_hash == self.inputs_hash(context, due)

    def assume(self, context: AttemptContext, decision: Decision) -> None:
        """Add the decision's new replicas to the assume cache."""
        assume(self._cache.assume_cache, context.key, decision, self._clock.monotonic())
        self._assume_placed(context, decision)
        self._cache.quotas.wait(context.key.namespace, context.key, is_short=bool(decision.exceeded))

    def with_claim(self, context: AttemptContext, base: Object, patch: Object | None) -> Object | None:
        """Return the patch of `base` with the claim on the namespace's quotas that the patched object has."""
        clusters = self._cache.scoped.of(base).by_name
        return self._cache.quotas.with_claim(context.key, base, context.subject.federated_type, patch, clusters)

    def end_claim(self, context: AttemptContext, base: Object, failure: Exception | None) -> None:
        """Forget the claim of a write that was refused, or that found and left the object as it was."""
        quotas, key = self._cache.quotas, context.key
        ledgers = [accounts.ledger for accounts in self._cache.accounts]
        if failure is None:
            quotas.settle(key.namespace, key, base)
            for ledger in ledgers:
                ledger.settle(key, revision_of(base))
        elif is_refusal(failure):  # without an answer, the next version of the object shows what was written
            quotas.revoke(key.namespace, key)
            for ledger in ledgers:
                ledger.revoke(key)

    def withheld(self, context: AttemptContext) -> str:
        """Return why the object's content is not delivered as it is, "" if it is within the quotas."""
        return describe_withheld(self._cache.quotas.withheld(context.key.namespace, context.key))

    def recall_gangs(self) -> None:
        """Assume the pods of gangs that were placed shortly before this start."""
        now, now_s, cache = self._clock.now(), self._clock.monotonic(), self._cache
        for type_ in self._objects.types.all():
            for federated in self._objects.of_type(type_) if _may_have_gangs(type_) else ():
                policy = cache.policies.policy_of(federated)
                pods, clusters = recalled_pods(federated, type_, policy.gang if policy else "", now)
                if pods and clusters:
                    cache.assume_cache.assume_whole(key_of(federated), pods, (), clusters, now_s)

    def _assume_placed(self, context: AttemptContext, decision: Decision) -> None:
        """Count the placement for workloads that have rules about this one."""
        if self._cache.workloads.is_active:
            attempt = context.attempt
            placed = to_workload(context.federated, attempt.federated_type, attempt.policy)
            self._cache.workloads.assume(placed_in(placed, decision.placements))

    def forget(self, context: AttemptContext) -> None:
        """Remove the replicas of a decision that could not be written."""
        self._cache.assume_cache.forget(context.key)
        self._cache.workloads.forget(context.key)

    def hint_for(self, decision: Decision, due: Due) -> QueueingHint:
        """Return the queueing hint for a decision that left the unit or some of its replicas unplaced."""
        return queueing_hint_for(decision, self._engine.framework(due.profile), self._clock.now())


def _may_have_gangs(type_: FederatedType) -> bool:
    return bool(type_.components.rules) or (type_.resource.group, type_.resource.kind) == ("", "Pod")


async def write_with_claim(
    objects: FederatedObjects,
    decider: Decider,
    context: AttemptContext,
    base: Object,
    patch: Object | None,
    joint: str = "",
) -> Object:
    """Send a patch of `base`, if any, with the claim; return the resulting object, or NotFound if it is gone."""
    patch = decider.with_claim(context, base, patch)
    if patch is None:
        return base
    try:
        written = await objects.patch(context.key, base, patch, writer=WRITER, joint=joint)
    except Exception as failure:
        decider.end_claim(context, base, failure)
        raise
    if written is None:
        raise NotFound(f"federated object {context.key} is gone")
    if revision_of(written) == revision_of(base):
        decider.end_claim(context, base, None)
    return written
