"""federation: one Kubernetes API in front of many clusters.

Read next: docs/architecture.md, then `api/v1alpha1` for the vocabulary and `assembly.py` for how it is wired.
"""

__version__ = "0.1.0"
