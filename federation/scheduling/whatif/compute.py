"""Compute a plan from objects and changes: run every affected object through its pipeline and compare the results.

`compute` is a generator like the engine's `run`: it yields the requests of remote plugins and is sent the responses.
Changed source objects use the federate controller's planner, member objects the sync controller's renderer. Read
`pipelinerun.py` for one object.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.resources import NAMESPACES, Resource
from federation.planning.federatedobject import builder, eligibility, naming, pendingcontrollers
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policymatching import idle_controllers, subject_of_federated
from federation.planning.rendering.memberobject import divided_replicas
from federation.planning.rendering.retention import is_replicas_retained
from federation.scheduling.answers import Deferred, Due, Skipped, Wait
from federation.scheduling.chain import Chain
from federation.scheduling.divisibility import duplicate_reason
from federation.scheduling.engine import Outcome
from federation.scheduling.explain import to_explanation
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import Exchange, SchedulingMode
from federation.scheduling.hostlimits import Limits
from federation.scheduling.podrequest import request_of
from federation.scheduling.snapshot import Snapshot, to_cluster
from federation.scheduling.whatif.affected import affected_objects
from federation.scheduling.whatif.consequences import costs_of, lost_at_worst
from federation.scheduling.whatif.followerchanges import FollowerChanges
from federation.scheduling.whatif.pipelinerun import PipelineRun, reason_of, resume_pipeline, run_pipeline
from federation.scheduling.whatif.plannedholds import planned_holds
from federation.scheduling.whatif.planresult import (
    Action,
    ClusterResource,
    MemberObject,
    ObjectPlan,
    Plan,
    StrandedCluster,
)
from federation.scheduling.whatif.rendered import member_objects_of, to_rows, to_waves, unplaced_of
from federation.scheduling.whatif.state import OVERRIDES, CompiledState, ObjectChange, ObjectSet

_PARTNER_ROUNDS_MAX = 8
"""Workloads that follow each other in a longer chain are not computed to its end."""
ORDER_WARNING = "computed as one step"
"""The beginning of the warning about changes that were planned together."""
_OUTCOMES: Mapping[type, str] = {
    Deferred: "Deferred",
    Wait: "Stuck",
    Skipped: "Untouched",
    Due: "Due",
    type(None): "NoneType",
}
"""Outcomes of objects without a decision, as explanations have them; plan files keep them."""


class _Subject(NamedTuple):
    """A federated object before the changes, and its `desired` version before it runs; None when there is none."""

    type_: FederatedType
    before: Mapping[str, Any] | None
    desired: Mapping[str, Any] | None
    problems: Sequence[str] = ()
    is_named: bool = False
    """Whether its source is one of the changes; its result is then always reported."""


def compute(
    before: ObjectSet,
    changes: Iterable[ObjectChange],
    installed: PluginRegistry,
    chain: Chain,
    *,
    now: datetime,
    is_explained: bool = False,
    is_everything: bool = False,
    limits: Limits | None = None,
    follows: Sequence[ObjectChange] = (),
) -> Exchange[Plan]:
    """Return the effect of the changes, and of what follows from them, on the objects.

    `installed` are the plugins besides the webhooks among the objects; `chain` has the steps of a decision.
    With `is_everything` all objects are computed, not only the affected ones. Explanations are large; `is_explained`
    adds them. `limits` are those of the host; with them the holds of the guard are foreseen.
    """
    requested = list(changes)
    changed = [*requested, *follows]
    after = before.with_changes(changed)
    state = CompiledState(after, before, installed, chain, now, limits)
    problems = [*state.problems, *filter(None, map(_removal_warning, changed))]
    subjects = _subjects(before, after, changed, state, problems, is_everything=is_everything)
    runs: dict[tuple[str, str], PipelineRun | None] = {}
    followers = FollowerChanges(before.federated() if subjects else (), state)
    for key, subject in subjects.items():
        runs[key] = None
        if subject.desired is not None:
            runs[key] = yield from run_pipeline(subject.desired, subject.type_, state, now=now)
        followers.record(subject.before, runs[key])
    yield from _run_partners(subjects, runs, after, state, followers, now)
    for key, type_ in followers.affected():
        run = runs.get(key)
        if key not in runs and (held := after.get(FEDERATED_OBJECTS, *key)) is not None:
            subjects[key], run = _Subject(type_, held, held), PipelineRun(held, type_, is_unschedulable=False)
        if run is not None and followers.follow(run):
            runs[key] = yield from resume_pipeline(run, state, now=now)
    objects = [
        _plan(subject, runs.get(key), state, now, is_explained=is_explained) for key, subject in subjects.items()
    ]
    if len(deciding := [change for change in requested if change.resource not in OVERRIDES]) > 1:
        problems += _order_warning(deciding, objects)
    reported = [obj for obj in objects if obj.action is not Action.NONE or obj.reason or obj.problems or obj.unplaced]
    reported.sort(key=lambda obj: (obj.resource.kind, obj.namespace, obj.name))
    return Plan(
        reported,
        examined=len(objects),
        cluster_resources=_cluster_resources(state.clusters.snapshot(), reported),
        stranded=_stranded(after, changed, state, reported),
        problems=problems,
        holds=[] if limits is None else planned_holds(runs, state, now),
    )


def _run_partners(
    subjects: dict[tuple[str, str], _Subject],
    runs: dict[tuple[str, str], PipelineRun | None],
    after: ObjectSet,
    state: CompiledState,
    followers: FollowerChanges,
    now: datetime,
) -> Exchange[None]:
    """Run the workloads that have rules about those that moved, and again those about which these have some."""
    moved = list(subjects)
    for _ in range(_PARTNER_ROUNDS_MAX):
        concerned: set[Any] = set()
        for key in moved:
            run, before = runs[key], subjects[key].before
            if run is not None:
                concerned |= state.observe(run.federated)
            elif before is not None:
                concerned |= state.observe(before, is_gone=True)
        moved = []
        for key in sorted(concerned):
            held = after.get(FEDERATED_OBJECTS, *key)
            type_ = state.type_of(held["spec"]["template"]) if held is not None else None
            subject = subjects.get(key) or (_Subject(type_, held, held) if type_ is not None else None)
            if subject is None or subject.desired is None:
                continue
            subjects[key] = subject
            runs[key] = yield from run_pipeline(subject.desired, subject.type_, state, now=now)
            followers.record(subject.before, runs[key])
            moved.append(key)
        if not moved:
            return


def _removal_warning(change: ObjectChange) -> str:
    """Return a warning about the objects in a cluster that leaves the federation, "" for any other change."""
    if change.resource != FEDERATED_CLUSTERS or change.before is None or change.after is not None:
        return ""
    annotations = change.before["metadata"].get("annotations") or {}
    fate = "is deleted" if names.CASCADING_DELETE in annotations else "stays"
    return f"{change.name} leaves the federation; what the federation put there {fate} there"


def _order_warning(deciding: Sequence[ObjectChange], objects: Iterable[ObjectPlan]) -> list[str]:
    """Return a warning when several changes together move objects.

    A decision depends on the previous one (a policy may avoid disruption), so that the same changes, made one after the
    other, can have another result.
    """
    moved = sum(obj.action is Action.CHANGE and obj.is_placed_otherwise for obj in objects)
    if not moved:
        return []
    listed = ", ".join(map(str, deciding[:4])) + (", …" if len(deciding) > 4 else "")
    return [f"{ORDER_WARNING}: {listed}; made one after the other, the changes may place replicas differently"]


def _subjects(
    before: ObjectSet,
    after: ObjectSet,
    changes: list[ObjectChange],
    state: CompiledState,
    problems: list[str],
    *,
    is_everything: bool,
) -> dict[tuple[str, str], _Subject]:
    """Return the federated objects to compute, by namespace and name; objects of changed sources first."""
    subjects: dict[tuple[str, str], _Subject] = {}
    for change in changes:
        type_ = state.types.get(change.resource.group_kind)
        if type_ is not None and type_.resource.plural == change.resource.plural:
            name = naming.federated_object_name(change.name, type_.name)
            held = before.get(type_.federated_resource, change.namespace, name)
            subjects[change.namespace, name] = _subject_of_source(change, type_, held, state, problems)
    deleted_namespaces = {change.name for change in changes if change.resource == NAMESPACES and change.after is None}
    others = after.federated() if is_everything else affected_objects(after, changes, state)
    # In a fixed order, because the replicas of one object are no longer free for the next.
    for federated in sorted(others, key=_key):
        key, type_ = _key(federated), state.type_of(federated["spec"].get("template") or {})
        if type_ is not None and key not in subjects and not federated["metadata"].get("deletionTimestamp"):
            subjects[key] = _Subject(type_, federated, None if key[0] in deleted_namespaces else federated)
    return subjects


def _key(federated: Mapping[str, Any]) -> tuple[str, str]:
    metadata = federated["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _subject_of_source(
    change: ObjectChange,
    type_: FederatedType,
    held: Mapping[str, Any] | None,
    state: CompiledState,
    problems: list[str],
) -> _Subject:
    """Return the federated object of a source that is created, changed or deleted."""
    source = change.after
    if source is None:
        orphans = ((held or {}).get("metadata", {}).get("annotations") or {}).get(names.ORPHAN)
        problems = [f"its objects stay in the members: annotation {names.ORPHAN}={orphans}"] if orphans else []
        return _Subject(type_, held, None, problems, is_named=True)
    if reason := eligibility.exclusion(source):
        problems.append(f"{change}: not federated, because {reason}")
        return _Subject(type_, held, held, is_named=True)
    if held is None:
        made = builder.build(source, type_, idle=idle_controllers(state.bindings, source))
        metadata = {**made["metadata"], "resourceVersion": "0", "generation": 1}
        return _Subject(type_, None, {**made, "metadata": metadata}, is_named=True)
    patch = builder.plan_update(source, held, type_, idle=idle_controllers(state.bindings, source, held))
    run = PipelineRun(held, type_, is_unschedulable=False)
    run.apply(patch)
    return _Subject(type_, held, run.federated, is_named=True)


def _plan(
    subject: _Subject, run: PipelineRun | None, state: CompiledState, now: datetime, *, is_explained: bool
) -> ObjectPlan:
    """Compare one object before and after. Without a change of placement or overrides nothing is rendered."""
    type_, before = subject.type_, subject.before
    after = run.federated if run is not None else None
    old: dict[str, MemberObject] = {}
    new: dict[str, MemberObject] = {}
    if before is None or after is None or after["spec"] != before["spec"]:
        old, new = member_objects_of(before, type_), member_objects_of(after, type_)
    if run is not None and (waits_for := _pending(run.federated)):
        run.add_problem(f"its member objects stay unchanged: it waits for {waits_for}")
        new = old
    retained = type_.paths.replicas_spec if after is not None and is_replicas_retained(after) else ()
    waiting = run.decision.waiting if run is not None and run.decision is not None else {}
    rows = to_rows(old, new, state.cluster_objects, retained, waiting)
    rows = state.holding.annotate(rows, before, after, type_, now, held=run.held if run is not None else {})
    either: Mapping[str, Any] = after or before or {}
    template = (either.get("spec") or {}).get("template") or {}
    metadata = either.get("metadata") or {}
    action = _action(old, new, has_changed=any(row.is_changed for row in rows), is_gone=run is None)
    waves = to_waves(after, type_, rows, state.cluster_objects)
    is_divided = all(divided_replicas(side, type_) for side in (before, after) if side is not None)
    return ObjectPlan(
        type_.resource,
        str(metadata.get("namespace") or ""),
        str((template.get("metadata") or {}).get("name") or ""),
        action,
        rows,
        unplaced=_unplaced(run, type_),
        unplaced_before=unplaced_of(before, type_),
        waiting=sum(waiting.values()),
        is_stuck=run is not None and _is_stuck(run),
        waits=run.assessment.message if run is not None and isinstance(run.assessment, Wait) else "",
        reason=_reason(action, run, is_named=subject.is_named),
        problems=[*subject.problems, *(run.problems if run is not None else ())],
        federated_name=str(metadata.get("name") or ""),
        waves=[(wave, clusters) for wave, clusters, _ in waves],
        based_on=_based_on(run, state) if run is not None else (),
        explanation=_explanation(run) if is_explained and run is not None else None,
        lost=lost_at_worst(type_.resource, rows, [wave[:2] for wave in waves], is_divided=is_divided),
        costs=costs_of(rows, state.clusters.snapshot().by_name, type_) if action is not Action.NONE else {},
        approvals=[wave for wave, _, needs_approval in waves if needs_approval],
        alternatives=run.alternatives if run is not None else (),
        stays=run.permitted.stays if run is not None and run.permitted is not None else {},
    )


def _based_on(run: PipelineRun, state: CompiledState) -> list[tuple[Resource, str, str]]:
    """Return the policies and the profile that the object's new state depends on."""
    found: list[tuple[Resource, str, str]] = []
    if run.attempt is not None and (ref := run.attempt.ref) is not None:
        found.append((PROPAGATION_POLICIES if ref.namespace else CLUSTER_PROPAGATION_POLICIES, *ref))
        if run.attempt.policy is not None and run.attempt.policy.profile:
            found.append((SCHEDULING_PROFILES, "", run.attempt.policy.profile))
    try:
        references = state.bindings.references(subject_of_federated(run.federated))
    except OverrideError:
        references = []  # The run has reported the invalid label.
    for reference in references:
        resource = OVERRIDE_POLICIES if reference.namespace else CLUSTER_OVERRIDE_POLICIES
        found.append((resource, reference.namespace, reference.name))
    return found


