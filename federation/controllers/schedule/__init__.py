"""The schedule controller: selects clusters and replicas for every federated object.

Reference: docs/reference/scheduling.md.
"""
