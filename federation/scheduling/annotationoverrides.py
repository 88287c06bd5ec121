"""Annotations on an object that override its policy (docs/reference/scheduling.md).

Each overrides one part of the policy. Values are validated like the policy's own fields: a value of the wrong type
makes the whole annotation ineffective, as in KubeAdmiral, which decodes them into the same types; null is empty. In
`placements`, a preference that is negative for any cluster leaves the policy's values of that preference in force.
`ignored_annotations` returns the ineffective ones for warnings. Pure; read `unit.py` next.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.quantity import INT64_MAX, INT64_MIN
from federation.scheduling.framework.types import NO_PREFERENCES, Preferences, PreferredTerm, SchedulingMode
from federation.scheduling.policyspec import PREFERENCES, to_preferences, to_tolerations

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)

_EXPRESSIONS = [{"key": str, "operator": str, "values": [str]}]
_TERM = {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
_AFFINITY = {
    "clusterAffinity": {
        _REQUIRED: {"clusterSelectorTerms": [_TERM]},
        _PREFERRED: [{"weight": int, "preference": _TERM}],
    }
}
_TOLERATIONS = [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}]
_PLACEMENTS = [{"cluster": str, "preferences": dict.fromkeys(PREFERENCES, int)}]
_POLICYS: Mapping[str, int] = {}
"""Stands for a map of the policy, which is in force where an annotation has a negative number."""


def overrides_from_annotations(
    annotations: Mapping[str, str], preferences: Preferences = NO_PREFERENCES
) -> dict[str, Any]:
    """Return the unit's fields that valid annotations set.

    `preferences` is among them when placements are given, completed by the policy's preferences.
    """
    fields: dict[str, Any] = {}
    for key, read in _READERS.items():
        text = annotations.get(key)
        if text is not None:
            try:
                fields |= read(text)
            except ValueError:
                continue
    if "placement" in fields:
        fields["preferences"] = to_preferences(fields.pop("placement"), preferences)
    return fields


def is_overridden(annotations: Mapping[str, str]) -> bool:
    """Return whether any of the annotations exists."""
    return not _OVERRIDING.isdisjoint(annotations)


def without_overriding(federated: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return the federated object without annotations that override its policy, and the removed ones."""
    metadata = federated["metadata"]
    annotations = metadata.get("annotations") or {}
    taken = [key for key in _READERS if key in annotations]
    if not taken:
        return federated, taken
    left = {key: value for key, value in annotations.items() if key not in _READERS}
    return {**federated, "metadata": {**metadata, "annotations": left}}, taken


def ignored_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations that are ineffective, entirely or in part, and why."""
    ignored: dict[str, str] = {}
    for key in _READERS:
        if key not in annotations:
            continue
        said = overrides_from_annotations({key: annotations[key]}, Preferences(frozenset(), *[_POLICYS] * 4))
        if not said:
            ignored[key] = f"its value cannot be understood; write {FORMS[key]}"
        elif negative := [field for field, name in PREFERENCES.items() if _is_left_out(said, name)]:
            ignored[key] = f"the policy's {' and '.join(negative)} hold, because a number here is negative"
    return ignored


def _is_left_out(said: Mapping[str, Any], name: str) -> bool:
    return "preferences" in said and getattr(said["preferences"], name) is _POLICYS


def _read_mode(text: str) -> dict[str, Any]:
    return {"mode": SchedulingMode(text)}


def _read_sticky(text: str) -> dict[str, Any]:
    if text not in ("true", "false"):
        raise ValueError(text)
    return {"sticky": text == "true"}


def _read_gang(text: str) -> dict[str, Any]:
    if text not in ("Always", "Never"):
        raise ValueError(text)
    return {"gang": text}


def _read_selector(text: str) -> dict[str, Any]:
    labels = orjson.loads(text)
    if not isinstance(labels, dict | None):
        raise ValueError(text)  # noqa: TRY004  # what a user wrote, not a call of ours
    pairs = [(key, _typed(value, str) or "") for key, value in (labels or {}).items()]
    return {"cluster_selector": tuple(sorted(pairs))}


def _read_affinity(text: str) -> dict[str, Any]:
    affinity = (_typed(orjson.loads(text), _AFFINITY) or {}).get("clusterAffinity") or {}
    required, preferred = affinity.get(_REQUIRED), affinity.get(_PREFERRED)
    return {
        "required": None if required is None else compile_cluster_terms(_some(required.get("clusterSelectorTerms"))),
        "preferred": tuple(
            PreferredTerm(
                entry["weight"],
                compile_cluster_terms([{"matchExpressions": (entry.get("preference") or {}).get("matchExpressions")}]),
            )
            for entry in _some(preferred)
            if entry.get("weight")
        ),
    }


def _read_tolerations(text: str) -> dict[str, Any]:
    return {"tolerations": to_tolerations(_some(_typed(orjson.loads(text), _TOLERATIONS)))}


def _read_max_clusters(text: str) -> dict[str, Any]:
    limit = int(text) if _INTEGER.fullmatch(text) else -1
    if not 0 <= limit <= INT64_MAX:
        raise ValueError(text)
    return {"max_clusters": limit}


def _read_placements(text: str) -> dict[str, Any]:
    return {"placement": _some(_typed(orjson.loads(text), _PLACEMENTS))}


def _typed(value: Any, shape: Any) -> Any:
    """Return the value with the shape's spelling of names; ValueError for another type.

    Fields of the shape are optional, their names count in any case, and others are allowed, as Go reads JSON.
    """
    match value, shape:
        case (None, _):
            return value
        case (list(), list()):
            return [_typed(each, shape[0]) for each in value]
        case (dict(), dict()):
            spelled = {name.lower(): name for name in shape}
            named = {spelled.get(key.lower(), key): part for key, part in value.items()}
            return {key: _typed(part, shape[key]) if key in shape else part for key, part in named.items()}
    if type(value) is not shape or (shape is int and not INT64_MIN <= value <= INT64_MAX):
        raise ValueError(f"{value!r} is not what belongs there")
    return value


def _some(entries: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the entries, with an empty one for null."""
    return [{} if entry is None else entry for entry in entries or ()]


_READERS = {
    names.SCHEDULING_MODE: _read_mode,
    names.STICKY_CLUSTER: _read_sticky,
    names.CLUSTER_SELECTOR: _read_selector,
    names.AFFINITY: _read_affinity,
    names.TOLERATIONS: _read_tolerations,
    names.MAX_CLUSTERS: _read_max_clusters,
    names.PLACEMENTS: _read_placements,
    names.GANG: _read_gang,
}
_OVERRIDING = frozenset(_READERS)
FORMS = {
    names.SCHEDULING_MODE: "Duplicate or Divide",
    names.STICKY_CLUSTER: "true or false",
    names.CLUSTER_SELECTOR: '{"region":"eu"}',
    names.AFFINITY: (
        '{"clusterAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"clusterSelectorTerms":'
        '[{"matchExpressions":[{"key":"region","operator":"In","values":["eu"]}]}]}}}'
    ),
    names.TOLERATIONS: '[{"key":"gpu","operator":"Exists"}]',
    names.MAX_CLUSTERS: "a number from 0",
    names.PLACEMENTS: '[{"cluster":"east","preferences":{"weight":2}}]',
    names.GANG: "Always or Never",
}
"""The expected form of each annotation, for warnings."""
