"""What identifies a kind of object on the wire, and the kinds that the product itself talks about.

A `Resource` is group, version, kind, plural and scope together: enough to build a URL and to read an answer. Kinds that
come from discovery or from a FederatedTypeConfig are made with `Resource(...)` in the same way.
"""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON. Cached ones are read-only: copy before changing (STYLE 21)."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One served kind: `group` is "" for the core group."""

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


CORE_GROUP = "core.kubeadmiral.io"


def _ours(kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(CORE_GROUP, "v1alpha1", kind, plural, namespaced)


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
PODS = Resource("", "v1", "Pod", "pods")
SECRETS = Resource("", "v1", "Secret", "secrets")
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
SERVICES = Resource("", "v1", "Service", "services")
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
EVENTS = Resource("", "v1", "Event", "events")
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets")
JOBS = Resource("batch", "v1", "Job", "jobs")
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs")
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)

FEDERATED_CLUSTERS = _ours("FederatedCluster", "federatedclusters", namespaced=False)
FEDERATED_TYPE_CONFIGS = _ours("FederatedTypeConfig", "federatedtypeconfigs", namespaced=False)
FEDERATED_OBJECTS = _ours("FederatedObject", "federatedobjects")
CLUSTER_FEDERATED_OBJECTS = _ours("ClusterFederatedObject", "clusterfederatedobjects", namespaced=False)
PROPAGATION_POLICIES = _ours("PropagationPolicy", "propagationpolicies")
CLUSTER_PROPAGATION_POLICIES = _ours("ClusterPropagationPolicy", "clusterpropagationpolicies", namespaced=False)
OVERRIDE_POLICIES = _ours("OverridePolicy", "overridepolicies")
CLUSTER_OVERRIDE_POLICIES = _ours("ClusterOverridePolicy", "clusteroverridepolicies", namespaced=False)
SCHEDULING_PROFILES = _ours("SchedulingProfile", "schedulingprofiles", namespaced=False)
SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS = _ours(
    "SchedulerPluginWebhookConfiguration", "schedulerpluginwebhookconfigurations", namespaced=False
)
COLLECTED_STATUSES = _ours("CollectedStatus", "collectedstatuses")
CLUSTER_COLLECTED_STATUSES = _ours("ClusterCollectedStatus", "clustercollectedstatuses", namespaced=False)
PROPAGATED_VERSIONS = _ours("PropagatedVersion", "propagatedversions")
CLUSTER_PROPAGATED_VERSIONS = _ours("ClusterPropagatedVersion", "clusterpropagatedversions", namespaced=False)
