"""Build the scheduling unit: a policy, one federated object, and what its annotations say differently (spec §5.4).

Annotations on the object win over the policy, one by one; one that cannot be understood is ignored and reported by
`ignored_annotations` for whoever wants to warn. Where tenants may not override policies the caller takes the
annotations away (`without_overriding`). Pure. The result goes to `engine.py`.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.paths import to_pointer
from federation.api.selectors import compile_cluster_terms
from federation.planning.placement.failback import Offers
from federation.planning.placements import overrides_of, placement_of
from federation.scheduling import migration
from federation.scheduling.framework.types import (
    NVIDIA_GPU,
    AutoMigration,
    GroupVersionKind,
    PreferredTerm,
    Reserved,
    SchedulingMode,
    SchedulingUnit,
)
from federation.scheduling.policy import Policy, Preferences, to_preferences, to_tolerations
from federation.scheduling.request import node_needs_of, request_of
from federation.scheduling.snapshot import Snapshot

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_EMPTY: Mapping[str, int] = {}


def build_unit(
    fed_object: Mapping[str, Any],
    federated_type: FederatedType,
    policy: Policy,
    snapshot: Snapshot,
    *,
    counts_cpu_and_memory: bool = True,
    reserved: Reserved | None = None,
) -> SchedulingUnit:
    """Return the unit of a federated object under a policy.

    Divide falls back to Duplicate for types without a replicas field. Cluster names that exist only in lower case are
    resolved (`Snapshot.resolve`). With `counts_cpu_and_memory` off only GPUs count, as in KubeAdmiral.
    """
    metadata, template = fed_object["metadata"], fed_object["spec"]["template"]
    source = template.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    resource = federated_type.resource
    request = request_of(template)
    if not counts_cpu_and_memory:
        request = {name: amount for name, amount in request.items() if name == NVIDIA_GPU}
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
    if not _OVERRIDING.isdisjoint(annotations):
        overriding = overrides_from_annotations(annotations)
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
        values = (
            patch.get("value")
            for patch in patches.get(cluster, ())
            if patch.get("path") == pointer and (patch.get("op") or "replace") == "replace"
        )
        current[cluster] = next((value for value in values if isinstance(value, int)), None)
    return current


def overrides_from_annotations(annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the unit's fields that annotations set, `preferences` among them; unintelligible ones are left out."""
    fields: dict[str, Any] = {}
    for key, read in _READERS.items():
        text = annotations.get(key)
        if text is not None:
            try:
                fields |= read(text)
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
    return fields


def without_overriding(fed_object: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return the federated object without annotations that override its policy, and which ones these were."""
    metadata = fed_object["metadata"]
    annotations = metadata.get("annotations") or {}
    taken = [key for key in _READERS if key in annotations]
    if not taken:
        return fed_object, taken
    left = {key: value for key, value in annotations.items() if key not in _READERS}
    return {**fed_object, "metadata": {**metadata, "annotations": left}}, taken


def ignored_annotations(annotations: Mapping[str, str]) -> list[str]:
    """Return the overriding annotations that are there and cannot be understood."""
    return [key for key in _READERS if key in annotations and not overrides_from_annotations({key: annotations[key]})]


def _auto_migration(policy: Policy, annotations: Mapping[str, str], desired: int | None) -> AutoMigration | None:
    if not policy.has_auto_migration:
        return None
    info: Any = {}
    if text := annotations.get(names.AUTO_MIGRATION_INFO):
        try:
            info = orjson.loads(text)
        except orjson.JSONDecodeError:
            info = {}
    info = info if isinstance(info, dict) else {}
    return AutoMigration(
        policy.keep_unschedulable,
        info.get("estimatedCapacity") or {},
        info.get("scheduledReplicas") or {},
        Offers(info.get("offeredReplicas") or {}, policy.failback.batch_of(desired or 0)),
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


def _read_mode(text: str) -> dict[str, Any]:
    return {"mode": SchedulingMode(text)}


def _read_sticky(text: str) -> dict[str, Any]:
    return {"sticky": {"true": True, "false": False}[text]}


def _read_selector(text: str) -> dict[str, Any]:
    labels = orjson.loads(text)
    if not all(isinstance(value, str) for value in labels.values()):
        raise ValueError("not a map of strings")
    return {"cluster_selector": tuple(sorted(labels.items()))}


def _read_affinity(text: str) -> dict[str, Any]:
    affinity = (orjson.loads(text) or {}).get("clusterAffinity") or {}
    required, preferred = affinity.get(_REQUIRED), affinity.get(_PREFERRED) or ()
    return {
        "required": None if required is None else compile_cluster_terms(required.get("clusterSelectorTerms")),
        "preferred": tuple(
            PreferredTerm(
                int(entry["weight"]),
                compile_cluster_terms([{"matchExpressions": entry["preference"].get("matchExpressions")}]),
            )
            for entry in preferred
            if entry["weight"]
        ),
    }


def _read_tolerations(text: str) -> dict[str, Any]:
    return {"tolerations": to_tolerations(orjson.loads(text))}


def _read_max_clusters(text: str) -> dict[str, Any]:
    limit = int(text)
    if limit < 0:
        raise ValueError("negative")
    return {"max_clusters": limit}


def _read_placements(text: str) -> dict[str, Any]:
    placement = orjson.loads(text)
    if not isinstance(placement, list):
        raise TypeError("not a list")
    return {"preferences": to_preferences(placement)}


_READERS = {
    names.SCHEDULING_MODE: _read_mode,
    names.STICKY_CLUSTER: _read_sticky,
    names.CLUSTER_SELECTOR: _read_selector,
    names.AFFINITY: _read_affinity,
    names.TOLERATIONS: _read_tolerations,
    names.MAX_CLUSTERS: _read_max_clusters,
    names.PLACEMENTS: _read_placements,
}
_OVERRIDING = frozenset(_READERS)
