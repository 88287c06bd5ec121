"""Delivery: creates, updates and deletes the member objects of every federated object.

`controller.py` wires triggers to keys; `reconcile.py` holds the steps for one federated object, `clusterdispatch.py`
those for one of its clusters, `deletion.py` its deletion, and `clusterremoval.py` the removal of a cluster. Below them
are `host` (what the host says about a delivery), `members` (what is known of member objects, and writing them) and
`rules` (pure decisions). Reference: docs/reference/sync.md.
"""
