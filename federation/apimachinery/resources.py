"""Kinds of API objects on the wire, and constants for the Kubernetes kinds that the product uses.

A `Resource` holds group, version, kind, plural and scope, enough to build a URL. Kinds from discovery or from a
FederatedTypeConfig are further instances of it; the federation's own kinds are in `api/resources.py`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON. Cached ones are read-only: copy before changing."""
UserInfo = Mapping[str, Any]
"""Kubernetes' UserInfo: username, groups, uid and extra."""


class GroupKind(NamedTuple):
    """A kind in all its versions: what policies, references and configurations match by."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


def group_of(api_version: str) -> str:
    """Return the group of an apiVersion, "" for the core group."""
    return api_version.rpartition("/")[0]


def group_kind_of(obj: Mapping[str, Any]) -> GroupKind:
    """Return the kind of an object, or of a selector or reference with `apiVersion` and `kind`."""
    return GroupKind(group_of(str(obj.get("apiVersion") or "")), str(obj.get("kind") or ""))


class Resource(NamedTuple):
    """One served kind: `group` is "" for the core group. A tuple: most dictionaries have it in their keys."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """The kind in all its versions."""
        return GroupKind(self.group, self.kind)

    @property
    def group_resource(self) -> str:
        """`deployments.apps` or `pods`, as in error messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, or of one object when `name` is given."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
PODS = Resource("", "v1", "Pod", "pods")
SECRETS = Resource("", "v1", "Secret", "secrets")
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
RESOURCE_QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGES = Resource("", "v1", "LimitRange", "limitranges")
SERVICES = Resource("", "v1", "Service", "services")
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
EVENTS = Resource("", "v1", "Event", "events")
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets")
REPLICATION_CONTROLLERS = Resource("", "v1", "ReplicationController", "replicationcontrollers")
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets")
CONTROLLER_REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
JOBS = Resource("batch", "v1", "Job", "jobs")
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs")
PERSISTENT_VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
INGRESSES = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
HORIZONTAL_POD_AUTOSCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
_ADMISSION = "admissionregistration.k8s.io"
ADMISSION_POLICIES = Resource(
    _ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
ADMISSION_POLICY_BINDINGS = Resource(
    _ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
MUTATING_POLICIES = Resource(_ADMISSION, "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False)
MUTATING_POLICY_BINDINGS = Resource(
    _ADMISSION, "v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
MUTATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMAS = Resource(_FLOW_CONTROL, "v1", "FlowSchema", "flowschemas", namespaced=False)
PRIORITY_LEVELS = Resource(
    _FLOW_CONTROL, "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", namespaced=False
)
INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
