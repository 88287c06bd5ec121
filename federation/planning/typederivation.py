"""The FederatedTypeConfig of a kind that a policy selects and that none covers. Pure.

It makes the control plane watch the kind on the host and in all members, and extends the rights of its accounts there.
So only kinds that may travel get one: the built-in ones of a fixed list, and custom ones whose definition is on the
host. A policy of a namespace, which a tenant may write, gets one for a custom kind only where administrators have
placed the definition in members (docs/decisions/0028). `features/types/derivation.py` creates it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api import names
from federation.api.resources import CORE_GROUP, FEDERATED_TYPE_CONFIGS, UNITED_DEPLOYMENTS
from federation.apimachinery import conditions
from federation.apimachinery.definitions import find_version, stored_version
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.resources import (
    DEVICE_CLASSES,
    INGRESS_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    GroupKind,
    Object,
    Resource,
)
from federation.planning.federatedobject.hosteffect import ACTING

_BUILT_IN = {
    resource.group_kind: resource
    for resource in (
        Resource("", "v1", "Pod", "pods"),
        Resource("", "v1", "PodTemplate", "podtemplates"),
        Resource("", "v1", "ReplicationController", "replicationcontrollers"),
        Resource("apps", "v1", "ReplicaSet", "replicasets"),
        INGRESS_CLASSES,
        Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
        Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False),
        Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        DEVICE_CLASSES,
        RESOURCE_CLAIMS,
        RESOURCE_CLAIM_TEMPLATES,
        Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False),
        Resource("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False),
        Resource("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", namespaced=False),
        *ACTING,
    )
}
"""Built-in kinds without a shipped configuration, or with one that hosts of earlier versions lack.

What belongs to one cluster (nodes, leases, events, certificates) is left out on purpose."""
_SCALED = frozenset({"ReplicaSet", "ReplicationController"})
_OWN_DOMAIN = CORE_GROUP.partition(".")[2]
_FIELDS = ("metadata.creationTimestamp", "metadata.generation", "status")


class NotDerivableError(InvalidInput):
    """The kind gets no configuration; the message is for the author of the policy."""


def is_built_in(group: str) -> bool:
    """Return whether kinds of the group are Kubernetes' own, unless a definition says otherwise."""
    return "." not in group or group.endswith(".k8s.io")


def derive_built_in(kind: GroupKind, *, is_cluster_wide: bool) -> Object | None:
    """Return the configuration of a built-in kind, None for another kind; NotDerivableError.

    `is_cluster_wide`: whether a policy that administrators write selects it.
    """
    resource = _BUILT_IN.get(kind)
    if resource is None:
        return None
    if not (resource.namespaced or is_cluster_wide):
        raise NotDerivableError(f"{kind.kind} has no namespace, so only a ClusterPropagationPolicy selects it")
    is_scaled = kind.kind in _SCALED
    return _config(resource, "spec.replicas" if is_scaled else "", "status.replicas" if is_scaled else "")


def derive_custom(
    definition: Mapping[str, Any] | None, kind: GroupKind, *, is_cluster_wide: bool, is_placed: bool
) -> Object:
    """Return the configuration of a custom kind, in the version that the host stores; NotDerivableError.

    `definition` is the CustomResourceDefinition of the kind on the host, `is_placed` whether it is placed in members.
    """
    name = kind.kind
    if definition is None and is_built_in(kind.group):
        raise NotDerivableError("it travels only if an administrator creates a FederatedTypeConfig for it")
    if definition is None or not conditions.is_true((definition.get("status") or {}).get("conditions"), "Established"):
        raise NotDerivableError(f"the host does not serve {name}: create its CustomResourceDefinition first")
    if kind.group == _OWN_DOMAIN or kind.group.endswith(f".{_OWN_DOMAIN}"):
        raise NotDerivableError(f"{name} belongs to the federation itself")
    if kind == UNITED_DEPLOYMENTS.group_kind:
        raise NotDerivableError("the host runs UnitedDeployments: policies place the workloads of their subsets")
    version = stored_version(definition)
    if not version:
        raise NotDerivableError(f"the host serves no version of {name}")
    namespaced = definition["spec"].get("scope") == "Namespaced"
    if not is_cluster_wide and not (namespaced and is_placed):
        raise NotDerivableError(
            f"an administrator must place the CustomResourceDefinition {definition['metadata']['name']} in members"
            " first, or create a FederatedTypeConfig"
            if namespaced
            else f"{name} has no namespace, so only a ClusterPropagationPolicy selects it"
        )
    return custom_config(definition, version)


def custom_config(definition: Mapping[str, Any], version: str) -> Object:
    """Return the configuration of the kind of a CustomResourceDefinition in one of its versions."""
    spec, described = definition["spec"], find_version(definition, version)
    accepted = spec.get("names") or {}
    resource = Resource(
        str(spec["group"]),
        version,
        str(accepted.get("kind")),
        str(accepted.get("plural") or ""),
        namespaced=spec.get("scope") == "Namespaced",
    )
    scale = (described.get("subresources") or {}).get("scale") or {}
    return _config(
        resource, _path(scale.get("specReplicasPath")), _path(scale.get("statusReplicasPath")), _status_of(described)
    )


def defined_kind(definition: Mapping[str, Any]) -> GroupKind:
    """Return the kind of a CustomResourceDefinition."""
    spec = definition.get("spec") or {}
    return GroupKind(str(spec.get("group") or ""), str((spec.get("names") or {}).get("kind") or ""))


def defines(definition: Mapping[str, Any], kind: GroupKind) -> bool:
    """Return whether the CustomResourceDefinition is that of the kind."""
    return defined_kind(definition) == kind


def can_be_derived(kind: GroupKind, definitions: Iterable[Mapping[str, Any]], *, is_cluster_wide: bool) -> bool:
    """Return whether the kind gets a configuration, at the latest when its definition is placed in members."""
    try:
        if derive_built_in(kind, is_cluster_wide=is_cluster_wide) is not None:
            return True
        definition = next((each for each in definitions if defines(each, kind)), None)
        derive_custom(definition, kind, is_cluster_wide=is_cluster_wide, is_placed=True)
    except NotDerivableError:
        return False
    return True


def _config(resource: Resource, replicas: str, replicas_status: str, status: Mapping[str, Any] | None = None) -> Object:
    paths = {"replicasSpec": replicas, "replicasStatus": replicas_status} if replicas else {}
    for field, path in (("readyReplicas", "readyReplicasStatus"), ("availableReplicas", "availableReplicasStatus")):
        is_known = resource.kind in _SCALED if status is None else _is_integer(status.get(field))
        if replicas and is_known:
            paths[path] = f"status.{field}"
    spec: Object = {
        "sourceType": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
            "pluralName": resource.plural,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
        },
        "controllers": [[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]],
        "statusAggregation": {"enabled": True},
        "statusCollection": {"enabled": True, "fields": list(_FIELDS)},
    }
    if paths:
        spec["pathDefinition"] = {key: path for key, path in paths.items() if path}
    return {
        "apiVersion": FEDERATED_TYPE_CONFIGS.api_version,
        "kind": FEDERATED_TYPE_CONFIGS.kind,
        "metadata": {"name": resource.group_resource, "labels": {names.DERIVED_TYPE: "true"}},
        "spec": spec,
    }


def _path(text: Any) -> str:
    return text.removeprefix(".") if isinstance(text, str) else ""


def _status_of(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of the status in the schema of a version."""
    schema: Any = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    for name in ("properties", "status", "properties"):
        schema = schema.get(name) if isinstance(schema, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def _is_integer(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "integer"
