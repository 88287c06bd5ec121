"""Reasons of the conditions Ready and Offline of a FederatedCluster."""

# Condition reasons of a FederatedCluster
REASON_CLUSTER_READY = "ClusterReady"
REASON_CLUSTER_REACHABLE = "ClusterReachable"
REASON_CLUSTER_NOT_REACHABLE = "ClusterNotReachable"
REASON_HEALTHZ_NOT_OK = "HealthzNotOK"

# Resources that only we know
DEVICE_KIND_PREFIX = "device.federation.kubeadmiral.io/"
"""Before the hash of what selectors see of a device: the resource whose amounts are such devices."""
DEVICE_NEED_PREFIX = "need.device.federation.kubeadmiral.io/"
"""The same for what a pod claims; only in the memory of a decision."""
