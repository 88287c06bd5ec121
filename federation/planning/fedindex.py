"""What federated objects are looked up by: the policies that their labels name, and the kind of their template.

Index functions for informers, shared by the controllers that follow policies and types. Pure; a function yields the
index values of one federated object. Which policy wins is decided elsewhere (`overrides/bindings.py`,
`scheduling/matching.py`).
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


def type_of_template(federated: Mapping[str, Any]) -> Iterator[str]:
    """Yield `apiVersion/kind` of the object's template."""
    template = (federated.get("spec") or {}).get("template") or {}
    yield f"{template.get('apiVersion', '')}/{template.get('kind', '')}"
