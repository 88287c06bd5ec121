"""Delivery: creates, updates and deletes the member objects of every federated object.

The delivery of one object to one cluster is one decision (`rules/decide.py`). `clusterdelivery.py` decides from facts
that `observer.py` gathers, and acts; `questions.py` asks what must be known first. `reconcile.py` does that for the
clusters of one federated object, `publication.py` publishes the results once, and `deletion.py` is the same for one
that is being deleted. `controller.py` wires triggers to keys, and `clusterremoval.py` removes a cluster.

Below them are `host` (what the host says about a delivery), `members` (what is known of member objects, and writing
them) and `rules` (pure). Reference: docs/reference/sync.md.

Decision: docs/decisions/0092-one-decision-per-object-and-cluster.md

Decision: docs/decisions/0076-what-a-fan-out-costs.md
"""
