"""Build the scheduling unit from a policy, a federated object, and the object's annotations.

Each annotation overrides one field of the policy (`annotationoverrides.py`); the caller removes them where tenants
may not override policies. Pure. `engine.py` schedules the unit.

Reference: docs/reference/scheduling.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.automigration import migrationinfo
from federation.planning.clusters.deviceclaims import Claims
from federation.planning.clusters.deviceinventory import CLASS_SUFFIX
from federation.planning.components import ComponentError, is_gang
from federation.planning.failover.application import avoided_clusters
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.placement.failback import Offers
from federation.planning.placement.replicas import WILDCARD
from federation.planning.podgroups import PodGroup
from federation.scheduling import usermigration
from federation.scheduling.annotationoverrides import is_overridden, overrides_from_annotations
from federation.scheduling.framework.migrations import (
    AUTO_MIGRATION,
    CUSTOM_MIGRATION,
    AutoMigration,
    CustomMigration,
)
from federation.scheduling.framework.moving import AVOIDED
from federation.scheduling.framework.types import (
    KATALYST_PREFIX,
    NVIDIA_GPU,
    ONE_POD,
    ClusterAffinity,
    GroupVersionKind,
    Pods,
    PodSet,
    PodShape,
    Preferences,
    SchedulingMode,
    SchedulingUnit,
    pod_shape,
)
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.podgroups import JOINS, membership_of, pods_in, request_in
from federation.scheduling.podrequest import (
    claims_of,
    counted_demand_of,
    node_needs_of,
    pod_count,
    pods_per_replica,
    shape_of,
)
from federation.scheduling.policyspec import Policy
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.tolerations import with_defaults
from federation.scheduling.yields import yields_from

_AFFINITY = {each.name for each in fields_of(ClusterAffinity)}


class Facts(NamedTuple):
    """Facts about an object that a caller has read already; None lets `build_unit` read them."""

    request: Mapping[str, int] | None = None
    current: Mapping[str, int | None] | None = None
    """The present placement."""
    is_queued: bool = False
    """Whether it has a JobQueue: then it is a gang by default."""


NO_FACTS = Facts()


def build_unit(
    federated: Mapping[str, Any],
    type_: FederatedType,
    policy: Policy,
    snapshot: Snapshot,
    options: UnitOptions | None = None,
    facts: Facts = NO_FACTS,
) -> SchedulingUnit:
    """Return the unit of a federated object under a policy; shapes add to it (`chain.py`).

    Divide falls back to Duplicate for types without a replicas field. Cluster names that exist only in lower case are
    resolved (`Snapshot.resolve`). Without `options` every resource counts, and no toleration is added.
    """
    metadata, template = federated["metadata"], federated["spec"]["template"]
    source, annotations = template.get("metadata") or {}, metadata.get("annotations") or {}
    claims, desired = claims_of(federated), type_.replicas(template)
    fields, preferences = _wishes(policy, annotations, options, is_queued=facts.is_queued)
    group = membership_of(federated)
    pods = _pods_of(federated, type_, group, fields.pop("gang"), claims, options)
    fields |= _undivided(type_, fields, pods, is_whole=group is not None)
    if snapshot.left:
        fields["sticky"] = False  # the policy cannot keep a cluster that the project lost
    request = facts.request
    if request is None:
        request = request_in(group, template, type_, claims)
    return SchedulingUnit(
        gvk=GroupVersionKind(type_.resource.group, type_.resource.version, type_.resource.kind),
        plural=type_.resource.plural,
        namespace=str(metadata.get("namespace") or ""),
        name=str(source.get("name") or metadata["name"]),
        labels=source.get("labels") or {},
        annotations=source.get("annotations") or {},
        desired_replicas=desired,
        request=request if _counts(options) else _without_cpu_and_memory(request),
        node_needs=node_needs_of(template, claims),
        pods=pods,
        current=current_clusters(federated, type_) if facts.current is None else facts.current,
        avoid_disruption=policy.rescheduling.avoid_disruption,
        preferences=_resolved(preferences, snapshot),
        shapes=_shapes(federated, policy, desired, group, snapshot),
        template=template,
        **fields,
    )


def _shapes(
    federated: Mapping[str, Any], policy: Policy, desired: int | None, group: PodGroup | None, snapshot: Snapshot
) -> dict[str, Any]:
    """Return the shapes of the unit: those of the policy, and what the object's record and annotations say."""
    annotations = federated["metadata"].get("annotations") or {}
    found: dict[str, Any] = dict(policy.shapes)
    if avoided := {**avoided_clusters(federated), **snapshot.left}:
        found[AVOIDED.name] = avoided
    if (migration := _auto_migration(policy, annotations, desired)) is not None:
        found[AUTO_MIGRATION.name] = migration
    if (custom := _custom_migration(annotations)) is not None:
        found[CUSTOM_MIGRATION.name] = custom
    if group is not None and not group.leads:
        found[JOINS.name] = frozenset(group.clusters)
    return found


