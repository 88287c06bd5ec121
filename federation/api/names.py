"""Labels, annotations, finalizers, condition types, event reasons and well-known names that several packages use.

A name that one package uses is in `names.py` of that package (its lowest folder, if several of its folders use it).

The `kubeadmiral.io` names are those of KubeAdmiral, so that manifests and tools written for it keep their meaning.
Names under `federation.kubeadmiral.io/` are ours. Other modules do not spell such names.
"""

SYSTEM_NAMESPACE = "kube-admiral-system"
FIELD_MANAGER = "federation"
"""The field manager of server-side apply to member clusters."""
SPREAD_WEBHOOKS = "workloadspread.kubeadmiral.io"
"""The webhook configurations of the WorkloadSpread service in a cluster, and the last part of its webhooks' names."""
HOST_WEBHOOKS = "admission.federation.kubeadmiral.io"
"""The webhook configurations, the Secret with their certificate, and the last part of the webhooks' names on a host
that is not embedded."""
HOST_ENDPOINT = "federation-endpoint"
"""The ConfigMap that says where the federation's own HTTP API is on such a host."""

DOMAIN = "kubeadmiral.io/"
"""The end of the prefix of all our labels and annotations."""
_A = DOMAIN
_I = "internal.kubeadmiral.io/"
_F = "federate.controller.kubeadmiral.io/"
_OURS = "federation.kubeadmiral.io/"

# Labels
PROPAGATION_POLICY_LABEL = _A + "propagation-policy-name"
CLUSTER_PROPAGATION_POLICY_LABEL = _A + "cluster-propagation-policy-name"
OVERRIDE_POLICY_LABEL = _A + "override-policy-name"
CLUSTER_OVERRIDE_POLICY_LABEL = _A + "cluster-override-policy-name"
MANAGED_LABEL = _A + "managed"
LOGIN_LINK_LABEL = _OURS + "login-link"
"""On Secrets of one-time links to the web UI, which earlier versions stored in the system namespace."""

PRICE_PREFIX = "price." + _OURS
"""On FederatedClusters: the price of one unit of the resource after the slash for one hour (docs/reference/cost.md)."""
CARBON_PREFIX = "carbon." + _OURS
"""On FederatedClusters: grams of CO2e that one unit of the resource after the slash emits in one hour."""
CAPACITY_TYPE = _OURS + "capacity-type"
"""On FederatedClusters: `spot` if the provider may reclaim its nodes at any time; `on-demand` or absent if not."""
SPOT, ON_DEMAND = "spot", "on-demand"

# Annotations on source, federated and member objects
SOURCE_GENERATION = _A + "source-generation"
NO_SCHEDULING = _A + "no-scheduling"
RETAIN_REPLICAS = _A + "retain-replicas"
FOLLOWERS = _A + "followers"
DISABLE_FOLLOWING = _A + "disable-following"
AUTO_MIGRATION_INFO = _A + "auto-migration-info"
LATEST_REPLICASET_DIGESTS = _A + "latest-replicaset-digests"
LATEST_REPLICASET_PREFIX = "latestreplicaset.kubeadmiral.io/"
MIGRATION_CONFIGURATION = _A + "migration-configuration"
APPLIED_MIGRATION_CONFIGURATION = _A + "applied-migration-configuration"
DRY_RUN = _A + "dry-run"
SCALE_TARGET_REF_PATH = _A + "scale-target-ref-path"
APPLICATION_PATHS = _OURS + "application-paths"
"""On FederatedTypeConfigs: the paths by which objects of the kind belong to a workload (planning/followers/ties.py)."""
DERIVED_SERVICE = _A + "derived-service"
SCHEDULING_MODE = _A + "scheduling-mode"
STICKY_CLUSTER = _A + "sticky-cluster"
TOLERATIONS = _A + "tolerations"
PLACEMENTS = _A + "placements"
CLUSTER_SELECTOR = _A + "clusterSelector"
AFFINITY = _A + "affinity"
MAX_CLUSTERS = _A + "maxClusters"
FOLLOWS_OBJECT = _A + "follows-object"
SCHEDULING_TRIGGERS = _A + "scheduling-triggers"
SCHEDULING_DEFERRED_REASONS = _A + "scheduling-deferred-reasons"
SCHEDULING = _A + "scheduling"
NO_AUTO_PROPAGATION = _A + "no-auto-propagation"
NO_FEDERATED_RESOURCE = _A + "no-federated-resource"
PENDING_CONTROLLERS = _A + "pending-controllers"
ORPHAN = _A + "orphan"
CONFLICT_RESOLUTION = _A + "conflict-resolution"
CLUSTERS_TO_ADOPT = _A + "clusters-to-adopt"
ADOPTED = _A + "adopted"
CASCADING_DELETE = _A + "cascading-delete"
FEDERATED_CLUSTER_UID = _A + "federated-cluster-uid"
HOST_CLUSTER_UIDS = _OURS + "host-cluster-uids"
"""On a member's system namespace: the host's uid and those of the host's own hosts, separated by commas."""
RESTORED = _OURS + "restored"
"""On the host's system namespace: the times of the backup and of its restore, separated by a slash."""
STRAYS = _OURS + "strays"
"""On a FederatedCluster: "report", "remove" or "release" managed objects in the member that the host does not know."""
FORCED_REMOVAL = _OURS + "forced-removal"
"""On a FederatedCluster that leaves without its member's help: the reason."""
LEFTOVERS_RECORDED = _OURS + "leftovers-recorded"
"""On a FederatedCluster that leaves by force: "true" once what its member may hold is recorded."""
ENABLE_FOLLOWER_SCHEDULING = _I + "enable-follower-scheduling"
POD_UNSCHEDULABLE_THRESHOLD = _I + "pod-unschedulable-threshold"
INTERNAL_ORPHAN = _I + "orphan"
INTERNAL_CONFLICT_RESOLUTION = _I + "conflict-resolution"
INTERNAL_CLUSTERS_TO_ADOPT = _I + "clusters-to-adopt"
TEMPLATE_GENERATOR_MERGE_PATCH = _F + "template-generator-merge-patch"

