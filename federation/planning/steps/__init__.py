"""One budget of surge and unavailability for a workload that is divided over clusters. Pure.

`strategy.py` reads the limits of the user's own strategy. `memberstate.py` reads the state of the workload in one
cluster, and puts a step into its member object. `waveapproval.py` reads which clusters may get a new pod template.
`steps.py` computes the next step of every cluster, for `delivery/clustersteps.py`
(docs/decisions/0034-one-budget-for-all-clusters.md).
"""
