"""Auto-migration's arithmetic (spec §13): which replicas a member cannot run, what it can, and when it can again.

`pods` counts, `replicasets` finds the pods that count, `belief` is what follows from all that about each member's
capacity, `info` its text. `planning/clusterresources.py` says how many more replicas would fit. Pure;
`controllers/automigration` brings the facts and writes.
"""
