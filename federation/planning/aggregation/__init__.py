"""Aggregate the statuses of member objects into the status of the source object (docs/reference/status.md). Pure.

There is one module per kind, each with `merge(source, members, context) -> status | None`. `members` are the member
objects by cluster; one without a status counts as zero. The result is the complete `.status`, or None for no change.
Equal inputs give equal outputs, so an unchanged status is never written again. `aggregators.py` finds the function of a
kind; `controllers/statusaggregate` calls it.
"""
