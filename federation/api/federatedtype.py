"""Federated types: parsed FederatedTypeConfigs, and the default ones (docs/reference/kinds.md).

A `FederatedType` has the paths of replicas, the pipeline and the fields to collect of a kind. Controllers use it
instead of the raw configuration; `runtime/federatedtypes.py` keeps the live set.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeGuard

from federation.api import names
from federation.api.components import NO_COMPONENTS, Components, parse_components, to_path
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, CORE_GROUP, FEDERATED_OBJECTS, KRUISE_GROUP
from federation.api.shippedcomponents import shipped_components
from federation.apimachinery import dotpaths, nameformats
from federation.apimachinery.resources import GroupKind, Object, Resource, group_kind_of

Stages = tuple[tuple[str, ...], ...]


class Ending(StrEnum):
    """Whether the FederatedTypeConfig is being deleted, and what happens to the objects that are federated by it."""

    NOT = ""
    WAITS = "waits"
    """Nothing was asked: existing objects stay federated, new ones are not."""
    ORPHAN = "orphan"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class PathDefinition:
    """The paths of fields for the scheduler, the status and followers; () without such a field."""

    label_selector: dotpaths.Path = ()
    replicas_spec: dotpaths.Path = ()
    replicas_status: dotpaths.Path = ()
    available_replicas_status: dotpaths.Path = ()
    ready_replicas_status: dotpaths.Path = ()
    pod_template: dotpaths.Path = ()


@dataclass(frozen=True, slots=True)
class StatusRule:
    """A field of the status, and the CEL expression that computes it from the members."""

    path: dotpaths.Path
    expression: str


class DriftMode(StrEnum):
    """The treatment of fields of ours that somebody in a member has changed."""

    REPAIR = "Repair"
    """They are written back at once."""
    REPORT = "Report"
    """They stay until the next change of the template or the overrides, and the status names them."""
    STOP = "Stop"
    """They stay, and nothing else is delivered there before they are as they were."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """A field whose value in the member counts, and the CEL expression of the value to deliver, "" for the member's."""

    path: dotpaths.Path
    """Its keys; one that ends in `[]` is a list, and the next key is of each item, found by its name."""
    expression: str = ""
    evaluate: Callable[[Mapping[str, Any]], Any] | None = field(default=None, compare=False)
    """The compiled expression; the live set of types fills it in."""


@dataclass(frozen=True, slots=True)
class FederatedType:
    """The configuration of one kind of source object; `name` is the FederatedTypeConfig's."""

    name: str
    resource: Resource
    controllers: Stages
    paths: PathDefinition = field(default_factory=PathDefinition)
    status_fields: tuple[dotpaths.Path, ...] = ()
    collect: bool = False
    aggregate: bool = True
    status_rules: tuple[StatusRule, ...] = ()
    auto_migration: bool = False
    health_expression: str = ""
    """The CEL expression that says whether a member object is healthy, "" without one."""
    retention: tuple[RetentionRule, ...] = ()
    drift: DriftMode = DriftMode.REPAIR
    scale_target_ref_path: dotpaths.Path = ()
    application_paths: str = ""
    """The annotation `names.APPLICATION_PATHS`, as it is."""
    components: Components = NO_COMPONENTS
    uid: str = ""
    ending: Ending = Ending.NOT

    @property
    def federated_resource(self) -> Resource:
        """The kind of the federated objects: namespaced as the source is."""
        return FEDERATED_OBJECTS if self.resource.namespaced else CLUSTER_FEDERATED_OBJECTS

    def replicas(self, template: Mapping[str, Any]) -> int | None:
        """Return the desired replicas of an object, None when the type or the object has none.

        Those of a Job are the pods that it runs at the same time.
        """
        if not self.paths.replicas_spec:
            return None
        if self.resource.group == "batch" and self.paths.replicas_spec[-1] == "parallelism":
            return _pods_at_once(dotpaths.get(template, self.paths.replicas_spec[:-1]))
        value = dotpaths.get(template, self.paths.replicas_spec)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def _pods_at_once(job_spec: Any) -> int:
    spec = job_spec if isinstance(job_spec, Mapping) else {}
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    count = parallelism if type(parallelism) is int else 1
    return min(count, completions) if type(completions) is int else count


