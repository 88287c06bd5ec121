"""The objects that stand for a federated object of KubeFed: the object itself and its policies. Pure.

`features/kubefed` keeps them on the host, and `fedctl convert` prints them. Both use the same names, so converted
manifests replace what the controller wrote without any change in members.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.kubefedkinds import FederatedKind
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import NAMESPACES, REPLICA_SETS, Object, Resource
from federation.planning.federatedobject.naming import bounded
from federation.planning.kubefed.preference import to_divided_policy
from federation.planning.kubefed.selection import ALL, Selection, to_selection

REPLICAS_PATH = "/spec/replicas"
_NAME_LENGTH_MAX = 63
"""A policy is named in a label."""
_FOLLOWED_CHANGES = {"clusterJoined": True, "clusterLabelsChanged": True, "policyContentChanged": True}
"""KubeFed places an object again whenever clusters change."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """Objects to keep, in the order in which they are written, and those to remove.

    `undecided` says why the policy is neither kept nor removed, so that the object stays where it is.
    """

    objects: list[tuple[Resource, Object]] = field(default_factory=list)
    removed: list[tuple[Resource, str]] = field(default_factory=list)
    undecided: str = ""


def derive(
    federated: Mapping[str, Any],
    kind: FederatedKind,
    preference: Mapping[str, Any] | None = None,
    federated_namespace: Mapping[str, Any] | None = None,
    *,
    divided_replicas: int | None = None,
) -> Derivation:
    """Return what stands for the federated object.

    `preference` is its ReplicaSchedulingPreference, `federated_namespace` the FederatedNamespace that it is in. The
    placement of a FederatedNamespace restricts the objects in the namespace; the namespace itself goes to all clusters.
    `divided_replicas` is the total of a native object whose policy divides already; it stays without a preference.
    """
    if kind.target == NAMESPACES:
        return Derivation([(NAMESPACES, to_native(federated, kind))])
    propagation, override = policy_kinds(kind)
    name = policy_name(federated, kind)
    undecided = _undecided(federated, preference, name, divided_replicas)
    policy = None if undecided else _policy(federated, preference, federated_namespace)
    if policy is None and not undecided:
        return Derivation(removed=[(propagation, name), (override, name), (kind.target, federated["metadata"]["name"])])
    derivation = Derivation(undecided=undecided)
    if policy is not None:
        if kind.target == REPLICA_SETS:
            # No FederatedTypeConfig ships for this kind; a policy that selects it gets one.
            selector = {"apiVersion": kind.target.api_version, "kind": kind.target.kind}
            policy["resourceSelectors"] = [{**selector, "name": federated["metadata"]["name"]}]
        derivation.objects.append((propagation, _object(propagation, federated, name, {"spec": policy})))
    replicas = preference["spec"]["totalReplicas"] if preference is not None else divided_replicas
    rules = override_rules(federated, is_divided=replicas is not None)
    if rules:
        body = _object(override, federated, name, {"spec": {"overrideRules": rules}})
        derivation.objects.append((override, body))
    else:
        derivation.removed.append((override, name))
    native = to_native(federated, kind, replicas, has_overrides=bool(rules))
    derivation.objects.append((kind.target, native))
    return derivation


def policy_kinds(kind: FederatedKind) -> tuple[Resource, Resource]:
    """Return the kinds of the propagation policy and of the override policy."""
    if kind.target.namespaced:
        return PROPAGATION_POLICIES, OVERRIDE_POLICIES
    return CLUSTER_PROPAGATION_POLICIES, CLUSTER_OVERRIDE_POLICIES


def policy_name(federated: Mapping[str, Any], kind: FederatedKind) -> str:
    """Return the name of both policies of a federated object."""
    return bounded(f"{federated['metadata']['name']}-{kind.target.kind.lower()}", _NAME_LENGTH_MAX)


def to_native(
    federated: Mapping[str, Any],
    kind: FederatedKind,
    replicas: int | None = None,
    *,
    has_overrides: bool = False,
) -> Object:
    """Return the object that the template describes, with the labels that name its policies.

    `replicas` replace those of the template.
    """
    spec = federated.get("spec") or {}
    template = {key: value for key, value in (spec.get("template") or {}).items() if key != "status"}
    given = template.pop("metadata", None) or {}
    labels, annotations = dict(given.get("labels") or {}), dict(given.get("annotations") or {})
    if kind.target != NAMESPACES:
        labels |= _policy_labels(federated, kind, has_overrides=has_overrides)
    if spec.get("retainReplicas"):
        annotations[names.RETAIN_REPLICAS] = "true"
    if (federated["metadata"].get("annotations") or {}).get(names.KUBEFED_ORPHAN) == "true":
        annotations[names.ORPHAN] = "all"
    metadata: Object = {
        **({"labels": labels} if labels else {}),
        **({"annotations": annotations} if annotations else {}),
    }
    if replicas is not None:
        template["spec"] = {**(template.get("spec") or {}), "replicas": replicas}
    native = _object(kind.target, federated, federated["metadata"]["name"], template)
    native["metadata"] |= metadata
    return native


def _policy_labels(federated: Mapping[str, Any], kind: FederatedKind, *, has_overrides: bool) -> dict[str, str]:
    name = policy_name(federated, kind)
    if kind.target.namespaced:
        propagation, override = names.PROPAGATION_POLICY_LABEL, names.OVERRIDE_POLICY_LABEL
    else:
        propagation, override = names.CLUSTER_PROPAGATION_POLICY_LABEL, names.CLUSTER_OVERRIDE_POLICY_LABEL
    return {propagation: name, **({override: name} if has_overrides else {})}


def pointer_of(path: str) -> str:
    """Return the JSON pointer of a path, which may have dots instead: spec.replicas is /spec/replicas."""
    return path if path.startswith("/") else "/" + path.replace(".", "/")


def override_rules(federated: Mapping[str, Any], *, is_divided: bool) -> list[Object]:
    """Return the overrides as rules of an override policy; a division replaces those of the replicas."""
    rules = []
    for entry in (federated.get("spec") or {}).get("overrides") or ():
        patches = [
            {"path": pointer_of(each["path"]), "operator": each.get("op") or "replace", **_value(each)}
            for each in entry.get("clusterOverrides") or ()
            if not (is_divided and pointer_of(each["path"]) == REPLICAS_PATH)
        ]
        if patches:
            rules.append({"targetClusters": {"clusters": [entry["clusterName"]]}, "overriders": {"jsonpatch": patches}})
    return rules


def _value(patch: Mapping[str, Any]) -> Object:
    return {"value": patch["value"]} if "value" in patch else {}


def _undecided(
    federated: Mapping[str, Any], preference: Mapping[str, Any] | None, policy: str, divided_replicas: int | None
) -> str:
    if preference is not None:
        return ""
    if divided_replicas is not None:
        return (
            f"without a ReplicaSchedulingPreference the {divided_replicas} replicas stay divided as they are; create"
            f" one, or delete PropagationPolicy {policy} to place copies"
        )
    if to_selection((federated.get("spec") or {}).get("placement")) is None:
        return "spec.placement names no cluster; set clusterSelector or clusters, or clusters: [] to remove the object"
    return ""


def _policy(
    federated: Mapping[str, Any],
    preference: Mapping[str, Any] | None,
    federated_namespace: Mapping[str, Any] | None,
) -> Object | None:
    """Return the spec of the propagation policy, None without a cluster to place the object in."""
    placement = (federated.get("spec") or {}).get("placement")
    namespace = _namespace_selection(federated_namespace)
    common: Object = {"disableFollowerScheduling": True}
    if preference is not None:
        divided = to_divided_policy(preference, placement, namespace)
        if divided is None:
            return None
        reschedule = {**divided["reschedulePolicy"], "rescheduleWhen": dict(_FOLLOWED_CHANGES)}
        return {**divided, "reschedulePolicy": reschedule, **common}
    selection = to_selection(placement)
    if selection is None or (selection := selection.intersect(namespace)).is_empty:
        return None
    return {
        "schedulingMode": "Duplicate",
        **({"placement": [{"cluster": name} for name in selection.clusters]} if selection.clusters else {}),
        **selection.to_policy(),
        "failover": {"mode": "Never"},
        "reschedulePolicy": {"rescheduleWhen": dict(_FOLLOWED_CHANGES)},
        **common,
    }


def _namespace_selection(federated_namespace: Mapping[str, Any] | None) -> Selection:
    if federated_namespace is None:
        return ALL
    return to_selection((federated_namespace.get("spec") or {}).get("placement")) or ALL


def _object(resource: Resource, federated: Mapping[str, Any], name: str, body: Mapping[str, Any]) -> Object:
    metadata: Object = {"name": name}
    if resource.namespaced:
        metadata["namespace"] = federated["metadata"]["namespace"]
    rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}
