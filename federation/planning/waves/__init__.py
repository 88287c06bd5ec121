"""Pod templates that go out in waves of clusters, and the history of pod templates. Pure.

`waverules.py` reads the rules of policies. `waveplan.py` decides which clusters get a new pod template;
`waverecord.py` is its state, which `report.py` keeps in the status of the FederatedRollout. `newcomers.py` knows
clusters that come later, `readiness.py` judges a cluster, and `podproblems.py` says what is wrong with its pods.
`templatehistory.py` plans what `kubectl rollout history` and `undo` read. `controllers/rollout` and
`controllers/federate` act.
"""