def _is_stuck(run: PipelineRun) -> bool:
    if run.decision is not None:
        return not run.decision.is_success
    return isinstance(run.assessment, Wait)


def _unplaced(run: PipelineRun | None, type_: FederatedType) -> int:
    """Return the number of unplaced replicas, also of an unschedulable object."""
    if run is None:
        return 0
    decision = run.decision
    if decision is None or decision.is_success or decision.unit.mode is not SchedulingMode.DIVIDE:
        return unplaced_of(run.federated, type_)
    placed = sum(count or 0 for count in decision.unit.current.values())
    return max(0, (decision.unit.desired_replicas or 0) - placed)


def _action(
    old: Mapping[str, MemberObject], new: Mapping[str, MemberObject], *, has_changed: bool, is_gone: bool
) -> Action:
    if not has_changed:
        return Action.NONE
    if not old:
        return Action.CREATE
    if new:
        return Action.CHANGE
    return Action.DELETE if is_gone else Action.WITHDRAW


def _reason(action: Action, run: PipelineRun | None, *, is_named: bool) -> str:
    """Return the reason of the object's new placement, or that it was scheduled again with the same result."""
    if run is None:
        return ""
    decision = run.decision
    if action is Action.NONE and decision is not None and decision.outcome is Outcome.SCHEDULED:
        if decision.shortage or decision.waiting:
            return decision.reason
        if run.permitted is not None and run.permitted.stays:
            stays = (f"replicas stay in cluster {name}: {stay.message}" for name, stay in run.permitted.stays.items())
            return "; ".join(stays)
        unit = decision.unit
        prefers = unit.avoid_disruption and unit.mode is SchedulingMode.DIVIDE
        keeps = ", which its policy prefers (avoidDisruption)" if prefers else ""
        return f"scheduled again, with the same result{keeps}"
    if run.follows and action is not Action.NONE and isinstance(run.assessment, Skipped | None):
        return run.follows
    if isinstance(run.assessment, Skipped) and not is_named:
        return ""
    return reason_of(run)


