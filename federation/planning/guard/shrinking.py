"""Overrides that lower the replicas of an object where it runs, and the policies that these count for. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.jsonpatch import parse_pointer
from federation.planning.federatedobject.placements import overrides_of
from federation.planning.guard.ledger import Cause
from federation.planning.rendering.memberobject import Renderer, RenderError


def shrunk_clusters(federated: Mapping[str, Any], type_: FederatedType, patch: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters that have the object and in which the patch lowers its replicas.

    `patch` is the merge patch of the override controller. Only clusters are rendered in which an override of the
    replicas changes.
    """
    path, overrides = type_.paths.replicas_spec, (patch.get("spec") or {}).get("overrides")
    if not path or overrides is None:
        return frozenset()
    changed = {**federated, "spec": {**federated["spec"], "overrides": overrides}}
    before, after = (overrides_of(each, names.OVERRIDE_CONTROLLER) for each in (federated, changed))
    entries = (federated.get("status") or {}).get("clusters") or ()
    candidates = [
        name
        for name in sorted({str(entry["cluster"]) for entry in entries} & (before.keys() | after.keys()))
        if any(_is_at(patch, path) for side in (before, after) for patch in side.get(name) or ())
    ]
    if not candidates:
        return frozenset()
    old, new = Renderer(federated, type_), Renderer(changed, type_)
    return frozenset(name for name in candidates if _is_fewer(_replicas(old, type_, name), _replicas(new, type_, name)))


def _is_fewer(old: int | None, new: int | None) -> bool:
    return old is not None and new is not None and new < old


def _is_at(patch: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Return whether a JSON patch may change the value at the path."""
    pointer = str(patch.get("path") or "")
    if not pointer.startswith("/"):
        return False
    keys = tuple(parse_pointer(pointer))
    return keys == tuple(path[: len(keys)])


def _replicas(renderer: Renderer, type_: FederatedType, cluster: str) -> int | None:
    """Return the replicas in the cluster; None when the overrides do not apply, as nothing is written then."""
    try:
        return type_.replicas(renderer.render(cluster).object)
    except RenderError:
        return None


def causes_of(federated: Mapping[str, Any], policies: Sequence[str]) -> tuple[Cause, ...]:
    """Return the policies that now apply (`namespace/name`, or `name`), then those behind the stored overrides."""
    recorded = str((federated["metadata"].get("annotations") or {}).get(names.OVERRIDE_POLICIES) or "")
    texts = dict.fromkeys((*policies, *filter(None, recorded.split(","))))
    return tuple(map(_cause, texts))


def _cause(text: str) -> Cause:
    namespace, _, name = text.rpartition("/")
    return Cause("OverridePolicy" if namespace else "ClusterOverridePolicy", namespace, name)
