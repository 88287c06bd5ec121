"""What differs in which cluster: from override policies to JSON patches per cluster (spec §8). Pure.

`policies.py` finds and compiles policies and computes the patches of every cluster; `targets.py` says which clusters a
rule is for; `image.py`, `containers.py` and `metadata.py` are the overriders; `jsonpatch.py` applies patches.
"""