def from_config(config: Mapping[str, Any]) -> FederatedType:
    """Return the parsed FederatedTypeConfig; ValueError naming the field when kind, version or plural is missing.

    One without `controllers` is scheduled and overridden; an empty list means that neither happens.
    """
    metadata, spec = config.get("metadata") or {}, config.get("spec") or {}
    definition = spec.get("pathDefinition") or {}
    collection = spec.get("statusCollection") or {}
    aggregation = spec.get("statusAggregation") or {}
    annotations, stages = metadata.get("annotations") or {}, spec.get("controllers")
    resource = _resource(spec.get("sourceType") or {})
    return FederatedType(
        name=str(metadata["name"]),
        resource=resource,
        controllers=_DEFAULT_PIPELINE if stages is None else tuple(stage for stage in map(tuple, stages) if stage),
        paths=PathDefinition(
            label_selector=dotpaths.split(definition.get("labelSelector", "")),
            replicas_spec=dotpaths.split(definition.get("replicasSpec", "")),
            replicas_status=dotpaths.split(definition.get("replicasStatus", "")),
            available_replicas_status=dotpaths.split(definition.get("availableReplicasStatus", "")),
            ready_replicas_status=dotpaths.split(definition.get("readyReplicasStatus", "")),
            pod_template=dotpaths.split(definition.get("podTemplate", "")),
        ),
        status_fields=tuple(dotpaths.split(text) for text in collection.get("fields") or ()),
        collect=bool(collection.get("enabled", False)),
        aggregate=bool(aggregation.get("enabled", True)),
        status_rules=tuple(
            StatusRule(dotpaths.split(rule["path"]), rule["expression"]) for rule in aggregation.get("rules") or ()
        ),
        auto_migration=bool((spec.get("autoMigration") or {}).get("enabled", False)),
        health_expression=str((spec.get("health") or {}).get("expression") or ""),
        retention=tuple(_retention_rule(rule) for rule in spec.get("retention") or ()),
        drift=DriftMode((spec.get("drift") or {}).get("mode") or DriftMode.REPAIR),
        scale_target_ref_path=dotpaths.split(annotations.get(names.SCALE_TARGET_REF_PATH, "")),
        application_paths=str(annotations.get(names.APPLICATION_PATHS, "")),
        components=_components(resource, spec),
        uid=str(metadata.get("uid", "")),
        ending=_ending(metadata),
    )


def _retention_rule(rule: Mapping[str, Any]) -> RetentionRule:
    return RetentionRule(to_path(str(rule["path"])), str(rule.get("expression") or ""))


def with_engine(type_: FederatedType, compile_: Callable[[str], Callable[[Mapping[str, Any]], Any]]) -> FederatedType:
    """Return the type with the functions of its retention rules, which `compile_` makes of their expressions."""
    if not any(rule.expression for rule in type_.retention):
        return type_
    return replace(
        type_,
        retention=tuple(
            replace(rule, evaluate=compile_(rule.expression)) if rule.expression else rule for rule in type_.retention
        ),
    )


def _components(resource: Resource, spec: Mapping[str, Any]) -> Components:
    """Return the configuration's components, those that ship for the kind if it has none."""
    entries, gang = spec.get("components"), spec.get("gang")
    if entries is not None:
        return parse_components(entries, gang)
    shipped = shipped_components(resource.group, resource.kind)
    return replace(parse_components((), gang), rules=shipped.rules) if gang and shipped.rules else shipped


def _ending(metadata: Mapping[str, Any]) -> Ending:
    annotations = metadata.get("annotations") or {}
    if not metadata.get("deletionTimestamp"):
        return Ending.NOT
    if annotations.get(names.ORPHAN) == "all":
        return Ending.ORPHAN
    return Ending.REMOVE if names.CASCADING_DELETE in annotations else Ending.WAITS


def parse_configs(configs: Iterable[Mapping[str, Any]]) -> list[FederatedType]:
    """Return the types of FederatedTypeConfigs; unusable ones are omitted, as the live set omits them."""
    types = []
    for config in configs:
        try:
            types.append(from_config(config))
        except (ValueError, KeyError, TypeError):
            continue
    return types


