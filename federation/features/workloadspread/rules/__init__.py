"""WorkloadSpread (apps.kruise.io): subsets of nodes for the pods of one workload, filled in order. Pure.

All functions but `hub.to_hub` read WorkloadSpreads in the v1beta1 form. `ledger.py` chooses the subset of a new pod,
`injection.py` changes the pod, `status.py` counts pods, `deletioncosts.py` orders scale-in.
"""
