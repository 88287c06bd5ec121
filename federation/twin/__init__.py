"""The twin of a fleet: the same control plane over simulated members, in one process and on a virtual clock.

`fleetcopy.py` reads a fleet, `nodes.py` rebuilds its nodes, `twin.py` runs it, `script.py` and `steps.py` change it,
and `happenings.py` sees what happens.

Decision: docs/decisions/0171-a-twin-is-the-product-on-a-virtual-clock.md
"""
