"""From a world and changes to a plan: every object that is concerned, walked through its pipeline, before beside after.

`compute` is a generator as the engine's `run` is: it yields the requests of remote plugins and is sent the answers. A
source that changes goes through the same planner that the federate controller uses; what members would get is rendered
by the same renderer that sync uses. Read `walk.py` for one object.
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
    NAMESPACES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
    Resource,
)
from federation.planning import federation, naming, pipeline
from federation.planning.overrides.bindings import idle_controllers, subject_of_federated
from federation.planning.overrides.errors import OverrideError
from federation.planning.retention import is_replicas_retained
from federation.scheduling.engine import Outcome
from federation.scheduling.explain import to_explanation
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import Exchange, SchedulingMode
from federation.scheduling.request import request_of
from federation.scheduling.snapshot import Snapshot, to_cluster
from federation.scheduling.turn import Due, Stuck, Untouched, copied_because
from federation.scheduling.whatif.concern import concerned
from federation.scheduling.whatif.copies import copies_of, to_rows, unplaced_of
from federation.scheduling.whatif.following import Followers
from federation.scheduling.whatif.result import Action, Copy, ObjectPlan, Plan, Room, Stranded
from federation.scheduling.whatif.walk import Walk, reason_of, walk, walk_on
from federation.scheduling.whatif.world import OVERRIDES, Change, Facts, World


class _Subject(NamedTuple):
    """A federated object before and after its source changed (None: there is none); `amiss`: what is to be told."""

    type_: FederatedType
    before: Mapping[str, Any] | None
    wanted: Mapping[str, Any] | None
    amiss: Sequence[str] = ()
    is_named: bool = False
    """Whether its source is one of the changes: then all is told about it."""


def compute(
    world: World,
    changes: Iterable[Change],
    installed: PluginRegistry,
    *,
    now: datetime,
    is_explained: bool = False,
    is_everything: bool = False,
) -> Exchange[Plan]:
    """Return what the control plane would do if `changes` were made in `world`.

    `installed` are the plugins besides the world's webhooks. With `is_everything` every object is looked at, not only
    those that the changes are about. Explanations are big; they are made when `is_explained` asks for them.
    """
    changed = list(changes)
    after = world.with_changes(changed)
    facts = Facts(after, world, installed)
    problems = [*facts.problems, *filter(None, map(_leaving, changed))]
    subjects = _subjects(world, after, changed, facts, problems, is_everything=is_everything)
    walks: dict[tuple[str, str], Walk | None] = {}
    followers = Followers(world.federated() if subjects else (), facts)
    for key, subject in subjects.items():
        walks[key] = None
        if subject.wanted is not None:
            walks[key] = yield from walk(subject.wanted, subject.type_, facts, now=now)
        followers.walked(subject.before, walks[key])
    for key, type_ in followers.changed():
        under_way = walks.get(key)
        if key not in walks and (held := after.get(FEDERATED_OBJECTS, *key)) is not None:
            subjects[key], under_way = _Subject(type_, held, held), Walk(held, type_, is_waiting=False)
        if under_way is not None and followers.follow(under_way):
            walks[key] = yield from walk_on(under_way, facts, now=now)
    objects = [_plan(subject, walks.get(key), facts, is_explained=is_explained) for key, subject in subjects.items()]
    if len(deciding := [change for change in changed if change.resource not in OVERRIDES]) > 1:
        problems += _order_warning(deciding, objects)
    told = [obj for obj in objects if obj.action is not Action.NONE or obj.reason or obj.problems or obj.unplaced]
    told.sort(key=lambda obj: (obj.resource.kind, obj.namespace, obj.name))
    return Plan(
        told,
        looked_at=len(objects),
        rooms=_rooms(facts.clusters.snapshot(), told),
        stranded=_stranded(after, changed, facts, told),
        problems=problems,
    )


def _leaving(change: Change) -> str:
    """Return what becomes of what runs in a cluster that is deleted from the federation, "" when none is."""
    if change.resource != FEDERATED_CLUSTERS or change.before is None or change.after is not None:
        return ""
    annotations = change.before["metadata"].get("annotations") or {}
    fate = "is deleted" if names.CASCADING_DELETE in annotations else "stays"
    return f"{change.name} leaves the federation; what the federation put there {fate} there"


def _order_warning(deciding: Sequence[Change], objects: Iterable[ObjectPlan]) -> list[str]:
    """Return what is to be known when several changes decide about objects that are placed already.

    A decision depends on the one before it (a policy may avoid disruption), so that changes which the scheduler sees
    one by one may end elsewhere than all at once.
    """
    moved = sum(obj.action is Action.CHANGE and obj.is_placed_otherwise for obj in objects)
    if not moved:
        return []
    listed = ", ".join(map(str, deciding[:4])) + (", …" if len(deciding) > 4 else "")
    return [f"computed as if all came at the same moment: {listed}; one by one the replicas may come out otherwise"]


def _subjects(
    world: World, after: World, changes: list[Change], facts: Facts, problems: list[str], *, is_everything: bool
) -> dict[tuple[str, str], _Subject]:
    """Return the federated objects to look at, by namespace and name, sources that change first."""
    subjects: dict[tuple[str, str], _Subject] = {}
    for change in changes:
        type_ = facts.types.get((change.resource.api_version, change.resource.kind))
        if type_ is not None and type_.resource == change.resource:
            name = naming.federated_object_name(change.name, type_.name)
            held = world.get(type_.federated_resource, change.namespace, name)
            subjects[change.namespace, name] = _of_source(change, type_, held, facts, problems)
    gone = {change.name for change in changes if change.resource == NAMESPACES and change.after is None}
    others = after.federated() if is_everything else concerned(after, changes, facts)
    # In the order in which the scheduler gets to them: what one is given is not free for the next.
    for fed_object in sorted(others, key=_key):
        key, type_ = _key(fed_object), facts.type_of(fed_object["spec"].get("template") or {})
        if type_ is not None and key not in subjects and not fed_object["metadata"].get("deletionTimestamp"):
            subjects[key] = _Subject(type_, fed_object, None if key[0] in gone else fed_object)
    return subjects


def _key(fed_object: Mapping[str, Any]) -> tuple[str, str]:
    metadata = fed_object["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _of_source(
    change: Change, type_: FederatedType, held: Mapping[str, Any] | None, facts: Facts, problems: list[str]
) -> _Subject:
    """Return what becomes of a source's federated object when the source is created, changed or deleted."""
    source = change.after
    if source is None:
        orphans = ((held or {}).get("metadata", {}).get("annotations") or {}).get(names.ORPHAN)
        amiss = [f"its copies stay in the members: annotation {names.ORPHAN}={orphans}"] if orphans else []
        return _Subject(type_, held, None, amiss, is_named=True)
    if reason := federation.exclusion(source):
        problems.append(f"{change}: not federated, because {reason}")
        return _Subject(type_, held, held, is_named=True)
    if held is None:
        made = federation.build(source, type_, idle=idle_controllers(facts.bindings, source))
        metadata = {**made["metadata"], "resourceVersion": "0", "generation": 1}
        return _Subject(type_, None, {**made, "metadata": metadata}, is_named=True)
    patch = federation.plan_update(source, held, type_, idle=idle_controllers(facts.bindings, source, held))
    under_way = Walk(held, type_, is_waiting=False)
    under_way.apply(patch)
    return _Subject(type_, held, under_way.fed_object, is_named=True)


