"""Leaf features, one folder each: what the spine of the control plane does not need.

A wing holds everything of its feature: `rules` (pure), `controller.py` and `reconcile.py`, `admission.py`, `model.py`
with its kinds, `names.py` with its wire names, and its record `FEATURE` in `__init__.py`. Only `catalogue.py` imports
wings, and wings do not import each other. What two of them need is in a layer below.

Decision: docs/decisions/0093-leaf-features-are-wings.md
"""
