"""The wire names of rules for clusters."""

CLUSTER_RULES = "federation.kubeadmiral.io/cluster-rules"
"""Annotation of a FederatedCluster: the state of each rule that is not calm there, as JSON."""

# Event reasons of FederatedClusters
EVENT_RULE_ACTIVE = "ClusterRuleActive"
EVENT_RULE_CLEARED = "ClusterRuleCleared"
EVENT_WEBHOOK_FAILED = "RemedyWebhookFailed"
