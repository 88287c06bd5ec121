"""Metrics and log lines about clusters, objects and the time that deliveries take."""
