"""Build the scheduling unit: a policy, one federated object, and what its annotations say differently (spec §5.4).

Annotations on the object win over the policy, one by one (`overriding.py`); where tenants may not override policies the
caller takes them away. Pure. The result goes to `engine.py`.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.paths import to_pointer
from federation.planning.automigration.info import to_openings
from federation.planning.placement.failback import Offers
from federation.planning.placements import overrides_of, placement_of
from federation.scheduling import migration
from federation.scheduling.framework.types import (
    KATALYST_PREFIX,
    NVIDIA_GPU,
    AutoMigration,
    GroupVersionKind,
    Reserved,
    SchedulingMode,
    SchedulingUnit,
)
from federation.scheduling.overriding import is_overridden, overrides_from_annotations
from federation.scheduling.policy import Policy, Preferences
from federation.scheduling.request import node_needs_of, request_of
from federation.scheduling.snapshot import Snapshot

_EMPTY: Mapping[str, int] = {}


def build_unit(
    fed_object: Mapping[str, Any],
    federated_type: FederatedType,
    policy: Policy,
    snapshot: Snapshot,
    *,
    counts_cpu_and_memory: bool = True,
    reserved: Reserved | None = None,
    request: Mapping[str, int] | None = None,
) -> SchedulingUnit:
    """Return the unit of a federated object under a policy.

    Divide falls back to Duplicate for types without a replicas field. Cluster names that exist only in lower case are
    resolved (`Snapshot.resolve`). With `counts_cpu_and_memory` off only GPUs and what Katalyst reclaims count, as in
    KubeAdmiral. `request` is what `request_of` says of the template, where the caller has asked that already.
    """
    metadata, template = fed_object["metadata"], fed_object["spec"]["template"]
    source = template.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    resource = federated_type.resource
    if request is None:
        request = request_of(template)
    if not counts_cpu_and_memory:
        request = {name: request[name] for name in request if name == NVIDIA_GPU or name.startswith(KATALYST_PREFIX)}
    fields: dict[str, Any] = {
        "mode": policy.mode,
        "strategy": policy.strategy,
        "sticky": policy.is_sticky,
        "cluster_selector": policy.cluster_selector,
        "required": policy.required,
        "tolerations": policy.tolerations,
        "max_clusters": policy.max_clusters,
        "topology_spread": policy.topology_spread,
    }
    preferences = policy.preferences
    if is_overridden(annotations):
        overriding = overrides_from_annotations(annotations, preferences)
        preferences = overriding.pop("preferences", preferences)
        fields |= overriding
    if not federated_type.paths.replicas_spec:
        fields["mode"] = SchedulingMode.DUPLICATE
    desired = federated_type.replicas(template)
    return SchedulingUnit(
        gvk=GroupVersionKind(resource.group, resource.version, resource.kind),
        plural=resource.plural,
        namespace=str(metadata.get("namespace") or ""),
        name=str(source.get("name") or metadata["name"]),
        labels=source.get("labels") or {},
        annotations=source.get("annotations") or {},
        desired_replicas=desired,
        request=request,
        node_needs=node_needs_of(template),
        reserved={} if reserved is None else reserved,
        current=current_clusters(fed_object, federated_type),
        avoid_disruption=policy.avoid_disruption,
        auto_migration=_auto_migration(policy, annotations, desired),
        custom_migration=migration.from_annotation(annotations.get(names.APPLIED_MIGRATION_CONFIGURATION)),
        template=template,
        **fields,
        **_resolved(preferences, snapshot),
    )


def current_clusters(fed_object: Mapping[str, Any], federated_type: FederatedType) -> dict[str, int | None]:
    """Return the scheduler's own placement: cluster → replicas it was given, None where it has no number."""
    clusters = placement_of(fed_object, names.GLOBAL_SCHEDULER)
    if not federated_type.paths.replicas_spec:
        return dict.fromkeys(clusters)
    pointer = to_pointer(federated_type.paths.replicas_spec)
    patches = overrides_of(fed_object, names.GLOBAL_SCHEDULER)
    current: dict[str, int | None] = {}
    for cluster in clusters:
        current[cluster] = None
        for patch in patches.get(cluster, ()):
            value = patch.get("value")
            if isinstance(value, int) and patch.get("path") == pointer and (patch.get("op") or "replace") == "replace":
                current[cluster] = value
                break
    return current


def _auto_migration(policy: Policy, annotations: Mapping[str, str], desired: int | None) -> AutoMigration | None:
    if not policy.has_auto_migration:
        return None
    info: Any = {}
    if text := annotations.get(names.AUTO_MIGRATION_INFO):
        try:
            info = orjson.loads(text)
        except orjson.JSONDecodeError:
            info = {}
    told = info if isinstance(info, dict) else {}
    scheduled = migration.to_counts(told.get("scheduledReplicas"))
    return AutoMigration(
        policy.keep_unschedulable,
        migration.to_counts(told.get("estimatedCapacity")),
        scheduled,
        Offers(migration.to_counts(told.get("offeredReplicas")), policy.failback.batch_of(desired or 0)),
        scheduled | migration.to_counts(told.get("readyReplicas")),
        to_openings(told.get("openings")),
    )


def _resolved(preferences: Preferences, snapshot: Snapshot) -> dict[str, Any]:
    """Return the preferences as fields of the unit, cluster names resolved where they are not lower case."""
    listed = preferences.cluster_names
    if any(name != name.lower() for name in listed):
        preferences = Preferences(
            frozenset(map(snapshot.resolve, listed)),
            _renamed(preferences.min_replicas, snapshot),
            _renamed(preferences.max_replicas, snapshot),
            _renamed(preferences.weights, snapshot),
            _renamed(preferences.priorities, snapshot),
        )
    return {
        "cluster_names": preferences.cluster_names,
        "min_replicas": preferences.min_replicas or _EMPTY,
        "max_replicas": preferences.max_replicas or _EMPTY,
        "weights": preferences.weights or _EMPTY,
        "priorities": preferences.priorities,
    }


def _renamed(values: Mapping[str, int] | None, snapshot: Snapshot) -> Mapping[str, int] | None:
    """Return the map under real names; an entry that was written with the real name wins."""
    if values is None:
        return None
    resolved = {snapshot.resolve(name): value for name, value in values.items()}
    return resolved | {name: value for name, value in values.items() if name in snapshot.by_name}
