"""The table of built-in kinds, one row per kind, with the columns of `kubectl api-resources`.

The last column is the strategy (`strategies`) with the behaviour of the kind. `schema/builtin.py` compiles a schema
when it is first used.
"""

from collections.abc import Iterator
from functools import cache, partial

from federation.apimachinery.resources import EVENTS, Resource
from federation.apiserver.semantics.conversion import eventconversion
from federation.apiserver.semantics.conversion.autoscalerconversion import AutoscalerConverter
from federation.apiserver.semantics.defaults.otherdefaults import default_autoscaler
from federation.apiserver.semantics.kinds.kinds import ALL_VERBS, Conversion, KindInfo, ScalePaths
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.apiserver.semantics.strategies import (
    addresses,
    admission,
    apiservices,
    autoscaling,
    batch,
    certificates,
    config,
    core,
    crds,
    devices,
    events,
    flowcontrol,
    limits,
    network,
    pods,
    policy,
    rbac,
    storage,
    volumeattributes,
    workloads,
)
from federation.apiserver.semantics.strategies.base import Strategy

STATUS = frozenset({"status"})
STATUS_AND_SCALE = frozenset({"status", "scale"})
NONE: frozenset[str] = frozenset()
POD_PARTS = frozenset({"status", "binding", "eviction", "ephemeralcontainers", "resize"})
EXTENSIONS = "api-extensions"

_Row = tuple[str, bool, str, str, frozenset[str], Strategy]

# kind, namespaced, short names, categories, subresources, strategy
_TABLE: dict[tuple[str, str], list[_Row]] = {
    ("", "v1"): [
        ("ConfigMap", True, "cm", "", NONE, config.ImmutableDataStrategy()),
        ("Endpoints", True, "ep", "", NONE, network.EndpointsStrategy()),
        ("Event", True, "ev", "", NONE, events.EventStrategy()),
        ("LimitRange", True, "limits", "", NONE, limits.LimitRangeStrategy()),
        ("Namespace", False, "ns", "", frozenset({"status", "finalize"}), core.NamespaceStrategy()),
        ("Node", False, "no", "", STATUS, core.NodeStrategy()),
        ("PersistentVolumeClaim", True, "pvc", "", STATUS, storage.PersistentVolumeClaimStrategy()),
        ("PersistentVolume", False, "pv", "", STATUS, storage.PersistentVolumeStrategy()),
        ("Pod", True, "po", "all", POD_PARTS, pods.PodStrategy()),
        ("PodTemplate", True, "", "", NONE, pods.PodTemplateStrategy()),
        ("ReplicationController", True, "rc", "all", STATUS_AND_SCALE, workloads.ReplicationControllerStrategy()),
        ("ResourceQuota", True, "quota", "", STATUS, core.ResourceQuotaStrategy()),
        ("Secret", True, "", "", NONE, config.SecretStrategy()),
        ("ServiceAccount", True, "sa", "", frozenset({"token"}), core.ServiceAccountStrategy()),
        ("Service", True, "svc", "all", STATUS, network.ServiceStrategy()),
    ],
    ("admissionregistration.k8s.io", "v1"): [
        ("MutatingAdmissionPolicy", False, "", EXTENSIONS, NONE, admission.MutatingAdmissionPolicyStrategy()),
        (
            "MutatingAdmissionPolicyBinding",
            False,
            "",
            EXTENSIONS,
            NONE,
            admission.MutatingAdmissionPolicyBindingStrategy(),
        ),
        ("MutatingWebhookConfiguration", False, "", EXTENSIONS, NONE, admission.WebhookConfigurationStrategy()),
        ("ValidatingAdmissionPolicy", False, "", EXTENSIONS, STATUS, admission.AdmissionPolicyStrategy()),
        ("ValidatingAdmissionPolicyBinding", False, "", EXTENSIONS, NONE, admission.AdmissionPolicyBindingStrategy()),
        ("ValidatingWebhookConfiguration", False, "", EXTENSIONS, NONE, admission.WebhookConfigurationStrategy()),
    ],
    ("apiextensions.k8s.io", "v1"): [
        ("CustomResourceDefinition", False, "crd,crds", EXTENSIONS, STATUS, crds.CustomResourceDefinitionStrategy()),
    ],
    ("apiregistration.k8s.io", "v1"): [
        ("APIService", False, "", EXTENSIONS, STATUS, apiservices.APIServiceStrategy()),
    ],
    ("apps", "v1"): [
        ("ControllerRevision", True, "", "", NONE, workloads.ControllerRevisionStrategy()),
        ("DaemonSet", True, "ds", "all", STATUS, workloads.DaemonSetStrategy()),
        ("Deployment", True, "deploy", "all", STATUS_AND_SCALE, workloads.DeploymentStrategy()),
        ("ReplicaSet", True, "rs", "all", STATUS_AND_SCALE, workloads.ReplicaSetStrategy()),
        ("StatefulSet", True, "sts", "all", STATUS_AND_SCALE, workloads.StatefulSetStrategy()),
    ],
    ("autoscaling", "v2"): [
        ("HorizontalPodAutoscaler", True, "hpa", "all", STATUS, autoscaling.HorizontalPodAutoscalerStrategy()),
    ],
    ("autoscaling", "v1"): [
        ("HorizontalPodAutoscaler", True, "hpa", "all", STATUS, autoscaling.HorizontalPodAutoscalerV1Strategy()),
    ],
    ("batch", "v1"): [
        ("CronJob", True, "cj", "all", STATUS, batch.CronJobStrategy()),
        ("Job", True, "", "all", STATUS, batch.JobStrategy()),
    ],
    ("certificates.k8s.io", "v1"): [
        (
            "CertificateSigningRequest",
            False,
            "csr",
            "",
            frozenset({"status", "approval"}),
            certificates.CertificateSigningRequestStrategy(),
        ),
    ],
    ("coordination.k8s.io", "v1"): [
        ("Lease", True, "", "", NONE, config.LeaseStrategy()),
    ],
    ("discovery.k8s.io", "v1"): [
        ("EndpointSlice", True, "", "", NONE, network.EndpointSliceStrategy()),
    ],
    (eventconversion.GROUP, "v1"): [
        ("Event", True, "ev", "", NONE, events.EventsV1Strategy()),
    ],
    ("flowcontrol.apiserver.k8s.io", "v1"): [
        ("FlowSchema", False, "", "", STATUS, flowcontrol.FlowSchemaStrategy()),
        ("PriorityLevelConfiguration", False, "", "", STATUS, flowcontrol.PriorityLevelConfigurationStrategy()),
    ],
    ("networking.k8s.io", "v1"): [
        ("IPAddress", False, "ip", "", NONE, addresses.IPAddressStrategy()),
        ("IngressClass", False, "", "", NONE, network.IngressClassStrategy()),
        ("Ingress", True, "ing", "", STATUS, network.IngressStrategy()),
        ("NetworkPolicy", True, "netpol", "", NONE, network.NetworkPolicyStrategy()),
        ("ServiceCIDR", False, "", "", STATUS, addresses.ServiceCIDRStrategy()),
    ],
    ("node.k8s.io", "v1"): [
        ("RuntimeClass", False, "", "", NONE, core.RuntimeClassStrategy()),
    ],
    ("policy", "v1"): [
        ("PodDisruptionBudget", True, "pdb", "", STATUS, policy.PodDisruptionBudgetStrategy()),
    ],
    ("rbac.authorization.k8s.io", "v1"): [
        ("ClusterRoleBinding", False, "", "", NONE, rbac.RoleBindingStrategy()),
        ("ClusterRole", False, "", "", NONE, rbac.RoleStrategy()),
        ("RoleBinding", True, "", "", NONE, rbac.RoleBindingStrategy()),
        ("Role", True, "", "", NONE, rbac.RoleStrategy()),
    ],
    ("resource.k8s.io", "v1"): [
        ("DeviceClass", False, "", "", NONE, devices.DeviceClassStrategy()),
        ("ResourceClaim", True, "", "", STATUS, devices.ResourceClaimStrategy()),
        ("ResourceClaimTemplate", True, "", "", NONE, devices.ResourceClaimTemplateStrategy()),
        ("ResourceSlice", False, "", "", NONE, devices.ResourceSliceStrategy()),
    ],
    ("scheduling.k8s.io", "v1"): [
        ("PriorityClass", False, "pc", "", NONE, policy.PriorityClassStrategy()),
    ],
    ("storage.k8s.io", "v1"): [
        ("CSIDriver", False, "", "", NONE, storage.CSIDriverStrategy()),
        ("CSINode", False, "", "", NONE, storage.CSINodeStrategy()),
        ("CSIStorageCapacity", True, "", "", NONE, storage.CSIStorageCapacityStrategy()),
        ("StorageClass", False, "sc", "", NONE, storage.StorageClassStrategy()),
        ("VolumeAttachment", False, "", "", STATUS, storage.VolumeAttachmentStrategy()),
        ("VolumeAttributesClass", False, "vac", "", NONE, volumeattributes.VolumeAttributesClassStrategy()),
    ],
}

