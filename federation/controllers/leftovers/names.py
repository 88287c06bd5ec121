"""Event reasons of the leftovers controller."""

# Event reasons of sync; dispatch events are "<Operation>InCluster" and "<Operation>InClusterFailed"
EVENT_SWEPT = "Swept"
EVENT_LEFTOVER_FAILED = "LeftoverFailed"
