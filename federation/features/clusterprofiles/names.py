"""The wire names of ClusterProfiles."""

from federation.apimachinery.resources import Resource

CLUSTER_PROFILES = Resource("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles")
MANAGER = "federation"
"""This product, as the manager of a ClusterProfile."""
MANAGER_LABEL = "x-k8s.io/cluster-manager"
CONTROL_PLANE_HEALTHY = "ControlPlaneHealthy"
JOINED = "Joined"

# Properties of a cluster
CLUSTER_ID = "cluster.clusterset.k8s.io"
REGION = "topology.kubernetes.io/region"
NODES = "federation.kubeadmiral.io/nodes"
ALLOCATABLE = "federation.kubeadmiral.io/allocatable-"
"""With the name of a resource behind it."""

# Event reasons of FederatedClusters
EVENT_PROFILE_TAKEN = "ClusterProfileTaken"

# Joining the clusters of other managers
CLUSTER_JOIN_POLICIES = Resource("core.kubeadmiral.io", "v1alpha1", "ClusterJoinPolicy", "clusterjoinpolicies", False)
JOINED_PROFILE = "federation.kubeadmiral.io/cluster-profile"
"""Annotation of a FederatedCluster: namespace/name of the ClusterProfile that it joined by."""

# Event reasons of ClusterProfiles
EVENT_PROFILE_JOINED = "ClusterJoining"
EVENT_PROFILE_REFUSED = "ClusterNotJoined"
