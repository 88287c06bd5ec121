"""The table of built-in kinds: what is served without a CustomResourceDefinition.

One line per kind, in the words of `kubectl api-resources`. Behaviour that differs from the ordinary is the strategy in
the last column (`registry/strategies`); schemas come from `registry/schema/builtin.py` when they are needed first.
"""

from collections.abc import Iterator
from functools import partial

from federation.api.resources import EVENTS, Resource
from federation.registry import eventview
from federation.registry.kinds import ALL_VERBS, KindInfo, ScalePaths
from federation.registry.schema.builtin import builtin_schema
from federation.registry.strategies import (
    admission,
    batch,
    config,
    core,
    crds,
    events,
    network,
    pods,
    policy,
    rbac,
    storage,
    workloads,
)
from federation.registry.strategies.base import Strategy

STATUS = frozenset({"status"})
STATUS_AND_SCALE = frozenset({"status", "scale"})
NONE: frozenset[str] = frozenset()

_Row = tuple[str, str, str, bool, str, str, frozenset[str], Strategy]

_ORDINARY = Strategy()

# kind, plural, version, namespaced, short names, categories, subresources, strategy
_TABLE: dict[str, list[_Row]] = {
    "": [
        ("ConfigMap", "configmaps", "v1", True, "cm", "", NONE, config.ImmutableDataStrategy()),
        ("Endpoints", "endpoints", "v1", True, "ep", "", NONE, network.EndpointsStrategy()),
        ("Event", "events", "v1", True, "ev", "", NONE, events.EventStrategy()),
        ("LimitRange", "limitranges", "v1", True, "limits", "", NONE, _ORDINARY),
        (
            "Namespace",
            "namespaces",
            "v1",
            False,
            "ns",
            "",
            frozenset({"status", "finalize"}),
            core.NamespaceStrategy(),
        ),
        ("Node", "nodes", "v1", False, "no", "", STATUS, core.NodeStrategy()),
        ("PersistentVolumeClaim", "persistentvolumeclaims", "v1", True, "pvc", "", STATUS, storage.ClaimStrategy()),
        ("PersistentVolume", "persistentvolumes", "v1", False, "pv", "", STATUS, storage.VolumeStrategy()),
        (
            "Pod",
            "pods",
            "v1",
            True,
            "po",
            "all",
            frozenset({"status", "binding", "eviction"}),
            pods.PodStrategy(),
        ),
        ("PodTemplate", "podtemplates", "v1", True, "", "", NONE, pods.PodTemplateStrategy()),
        (
            "ReplicationController",
            "replicationcontrollers",
            "v1",
            True,
            "rc",
            "all",
            STATUS_AND_SCALE,
            workloads.ReplicationControllerStrategy(),
        ),
        ("ResourceQuota", "resourcequotas", "v1", True, "quota", "", STATUS, core.ResourceQuotaStrategy()),
        ("Secret", "secrets", "v1", True, "", "", NONE, config.SecretStrategy()),
        (
            "ServiceAccount",
            "serviceaccounts",
            "v1",
            True,
            "sa",
            "",
            frozenset({"token"}),
            core.ServiceAccountStrategy(),
        ),
        ("Service", "services", "v1", True, "svc", "all", STATUS, network.ServiceStrategy()),
    ],
    "admissionregistration.k8s.io": [
        (
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            "v1",
            False,
            "",
            "api-extensions",
            NONE,
            admission.WebhookConfigurationStrategy(),
        ),
        (
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
            "v1",
            False,
            "",
            "api-extensions",
            STATUS,
            admission.AdmissionPolicyStrategy(),
        ),
        (
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            "v1",
            False,
            "",
            "api-extensions",
            NONE,
            admission.AdmissionPolicyBindingStrategy(),
        ),
        (
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            "v1",
            False,
            "",
            "api-extensions",
            NONE,
            admission.WebhookConfigurationStrategy(),
        ),
    ],
    "apiextensions.k8s.io": [
        (
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "v1",
            False,
            "crd,crds",
            "api-extensions",
            STATUS,
            crds.DefinitionStrategy(),
        ),
    ],
    "apps": [
        ("ControllerRevision", "controllerrevisions", "v1", True, "", "", NONE, workloads.RevisionStrategy()),
        ("DaemonSet", "daemonsets", "v1", True, "ds", "all", STATUS, workloads.DaemonSetStrategy()),
        ("Deployment", "deployments", "v1", True, "deploy", "all", STATUS_AND_SCALE, workloads.DeploymentStrategy()),
        ("ReplicaSet", "replicasets", "v1", True, "rs", "all", STATUS_AND_SCALE, workloads.ReplicaSetStrategy()),
        ("StatefulSet", "statefulsets", "v1", True, "sts", "all", STATUS_AND_SCALE, workloads.StatefulSetStrategy()),
    ],
    "autoscaling": [
        (
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "v2",
            True,
            "hpa",
            "all",
            STATUS,
            policy.AutoscalerStrategy(),
        ),
    ],
    "batch": [
        ("CronJob", "cronjobs", "v1", True, "cj", "all", STATUS, batch.CronJobStrategy()),
        ("Job", "jobs", "v1", True, "", "all", STATUS, batch.JobStrategy()),
    ],
    "coordination.k8s.io": [("Lease", "leases", "v1", True, "", "", NONE, config.LeaseStrategy())],
    "discovery.k8s.io": [
        ("EndpointSlice", "endpointslices", "v1", True, "", "", NONE, network.EndpointSliceStrategy())
    ],
    eventview.GROUP: [("Event", "events", "v1", True, "ev", "", NONE, events.RegardingEventStrategy())],
    "networking.k8s.io": [
        ("IngressClass", "ingressclasses", "v1", False, "", "", NONE, network.IngressClassStrategy()),
        ("Ingress", "ingresses", "v1", True, "ing", "", STATUS, network.IngressStrategy()),
        ("NetworkPolicy", "networkpolicies", "v1", True, "netpol", "", NONE, network.NetworkPolicyStrategy()),
    ],
    "node.k8s.io": [("RuntimeClass", "runtimeclasses", "v1", False, "", "", NONE, core.RuntimeClassStrategy())],
    "policy": [
        ("PodDisruptionBudget", "poddisruptionbudgets", "v1", True, "pdb", "", STATUS, policy.BudgetStrategy()),
    ],
    "rbac.authorization.k8s.io": [
        ("ClusterRoleBinding", "clusterrolebindings", "v1", False, "", "", NONE, rbac.BindingStrategy()),
        ("ClusterRole", "clusterroles", "v1", False, "", "", NONE, rbac.RoleStrategy()),
        ("RoleBinding", "rolebindings", "v1", True, "", "", NONE, rbac.BindingStrategy()),
        ("Role", "roles", "v1", True, "", "", NONE, rbac.RoleStrategy()),
    ],
    "scheduling.k8s.io": [
        ("PriorityClass", "priorityclasses", "v1", False, "pc", "", NONE, policy.PriorityClassStrategy()),
    ],
    "storage.k8s.io": [
        ("CSIDriver", "csidrivers", "v1", False, "", "", NONE, storage.DriverStrategy()),
        ("CSINode", "csinodes", "v1", False, "", "", NONE, storage.OrdinaryStorageStrategy()),
        ("CSIStorageCapacity", "csistoragecapacities", "v1", True, "", "", NONE, storage.OrdinaryStorageStrategy()),
        ("StorageClass", "storageclasses", "v1", False, "sc", "", NONE, storage.StorageClassStrategy()),
        ("VolumeAttachment", "volumeattachments", "v1", False, "", "", STATUS, storage.OrdinaryStorageStrategy()),
    ],
}

_VIEWS = {(eventview.GROUP, "Event"): (EVENTS, eventview.EventView())}

_SCALES = {
    "Deployment": ScalePaths(),
    "ReplicaSet": ScalePaths(),
    "StatefulSet": ScalePaths(),
    "ReplicationController": ScalePaths(),
}


def builtin_kinds() -> Iterator[KindInfo]:
    """Yield every built-in kind, core group first."""
    for group, rows in _TABLE.items():
        for kind, plural, version, namespaced, short_names, categories, subresources, strategy in rows:
            stored_as, view = _VIEWS.get((group, kind), (None, None))
            yield KindInfo(
                resource=Resource(group, version, kind, plural, namespaced),
                singular=kind.lower(),
                list_kind=f"{kind}List",
                strategy=strategy,
                schema_source=partial(builtin_schema, group, version, kind),
                short_names=tuple(filter(None, short_names.split(","))),
                categories=tuple(filter(None, categories.split(","))),
                subresources=subresources,
                verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection" or kind != "Namespace"),
                storage_version=version,
                scale=_SCALES.get(kind),
                stored_as=stored_as,
                conversion=view,
            )
