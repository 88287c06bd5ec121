"""Policies in a line for people: which objects they select, where they place them, what they change. Pure.

Policies of users may have any content below `spec`, so nothing here relies on its form.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.amounts import first_of, to_count

_MOST = 4


def describe_selectors(spec: Mapping[str, Any]) -> str:
    """Return the objects that a policy selects by itself, "" if only labels of objects name it."""
    return first_of([_selector(each) for each in mappings(spec.get("resourceSelectors"))], _MOST)


def _selector(selector: Mapping[str, Any]) -> str:
    text = str(selector.get("kind") or "any kind")
    if name := selector.get("name"):
        text += f" {name}"
    labels = selector.get("labelSelector")
    if isinstance(labels, Mapping):
        text += f" with {describe_labels(labels)}" if labels else ""
    return text


def describe_labels(selector: Mapping[str, Any]) -> str:
    """Return a label selector as `kubectl get` shows it."""
    labels = selector.get("matchLabels")
    parts = [f"{key}={value}" for key, value in labels.items()] if isinstance(labels, Mapping) else []
    for term in mappings(selector.get("matchExpressions")):
        values = term.get("values")
        listed = f" ({', '.join(map(str, values))})" if isinstance(values, list) and values else ""
        parts.append(f"{term.get('key')} {term.get('operator')}{listed}")
    return first_of(parts, _MOST)


def describe_propagation(spec: Mapping[str, Any]) -> str:
    """Return mode and clusters of a propagation policy."""
    mode = "Divides replicas over" if spec.get("schedulingMode") == "Divide" else "Copies to"
    return f"{mode} {_clusters(spec)}"


def _clusters(spec: Mapping[str, Any]) -> str:
    named = [
        f"{each.get('cluster')} ×{weight}" if (weight := _weight(each)) is not None else str(each.get("cluster"))  # noqa: RUF001  # a times sign
        for each in mappings(spec.get("placement"))
    ]
    selector, groups = spec.get("clusterSelector"), list(mappings(spec.get("clusterGroups")))
    if groups:
        text = "groups " + first_of([str(each.get("name")) for each in groups], _MOST, separator=", ")
    elif named:
        text = first_of(named, _MOST)
    elif isinstance(selector, Mapping) and selector:
        text = "clusters with " + first_of([f"{key}={value}" for key, value in selector.items()], _MOST)
    elif spec.get("clusterAffinity"):
        text = "clusters that its affinity selects"
    else:
        text = "all clusters"
    most = spec.get("maxClusters")
    return f"{text}, at most {most}" if isinstance(most, int) else text


def _weight(placement: Mapping[str, Any]) -> Any:
    preferences = placement.get("preferences")
    return preferences.get("weight") if isinstance(preferences, Mapping) else None


def describe_overrides(spec: Mapping[str, Any]) -> str:
    """Return what an override policy changes, and where."""
    rules = list(mappings(spec.get("overrideRules")))
    clusters: list[str] = []
    kinds: list[str] = []
    for rule in rules:
        overriders, target = rule.get("overriders"), rule.get("targetClusters")
        kinds += list(overriders) if isinstance(overriders, Mapping) else []
        named = target.get("clusters") if isinstance(target, Mapping) else None
        clusters += [str(name) for name in named] if isinstance(named, list) else []
    where = first_of(list(dict.fromkeys(clusters)), _MOST) or "clusters that its rules select"
    what = first_of(list(dict.fromkeys(map(str, kinds))), _MOST)
    return f"{to_count(len(rules), 'rule')}{f': {what}' if what else ''}, in {where}" if rules else "No rules"


def mappings(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return those entries of a list that are mappings; none for another value."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