def _resource(source: Mapping[str, Any]) -> Resource:
    for required in ("kind", "version", "pluralName", "scope"):
        if not source.get(required):
            raise ValueError(f"spec.sourceType.{required}: Required value")
    return Resource(
        group=str(source.get("group") or ""),
        version=str(source["version"]),
        kind=str(source["kind"]),
        plural=str(source["pluralName"]),
        namespaced=source["scope"] == "Namespaced",
    )


_DEFAULT_PIPELINE = ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))
_CREATION = "metadata.creationTimestamp"
_GENERATION = "metadata.generation"
_NOT_COLLECTED = None
_RBAC = "rbac.authorization.k8s.io"
_MCS = "multicluster.x-k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

_WORKLOAD_FIELDS = (_CREATION, _GENERATION, "spec.replicas", "status")
_VOLUME_FIELDS = (
    _CREATION,
    "spec.accessModes",
    "spec.capacity",
    "spec.storageClassName",
    "spec.persistentVolumeReclaimPolicy",
    "status",
)

# group, version, kind, plural, namespaced, collected fields (None: no collection)
_SHIPPED: tuple[tuple[str, str, str, str, bool, tuple[str, ...] | None], ...] = (
    ("", "v1", "Namespace", "namespaces", False, _NOT_COLLECTED),
    ("", "v1", "ConfigMap", "configmaps", True, (_CREATION,)),
    ("apps", "v1", "Deployment", "deployments", True, _WORKLOAD_FIELDS),
    ("", "v1", "ServiceAccount", "serviceaccounts", True, (_CREATION,)),
    ("", "v1", "Secret", "secrets", True, (_CREATION,)),
    ("", "v1", "Service", "services", True, (_CREATION, "spec.clusterIP", "spec.type", "spec.ports", "status")),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, (_CREATION, "provisioner", "reclaimPolicy")),
    ("", "v1", "PersistentVolume", "persistentvolumes", False, _VOLUME_FIELDS),
    (
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        True,
        (_CREATION, "spec.resources.requests", "spec.storageClassName", "status"),
    ),
    (_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False, _NOT_COLLECTED),
    (_RBAC, "v1", "ClusterRole", "clusterroles", False, _NOT_COLLECTED),
    (_RBAC, "v1", "RoleBinding", "rolebindings", True, _NOT_COLLECTED),
    (_RBAC, "v1", "Role", "roles", True, _NOT_COLLECTED),
    (KRUISE_GROUP, "v1alpha1", "CloneSet", "clonesets", True, _WORKLOAD_FIELDS),
    (KRUISE_GROUP, "v1beta1", "StatefulSet", "statefulsets", True, _WORKLOAD_FIELDS),
    ("apps", "v1", "StatefulSet", "statefulsets", True, _WORKLOAD_FIELDS),
    ("apps", "v1", "DaemonSet", "daemonsets", True, (_CREATION, _GENERATION, "status")),
    ("batch", "v1", "Job", "jobs", True, (_CREATION, _GENERATION, "status")),
    ("batch", "v1", "CronJob", "cronjobs", True, (_CREATION, _GENERATION, "status")),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", True, (_CREATION, "spec.rules", "status")),
    ("", "v1", "LimitRange", "limitranges", True, _NOT_COLLECTED),
    ("", "v1", "ResourceQuota", "resourcequotas", True, (_CREATION, "status")),
    (
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        False,
        (_CREATION, "status"),
    ),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, (_CREATION, "status")),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, (_CREATION, _GENERATION, "status")),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", True, (_CREATION,)),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, (_CREATION, "value")),
    ("networking.k8s.io", "v1", "IngressClass", "ingressclasses", False, (_CREATION, "spec.controller")),
    (_ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False, _NOT_COLLECTED),
    (_ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False, _NOT_COLLECTED),
    (_ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False, _NOT_COLLECTED),
    (_ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False, _NOT_COLLECTED),
    ("apiregistration.k8s.io", "v1", "APIService", "apiservices", False, (_CREATION, "status")),
    (KRUISE_GROUP, "v1beta1", "WorkloadSpread", "workloadspreads", True, _NOT_COLLECTED),
    (_MCS, "v1alpha1", "ServiceImport", "serviceimports", True, _NOT_COLLECTED),
    (_MCS, "v1alpha1", "ServiceExport", "serviceexports", True, _NOT_COLLECTED),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True, _NOT_COLLECTED),
)