def _plan(subject: _Subject, walked: Walk | None, facts: Facts, *, is_explained: bool) -> ObjectPlan:
    """Put one object's before and after side by side. What is placed and overridden as before is not rendered."""
    type_, before = subject.type_, subject.before
    after = walked.fed_object if walked is not None else None
    old: dict[str, Copy] = {}
    new: dict[str, Copy] = {}
    if before is None or after is None or after["spec"] != before["spec"]:
        old, new = copies_of(before, type_), copies_of(after, type_)
    if walked is not None and (waits_for := _pending(walked.fed_object)):
        walked.note(f"its members keep what they have: it waits for {waits_for}")
        new = old
    retained = type_.paths.replicas_spec if after is not None and is_replicas_retained(after) else ()
    waiting = walked.decision.waiting if walked is not None and walked.decision is not None else {}
    rows = to_rows(old, new, facts.cluster_objects, retained, waiting)
    either: Mapping[str, Any] = after or before or {}
    template = (either.get("spec") or {}).get("template") or {}
    metadata = either.get("metadata") or {}
    action = _action(old, new, has_changed=any(row.is_changed for row in rows), is_gone=walked is None)
    return ObjectPlan(
        type_.resource,
        str(metadata.get("namespace") or ""),
        str((template.get("metadata") or {}).get("name") or ""),
        action,
        rows,
        unplaced=_unplaced(walked, type_),
        unplaced_before=unplaced_of(before, type_),
        waiting=sum(waiting.values()),
        is_stuck=walked is not None and _is_stuck(walked),
        reason=_reason(action, walked, is_named=subject.is_named),
        problems=[*subject.amiss, *(walked.problems if walked is not None else ())],
        federated_name=str(metadata.get("name") or ""),
        based_on=_based_on(walked, facts) if walked is not None else (),
        explanation=_explanation(walked) if is_explained and walked is not None else None,
    )


def _based_on(walked: Walk, facts: Facts) -> list[tuple[Resource, str, str]]:
    """Return the policies and the profile that the object's new state comes from."""
    found: list[tuple[Resource, str, str]] = []
    if walked.turn is not None and (ref := walked.turn.ref) is not None:
        found.append((PROPAGATION_POLICIES if ref.namespace else CLUSTER_PROPAGATION_POLICIES, *ref))
        if walked.turn.policy is not None and walked.turn.policy.profile:
            found.append((SCHEDULING_PROFILES, "", walked.turn.policy.profile))
    try:
        references = facts.bindings.references(subject_of_federated(walked.fed_object))
    except OverrideError:
        references = []  # What is wrong with its label is among its problems.
    for reference in references:
        resource = OVERRIDE_POLICIES if reference.namespace else CLUSTER_OVERRIDE_POLICIES
        found.append((resource, reference.namespace, reference.name))
    return found


