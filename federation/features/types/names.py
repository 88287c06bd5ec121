"""Wire names of FederatedTypeConfigs."""

# FederatedTypeConfigs
SHIPPED_TYPES = "shipped-type-configs"
"""The ConfigMap in the system namespace that records which FederatedTypeConfigs were shipped to this host, and how."""

# Event reasons of FederatedTypeConfigs
EVENT_TYPE_CONFIG_IN_USE = "TypeConfigInUse"
EVENT_KIND_NOT_FEDERATED = "KindNotFederated"
EVENT_TYPE_CONFIG_DERIVED = "TypeConfigDerived"
