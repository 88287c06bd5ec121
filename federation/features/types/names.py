"""Wire names of FederatedTypeConfigs."""

# FederatedTypeConfigs
SHIPPED_TYPES = "shipped-type-configs"
"""The ConfigMap in the system namespace that records which FederatedTypeConfigs were shipped to this host, and how."""

# Finalizer of FederatedTypeConfigs
TYPE_CONFIG_FINALIZER = "federation.kubeadmiral.io/type-in-use"