def _is_stuck(walked: Walk) -> bool:
    if walked.decision is not None:
        return not walked.decision.is_success
    return isinstance(walked.finding, Stuck)


def _unplaced(walked: Walk | None, type_: FederatedType) -> int:
    """Return how many replicas find no place, also of an object that cannot be placed at all."""
    if walked is None:
        return 0
    decision = walked.decision
    if decision is None or decision.is_success or decision.unit.mode is not SchedulingMode.DIVIDE:
        return unplaced_of(walked.fed_object, type_)
    placed = sum(count or 0 for count in decision.unit.current.values())
    return max(0, (decision.unit.desired_replicas or 0) - placed)


def _action(old: Mapping[str, Copy], new: Mapping[str, Copy], *, has_changed: bool, is_gone: bool) -> Action:
    if not has_changed:
        return Action.NONE
    if not old:
        return Action.CREATE
    if new:
        return Action.CHANGE
    return Action.DELETE if is_gone else Action.WITHDRAW


def _reason(action: Action, walked: Walk | None, *, is_named: bool) -> str:
    """Return why it is where it is then; of one that was decided again with the same result, just that."""
    if walked is None:
        return ""
    decision = walked.decision
    if action is Action.NONE and decision is not None and decision.outcome is Outcome.SCHEDULED:
        if decision.shortage or decision.waiting:
            return decision.reason
        unit = decision.unit
        prefers = unit.avoid_disruption and unit.mode is SchedulingMode.DIVIDE
        keeps = ", which its policy prefers (avoidDisruption)" if prefers else ""
        return f"scheduled again, with the same result{keeps}"
    if walked.follows and action is not Action.NONE and isinstance(walked.finding, Untouched | None):
        return walked.follows
    if isinstance(walked.finding, Untouched) and not is_named:
        return ""
    return reason_of(walked)


def _explanation(walked: Walk) -> Mapping[str, Any]:
    ref = walked.turn.ref if walked.turn is not None else None
    policy = {"namespace": ref.namespace, "name": ref.name} if ref is not None else None
    if walked.decision is None:
        return {"policy": policy, "outcome": type(walked.finding).__name__, "reason": reason_of(walked)}
    because = walked.finding.verdict.changed if isinstance(walked.finding, Due) else ()
    told: dict[str, Any] = {"policy": policy, "because": because}
    if isinstance(walked.finding, Due) and walked.turn is not None:
        told["copiedBecause"] = copied_because(walked.turn, walked.finding)
    return told | to_explanation(walked.decision)


def _pending(fed_object: Mapping[str, Any]) -> str:
    try:
        stages = pipeline.pending(fed_object)
    except pipeline.PipelineError as error:
        return str(error)
    return ", ".join(name for stage in stages for name in stage)


def _rooms(snapshot: Snapshot, objects: Iterable[ObjectPlan]) -> list[Room]:
    """Return what changes in the free resources of clusters: what leaves is given back, what comes is taken.

    What waiting pods request is not free, members report it so: below 0 is what more is wanted than there is.
    """
    taken: dict[tuple[str, str], int] = {}
    for obj in objects:
        for row in obj.rows:
            for copy, sign in ((row.before, -1), (row.after, 1)):
                if copy is None or not copy.replicas:
                    continue
                for name, amount in request_of(copy.manifest).items():
                    taken[row.cluster, name] = taken.get((row.cluster, name), 0) + sign * amount * copy.replicas
    rooms = []
    for (cluster, name), amount in sorted(taken.items()):
        found = snapshot.by_name.get(cluster)
        if found is not None and amount:
            free = found.available.get(name, 0)
            rooms.append(Room(cluster, name, found.allocatable.get(name, 0), free, free - amount))
    return rooms


def _stranded(after: World, changes: Iterable[Change], facts: Facts, objects: Iterable[ObjectPlan]) -> list[Stranded]:
    """Return what stays assigned to the clusters that the changes take down, by what holds after the plan."""
    down = {change.name for change in changes if _goes_down(change)}
    if not down:
        return []
    found = {name: [0, 0] for name in sorted(down)}
    planned = {(obj.namespace, obj.federated_name): obj.rows for obj in objects if obj.rows}
    for fed_object in after.federated():
        metadata, type_ = fed_object["metadata"], facts.type_of(fed_object["spec"].get("template") or {})
        if type_ is None or not type_.paths.replicas_spec:
            continue
        rows = planned.get((metadata.get("namespace") or "", metadata["name"]))
        copies = (
            copies_of(fed_object, type_, only=down)
            if rows is None
            else {row.cluster: row.after for row in rows if row.after is not None}
        )
        for cluster in down.intersection(copies):
            found[cluster][0] += 1
            found[cluster][1] += copies[cluster].replicas or 0
    return [Stranded(name, *counts) for name, counts in found.items() if any(counts)]


def _goes_down(change: Change) -> bool:
    if change.resource != FEDERATED_CLUSTERS or change.before is None or change.after is None:
        return False
    return to_cluster(change.before).is_ready and not to_cluster(change.after).is_ready
