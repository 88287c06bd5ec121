"""Condition and event reasons of the schedule controller, and of the guard's holds that it owns."""

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
EVENT_HOLD_APPROVED = "HoldApproved"
EVENT_MOVE_UNDONE = "MoveUndone"
EVENT_UNDO_REFUSED = "UndoRefused"

# Event reasons of failover
EVENT_EVICTION_WAITS = "EvictionWaits"