# Ours
APPLICATION_FAILOVER = _OURS + "application-failover"
"""On a federated object: JSON record of where it was unhealthy and left (planning/failover/application.py)."""
APPLICATION_FAILOVER_RULES = _OURS + "application-failover-rules"
"""On a federated object: JSON, what its policy says in spec.failover.application."""
HANDED_STATE = _OURS + "handed-state"
"""On a federated object: JSON {cluster: values} from the status of a copy that left another cluster."""
MOVE_VOLUMES = _OURS + "move-volumes"
"""On a workload: JSON, how its volumes are copied before it leaves their cluster; `{}` is the default way."""
PURGE = _OURS + "purge"
"""On a workload: comma list of clusters, or "all": the copies that stayed there after a failover may be removed."""
GIVES_WAY = _OURS + "gives-way"
"""On a federated workload: JSON {cluster: {"keeps", "count", "to"}}, replicas that gave way to a higher priority."""
ON_DEMAND_FLOOR = _OURS + "on-demand-floor"
"""On a workload: how many of its replicas, or what percentage, must be in clusters that are not spot capacity."""
DEPARTED_CLUSTERS = _OURS + "departed-clusters"
"""On a federated object: JSON list of clusters that left the placement, until sync observes that the object is gone."""
EDITED_AT = _OURS + "edited-at"
"""On a federated object: when its source last changed it; absent if its source has not changed since its creation."""
DECIDED_AT = _OURS + "decided-at"
"""On a federated object: when the scheduler last changed its placement, which may have been before a cluster joined."""
ARRIVING_CLUSTERS = _OURS + "arriving-clusters"
"""On a federated workload of copies: JSON list of clusters that came when others left, which wait for copies there."""
TEMPLATE_HASH = _OURS + "template-hash"
"""On a member object: hash of the last applied configuration, so that a restart skips writes without effect."""
TEMPLATE_REVISION = _OURS + "template-revision"
"""On a member object of a workload that is divided or has waves: hash of the pod template that was applied there."""
IDLE_CONTROLLERS = _OURS + "idle-controllers"
"""On a federated object: comma list of pipeline controllers with nothing to do for it; the pipeline skips them."""
KEPT_FOR = _OURS + "kept-for"
"""On a follower's federated object: JSON list of {group, kind, name, clusters} of leaders whose member objects stay."""
FAILBACK = _OURS + "failback"
"""On a federated object: JSON {stableFor, batchSize}, its policy's rules for replicas that return after a migration."""
SCHEDULING_SUMMARY = _OURS + "scheduling-summary"
"""On a federated object: one line about its last decision, for the condition Scheduled of the source object."""
APPLIED_POLICY = _OURS + "propagation-policy"
"""On a federated object: the propagation policy of its last decision, `namespace/name` or `name`."""
OVERRIDE_POLICIES = _OURS + "override-policies"
"""On a federated object: comma list of the override policies behind its overrides, `namespace/name` or `name`."""
FAILED_OVERRIDES = _OURS + "failed-overrides"
"""On a federated object: JSON {cluster: error} of clusters whose overrides cannot be computed; they get nothing."""
ORDINAL_STARTS = _OURS + "ordinal-starts"
"""On a divided StatefulSet and its federated object: JSON {cluster: start of its ordinals} from the template's."""
WRITTEN_ALLOCATIONS = _OURS + "written-allocations"
"""On the federated object of a Service: comma list of the addresses and ports that a user wrote; only they travel."""
ROLLOUT = _OURS + "rollout"
"""On a federated object: JSON {policy, rollout}, the waves of its propagation policy (planning/waves/waverules.py)."""
OVERRIDE_ROLLOUT = _OURS + "override-rollout"
"""The same of its override policies; it applies if the propagation policy has no waves."""
APPROVED_REVISIONS = _OURS + "approved-revisions"
"""On a federated object with waves: JSON {cluster: template revision} that sync may deliver where the object exists."""
RETURNING_REVISIONS = _OURS + "returning-revisions"
"""On a federated object with waves: those of them that clusters ran before their present ones; no freeze holds them."""
ROLLOUT_FAILURE = _OURS + "rollout-failure"
"""On a federated object: why its rollout in waves stopped or rolled back; absent if it did not."""
HELD_PLACEMENT = _OURS + "held-placement"
"""On a federated object whose decision the guard holds: JSON {cause, from, hold, since} (planning/guard/record.py)."""
HELD_OVERRIDES = _OURS + "held-overrides"
"""The same on a federated object whose overrides would lower its replicas: it keeps the earlier ones."""
HELD_VOLUMES = _OURS + "held-volumes"
"""On a federated object: JSON, the deletion of old volumes that waits for an approval."""
HELD_FOLLOWING = _OURS + "held-following"
"""The same on a follower whose policy does not schedule followers any more: it stays with its leaders."""
PREVIOUS_PLACEMENT = _OURS + "previous-placement"
"""On a federated object that the scheduler moved: JSON {at, causes, hold, placement}, its placement before that."""
UNDO = _OURS + "undo"
"""On an object: the time (`at`) of its last move, which is to be undone (docs/reference/guard.md)."""
PLACED_WITHOUT = _OURS + "placed-without"
"""On a federated object: the clusters, with commas, that its last placement lacks because they were not healthy."""
REBALANCE = _OURS + "rebalance"
"""On an object: the time at which a user asked for a division without regard to where its replicas are."""
DRIFT = _OURS + "drift"
"""On an object: Repair, Report or Stop, what happens to fields that somebody changes in a member."""
DEVICE_CLAIMS = _OURS + "device-claims"
"""On a federated object: JSON, the devices that the claims of its pods ask for (planning/clusters/deviceclaims.py)."""
POD_GROUP = _OURS + "pod-group"
"""On a federated Pod of a group: JSON, what the pod is in its group (planning/podgroups.py)."""
GANG = _OURS + "gang"
"""On an object: Always or Never, whether its pods start together or not at all, whatever policy and kind say."""
DEADLINE = _OURS + "deadline"
"""On a job with a queue: JSON, when it has to have ended, and how long it runs (docs/reference/queues.md)."""
QUEUE_STOP = _OURS + "queue-stop"
"""On a job with a queue: "true", it leaves its cluster and waits until the annotation is gone."""
CHANGE = _OURS + "change"
"""On an object: the name of the change that wrote it last, for example a commit or a review (docs/review.md).
"""
RUN_AGAIN = _OURS + "run-again"
"""On an object that runs to completion: a time or other value; each new value is another run."""
WRITTEN_AGAIN = _OURS + "written-again"
"""On a federated object that was deleted while its source lives: "true", it is about to be written again."""
HPA_MODE = _A + "hpa-mode"
"""Label of a HorizontalPodAutoscaler: "centralized" (it acts on the host) or "distributed" (it acts in members)."""
HPA_CENTRALIZED, HPA_DISTRIBUTED = "centralized", "distributed"
MEMBER_CLUSTER = _A + "cluster"
"""Annotation of an object of a member that is shown among those of others: the member's name. It is never stored."""
RAW_NAME = _A + "raw-name"
"""The same for its name in the member (docs/reference/merged-pods.md)."""
ACTS_ON_HOST = _OURS + "acts-on-host"
"""Label of webhook configurations and other kinds that act on an API server: "true" if they act on the host, "false" if
they are data there (docs/operators.md)."""
DERIVED_TYPE = _OURS + "derived"
"""Label of a FederatedTypeConfig: "true" if the control plane derived it for a policy."""
VERSION_CURRENT = "VersionCurrent"
"""Condition of a FederatedTypeConfig: it names the version of its kind that the host stores."""
REASON_VERSION_NOT_STORED = "NotStored"
SHIPPED_TYPES = "shipped-type-configs"
"""The ConfigMap in the system namespace that records which FederatedTypeConfigs were shipped to this host, and how."""
SHIPPED_DEFINITION = _OURS + "shipped"
"""Label of a CustomResourceDefinition of the group apps.kruise.io: "true" if it is ours, not OpenKruise's."""
HAND_WRITTEN = _OURS + "hand-written"
"""On a federated object: "true" if a user with permission wrote it, so that it need not follow from a source object.
Only admission can set it (federation/admission)."""

