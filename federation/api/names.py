"""Every label, annotation, finalizer, condition type, event reason and well-known name, once.

The `kubeadmiral.io` names are those of KubeAdmiral, so that manifests and tools written for it keep their meaning.
Names under `federation.kubeadmiral.io/` are ours. Nothing else in the product spells such a name.
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
_S = "simulator.kubeadmiral.io/"

# Labels
PROPAGATION_POLICY_LABEL = _A + "propagation-policy-name"
CLUSTER_PROPAGATION_POLICY_LABEL = _A + "cluster-propagation-policy-name"
OVERRIDE_POLICY_LABEL = _A + "override-policy-name"
CLUSTER_OVERRIDE_POLICY_LABEL = _A + "cluster-override-policy-name"
MANAGED_LABEL = _A + "managed"
TEMPLATE_HISTORY_LABEL = _OURS + "template-history"
"""On ReplicaSets and ControllerRevisions of the host that record a pod template for `kubectl rollout undo`."""
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
ORPHAN_FINALIZER = "orphan"
"""Kubernetes' own, on objects that are deleted with --cascade=orphan."""
INTERNAL_CONFLICT_RESOLUTION = _I + "conflict-resolution"
INTERNAL_CLUSTERS_TO_ADOPT = _I + "clusters-to-adopt"
OBSERVED_ANNOTATIONS = _F + "observed-annotations"
OBSERVED_LABELS = _F + "observed-labels"
TEMPLATE_GENERATOR_MERGE_PATCH = _F + "template-generator-merge-patch"

# Ours
GIVES_WAY = _OURS + "gives-way"
"""On a federated workload: JSON {cluster: {"keeps", "count", "to"}}, replicas that gave way to a higher priority."""
ON_DEMAND_FLOOR = _OURS + "on-demand-floor"
"""On a workload: how many of its replicas, or what percentage, must be in clusters that are not spot capacity."""
DEPARTED_CLUSTERS = _OURS + "departed-clusters"
"""On a federated object: JSON list of clusters that left the placement, until sync observes that the object is gone."""
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
SCHEDULING_ANNOTATIONS = _OURS + "scheduling-annotations"
"""Label of a Namespace: "disabled" if annotations on its objects must not override their policies, else "enabled"."""
SCHEDULING_SUMMARY = _OURS + "scheduling-summary"
"""On a federated object: one line about its last decision, for the condition Scheduled of the source object."""
IGNORED_PLUGINS = _OURS + "ignored-plugins"
"""On a federated object: comma list of the webhook plugins that failed and that its last decision ignored."""
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
ROLLOUT_FAILURE = _OURS + "rollout-failure"
"""On a federated object: why its rollout in waves stopped or rolled back; absent if it did not."""
HELD_PLACEMENT = _OURS + "held-placement"
"""On a federated object whose decision the guard holds: JSON {cause, from, hold, since} (planning/guard/record.py)."""
HELD_OVERRIDES = _OURS + "held-overrides"
"""The same on a federated object whose overrides would lower its replicas: it keeps the earlier ones."""
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
REBALANCED = _OURS + "rebalanced"
"""On a federated object: the value of REBALANCE that the last complete decision has acted on."""
RUN_AGAIN = _OURS + "run-again"
"""On an object that runs to completion: a time or other value; each new value is another run."""
ORPHANED = _OURS + "orphaned"
"""On a member object that was released with its pods: a new source of the name takes it back."""
WRITTEN_AGAIN = _OURS + "written-again"
"""On a federated object that was deleted while its source lives: "true", it is about to be written again."""
HPA_MODE = _A + "hpa-mode"
"""Label of a HorizontalPodAutoscaler: "centralized" (it acts on the host) or "distributed" (it acts in members)."""
HPA_CENTRALIZED, HPA_DISTRIBUTED = "centralized", "distributed"
CENTRALIZED_HPA_ENABLED = _A + "centralized-hpa-enabled"
"""Label of a HorizontalPodAutoscaler with mode "centralized" that works: "true"."""
FED_HPA_NOT_WORK_REASON = _A + "fed-hpa-not-work-reason"
"""On a HorizontalPodAutoscaler with a mode: why it does not work."""
SOURCE_CLUSTER = _A + "source-cluster"
"""Label of an imported EndpointSlice: the cluster whose EndpointSlice it copies."""
MEMBER_CLUSTER = _A + "cluster"
"""Annotation of an object of a member that is shown among those of others: the member's name. It is never stored."""
RAW_NAME = _A + "raw-name"
"""The same for its name in the member (docs/reference/merged-pods.md)."""
ACTS_ON_HOST = _OURS + "acts-on-host"
"""Label of webhook configurations and other kinds that act on an API server: "true" if they act on the host, "false" if
they are data there (docs/operators.md)."""
DERIVED_TYPE = _OURS + "derived"
"""Label of a FederatedTypeConfig: "true" if the control plane derived it for a policy."""
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

