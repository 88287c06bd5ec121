"""Deletion of sources some time after they have finished in all of their clusters.

Reference: docs/reference/status.md.
"""
