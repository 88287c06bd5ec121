"""Rules in a line for people: the clusters and objects that they are about, when they hold, and what they do. Pure.

Rules may have been stored by other means than this API server, so nothing here relies on the form of their specs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.amounts import first_of, to_count
from federation.web.ui.policytext import describe_labels, mappings

_MOST = 4
_ACTIONS = {
    "Cordon": "cordons them",
    "CutTraffic": "cuts their traffic",
    "Event": "writes an Event",
    "Webhook": "calls a webhook",
}
_CHANGES = ("Moves", "Evictions", "Updates")


def describe_scope(spec: Mapping[str, Any], namespace: str = "") -> str:
    """Return the clusters of a rule, and of a freeze or suspension the objects: `namespace` is its own, "" if none."""
    parts = [_clusters(spec)]
    if objects := mappings(spec.get("objects")):
        parts.append(first_of(list(map(_object, objects)), _MOST))
    if namespace:
        parts.append(f"namespace {namespace}")
    elif spaces := _texts(spec.get("namespaces")):
        parts.append(f"{'namespace' if len(spaces) == 1 else 'namespaces'} {first_of(spaces, _MOST)}")
    return "; ".join(parts)


def _clusters(spec: Mapping[str, Any]) -> str:
    named, selector = _texts(spec.get("clusters")), spec.get("clusterSelector")
    text = first_of(named, _MOST) if named else ""
    if isinstance(selector, Mapping) and selector:
        is_plain = not {"matchLabels", "matchExpressions"} & selector.keys()
        labels = describe_labels({"matchLabels": selector} if is_plain else selector)
        text = f"{text} with {labels}" if text else f"clusters with {labels}"
    if spec.get("clusterAffinity"):
        text = f"{text or 'clusters'} that its affinity selects"
    return text or "all clusters"


def _object(entry: Mapping[str, Any]) -> str:
    text = " ".join(str(entry[field]) for field in ("kind", "name") if entry.get(field))
    labels = entry.get("labelSelector")
    return f"{text} with {describe_labels(labels)}" if isinstance(labels, Mapping) and labels else text


def describe_rule(spec: Mapping[str, Any]) -> str:
    """Return what a ClusterTaintPolicy or Remedy does, and when."""
    done = [f"taints them {_taint(each)}" for each in mappings(spec.get("taints"))]
    for action in mappings(spec.get("actions")):
        taint = action.get("taint")
        is_taint = isinstance(taint, Mapping)
        done.append(f"taints them {_taint(taint)}" if is_taint else _ACTIONS.get(str(action.get("type")), ""))
    text = first_of(list(dict.fromkeys(filter(None, done))), _MOST)
    return f"{text[:1].upper()}{text[1:]} {_when(spec)}"


def _taint(taint: Any) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _when(spec: Mapping[str, Any]) -> str:
    terms = [text for each in mappings(spec.get("when")) if (text := _term(each))]
    seconds = spec.get("holdSeconds", 60)
    hold = f" for {to_count(seconds, 'second')}" if isinstance(seconds, int) and seconds else ""
    return f"when {first_of(terms, _MOST, separator=' or ')}{hold}" if terms else "always"


def _term(term: Mapping[str, Any]) -> str:
    parts = []
    for each in mappings(term.get("conditions")):
        verb = "is not" if each.get("operator") == "NotIn" else "is"
        parts.append(f"{each.get('type')} {verb} {'/'.join(_texts(each.get('values')))}")
    labels = term.get("clusterLabels")
    if isinstance(labels, Mapping) and labels:
        parts.append(describe_labels(labels))
    for each in mappings(term.get("metrics")):
        what = " ".join(str(each[field]) for field in ("measure", "resource") if each.get(field))
        limit = next((f"{side} {each[side]}" for side in ("above", "below") if side in each), "")
        parts.append(f"{what} {limit}")
    return " and ".join(parts)


def describe_freeze(spec: Mapping[str, Any]) -> str:
    """Return which changes a freeze holds."""
    held = _texts(spec.get("holds"))
    named = [change.lower() for change in _CHANGES if not held or change in held]
    text = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else "".join(named)
    return f"Holds {text or 'everything'}"


def _texts(value: Any) -> Sequence[str]:
    return list(map(str, value)) if isinstance(value, list) else []
