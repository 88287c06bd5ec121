"""Reasons of the conditions Ready and Offline of a FederatedCluster."""

# Condition reasons of a FederatedCluster
REASON_CLUSTER_READY = "ClusterReady"
REASON_CLUSTER_REACHABLE = "ClusterReachable"
REASON_CLUSTER_NOT_REACHABLE = "ClusterNotReachable"
REASON_HEALTHZ_NOT_OK = "HealthzNotOK"
