"""Names that only the delivery uses: its annotation, condition reasons and event reasons."""

# Annotation of member objects
ORPHANED = "federation.kubeadmiral.io/orphaned"
"""On a member object that was released with its pods: a new source of the name takes it back."""

# Event reasons of sync; operations have "<Operation>InCluster" and "<Operation>InClusterFailed"
EVENT_ENSURE_DELETION_FAILED = "EnsureDeletionFailed"
EVENT_LEFT_BEHIND = "LeftBehind"
EVENT_DELETION_WAITS = "DeletionWaits"
EVENT_DRY_RUN_WORKED = "DryRunWorked"
EVENT_DRY_RUN_SKIPPED = "DryRunSkipped"
EVENT_WAIT_FOR_CASCADING_DELETE = "WaitForCascadingDelete"
EVENT_WAIT_FOR_CASCADING_DELETE_ERROR = "WaitForCascadingDeleteError"
EVENT_WAIT_FOR_RELEASE = "WaitForRelease"
EVENT_INVALID_TEMPLATE = "InvalidTemplate"
EVENT_NO_SOURCE = "NoSource"
EVENT_DRIFT_CORRECTED = "DriftCorrected"
EVENT_REPLICAS_HANDED_OVER = "ReplicasHandedOver"
EVENT_REPLICAS_TAKEN_BACK = "ReplicasTakenBack"
EVENT_CORRECTION_PAUSED = "CorrectionPaused"
EVENT_OPERATION_IN_CLUSTER_FAILED = "{operation}InClusterFailed"

# Reasons of the Propagated condition
REASON_ENSURE_DELETION_FAILED = "EnsureDeletionFailed"

# Event reasons of sync when followers or Services are not ready, and of the guard
EVENT_FOLLOWER_MISSING = "FollowerMissing"
EVENT_SERVICE_NOT_READY = "ServiceNotReady"
EVENT_DELETION_HELD = "DeletionHeld"
