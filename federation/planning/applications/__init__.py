"""The objects that belong to one workload, and what it needs in a cluster: `graph.py` and `needs.py`. Pure."""
