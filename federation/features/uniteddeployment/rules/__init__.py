"""The decisions of a UnitedDeployment: one workload per subset, from one template. Pure, on plain objects.

Read `allocation.py` first: it divides the replicas. `subsettemplate.py` renders the workloads, `schedulability.py` and
`reservation.py` decide which subsets are unschedulable, `unitedstatus.py` summarises, `unitedvalidation.py` validates.
Reference: docs/reference/uniteddeployment.md.
"""