# On pods (in templates) and workloads: what simulated members do with them
SIMULATOR_RUN_FOR = _S + "run-for"
"""Duration, such as 30s: the containers exit that long after their start. Without it pods of Jobs exit after 1 s."""
SIMULATOR_EXIT_CODE = _S + "exit-code"
"""The exit code of containers that exit, 0 without it."""
SIMULATOR_FAILURES = _S + "failures"
"""Number: only that many runs, counted per owner, have a non-zero exit code; later ones succeed."""
SIMULATOR_READY = _S + "ready"
"""\"false\": the containers run and never become ready."""
SIMULATOR_ALIVE = _S + "alive"
"""\"false\": the liveness probes of the containers fail."""
SIMULATOR_EVICT_AFTER = _S + "evict-after"
"""Duration: the kubelet evicts the pod that long after its start, as if its node had no memory left."""
SIMULATOR_CPU_LOAD = _S + "cpu-load"
"""On a workload: its CPU use over the time since its creation, `0s=2 10m=8 30m=500m`, straight between the points."""
SIMULATOR_MEMORY_LOAD = _S + "memory-load"
"""The same for its memory use, such as `0s=1Gi`."""

# KubeFed's
KUBEFED_ORPHAN = "kubefed.io/orphan"
"""Annotation of a federated object of KubeFed: its objects stay in the members when it is deleted."""

# Finalizers
FEDERATE_FINALIZER = _A + "federate-controller"
SYNC_FINALIZER = _A + "sync-controller"
CASCADING_DELETE_FINALIZER = _A + "cascading-delete"
FEDERATED_CLUSTER_FINALIZER = _A + "federated-cluster-controller"


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
GAVE_WAY = "GaveWay"
"""Of a federated workload: whether replicas of it gave way to a workload of higher priority."""

# Taints of a FederatedCluster that the control plane and `fedctl` write
TAINT_PREFIX = _OURS
TAINT_NOT_READY = _OURS + "not-ready"
TAINT_UNREACHABLE = _OURS + "unreachable"
HEALTH_TAINTS = frozenset({TAINT_NOT_READY, TAINT_UNREACHABLE})
"""The taints that follow the condition Ready. Users cannot keep taints with these keys."""
TAINT_UNSCHEDULABLE = _OURS + "unschedulable"
TAINT_DRAIN = _OURS + "drain"

# Condition types of a FederatedRollout that screens show
ROLLOUT_PAUSED = "Paused"

# Users under whose name the control plane submits overridden objects to the host's admission; they have no credentials
OVERRIDE_POLICY_USER = "federation:override-policy"
CLUSTER_OVERRIDE_POLICY_USER = "system:federation:cluster-override-policy"
REVIEWERS = (OVERRIDE_POLICY_USER, CLUSTER_OVERRIDE_POLICY_USER)

# Member service account (useServiceAccount)
MEMBER_SERVICE_ACCOUNT = "kubeadmiral-member"
MEMBER_CLUSTER_ROLE = "kubeadmiral-controller-manager:kubeadmiral-member"

# Keys of a member's Secret
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
SECRET_CLIENT_CERTIFICATE = "client-certificate-data"  # noqa: S105  # names of keys, not values
SECRET_CLIENT_KEY = "client-key-data"  # noqa: S105
SECRET_CA = "certificate-authority-data"  # noqa: S105
SECRET_SERVICE_ACCOUNT_TOKEN = "service-account-token-data"  # noqa: S105
SECRET_BOOTSTRAP_TOKEN = "bootstrap-token-data"  # noqa: S105
SECRET_BOOTSTRAP_KEYS = (SECRET_CLIENT_CERTIFICATE, SECRET_CLIENT_KEY, SECRET_BOOTSTRAP_TOKEN)
"""The keys of credentials that a user gave; a join with a service account removes them."""

