"""Labels of FederatedClusters that only rates read."""

GRID_CARBON = "federation.kubeadmiral.io/grid-carbon"
"""Grams of CO2e of one kWh of its electricity; it needs the power of resources."""
POWER_PREFIX = "power.federation.kubeadmiral.io/"
"""Watts that one unit of the resource after the slash needs while it is used."""
