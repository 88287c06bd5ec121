"""Names that only the cluster controller writes: condition reasons and event reasons."""

# Condition reasons of a FederatedCluster
REASON_CLUSTER_JOINED = "ClusterJoined"
REASON_CLUSTER_UNJOINABLE = "ClusterUnjoinable"
REASON_TOKEN_NOT_OBTAINED = "TokenNotObtained"  # noqa: S105  # a reason, not a token
REASON_CLUSTER_LEAVING = "ClusterLeaving"
REASON_CLUSTER_RESOURCE_COLLECTION_FAILED = "ClusterResourceCollectionFailed"
REASON_CLUSTER_LIMIT_EXCEEDED = "ClusterLimitExceeded"
REASON_CLUSTER_API_DISCOVERY_FAILED = "ClusterAPIDiscoveryFailed"
REASON_RIGHTS_SUFFICIENT = "RightsSufficient"
REASON_RIGHTS_EXCESSIVE = "RightsExcessive"
REASON_RIGHTS_MISSING = "RightsMissing"

# Event reasons of the cluster controller
EVENT_JOIN_CLUSTER_SUCCESS = "JoinClusterSuccess"
EVENT_JOIN_CLUSTER_ERROR = "JoinClusterError"
EVENT_JOIN_CLUSTER_TIMEOUT = "JoinClusterTimeoutExceeded"
EVENT_CLUSTER_UNJOINABLE = "ClusterUnjoinable"
EVENT_IDENTITY_MISMATCH = "ClusterIdentityMismatch"
EVENT_RIGHTS_MISSING = "RightsMissing"
EVENT_CLUSTER_NOT_READY = "ClusterNotReady"
EVENT_CLUSTER_READY = "ClusterReady"
EVENT_MALFORMED_OBJECTS = "MalformedObjects"
EVENT_TOKEN_RENEWAL_FAILED = "TokenRenewalFailed"  # noqa: S105  # a reason, not a token
EVENT_TERMINATING_CLUSTER_FAILED = "HandleTerminatingClusterFailed"
EVENT_REMOVED_BY_FORCE = "RemovedByForce"
EVENT_TERMINATING_CLUSTER_BLOCKED = "HandleTerminatingClusterBlocked"
