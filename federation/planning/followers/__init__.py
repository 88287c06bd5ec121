"""Which objects follow which workload, and where to (spec §9).

`references.py` reads them from pod specs and annotations, `leading.py` says what one workload takes along to which
clusters, `index.py` keeps that for all workloads in both directions, `following.py` plans what a follower is written.
"""
