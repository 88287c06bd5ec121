"""The condition that the rates controller owns, and its reasons."""

# Condition reasons of a FederatedCluster
RATES_CURRENT = "RatesCurrent"
"""Condition type: whether the cluster's rates are those of the newest answer of the source of rates."""
REASON_RATES_READ = "RatesRead"
REASON_RATES_UNAVAILABLE = "RatesUnavailable"
