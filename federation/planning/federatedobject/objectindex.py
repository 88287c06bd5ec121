"""Index values of federated objects: the policies that their labels name.

Shared by the controllers that follow policies. Which policy wins is decided in `overrides/policymatching.py` and
`scheduling/policymatching.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def policies_named(federated: Mapping[str, Any], label: str, cluster_label: str) -> Iterator[str]:
    """Yield the policies that the object's labels name: `namespace/name` by `label`, `/name` by `cluster_label`."""
    labels = federated["metadata"].get("labels") or {}
    if name := labels.get(label):
        yield f"{federated['metadata'].get('namespace', '')}/{name}"
    if name := labels.get(cluster_label):
        yield f"/{name}"
