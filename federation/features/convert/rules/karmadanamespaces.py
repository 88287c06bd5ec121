"""Karmada's cluster-wide policies that select in namespaces, as policies of these namespaces. Pure.

A selector of Karmada's ClusterPropagationPolicy or ClusterOverridePolicy may name a namespace. Ours select in all
namespaces, so such a policy would reach objects that the original does not. It becomes one policy in each namespace,
and a cluster-wide one with the selectors that name none.
"""

from collections.abc import Iterator
from typing import Any

from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import to_title
from federation.features.convert.rules.model import Note

_NAMESPACED = {"ClusterPropagationPolicy": "PropagationPolicy", "ClusterOverridePolicy": "OverridePolicy"}


def split_by_namespace(manifest: Object, notes: list[Note]) -> Iterator[Object]:
    """Yield the policies that select together what a policy of Karmada selects; others as they are."""
    kind = _NAMESPACED.get(str(manifest.get("kind") or ""))
    spec = manifest.get("spec")
    selectors = spec.get("resourceSelectors") if isinstance(spec, dict) else None
    if kind is None or not isinstance(spec, dict) or not isinstance(selectors, list):
        yield manifest
        return
    namespaces = sorted({each for each in map(_namespace_of, selectors) if each})
    if not namespaces:
        yield manifest
        return
    text = f"a cluster-wide policy selects in all namespaces here; it is a {kind} in {', '.join(namespaces)}"
    notes.append(Note(to_title(manifest), "spec.resourceSelectors", text))
    for namespace in ("", *namespaces):
        chosen = [each for each in selectors if _namespace_of(each) == namespace]
        if not chosen:
            continue
        part = {**manifest, "spec": {**spec, "resourceSelectors": chosen}}
        yield (
            {**part, "kind": kind, "metadata": {**(manifest.get("metadata") or {}), "namespace": namespace}}
            if namespace
            else part
        )


def _namespace_of(selector: Any) -> str:
    found = selector.get("namespace") if isinstance(selector, dict) else None
    return found if isinstance(found, str) else ""
