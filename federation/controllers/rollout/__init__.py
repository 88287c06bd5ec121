"""Roll new pod templates out in waves, with a FederatedRollout for each workload whose policy has waves.

`controller.py` watches, `reconcile.py` acts, `clusterobservation.py` reads the caches of members, `httpgate.py` sends
the requests of gates, and `planning/waves` decides.
"""
