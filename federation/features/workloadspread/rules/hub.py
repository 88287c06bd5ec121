"""Convert WorkloadSpreads of v1alpha1 to v1beta1, the form that this package reads. Pure.

The versions differ in the names of two fields of a subset. In v1beta1 a condition has a reason; an absent one becomes
"Unknown".
"""

import re
from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.features.workloadspread import names

GROUP = "apps.kruise.io"
HUB = f"{GROUP}/v1beta1"
V1ALPHA1 = f"{GROUP}/v1alpha1"
_RENAMED = {"requiredNodeSelectorTerm": "requiredNodeSelector", "preferredNodeSelectorTerms": "preferredNodeSelector"}
_RENAMED_BACK = {new: old for old, new in _RENAMED.items()}
_RENAMED_FIELD = re.compile(rf"\.({'|'.join(_RENAMED_BACK)})(?=[.\[]|$)")


def to_hub(spread: Mapping[str, Any]) -> Object:
    """Return a WorkloadSpread of either version as v1beta1; parts that do not change are shared."""
    converted = {**spread, "apiVersion": HUB}
    spec = spread.get("spec") or {}
    if subsets := spec.get("subsets"):
        converted["spec"] = {**spec, "subsets": [subset_to_hub(subset) for subset in subsets]}
    if status := spread.get("status"):
        converted["status"] = _status_to_hub(status)
    return converted


def subset_to_hub(subset: Mapping[str, Any]) -> Object:
    """Return one entry of `spec.subsets` as v1beta1; a field that has the wanted name wins over the other spelling."""
    kept = {key: value for key, value in subset.items() if key not in _RENAMED}
    moved = {new: subset[old] for old, new in _RENAMED.items() if old in subset and kept.get(new) is None}
    return {**kept, **moved}


def field_in(api_version: str, field: str) -> str:
    """Return the path of a field as a version of the API spells it; `field` is a path in v1beta1."""
    if api_version != V1ALPHA1:
        return field
    return _RENAMED_FIELD.sub(lambda found: f".{_RENAMED_BACK[found[1]]}", field)


def condition_to_hub(condition: Mapping[str, Any]) -> Object:
    """Return a condition of a subset as v1beta1."""
    return {**condition, "reason": condition.get("reason") or names.REASON_UNKNOWN}


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
