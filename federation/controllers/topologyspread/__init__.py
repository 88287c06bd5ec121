"""Topology spread of sharded services: constraints into StatefulSets of the host, and a check of the live pods.

`controller.py` watches, `reconcile.py` acts. `memberviews/spreadobserver.py` reads the caches of members, and
`planning/shardtopology` decides.
"""
