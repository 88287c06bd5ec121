"""Pod templates that go out in waves of clusters, and the history of pod templates. Pure.

`waverules.py` reads the rules of policies, `waveplan.py` decides which clusters get a new pod template, `readiness.py`
judges a cluster, `report.py` keeps the state in the status of the FederatedRollout. `templatehistory.py` plans what
`kubectl rollout history` and `undo` read. `controllers/rollout` and `controllers/federate` act.
"""
