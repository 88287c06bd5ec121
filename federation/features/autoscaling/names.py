"""Wire names of autoscalers on the host."""

# Reasons and events of autoscalers on the host
REASON_FEDERATED_WORKLOAD = "FederatedWorkload"
EVENT_CENTRALIZED_HPA_NOT_WORK = "CentralizedHPANotWork"
EVENT_DISTRIBUTED_HPA_NOT_WORK = "DistributedHPANotWork"

# Labels and annotations of HorizontalPodAutoscalers
CENTRALIZED_HPA_ENABLED = "kubeadmiral.io/centralized-hpa-enabled"
"""Label of a HorizontalPodAutoscaler with mode "centralized" that works: "true"."""
FED_HPA_NOT_WORK_REASON = "kubeadmiral.io/fed-hpa-not-work-reason"
"""On a HorizontalPodAutoscaler with a mode: why it does not work."""