AUTHORS = _OURS + "authors"
"""On a kind whose wish the control plane carries out: JSON list of {user, wrote} (planning/authors.py). Only admission
can set it."""
OVERRIDE_AUTHORS = _OURS + "override-authors"
"""On a federated object: JSON list of the users who wrote the policies behind its overrides."""

EVICTION = _OURS + "eviction"
"""On a federated object whose replicas left a cluster by a taint of ours, or wait to: JSON
(planning/failover/evictionrecord.py)."""
LOSSES = _OURS + "losses"
"""On a FederatedCluster that was not ready lately: JSON {count, lostAt}, how often in a row it was lost and when last
(planning/failover/holdout.py)."""

# KubeFed's
KUBEFED_ORPHAN = "kubefed.io/orphan"
"""Annotation of a federated object of KubeFed: its objects stay in the members when it is deleted."""

# Finalizers
FEDERATE_FINALIZER = _A + "federate-controller"
SYNC_FINALIZER = _A + "sync-controller"
CASCADING_DELETE_FINALIZER = _A + "cascading-delete"
CLUSTER_FINALIZER = _A + "federated-cluster-controller"
"""On a FederatedCluster until the member is cleaned up."""
TYPE_CONFIG_FINALIZER = "federation.kubeadmiral.io/type-in-use"
"""On a FederatedTypeConfig while objects are federated by it."""