_REPLICATED = frozenset({"clonesets", "deployments", "statefulsets"})
_PARALLELISM = {"jobs": "spec.parallelism", "cronjobs": "spec.jobTemplate.spec.parallelism"}

_OWN_STATUS = frozenset(
    {
        "endpointslices",
        "namespaces",
        "serviceexports",
        "serviceimports",
        "validatingadmissionpolicies",
        "workloadspreads",
    }
)
"""Kinds whose status is the host's, or is written by the controller in their pipeline."""

_PIPELINES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "namespaces": ((names.NSAUTOPROP_CONTROLLER,), (names.OVERRIDE_CONTROLLER,)),
    "endpointslices": (),
    "workloadspreads": ((names.SPREAD_CONTROLLER,),),
}


def default_type_configs() -> list[Object]:
    """Return the FederatedTypeConfigs that ship, as manifests; each call builds new ones.

    Differences from KubeAdmiral's sample are noted in docs/decisions/0002: HPAs have no federatedhpa stage, because no
    controller decides about them before the scheduler does.
    """
    return [_config(row) for row in _SHIPPED]


def _config(row: tuple[str, str, str, str, bool, tuple[str, ...] | None]) -> Object:
    group, version, kind, plural, namespaced, fields = row
    name = f"{plural}.{group}" if group else plural
    spec: Object = {
        "sourceType": {
            "group": group,
            "version": version,
            "kind": kind,
            "pluralName": plural,
            "scope": "Namespaced" if namespaced else "Cluster",
        },
        "controllers": [list(stage) for stage in _PIPELINES.get(plural, _DEFAULT_PIPELINE)],
        "statusAggregation": {"enabled": plural not in _OWN_STATUS},
    }
    if fields is not None:
        spec["statusCollection"] = {"enabled": True, "fields": list(fields)}
    metadata: Object = {"name": name}
    if plural == "deployments":
        spec["autoMigration"] = {"enabled": True}
    if plural in _REPLICATED:
        spec["pathDefinition"] = {
            "labelSelector": "spec.selector",
            "replicasSpec": "spec.replicas",
            "replicasStatus": "status.replicas",
            "availableReplicasStatus": "status.availableReplicas",
            "readyReplicasStatus": "status.readyReplicas",
        }
    if plural in _PARALLELISM:
        spec["pathDefinition"] = {"replicasSpec": _PARALLELISM[plural]}
    if plural == "horizontalpodautoscalers":
        metadata["annotations"] = {names.SCALE_TARGET_REF_PATH: "spec.scaleTargetRef"}
    return {
        "apiVersion": f"{CORE_GROUP}/v1alpha1",
        "kind": "FederatedTypeConfig",
        "metadata": metadata,
        "spec": spec,
    }


def template_kind(federated: Mapping[str, Any]) -> GroupKind:
    """Return the kind of a federated object's template: an index value."""
    return group_kind_of((federated.get("spec") or {}).get("template") or {})


def template_problem(federated: Mapping[str, Any]) -> str:
    """Return the error in the metadata of a federated object's template, "" when it is valid.

    Only a federated object without a source can have one, and the name of its member objects would be undefined.
    """
    metadata = ((federated.get("spec") or {}).get("template") or {}).get("metadata")
    if not _is_mapping(metadata):
        return "spec.template.metadata: it has to be an object with the name of the copies"
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        return "spec.template.metadata.name: it has to be the name of the copies"
    if problems := nameformats.path_segment(name):
        # It would address another object of the member.
        return f"spec.template.metadata.name: {problems[0]}"
    for part in ("annotations", "labels"):
        if (found := metadata.get(part)) is not None and not _is_mapping(found):
            return f"spec.template.metadata.{part}: it has to be an object"
    return ""


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether the value is a mapping; a dictionary is recognised ten times faster than another one."""
    return isinstance(value, dict) or isinstance(value, Mapping)  # noqa: SIM101  # two checks are the purpose
