"""`matchLabelKeys` and `mismatchLabelKeys` of a new pod's spread constraints and pod (anti-)affinity.

As in kube-apiserver, each key that the pod has as a label becomes a requirement of the label selector beside it:
schedulers read the selectors only.
"""

from collections.abc import Iterator
from typing import Any, Final

from federation.apimachinery.fielderrors import Causes, invalid
from federation.apimachinery.resources import Object

_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_SOFT: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS: Final = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def merge_label_keys(pod: Object) -> None:
    """Add the requirements to the selectors of a new pod, in place."""
    labels = pod["metadata"].get("labels") or {}
    for _, owner in _owners(pod["spec"]):
        selector = owner.get("labelSelector")
        if selector is None:
            continue  # refused by validation
        for part, key in _keys(owner):
            if key in labels:
                found = {"key": key, "operator": _OPERATORS[part], "values": [labels[key]]}
                selector = {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), found]}
        owner["labelSelector"] = selector


def validate_merged_keys(pod: Object) -> Causes:
    """Return the causes of keys that are also in the selector that their user wrote."""
    labels = pod["metadata"].get("labels") or {}
    causes: Causes = []
    for field, owner in _owners(pod["spec"]):
        selector = owner.get("labelSelector") or {}
        listed = [expression.get("key") for expression in selector.get("matchExpressions") or ()]
        listed += list(selector.get("matchLabels") or {})
        for index, (part, key) in enumerate(_keys(owner)):
            # One is that of `merge_label_keys`.
            if listed.count(key) > (1 if key in labels else 0):
                causes.append(invalid(f"{field}[{index}]", key, f"exists in both {part} and labelSelector"))
    return causes


def _keys(owner: Object) -> Iterator[tuple[str, str]]:
    for part in _OPERATORS:
        for key in dict.fromkeys(owner.get(part) or ()):
            yield part, key


def _owners(spec: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields and the objects that have label keys."""
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("matchLabelKeys"):
            yield f"spec.topologySpreadConstraints[{index}]", constraint
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get(_HARD) or ()):
            yield f"spec.affinity.{kind}.{_HARD}[{index}]", term
        for index, weighted in enumerate(rules.get(_SOFT) or ()):
            yield f"spec.affinity.{kind}.{_SOFT}[{index}].podAffinityTerm", weighted.get("podAffinityTerm") or {}