# Pipeline controllers (FederatedTypeConfig.spec.controllers, placements[].controller, overrides[].controller)
GLOBAL_SCHEDULER = _A + "global-scheduler"
OVERRIDE_CONTROLLER = _A + "overridepolicy-controller"
NSAUTOPROP_CONTROLLER = _A + "nsautoprop-controller"
FOLLOWER_CONTROLLER = _A + "follower-controller"
SPREAD_CONTROLLER = _A + "workloadspread-controller"
ROLLOUT_CONTROLLER = _OURS + "rollout-controller"
"""Only in overrides[].controller: the pod templates of clusters that were rolled back."""

# Condition types
CLUSTER_JOINED = "Joined"
CLUSTER_READY = "Ready"
CLUSTER_OFFLINE = "Offline"
CLUSTER_AUTHORIZED = "Authorized"
EVICTION_ALLOWED = "EvictionAllowed"
"""Of a FederatedCluster with a NoExecute taint of ours: whether replicas may leave it."""
PROPAGATED = "Propagated"
SCHEDULED = "Scheduled"
OVERRIDES_APPLIED = "OverridesApplied"
STATUS_AGGREGATED = "StatusAggregated"
ADMITTED = "Admitted"
FOLLOWERS_DELIVERED = "FollowersDelivered"
"""Of a workload: whether its clusters have its followers as the host has them."""
APPLICATION_HEALTHY = "ApplicationHealthy"
"""Of a federated workload with rules for the failover of applications: whether its copies are healthy."""

# Taints of a FederatedCluster that the control plane and `fedctl` write
TAINT_PREFIX = _OURS
TAINT_NOT_READY = _OURS + "not-ready"
TAINT_UNREACHABLE = _OURS + "unreachable"
HEALTH_TAINTS = frozenset({TAINT_NOT_READY, TAINT_UNREACHABLE})
"""The taints that follow the condition Ready. Users cannot keep taints with these keys."""
TAINT_UNSCHEDULABLE = _OURS + "unschedulable"
TAINT_DRAIN = _OURS + "drain"
RULED_TAINTS = _OURS + "ruled-taints"
"""Annotation of a FederatedCluster: the taints that ClusterTaintPolicies and Remedies have set, as `key:Effect`."""
TRAFFIC_CUT = _OURS + "traffic-cut"
"""Annotation of a FederatedCluster: the Remedies that take its endpoints out of multi-cluster Services."""

# Condition types of a FederatedRollout that screens show
ROLLOUT_PAUSED = "Paused"