# Condition reasons of a FederatedCluster
REASON_CLUSTER_JOINED = "ClusterJoined"
REASON_CLUSTER_UNJOINABLE = "ClusterUnjoinable"
REASON_TOKEN_NOT_OBTAINED = "TokenNotObtained"  # noqa: S105  # a reason, not a token
REASON_JOIN_TIMEOUT_EXCEEDED = "JoinTimeoutExceeded"
REASON_CLUSTER_LEAVING = "ClusterLeaving"
REASON_CLUSTER_READY = "ClusterReady"
REASON_CLUSTER_REACHABLE = "ClusterReachable"
REASON_CLUSTER_NOT_REACHABLE = "ClusterNotReachable"
REASON_HEALTHZ_NOT_OK = "HealthzNotOK"
REASON_CLUSTER_RESOURCE_COLLECTION_FAILED = "ClusterResourceCollectionFailed"
REASON_IDENTITY_MISMATCH = "ClusterIdentityMismatch"
REASON_CLUSTER_LIMIT_EXCEEDED = "ClusterLimitExceeded"
REASON_CLUSTER_API_DISCOVERY_FAILED = "ClusterAPIDiscoveryFailed"
REASON_RIGHTS_SUFFICIENT = "RightsSufficient"
REASON_RIGHTS_EXCESSIVE = "RightsExcessive"
REASON_RIGHTS_MISSING = "RightsMissing"
RATES_CURRENT = "RatesCurrent"
"""Condition type: whether the cluster's rates are those of the newest answer of the source of rates."""
REASON_RATES_READ = "RatesRead"
REASON_RATES_UNAVAILABLE = "RatesUnavailable"

# Event reasons of the cluster controller
EVENT_JOIN_CLUSTER_SUCCESS = "JoinClusterSuccess"
EVENT_JOIN_CLUSTER_ERROR = "JoinClusterError"
EVENT_JOIN_CLUSTER_TIMEOUT = "JoinClusterTimeoutExceeded"
EVENT_AGENT_REGISTERED = "AgentRegistered"
EVENT_AGENT_REFUSED = "AgentRefused"
EVENT_CLUSTER_UNJOINABLE = "ClusterUnjoinable"
EVENT_IDENTITY_MISMATCH = "ClusterIdentityMismatch"
EVENT_RIGHTS_MISSING = "RightsMissing"
EVENT_CLUSTER_NOT_READY = "ClusterNotReady"
EVENT_CLUSTER_READY = "ClusterReady"
EVENT_MALFORMED_OBJECTS = "MalformedObjects"
EVENT_CLUSTER_TAINTED = "ClusterTainted"
EVENT_CLUSTER_UNTAINTED = "ClusterUntainted"
EVENT_CLUSTER_HELD_OUT = "ClusterHeldOut"
EVENT_TOKEN_RENEWAL_FAILED = "TokenRenewalFailed"  # noqa: S105  # a reason, not a token
EVENT_TERMINATING_CLUSTER_FAILED = "HandleTerminatingClusterFailed"
EVENT_REMOVED_BY_FORCE = "RemovedByForce"
EVENT_TERMINATING_CLUSTER_BLOCKED = "HandleTerminatingClusterBlocked"

# Event reasons of sync; dispatch events are "<Operation>InCluster" and "<Operation>InClusterFailed"
EVENT_ENSURE_DELETION_FAILED = "EnsureDeletionFailed"
EVENT_TYPE_CONFIG_IN_USE = "TypeConfigInUse"
EVENT_KIND_NOT_FEDERATED = "KindNotFederated"
EVENT_TYPE_CONFIG_DERIVED = "TypeConfigDerived"
EVENT_LEFT_BEHIND = "LeftBehind"
EVENT_SWEPT = "Swept"
EVENT_LEFTOVER_FAILED = "LeftoverFailed"
EVENT_DRY_RUN_WORKED = "DryRunWorked"
EVENT_DRY_RUN_SKIPPED = "DryRunSkipped"
EVENT_WAIT_FOR_CASCADING_DELETE = "WaitForCascadingDelete"
EVENT_WAIT_FOR_CASCADING_DELETE_ERROR = "WaitForCascadingDeleteError"
EVENT_INVALID_TEMPLATE = "InvalidTemplate"
EVENT_NO_SOURCE = "NoSource"
EVENT_DRIFT_CORRECTED = "DriftCorrected"
EVENT_REPLICAS_HANDED_OVER = "ReplicasHandedOver"
EVENT_REPLICAS_TAKEN_BACK = "ReplicasTakenBack"
EVENT_CORRECTION_PAUSED = "CorrectionPaused"
EVENT_OPERATION_IN_CLUSTER_FAILED = "{operation}InClusterFailed"

