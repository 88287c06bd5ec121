"""Compute a plan from objects and changes: run every affected object through its pipeline and compare the results.

`compute` is a generator like the engine's `run`: it yields the requests of remote plugins and is sent the responses.
Changed source objects use the federate controller's planner, member objects the sync controller's renderer. Read
`pipelinerun.py` for one object.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
)
from federation.apimachinery.resources import NAMESPACES
from federation.planning.federatedobject import builder, eligibility, naming
from federation.planning.federatedobject.placements import Name
from federation.planning.overrides.policymatching import idle_controllers
from federation.scheduling.chain import Chain
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import Exchange
from federation.scheduling.hostlimits import Limits
from federation.scheduling.podrequest import request_of
from federation.scheduling.snapshot import Snapshot, to_cluster
from federation.scheduling.whatif.affected import affected_objects, waits_for_quota
from federation.scheduling.whatif.followerchanges import FollowerChanges
from federation.scheduling.whatif.objectplans import Subject, to_object_plan
from federation.scheduling.whatif.pipelinerun import PipelineRun, resume_pipeline, run_pipeline
from federation.scheduling.whatif.plannedholds import planned_holds
from federation.scheduling.whatif.planresult import (
    Action,
    ClusterResource,
    ObjectPlan,
    Plan,
    StrandedCluster,
)
from federation.scheduling.whatif.rendered import member_objects_of
from federation.scheduling.whatif.state import OVERRIDES, CompiledState, ObjectChange, ObjectSet
from federation.scheduling.worldobjects import name_of

_PARTNER_ROUNDS_MAX = 8
"""Workloads that follow each other in a longer chain are not computed to its end."""
ORDER_WARNING = "computed as one step"
"""The beginning of the warning about changes that were planned together."""


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
            subjects[key], run = Subject(type_, held, held), PipelineRun(held, type_, is_unschedulable=False)
        if run is not None and followers.follow(run):
            runs[key] = yield from resume_pipeline(run, state, now=now)
    to_plan = partial(to_object_plan, state=state, now=now, is_explained=is_explained)
    plans = {key: to_plan(subject, runs.get(key)) for key, subject in subjects.items()}
    for key in _waiting_for_quota(subjects, runs, plans, after, state):
        runs[key] = yield from run_pipeline(subjects[key].desired or {}, subjects[key].type_, state, now=now)
        plans[key] = to_plan(subjects[key], runs[key])
    objects = list(plans.values())
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
    subjects: dict[tuple[str, str], Subject],
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
            subject = subjects.get(key) or (Subject(type_, held, held) if type_ is not None else None)
            if subject is None or subject.desired is None:
                continue
            subjects[key] = subject
            runs[key] = yield from run_pipeline(subject.desired, subject.type_, state, now=now)
            followers.record(subject.before, runs[key])
            moved.append(key)
        if not moved:
            return


def _waiting_for_quota(
    subjects: dict[Name, Subject],
    runs: Mapping[Name, PipelineRun | None],
    plans: Mapping[Name, ObjectPlan],
    after: ObjectSet,
    state: CompiledState,
) -> Iterator[Name]:
    """Yield the objects that may go on with what others give up of a quota, once members have followed."""
    namespaces = {key[0] for key in subjects if key[0] in state.quotas}
    if not namespaces:
        return
    freed: dict[str, set[Name]] = {}
    for key, run in runs.items():
        if run is None:
            has_freed = state.quotas.forget(key[0], key)
        else:
            is_held = any(row.held for row in plans[key].rows)
            has_freed = not is_held and state.quotas.finish(key, run.federated, run.type_)
        if has_freed:
            freed.setdefault(key[0], set()).add(key)
    others = {name_of(each): each for each in after.federated() if waits_for_quota(each)}
    for key in sorted({*runs, *others}):
        run = runs.get(key)
        if key[0] not in namespaces or (key in runs and (run is None or not run.is_short)):
            continue
        if not freed.get(key[0], set()) - {key}:
            continue  # nothing is given up that it may have
        if key not in subjects:
            held = others[key]
            if (type_ := state.type_of(held["spec"].get("template") or {})) is None:
                continue
            subjects[key] = Subject(type_, held, held)
        state.assume_cache.forget(key)
        yield key


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
) -> dict[tuple[str, str], Subject]:
    """Return the federated objects to compute, by namespace and name; objects of changed sources first."""
    subjects: dict[tuple[str, str], Subject] = {}
    for change in changes:
        type_ = state.types.get(change.resource.group_kind)
        if type_ is not None and type_.resource.plural == change.resource.plural:
            name = naming.federated_object_name(change.name, type_.name)
            held = before.get(type_.federated_resource, change.namespace, name)
            subjects[change.namespace, name] = _subject_of_source(change, type_, held, state, problems)
    deleted_namespaces = {change.name for change in changes if change.resource == NAMESPACES and change.after is None}
    others = after.federated() if is_everything else affected_objects(after, changes, state)
    # In the order of decisions, because the replicas of one object are no longer free for the next.
    for federated in sorted(others, key=partial(_turn, state)):
        key, type_ = name_of(federated), state.type_of(federated["spec"].get("template") or {})
        if type_ is not None and key not in subjects and not federated["metadata"].get("deletionTimestamp"):
            subjects[key] = Subject(type_, federated, None if key[0] in deleted_namespaces else federated)
    return subjects


def _turn(state: CompiledState, federated: Mapping[str, Any]) -> tuple[int, Name]:
    policy = state.policies.policy_of(federated)
    return -(policy.priority if policy is not None else 0), name_of(federated)


def _subject_of_source(
    change: ObjectChange,
    type_: FederatedType,
    held: Mapping[str, Any] | None,
    state: CompiledState,
    problems: list[str],
) -> Subject:
    """Return the federated object of a source that is created, changed or deleted."""
    source = change.after
    if source is None:
        orphans = ((held or {}).get("metadata", {}).get("annotations") or {}).get(names.ORPHAN)
        problems = [f"its objects stay in the members: annotation {names.ORPHAN}={orphans}"] if orphans else []
        return Subject(type_, held, None, problems, is_named=True)
    if reason := eligibility.exclusion(source):
        problems.append(f"{change}: not federated, because {reason}")
        return Subject(type_, held, held, is_named=True)
    if held is None:
        made = builder.build(source, type_, idle=idle_controllers(state.bindings, source))
        metadata = {**made["metadata"], "resourceVersion": "0", "generation": 1}
        return Subject(type_, None, {**made, "metadata": metadata}, is_named=True)
    patch = builder.plan_update(source, held, type_, idle=idle_controllers(state.bindings, source, held))
    run = PipelineRun(held, type_, is_unschedulable=False)
    run.apply(patch)
    return Subject(type_, held, run.federated, is_named=True)


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
