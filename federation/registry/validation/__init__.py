"""Pure checks of objects: each returns causes (`errors.cause`) in Kubernetes' words and changes nothing.

`fields.py` makes causes, `names.py` and `metadata.py` check what all objects share, the others one family of kinds
each. The strategies (`registry/strategies`) decide which check runs when.
"""
