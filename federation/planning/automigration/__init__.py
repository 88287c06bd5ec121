"""Auto-migration's arithmetic (spec §13): which replicas a member cannot run, what it can, and when it can again.

`pods` counts, `replicasets` finds the pods that count, `room` says how many more would fit by nodes, `belief` is what
follows from all that about each member's capacity. Pure; `controllers/automigration` brings the facts and writes.
"""
