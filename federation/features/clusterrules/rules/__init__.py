"""The decisions of rules for clusters. Pure.

`matching.py` says whether a rule holds in a cluster, `states.py` when it is active there, `taints.py` which taints of
the cluster follow, and `ruleset.py` puts them together.
"""
