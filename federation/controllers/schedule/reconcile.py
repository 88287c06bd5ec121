"""The steps that place one federated object (spec §5.3).

In order: is it our turn, which policy applies, did anything change that matters, decide, write. Deciding is the
engine's; here decisions meet the world. Whatever goes wrong on the way to a decision — no policy, no profile, a failing
plugin, no cluster that fits — keeps the last placement, passes the turn on so that the object's other changes still
reach its clusters, and is told (D8). Such an object waits: it is looked at again when something changes that could
help, and never by polling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, Object
from federation.base.clock import Clock
from federation.client.protocol import Client, PatchType
from federation.controllers.schedule import persist
from federation.controllers.schedule.facts import Facts
from federation.controllers.schedule.report import Reporter, Subject
from federation.planning import pipeline
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.federatedtypes import FederatedTypes
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.types import PluginRequest, PluginResponse, SchedulingUnit
from federation.scheduling.migration import MigrationError, applied_annotation
from federation.scheduling.policy import Policy, PolicyRef
from federation.scheduling.request import request_of
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.triggers import ObjectTriggers, Verdict, judge
from federation.scheduling.unit import build_unit, current_clusters

Annotations = dict[str, str | None]
"""Annotations to write; None removes one."""


class FederatedObjects(Protocol):
    """The cached federated objects."""

    def federated(self, key: Key) -> Object | None:
        """Return the object; without a namespace in the key it is a ClusterFederatedObject."""
        ...


class PluginCaller(Protocol):
    """Whoever makes the calls of remote plugins."""

    async def call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        """Make all calls, at the same time, and return the responses in the same order; never raises."""
        ...


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """How units are built."""

    allow_annotations: bool = True
    """Whether annotations on an object override its policy, as in KubeAdmiral."""
    counts_cpu_and_memory: bool = True
    """Whether cpu and memory requests count for scheduling; KubeAdmiral counts only GPUs."""


@dataclass(frozen=True, slots=True)
class _Case:
    """One object at its turn, with what applies to it."""

    key: Key
    subject: Subject
    ref: PolicyRef | None
    policy: Policy | None
    annotations: Annotations
    started_s: float

    @property
    def fed_object(self) -> Object:
        return self.subject.fed_object

    def context(self, **more: Any) -> dict[str, Any]:
        """Return what the journal says in front of the explanation."""
        policy = {"namespace": self.ref.namespace, "name": self.ref.name} if self.ref else None
        return {"policy": policy, "generation": self.fed_object["metadata"].get("generation"), **more}


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
        caller: PluginCaller | None = None,
        plugin_retry_s: float = 10.0,
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
        self._plugin_retry = Result(plugin_retry_s)

    async def reconcile(self, key: Key) -> Result:
        """Look at the object when it is our turn; write at most one patch of it, and one of its status on trouble."""
        case = self._open(key)
        if case is None:
            return DONE
        if (case.fed_object["metadata"].get("annotations") or {}).get(names.NO_SCHEDULING):
            await self._keep(case, {})
            return DONE
        if case.policy is None:
            await self._without_policy(case)
            return DONE
        profile = self._facts.profiles.get(case.policy.profile, case.policy.strategy)
        if profile is None:
            message = f"SchedulingProfile {case.policy.profile} of {case.ref} does not exist"
            await self._fail(case, names.REASON_PROFILE_NOT_FOUND, message)
            return DONE
        return await self._schedule(case, case.policy, profile)

    # -- the steps

    def _open(self, key: Key) -> _Case | None:
        """Return the object with its policy, None when it is gone, not ours, or not our turn."""
        fed_object = self._objects.federated(key)
        if fed_object is None or fed_object["metadata"].get("deletionTimestamp"):
            self._facts.forget(key)
            return None
        federated_type = self._types.for_object(fed_object["spec"].get("template") or {})
        if federated_type is None or not any(names.GLOBAL_SCHEDULER in stage for stage in federated_type.controllers):
            return None
        try:
            if not pipeline.may_act(pipeline.pending(fed_object), names.GLOBAL_SCHEDULER):
                return None
        except pipeline.PipelineError:
            return None  # Somebody broke it; the federate controller's next write brings us back.
        resource = FEDERATED_OBJECTS if key.namespace else CLUSTER_FEDERATED_OBJECTS
        subject = Subject(resource, federated_type, fed_object)
        ref = self._facts.policies.match(fed_object)
        self._facts.bind(key, ref)
        policy = None if ref is None else self._facts.policies.get(ref)
        return _Case(key, subject, ref, policy, self._migration(subject), self._clock.monotonic())

    def _migration(self, subject: Subject) -> Annotations:
        """Return the annotation that says which of the user's migrations is in force (spec §5.3 step 1)."""
        present = subject.fed_object["metadata"].get("annotations") or {}
        text = present.get(names.MIGRATION_CONFIGURATION)
        if text is None:
            has_old = names.APPLIED_MIGRATION_CONFIGURATION in present
            return {names.APPLIED_MIGRATION_CONFIGURATION: None} if has_old else {}
        has_replicas = subject.federated_type.replicas(subject.fed_object["spec"]["template"]) is not None
        try:
            return {names.APPLIED_MIGRATION_CONFIGURATION: applied_annotation(text, has_replicas=has_replicas)}
        except MigrationError as error:
            self._reporter.event(subject, WARNING, names.EVENT_PARSE_MIGRATION_CONFIGURATION, str(error))
            return {}

    async def _without_policy(self, case: _Case) -> None:
        """Leave the object where it is; that nothing applies to one that was never placed is no news."""
        if case.ref is not None:
            await self._fail(case, names.REASON_POLICY_NOT_FOUND, f"{case.ref} does not exist")
        elif self._current(case):
            await self._fail(case, names.REASON_NO_POLICY, "no policy applies to it any more")
        else:
            self._facts.settle(case.key)
            fed_object = await self._keep(case, {})
            await self._reporter.recovered(case.subject, fed_object)

    async def _schedule(self, case: _Case, policy: Policy, profile: Profile) -> Result:
        """Decide when something changed that matters, and put the decision in force."""
        snapshot = self._facts.clusters.snapshot()
        fed_object = _with_annotations(case.fed_object, case.annotations)
        triggers = self._triggers(case, fed_object, policy, snapshot)
        present = case.fed_object["metadata"].get("annotations") or {}
        verdict = judge(present.get(names.SCHEDULING_TRIGGERS), triggers, policy)
        if not verdict.is_due and not self._facts.is_waiting(case.key):
            await self._defer(case, verdict)
            return DONE
        unit = build_unit(
            fed_object,
            case.subject.federated_type,
            policy,
            snapshot,
            allow_annotations=self._options.allow_annotations,
            counts_cpu_and_memory=self._options.counts_cpu_and_memory,
        )
        decision, has_asked = await self._decide(unit, snapshot, profile)
        if decision.is_success:
            await self._place(case, policy, decision, triggers, verdict)
        else:
            await self._fail(case, decision.outcome, decision.reason, decision)
            if decision.outcome is Outcome.PLUGIN_FAILED and has_asked:
                return self._plugin_retry  # Nobody tells us when a service answers again.
        return DONE

    def _triggers(self, case: _Case, fed_object: Object, policy: Policy, snapshot: Snapshot) -> str:
        template = fed_object["spec"]["template"]
        triggers = ObjectTriggers(
            annotations=fed_object["metadata"].get("annotations") or {},
            replicas=case.subject.federated_type.replicas(template),
            request=request_of(template),
            policy=policy,
            profile_hash=self._facts.profiles.hash(policy.profile),
        )
        return self._facts.triggers.text(triggers, snapshot)

    async def _decide(self, unit: SchedulingUnit, snapshot: Snapshot, profile: Profile) -> tuple[Decision, bool]:
        """Drive the engine, making the calls that remote plugins ask for; say also whether there were any."""
        run = self._engine.run(unit, snapshot, profile, now=self._clock.now())
        has_asked = False
        try:
            requests = next(run)
            while True:
                has_asked = True
                requests = run.send(await self._call(requests))
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision, has_asked

    async def _call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        if self._caller is None:
            return [PluginResponse(0, error="remote plugins are switched off")] * len(requests)
        return await self._caller.call(requests)

    # -- the endings

    async def _place(self, case: _Case, policy: Policy, decision: Decision, triggers: str, verdict: Verdict) -> None:
        before = decision.unit.current
        annotations = case.annotations | {
            names.SCHEDULING_TRIGGERS: triggers,
            names.SCHEDULING_DEFERRED_REASONS: None,
        }
        patch, is_moved = persist.place(
            case.fed_object, case.subject.federated_type, policy, decision.placements, annotations
        )
        fed_object = await self._write(case, patch)
        self._facts.settle(case.key)
        await self._reporter.recovered(case.subject, fed_object)
        if is_moved and before:
            move = persist.describe_move(before, decision.placements)
            self._reporter.event(case.subject, NORMAL, names.EVENT_SCHEDULED, f"{move} ({case.ref})")
        context = case.context(isChanged=is_moved, because=verdict.changed)
        await self._reporter.decided(case.subject, decision, context, case.started_s)

    async def _defer(self, case: _Case, verdict: Verdict) -> None:
        """Keep the placement: nothing changed, or only what the policy says not to follow."""
        present = case.fed_object["metadata"].get("annotations") or {}
        deferred = verdict.deferred_reasons or None
        fed_object = await self._keep(case, {names.SCHEDULING_DEFERRED_REASONS: deferred})
        await self._reporter.recovered(case.subject, fed_object)
        if deferred and present.get(names.SCHEDULING_DEFERRED_REASONS) != deferred:
            context = case.context(placements=self._current(case))
            await self._reporter.undecided(case.subject, "Deferred", deferred, context, case.started_s)

    async def _fail(self, case: _Case, reason: str, message: str, decision: Decision | None = None) -> None:
        """Keep the placement because no decision was possible, and tell it once."""
        fed_object, why = await self._keep(case, {}), f"{reason}: {message}"
        if self._facts.is_told(case.key, why):
            return
        await self._reporter.failed(case.subject, fed_object, reason, message)
        if decision is not None:
            await self._reporter.decided(case.subject, decision, case.context(), case.started_s)
        else:
            context = case.context(placements=self._current(case))
            await self._reporter.undecided(case.subject, reason, message, context, case.started_s)
        self._facts.wait(case.key, why)

    async def _keep(self, case: _Case, annotations: Annotations) -> Object:
        patch = persist.keep(case.fed_object, case.subject.federated_type, case.annotations | annotations)
        return await self._write(case, patch)

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

    def _current(self, case: _Case) -> Mapping[str, int | None]:
        return current_clusters(case.fed_object, case.subject.federated_type)


def _with_annotations(fed_object: Object, changes: Annotations) -> Object:
    """Return the object as it will be with these annotations; the same object when there are none."""
    if not changes:
        return fed_object
    metadata = fed_object["metadata"]
    merged = {**(metadata.get("annotations") or {}), **changes}
    annotations = {key: value for key, value in merged.items() if value is not None}
    return {**fed_object, "metadata": {**metadata, "annotations": annotations}}
