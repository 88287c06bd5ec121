"""UnitedDeployments of one cluster → a workload per subset (docs/reference/uniteddeployment.md).

`controller.py` watches and maps keys, `reconcile.py` acts, `children.py` reads the caches, `subsetwriter.py` writes.
"""