# Reasons of the Propagated condition
REASON_CHECK_CLUSTERS = "CheckClusters"
REASON_ENSURE_DELETION_FAILED = "EnsureDeletionFailed"
REASON_NO_SOURCE = "NoSource"
REASON_NO_POLICY = "NoPolicy"
REASON_NOT_PLACED = "NotPlaced"

# Reasons of the Admitted condition; the first two are event reasons as well
REASON_ADMISSION_REFUSED = "AdmissionRefused"
REASON_ADMISSION_FAILED = "AdmissionFailed"
REASON_ADMITTED = "Admitted"

# Reasons of the FollowersDelivered condition; the first one is an event reason as well
REASON_CHECK_FOLLOWERS = "CheckFollowers"
REASON_FOLLOWERS_DELIVERED = "FollowersDelivered"

# Condition types of Deployments in the aggregated status
DEPLOYMENT_AVAILABLE = "Available"
DEPLOYMENT_PROGRESSING = "Progressing"
DEPLOYMENT_REPLICA_FAILURE = "ReplicaFailure"

# Event reasons of federate, override and namespace propagation
EVENT_CREATE_FEDERATED_OBJECT = "CreateFederatedObject"
EVENT_UPDATE_FEDERATED_OBJECT = "UpdateFederatedObject"
EVENT_FEDERATED_OBJECT_WRITTEN_AGAIN = "FederatedObjectWrittenAgain"
EVENT_INVALID_OVERRIDE_POLICY = "InvalidOverridePolicy"
EVENT_MATCH_OVERRIDE_POLICY_FAILED = "MatchOverridePolicyFailed"
EVENT_PARSE_OVERRIDE_POLICY_FAILED = "ParseOverridePolicyFailed"

# Reasons of the OverridesApplied condition
REASON_OVERRIDES_APPLIED = "OverridesApplied"
REASON_OVERRIDE_POLICY_NOT_FOUND = "OverridePolicyNotFound"
REASON_OVERRIDE_POLICY_INVALID = "OverridePolicyInvalid"

# Reasons of the StatusAggregated condition
REASON_STATUS_AGGREGATED = "StatusAggregated"
REASON_STATUS_RULE_FAILED = "StatusRuleFailed"
REASON_STATUS_REFUSED = "StatusRefused"
REASON_MEMBER_STATUS_INVALID = "MemberStatusInvalid"

# Event reasons of the follower controller, and of sync when a follower is missing
EVENT_FAILED_INFER_FOLLOWERS = "FailedInferFollowers"
EVENT_FAILED_UPDATE_FOLLOWER = "FailedUpdateFollower"
EVENT_FOLLOWER_MISSING = "FollowerMissing"
EVENT_SERVICE_NOT_READY = "ServiceNotReady"

# Objects that every Kubernetes cluster creates itself; they are not federated
BOOTSTRAPPING_LABEL = "kubernetes.io/bootstrapping"
ROOT_CA_CONFIGMAP = "kube-root-ca.crt"
DEFAULT_SERVICE_ACCOUNT = "default"

# Event reasons of the schedule controller
EVENT_SCHEDULED = "Scheduled"
EVENT_SCHEDULING_FAILED = "SchedulingFailed"
EVENT_PARSE_MIGRATION_CONFIGURATION = "ParseMigrationConfiguration"
EVENT_INVALID_SCHEDULING_ANNOTATION = "InvalidSchedulingAnnotation"
EVENT_SCHEDULING_ANNOTATION_IGNORED = "SchedulingAnnotationIgnored"
EVENT_INVALID_NAMESPACE_LABEL = "InvalidNamespaceLabel"
EVENT_INVALID_PROPAGATION_POLICY = "InvalidPropagationPolicy"
EVENT_INVALID_SCHEDULING_PROFILE = "InvalidSchedulingProfile"
EVENT_WEBHOOK_CONFIGURATION_ERROR = "WebhookConfigurationError"
EVENT_WEBHOOK_REGISTERED = "WebhookRegistered"

# Event reasons of the guard, on a PlacementHold and its cause
EVENT_PLACEMENT_HELD = "PlacementHeld"
EVENT_OVERRIDES_HELD = "OverridesHeld"
EVENT_FOLLOWERS_HELD = "FollowersHeld"
EVENT_DELETION_HELD = "DeletionHeld"
EVENT_HOLD_APPROVED = "HoldApproved"
EVENT_MOVE_UNDONE = "MoveUndone"
EVENT_UNDO_REFUSED = "UndoRefused"

