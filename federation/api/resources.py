"""The resources of our own API groups."""

from federation.apimachinery.resources import Resource

CORE_GROUP = "core.kubeadmiral.io"
KUEUE_GROUP = "kueue.x-k8s.io"
KRUISE_GROUP = "apps.kruise.io"
_MULTICLUSTER_GROUP = "multicluster.x-k8s.io"


def _ours(kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    return Resource(CORE_GROUP, "v1alpha1", kind, plural, namespaced)


FEDERATED_CLUSTERS = _ours("FederatedCluster", "federatedclusters", namespaced=False)
FEDERATED_TYPE_CONFIGS = _ours("FederatedTypeConfig", "federatedtypeconfigs", namespaced=False)
FEDERATED_OBJECTS = _ours("FederatedObject", "federatedobjects")
CLUSTER_FEDERATED_OBJECTS = _ours("ClusterFederatedObject", "clusterfederatedobjects", namespaced=False)
PROPAGATION_POLICIES = _ours("PropagationPolicy", "propagationpolicies")
CLUSTER_PROPAGATION_POLICIES = _ours("ClusterPropagationPolicy", "clusterpropagationpolicies", namespaced=False)
OVERRIDE_POLICIES = _ours("OverridePolicy", "overridepolicies")
CLUSTER_OVERRIDE_POLICIES = _ours("ClusterOverridePolicy", "clusteroverridepolicies", namespaced=False)
POLICIES = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES, OVERRIDE_POLICIES, CLUSTER_OVERRIDE_POLICIES)
SCHEDULING_PROFILES = _ours("SchedulingProfile", "schedulingprofiles", namespaced=False)
SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS = _ours(
    "SchedulerPluginWebhookConfiguration", "schedulerpluginwebhookconfigurations", namespaced=False
)
COLLECTED_STATUSES = _ours("CollectedStatus", "collectedstatuses")
CLUSTER_COLLECTED_STATUSES = _ours("ClusterCollectedStatus", "clustercollectedstatuses", namespaced=False)
PROPAGATED_VERSIONS = _ours("PropagatedVersion", "propagatedversions")
LEFTOVERS = _ours("Leftover", "leftovers", namespaced=False)
PLACEMENT_HOLDS = _ours("PlacementHold", "placementholds", namespaced=False)
CLUSTER_DISRUPTION_BUDGETS = _ours("ClusterDisruptionBudget", "clusterdisruptionbudgets", namespaced=False)
CHANGE_FREEZES = _ours("ChangeFreeze", "changefreezes", namespaced=False)
CLUSTER_TAINT_POLICIES = _ours("ClusterTaintPolicy", "clustertaintpolicies", namespaced=False)
REMEDIES = _ours("Remedy", "remedies", namespaced=False)
DELIVERY_SUSPENSIONS = _ours("DeliverySuspension", "deliverysuspensions")
CLUSTER_DELIVERY_SUSPENSIONS = _ours("ClusterDeliverySuspension", "clusterdeliverysuspensions", namespaced=False)
FEDERATED_RESOURCE_QUOTAS = _ours("FederatedResourceQuota", "federatedresourcequotas")
JOB_QUEUES = _ours("JobQueue", "jobqueues")
CLUSTER_JOB_QUEUES = _ours("ClusterJobQueue", "clusterjobqueues", namespaced=False)
CAPACITY_FLAVORS = _ours("CapacityFlavor", "capacityflavors", namespaced=False)
PROJECTS = _ours("Project", "projects", namespaced=False)
CLUSTER_PROPAGATED_VERSIONS = _ours("ClusterPropagatedVersion", "clusterpropagatedversions", namespaced=False)
FEDERATED_ROLLOUTS = _ours("FederatedRollout", "federatedrollouts")
CRON_AUTOSCALERS = _ours("CronFederatedHPA", "cronfederatedhpas")
TOPOLOGY_SPREAD_PLANS = _ours("TopologySpreadPlan", "topologyspreadplans")

SERVICE_EXPORTS = Resource(_MULTICLUSTER_GROUP, "v1alpha1", "ServiceExport", "serviceexports")
SERVICE_IMPORTS = Resource(_MULTICLUSTER_GROUP, "v1alpha1", "ServiceImport", "serviceimports")

WORKLOAD_SPREADS = Resource(KRUISE_GROUP, "v1beta1", "WorkloadSpread", "workloadspreads")
CLONE_SETS = Resource(KRUISE_GROUP, "v1alpha1", "CloneSet", "clonesets")
ADVANCED_STATEFUL_SETS = Resource(KRUISE_GROUP, "v1beta1", "StatefulSet", "statefulsets")
UNITED_DEPLOYMENTS = Resource(KRUISE_GROUP, "v1beta1", "UnitedDeployment", "uniteddeployments")