def _explanation(run: PipelineRun) -> Mapping[str, Any]:
    ref = run.attempt.ref if run.attempt is not None else None
    policy = {"namespace": ref.namespace, "name": ref.name} if ref is not None else None
    if run.decision is None:
        return {"policy": policy, "outcome": _OUTCOMES[type(run.assessment)], "reason": reason_of(run)}
    because = run.assessment.comparison.changed if isinstance(run.assessment, Due) else ()
    explanation: dict[str, Any] = {"policy": policy, "because": because}
    if isinstance(run.assessment, Due) and run.attempt is not None:
        explanation["copiedBecause"] = duplicate_reason(run.attempt, run.assessment)
    return explanation | to_explanation(run.decision)


def _pending(federated: Mapping[str, Any]) -> str:
    try:
        stages = pendingcontrollers.pending_stages(federated)
    except pendingcontrollers.PipelineError as error:
        return str(error)
    return ", ".join(name for stage in stages for name in stage)


def _cluster_resources(snapshot: Snapshot, objects: Iterable[ObjectPlan]) -> list[ClusterResource]:
    """Return the changes of the clusters' free resources: removed replicas add to them, new ones are subtracted.

    Requests of pending pods are not free, as in members' reports, so that the result can be negative.
    """
    taken: dict[tuple[str, str], int] = {}
    for obj in objects:
        for row in obj.rows:
            for member, sign in ((row.before, -1), (row.after, 1)):
                if member is None or not member.replicas:
                    continue
                for name, amount in request_of(member.manifest).items():
                    taken[row.cluster, name] = taken.get((row.cluster, name), 0) + sign * amount * member.replicas
    changed = []
    for (cluster, name), amount in sorted(taken.items()):
        found = snapshot.by_name.get(cluster)
        if found is not None and amount:
            free = found.available.get(name, 0)
            changed.append(ClusterResource(cluster, name, found.allocatable.get(name, 0), free, free - amount))
    return changed


