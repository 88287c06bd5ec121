"""Status collection: one CollectedStatus per federated object shows fields of every member object.

Reference: docs/reference/status.md.
"""
