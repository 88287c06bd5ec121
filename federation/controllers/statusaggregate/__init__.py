"""Status aggregation: the statuses of all copies, merged into the status of the object that the user applied (§12)."""
