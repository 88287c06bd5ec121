"""Wire names of FederatedTypeConfigs."""

# Event reasons of FederatedTypeConfigs
EVENT_TYPE_CONFIG_IN_USE = "TypeConfigInUse"
EVENT_KIND_NOT_FEDERATED = "KindNotFederated"
EVENT_TYPE_CONFIG_DERIVED = "TypeConfigDerived"
EVENT_TYPE_CONFIG_MOVED = "TypeConfigMoved"
EVENT_VERSION_NOT_CURRENT = "VersionNotCurrent"

# Reasons of the condition VersionCurrent of FederatedTypeConfigs
REASON_VERSION_STORED = "Stored"
REASON_VERSION_NOT_SERVED = "NotServed"