def _wishes(
    policy: Policy, annotations: Mapping[str, str], options: UnitOptions | None, *, is_queued: bool
) -> tuple[dict[str, Any], Preferences]:
    """Return the fields of the unit by policy and annotations, and the preferences for clusters."""
    fields, preferences = _fields_of(policy, gang=policy.gang or "Always" * is_queued), policy.preferences
    if is_overridden(annotations):
        overriding = overrides_from_annotations(annotations, preferences)
        preferences = overriding.pop("preferences", preferences)
        asked = {key: overriding.pop(key) for key in _AFFINITY & overriding.keys()}
        fields |= overriding | {"affinity": replace(policy.affinity, **asked)}
    fields["tolerations"] = with_defaults(fields["tolerations"], options.toleration_s if options is not None else None)
    return fields, preferences


def _counts(options: UnitOptions | None) -> bool:
    return options is None or options.counts_cpu_and_memory


def _pods_of(
    federated: Mapping[str, Any],
    type_: FederatedType,
    group: PodGroup | None,
    wish: str,
    claims: Claims,
    options: UnitOptions | None,
) -> Pods:
    """Return the pods of the unit: for the leader of a group, those of all its pods."""
    counts = _counts(options)
    if group is not None:
        return _of_group(group, wish, claims, counts_cpu_and_memory=counts)
    return _pods(federated["spec"]["template"], type_, wish, claims, counts_cpu_and_memory=counts)


def _fields_of(policy: Policy, *, gang: str) -> dict[str, Any]:
    """Return the fields of the unit that are those of the policy, where no annotation overrides them."""
    return {
        "mode": policy.mode,
        "strategy": policy.strategy,
        "sticky": policy.rescheduling.is_sticky,
        "affinity": policy.affinity,
        "tolerations": policy.tolerations,
        "max_clusters": policy.max_clusters,
        "gang": gang,
    }


def _without_cpu_and_memory(request: Mapping[str, int]) -> dict[str, int]:
    kept = (name for name in request if name == NVIDIA_GPU or name.startswith(KATALYST_PREFIX) or CLASS_SUFFIX in name)
    return {name: request[name] for name in kept}


def _pods(
    template: Mapping[str, Any],
    type_: FederatedType,
    wish: str,
    claims: Claims,
    *,
    counts_cpu_and_memory: bool,
) -> Pods:
    """Return the pods of an object with components, or of any gang."""
    desired = type_.replicas(template)
    gang = is_gang(template, type_.components, wish)
    if not gang and (not type_.components.rules or shape_of(template) is not None):
        return ONE_POD
    try:
        pods = counted_demand_of(template, type_, claims)
    except ComponentError as error:
        return Pods(is_gang=gang, uncounted=str(error))
    if not pods and (shape := shape_of(template, claims)) is not None:
        count = 1 if desired is None else desired
        pods = (PodSet("pods", count, count, shape),) if count else ()
    if not counts_cpu_and_memory:
        pods = tuple(replace(each, shape=_uncounted(each.shape)) for each in pods)
    parts = () if gang or not type_.paths.replicas_spec else _parts_of_replica(pods, desired or 0)
    return Pods(pods, pods_per_replica(template, type_), parts, gang)


