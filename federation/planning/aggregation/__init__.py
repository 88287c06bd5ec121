"""Merging the statuses of an object's copies in the members into one status for the object that the user applied.

One file per kind, all with the same silhouette: `merge(source, members, context) -> status | None`. `members` holds the
copy of every cluster that has one, by cluster name; a copy without a status counts as zero. The result is the complete
`.status`; None means that there is nothing to say. Pure: equal inputs give equal outputs, so that an unchanged status
is never written twice. `registry.py` finds the function for a kind; `controllers/statusaggregate` calls it.
"""