_DEPRECATED: dict[tuple[str, str, str], str] = {
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""A warning for every request of the kind."""

_STORED_AS: dict[tuple[str, str, str], tuple[Resource | None, Conversion]] = {
    (eventconversion.GROUP, "v1", "Event"): (EVENTS, eventconversion.EventConverter()),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): (None, AutoscalerConverter(default_autoscaler)),
}
"""The stored resource, None for another version of the same, and the conversion from and to it."""


@cache
def builtin_kinds() -> tuple[KindInfo, ...]:
    """Return every built-in kind, core group first. All servers of a process share them: a fleet has a thousand."""
    return tuple(_builtin_kinds())


def _builtin_kinds() -> Iterator[KindInfo]:
    for (group, version), rows in _TABLE.items():
        for kind, namespaced, short_names, categories, subresources, strategy in rows:
            stored_as, conversion = _STORED_AS.get((group, version, kind), (None, None))
            yield KindInfo(
                resource=Resource(group, version, kind, _guess_plural(kind), namespaced),
                singular=kind.lower(),
                list_kind=f"{kind}List",
                strategy=strategy,
                schema_source=partial(builtin_schema, group, version, kind),
                short_names=tuple(filter(None, short_names.split(","))),
                categories=tuple(filter(None, categories.split(","))),
                subresources=subresources,
                verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection" or kind != "Namespace"),
                storage_version=conversion.storage_version if conversion and not stored_as else version,
                scale=ScalePaths() if "scale" in subresources else None,
                stored_as=stored_as,
                warning=_DEPRECATED.get((group, version, kind), ""),
                conversion=conversion,
            )


def _guess_plural(kind: str) -> str:
    """Return the plural of a built-in kind, by the rules of UnsafeGuessKindToResource."""
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
