"""Event reasons of the taints controller."""

# Event reasons of the cluster controller
EVENT_CLUSTER_TAINTED = "ClusterTainted"
EVENT_CLUSTER_UNTAINTED = "ClusterUntainted"
EVENT_CLUSTER_HELD_OUT = "ClusterHeldOut"
