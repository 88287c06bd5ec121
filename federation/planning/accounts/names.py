"""Names of accounts."""

# Annotations of federated objects
QUOTA_CLAIM = "federation.kubeadmiral.io/quota-claim"
"""On a federated workload in a namespace with a quota: JSON, what it may run in each cluster (planning/accounts)."""