def _stranded(
    after: ObjectSet, changes: Iterable[ObjectChange], state: CompiledState, objects: Iterable[ObjectPlan]
) -> list[StrandedCluster]:
    """Return the objects that stay assigned to the clusters that the changes make unready."""
    down = {change.name for change in changes if _goes_down(change)}
    if not down:
        return []
    found = {name: [0, 0] for name in sorted(down)}
    planned = {(obj.namespace, obj.federated_name): obj.rows for obj in objects if obj.rows}
    for federated in after.federated():
        metadata, type_ = federated["metadata"], state.type_of(federated["spec"].get("template") or {})
        if type_ is None or not type_.paths.replicas_spec:
            continue
        rows = planned.get((metadata.get("namespace") or "", metadata["name"]))
        members = (
            member_objects_of(federated, type_, only=down)
            if rows is None
            else {row.cluster: row.after for row in rows if row.after is not None}
        )
        for cluster in down.intersection(members):
            found[cluster][0] += 1
            found[cluster][1] += members[cluster].replicas or 0
    return [StrandedCluster(name, *counts) for name, counts in found.items() if any(counts)]


def _goes_down(change: ObjectChange) -> bool:
    if change.resource != FEDERATED_CLUSTERS or change.before is None or change.after is None:
        return False
    return to_cluster(change.before).is_ready and not to_cluster(change.after).is_ready
