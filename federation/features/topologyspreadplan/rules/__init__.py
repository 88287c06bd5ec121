"""Placement of sharded stateful services over zones (docs/reference/topologyspreadplan.md). Pure.

A service has shards; a shard is a StatefulSet whose pods are replicas of each other. `planner.py` is the entry of the
planner, `check.py` of the checker. `planning/placement/topology.py` spreads the replicas of one workload over clusters,
which is another feature.
"""
