"""Convert WorkloadSpreads between v1alpha1 and v1beta1, the form that is stored and that this package reads. Pure.

The versions differ in the names of two fields of a subset. In v1beta1 a condition has a reason; an absent one becomes
"Unknown".
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.resources import Object

GROUP = "apps.kruise.io"
HUB = f"{GROUP}/v1beta1"
V1ALPHA1 = f"{GROUP}/v1alpha1"
_RENAMED = {"requiredNodeSelectorTerm": "requiredNodeSelector", "preferredNodeSelectorTerms": "preferredNodeSelector"}
_RENAMED_BACK = {new: old for old, new in _RENAMED.items()}
_RENAMED_FIELD = re.compile(rf"\.({'|'.join(_RENAMED_BACK)})(?=[.\[]|$)")


def to_hub(spread: Mapping[str, Any]) -> Object:
    """Return a WorkloadSpread of either version as v1beta1; parts that do not change are shared."""
    converted = _with_subsets(spread, subset_to_hub, HUB)
    if status := spread.get("status"):
        converted["status"] = _status_to_hub(status)
    return converted


def to_v1alpha1(spread: Mapping[str, Any]) -> Object:
    """Return a WorkloadSpread of either version as v1alpha1; parts that do not change are shared."""
    return _with_subsets(spread, _subset_to_v1alpha1, V1ALPHA1)


def subset_to_hub(subset: Mapping[str, Any]) -> Object:
    """Return one entry of `spec.subsets` as v1beta1."""
    return _renamed(subset, _RENAMED)


def _subset_to_v1alpha1(subset: Mapping[str, Any]) -> Object:
    return _renamed(subset, _RENAMED_BACK)


def field_in(api_version: str, field: str) -> str:
    """Return the path of a field as a version of the API spells it; `field` is a path in v1beta1."""
    if api_version != V1ALPHA1:
        return field
    return _RENAMED_FIELD.sub(lambda found: f".{_RENAMED_BACK[found[1]]}", field)


def condition_to_hub(condition: Mapping[str, Any]) -> Object:
    """Return a condition of a subset as v1beta1."""
    return {**condition, "reason": condition.get("reason") or names.REASON_UNKNOWN}


def _with_subsets(
    spread: Mapping[str, Any], convert: Callable[[Mapping[str, Any]], Object], api_version: str
) -> Object:
    converted = {**spread, "apiVersion": api_version}
    spec = spread.get("spec") or {}
    if subsets := spec.get("subsets"):
        converted["spec"] = {**spec, "subsets": [convert(subset) for subset in subsets]}
    return converted


def _renamed(subset: Mapping[str, Any], new_names: Mapping[str, str]) -> Object:
    """Rename fields; a field that already has the wanted name wins over the other spelling."""
    kept = {key: value for key, value in subset.items() if key not in new_names}
    moved = {new: subset[old] for old, new in new_names.items() if old in subset and kept.get(new) is None}
    return {**kept, **moved}


def _status_to_hub(status: Mapping[str, Any]) -> Object:
    converted = dict(status)
    if entry := status.get("subsetStatuses"):
        converted["subsetStatuses"] = _entry_to_hub(entry)
    if versions := status.get("versionedSubsetStatuses"):
        converted["versionedSubsetStatuses"] = {
            version: _entry_to_hub(entry or ()) for version, entry in versions.items()
        }
    return converted


def _entry_to_hub(entry: Any) -> list[Object]:
    return [
        {**status, "conditions": [condition_to_hub(condition) for condition in status["conditions"]]}
        if status.get("conditions")
        else dict(status)
        for status in entry
    ]
