"""Wire names of autoscalers on the host."""

# Reasons and events of autoscalers on the host
REASON_FEDERATED_WORKLOAD = "FederatedWorkload"
EVENT_CENTRALIZED_HPA_NOT_WORK = "CentralizedHPANotWork"
EVENT_DISTRIBUTED_HPA_NOT_WORK = "DistributedHPANotWork"
