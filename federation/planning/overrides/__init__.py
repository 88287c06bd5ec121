"""Overrides: from override policies to JSON patches per cluster (docs/reference/overrides.md). Pure.

`policymatching.py` finds the policies of an object, `policies.py` compiles them and computes the patches of every
cluster, `targets.py` matches clusters; `image.py`, `containers.py`, `metadata.py` and `documents.py` are the
overriders, `patches.py` applies patches, and `entries.py` plans the patch of the federated object.
"""
