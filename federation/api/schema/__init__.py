"""From the models of our kinds to CustomResourceDefinitions. Used by `tools/generate_crds.py` and tests only."""
