"""Status aggregation: the statuses of all member objects, merged into the status of the object that the user applied.

Reference: docs/reference/status.md.
"""
