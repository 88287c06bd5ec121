"""Owner references, like `GetControllerOf` and `NewControllerRef` of Kubernetes' meta/v1. Pure.

An object has any number of owners and at most one controller among them. `objectmeta.py` validates the references.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Reference = dict[str, Any]


def owner_references(metadata: Mapping[str, Any]) -> Sequence[Reference]:
    """Return the owner references in an object's metadata, empty when there are none."""
    return metadata.get("ownerReferences") or ()


def controller_of(obj: Mapping[str, Any]) -> Reference | None:
    """Return the reference to the controlling owner, None when there is none."""
    for reference in owner_references(obj["metadata"]):
        if reference.get("controller"):
            return reference
    return None


def controller_uids(obj: Mapping[str, Any]) -> list[str]:
    """Return the uid of the controlling owner as an index value: a list of at most one."""
    controller = controller_of(obj)
    return [] if controller is None else [str(controller["uid"])]


def controller_reference(owner: Mapping[str, Any], api_version: str, kind: str) -> Reference:
    """Return the reference that makes `owner` the controller of an object and blocks its foreground deletion."""
    metadata = owner["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