# Users under whose name the control plane submits overridden objects to the host's admission; they have no credentials
OVERRIDE_POLICY_USER = "federation:override-policy"
CLUSTER_OVERRIDE_POLICY_USER = "system:federation:cluster-override-policy"
REVIEWERS = (OVERRIDE_POLICY_USER, CLUSTER_OVERRIDE_POLICY_USER)

# Member service account (useServiceAccount)
MEMBER_SERVICE_ACCOUNT = "kubeadmiral-member"
MEMBER_CLUSTER_ROLE = "kubeadmiral-controller-manager:kubeadmiral-member"

# Agents of members, and the tokens that register them
SYNC_MODE_PULL = "Pull"
"""The value of spec.syncMode of a FederatedCluster whose agent connects to the host."""
AGENT_USER_PREFIX = "system:federation:agent:"
"""Begins the user name of an agent; the uid of its FederatedCluster follows."""
AGENT_REGISTRATION_PREFIX = "system:federation:agent-registration:"
"""Begins the group that binds an agent's certificate to one registration; the id of its token follows."""
AGENT_REGISTRATION = _OURS + "agent-registration"
"""On a FederatedCluster: the id of the token of the last registration of its agent."""
AGENT_TOKEN_PREFIX = "agent-token-"  # noqa: S105  # the beginning of a Secret's name
AGENT_TOKEN_TYPE = _OURS + "agent-token"
"""The type of a Secret with the hash of a registration token."""

# Keys of a member's Secret
SECRET_CLIENT_CERTIFICATE = "client-certificate-data"  # noqa: S105  # names of keys, not values
SECRET_CLIENT_KEY = "client-key-data"  # noqa: S105
SECRET_CA = "certificate-authority-data"  # noqa: S105
SECRET_SERVICE_ACCOUNT_TOKEN = "service-account-token-data"  # noqa: S105
SECRET_BOOTSTRAP_TOKEN = "bootstrap-token-data"  # noqa: S105
SECRET_BOOTSTRAP_KEYS = (SECRET_CLIENT_CERTIFICATE, SECRET_CLIENT_KEY, SECRET_BOOTSTRAP_TOKEN)
"""The keys of credentials that a user gave; a join with a service account removes them."""

# Condition reasons of a FederatedCluster
REASON_IDENTITY_MISMATCH = "ClusterIdentityMismatch"
REASON_JOIN_TIMEOUT_EXCEEDED = "JoinTimeoutExceeded"

# Reasons of the Propagated condition
REASON_CHECK_CLUSTERS = "CheckClusters"
REASON_NO_SOURCE = "NoSource"

# Reason of the FollowersDelivered condition, and of events
REASON_CHECK_FOLLOWERS = "CheckFollowers"

# Condition types of Deployments in the aggregated status
DEPLOYMENT_AVAILABLE = "Available"
DEPLOYMENT_PROGRESSING = "Progressing"
DEPLOYMENT_REPLICA_FAILURE = "ReplicaFailure"

# Condition of source objects whose clusters do not all answer
STATUS_STALE = "StatusStale"
REASON_CLUSTERS_DO_NOT_ANSWER = "ClustersDoNotAnswer"

# Reasons of the Scheduled condition (NoPolicy of Propagated, too);
# those of unsuccessful decisions are their outcomes (scheduling/engine.py)
REASON_SCHEDULED = "Scheduled"
REASON_NO_POLICY = "NoPolicy"
REASON_HELD = "Held"
REASON_QUEUED = "Queued"
REASON_POD_GROUP = "PodGroup"

# Reason of Propagated, and of conditions of objects that no cluster has
REASON_NOT_PLACED = "NotPlaced"

# Conditions of autoscalers
ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"

# WorkloadSpreads, and Kubernetes' annotation for the order of scale-in
WORKLOAD_SPREAD = _OURS + "workload-spread"
"""On a federated workload: JSON {"name", "caps": {subset: replicas}, "quotas": {cluster: {subset: replicas}}} of the
WorkloadSpread that divides its replicas. Written with the placement."""
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
SUBSET_SCHEDULABLE = "Schedulable"

# Names of resources
KATALYST_PREFIX = "resource.katalyst.kubewharf.io/"
"""Prefix of the resources that Katalyst reclaims from requested but unused capacity."""

# On pods of UnitedDeployments of OpenKruise
SUBSET_NAME_LABEL = "apps.kruise.io/subset-name"

# Field manager of autoscalers
AUTOSCALER_MANAGER = "federation-autoscaler"
"""The field manager of replicas that an autoscaler on the host sets."""
