"""Sync: brings every federated object to its clusters, keeps it there, and takes it away again.

`controller.py` wires triggers to keys; `reconcile.py` holds the steps for one federated object, `dispatching.py` those
for one of its clusters, `deletion.py` the way out, `cascade.py` what happens to a cluster's objects when it leaves.

Reference: docs/reference/sync.md.
"""