# Reasons of condition EvictionAllowed besides planning/failover/halts.py, and event reasons of failover
REASON_EVICTION_ALLOWED = "EvictionAllowed"
EVENT_EVICTION_WAITS = "EvictionWaits"
EVENT_EVICTION_HALTED = "EvictionHalted"
EVENT_EVICTION_RESUMED = "EvictionResumed"

# Event reasons of the automigration controller
EVENT_AUTO_MIGRATION_INFO_UPDATED = "AutoMigrationInfoUpdated"

# Condition of source objects whose clusters do not all answer
STATUS_STALE = "StatusStale"
REASON_CLUSTERS_DO_NOT_ANSWER = "ClustersDoNotAnswer"

# Reasons of the Scheduled condition; those of unsuccessful decisions are their outcomes (scheduling/engine.py)
REASON_SCHEDULED = "Scheduled"
REASON_NO_POLICY = "NoPolicy"
REASON_POLICY_NOT_FOUND = "PolicyNotFound"
REASON_PROFILE_NOT_FOUND = "ProfileNotFound"
REASON_HELD = "Held"
REASON_AWAITS_DEFINITION = "AwaitsDefinition"

# Conditions of autoscalers, and our reason for one on the host that does not act
ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"

# WorkloadSpread: OpenKruise's names, and Kubernetes' annotation for the order of scale-in
MATCHED_WORKLOAD_SPREAD = "apps.kruise.io/matched-workloadspread"
"""On a pod: JSON {name, subset, uid} of the WorkloadSpread and the subset that admission chose."""
CLUSTER_TERM_DOMAIN = "cluster.kubeadmiral.io"
"""The end of the prefix of a key by which a subset's node selector selects clusters instead of nodes."""
CLUSTER_NAME_TERM = f"{CLUSTER_TERM_DOMAIN}/name"
"""The key that stands for the name of the cluster."""
WORKLOAD_SPREAD = _OURS + "workload-spread"
"""On a federated workload: JSON {"name", "caps": {subset: replicas}, "quotas": {cluster: {subset: replicas}}} of the
WorkloadSpread that divides its replicas. Written with the placement."""
UNSCHEDULABLE_SUBSETS = _OURS + "unschedulable-subsets"
"""On a federated workload: JSON {cluster: {subset: replicas}} of the subsets of a WorkloadSpread that have pods without
a node there, with the number of pods that have one. The scheduler gives such a subset no more replicas there."""
IGNORE_PATCH_EXISTING_PODS_METADATA = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"
"""On a WorkloadSpread: "true" if adopted pods get no labels and annotations of the subset's patch."""
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
SUBSET_SCHEDULABLE = "Schedulable"
SUBSET_ENFORCED = "Enforced"
REASON_KIND_NOT_SERVED = "KindNotServed"
REASON_KIND_SERVED = "KindServed"
REASON_SUFFICIENT = "Sufficient"
REASON_POD_UNSCHEDULABLE = "PodUnschedulable"
REASON_UNKNOWN = "Unknown"
VIRTUAL_NODE_TYPE = ("type", "virtual-kubelet")
"""Label and value of nodes that are not machines: they take any number of pods."""
VIRTUAL_NODE_TAINT = "virtual-kubelet.io/provider"
"""Key of the taint that such nodes have."""
EVENT_CREATE_POD_FAILED = "CreatePodFailed"
EVENT_DELETE_POD_FAILED = "DeletePodFailed"
EVENT_RECOVER_SCHEDULABLE = "RecoverSchedulable"
EVENT_PATCH_POD_DELETION_COST_FAILED = "PatchPodDeletionCostFailed"
EVENT_INVALID_SPREAD = "InvalidWorkloadSpread"

# Names of resources
PRICE_PER_HOUR = _OURS + "price-per-hour"
"""In a FederatedResourceQuota: the price of all replicas per hour (docs/reference/quotas.md)."""
CARBON_PER_HOUR = _OURS + "carbon-per-hour"
"""In a FederatedResourceQuota: grams of CO2e of all replicas per hour."""
KATALYST_PREFIX = "resource.katalyst.kubewharf.io/"
"""Prefix of the resources that Katalyst reclaims from requested but unused capacity."""

# On pods of UnitedDeployments of OpenKruise
SUBSET_NAME_LABEL = "apps.kruise.io/subset-name"

# Field manager and event reasons of autoscalers
AUTOSCALER_MANAGER = "federation-autoscaler"
"""The field manager of replicas that an autoscaler on the host sets."""
