"""Names of resources in quotas."""

# Names of resources
PRICE_PER_HOUR = "federation.kubeadmiral.io/price-per-hour"
"""In a FederatedResourceQuota: the price of all replicas per hour (docs/reference/quotas.md)."""
CARBON_PER_HOUR = "federation.kubeadmiral.io/carbon-per-hour"
"""In a FederatedResourceQuota: grams of CO2e of all replicas per hour."""
