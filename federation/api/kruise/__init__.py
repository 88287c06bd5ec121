"""Kinds of the group apps.kruise.io that work inside one cluster, with the fields of OpenKruise's kinds.

Both versions of a kind have one schema, which has the field names of both. Objects are stored as they were written, so
no conversion webhook is needed: the kinds can be read while the service that implements them is stopped.

Decision: docs/decisions/0031-two-versions-one-schema.md
"""
