"""Auto-migration: which replicas a member cannot run, and when it can again (docs/reference/auto-migration.md). Pure.

`podanalysis` counts pods, `replicasets` finds the pods of the current template, `capacityestimate` derives the capacity
of each member from that, and `migrationinfo` is the annotation. `clusters/clusterresources.py` counts how many more
replicas fit; `controllers/automigration` observes and writes.
"""
