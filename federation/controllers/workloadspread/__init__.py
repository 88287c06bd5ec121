"""Deliver the WorkloadSpreads of the host to the members of the workloads that they target, and merge their status."""