def _parts_of_replica(pods: tuple[PodSet, ...], replicas: int) -> tuple[PodSet, ...]:
    """Return the pods of each replica, () if the components are not multiples of replicas."""
    if not replicas or any(each.count % replicas for each in pods):
        return ()
    counts = [each.count // replicas for each in pods]
    return tuple(replace(each, count=n, least=n) for each, n in zip(pods, counts, strict=True))


def _of_group(group: PodGroup, wish: str, claims: Claims, *, counts_cpu_and_memory: bool) -> Pods:
    """Return the pods of a group: all of them for the leader."""
    if not group.leads:
        return ONE_POD
    is_gang_ = wish != "Never"
    try:
        pods = pods_in(group, claims)
    except ComponentError as error:
        return Pods(is_gang=is_gang_, uncounted=str(error))
    if not counts_cpu_and_memory:
        pods = tuple(replace(each, shape=_uncounted(each.shape)) for each in pods)
    return Pods(pods, pod_count(pods), is_gang=is_gang_)


def _undivided(type_: FederatedType, fields: Mapping[str, Any], pods: Pods, *, is_whole: bool) -> dict[str, Any]:
    """Return the changed fields of an object whose policy divides, and that is not divided.

    A gang goes to one cluster as it is, and so does what `is_whole`; an object without replicas goes to each.
    """
    if fields["mode"] is not SchedulingMode.DIVIDE or not (pods.is_gang or not type_.paths.replicas_spec):
        return {}
    limit = fields["max_clusters"]
    if pods.is_gang or is_whole:
        limit = 1 if limit is None else min(1, limit)
    return {"mode": SchedulingMode.DUPLICATE, "max_clusters": limit}


def _uncounted(shape: PodShape) -> PodShape:
    return pod_shape(tuple(sorted(_without_cpu_and_memory(dict(shape.request)).items())), shape.needs)


def _custom_migration(annotations: Mapping[str, str]) -> CustomMigration | None:
    """Return the migration that the user asked for, with the limits of a workload that gives way to another one."""
    custom = usermigration.from_annotation(annotations.get(names.APPLIED_MIGRATION_CONFIGURATION))
    if names.GIVES_WAY not in annotations:
        return custom
    custom = custom or CustomMigration()
    kept = {cluster: entry.keeps for cluster, entry in yields_from(annotations[names.GIVES_WAY]).items()}
    limits = {name: min(most, custom.limited_capacity.get(name, most)) for name, most in kept.items()}
    return replace(custom, limited_capacity={**custom.limited_capacity, **limits})


def _auto_migration(policy: Policy, annotations: Mapping[str, str], desired: int | None) -> AutoMigration | None:
    rules = policy.migration
    if not rules.is_on:
        return None
    info = migrationinfo.from_text(annotations.get(names.AUTO_MIGRATION_INFO))
    offered = {cluster: estimate.offered for cluster, estimate in info.estimates.items() if estimate.offered}
    return AutoMigration(
        rules.keep_unschedulable,
        {cluster: estimate.capacity for cluster, estimate in info.estimates.items()},
        info.scheduled,
        Offers(offered, rules.failback.batch_of(desired or 0)),
        {**info.scheduled, **info.ready},
        info.openings,
    )


def _resolved(preferences: Preferences, snapshot: Snapshot) -> Preferences:
    """Return the preferences, cluster names resolved where they are not lower case.

    The entry "*" stands for every cluster that is not listed.
    """
    listed = preferences.cluster_names
    if any(name != name.lower() for name in listed):
        preferences = Preferences(
            frozenset(map(snapshot.resolve, listed)),
            _renamed(preferences.min_replicas, snapshot),
            _renamed(preferences.max_replicas, snapshot),
            _renamed(preferences.weights, snapshot),
            _renamed(preferences.priorities, snapshot),
        )
    if WILDCARD in listed:
        unlisted = snapshot.by_name.keys() - preferences.cluster_names
        preferences = Preferences(
            preferences.cluster_names - {WILDCARD} | unlisted,
            _expanded(preferences.min_replicas, unlisted),
            _expanded(preferences.max_replicas, unlisted),
            _expanded(preferences.weights, unlisted),
            _expanded(preferences.priorities, unlisted),
        )
    return preferences


def _renamed(values: Mapping[str, int], snapshot: Snapshot) -> Mapping[str, int]:
    """Return the map by real names; an entry with the real name takes precedence."""
    resolved = {snapshot.resolve(name): value for name, value in values.items()}
    return resolved | {name: value for name, value in values.items() if name in snapshot.by_name}


def _expanded(values: Mapping[str, int], unlisted: Iterable[str]) -> Mapping[str, int]:
    """Return the map with the value of "*" for each of the clusters instead."""
    if WILDCARD not in values:
        return values
    own = {name: value for name, value in values.items() if name != WILDCARD}
    return own | dict.fromkeys(unlisted, values[WILDCARD])
