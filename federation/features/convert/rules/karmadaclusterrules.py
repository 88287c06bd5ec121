"""Karmada's ClusterTaintPolicy and Remedy as ours. Pure.

Theirs act as soon as a condition has changed, in any number of clusters, so the converted ones have no hold times and
no limit.
"""

from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader
from federation.features.convert.rules.karmadaselection import to_cluster_choice

_AT_ONCE: Object = {"holdSeconds": 0, "clearSeconds": 0, "maxClusters": "100%"}
_OPERATORS = {"Equal": "In", "NotEqual": "NotIn"}


def to_taint_policy_spec(spec: FieldReader) -> Object:
    """Return the spec of our ClusterTaintPolicy."""
    added, removed = _conditions(spec, "addOnConditions"), _conditions(spec, "removeOnConditions")
    converted: Object = {**_selection(spec, "targetClusters"), **_AT_ONCE}
    if added:
        converted["when"] = [{"conditions": added}]
    else:
        converted["maxClusters"] = 0  # without conditions Karmada's policy adds no taint
    if removed:
        converted["clearWhen"] = [{"conditions": removed}]
    else:
        converted["removal"] = "Manual"
    return {**converted, "taints": [_taint(each) for each in spec.children("taints")]}


def to_remedy_spec(spec: FieldReader) -> Object:
    """Return the spec of our Remedy."""
    converted: Object = {**_selection(spec, "clusterAffinity"), **_AT_ONCE}
    terms = []
    for decision in spec.children("decisionMatches"):
        match = decision.child("clusterConditionMatch")
        operator = _OPERATORS[match.one_of("operator", tuple(_OPERATORS))]
        condition = {
            "type": match.text("conditionType"),
            "operator": operator,
            "values": [match.text("conditionStatus")],
        }
        terms.append({"conditions": [condition]})
    if terms:
        converted["when"] = terms
    actions = []
    for index, action in enumerate(spec.texts("actions")):
        if action == "TrafficControl":
            actions.append({"type": "CutTraffic"})
        else:
            spec.note(f"actions[{index}]", f"there is no action {action}; docs/reference/clusterrules.md lists ours")
    return {**converted, "actions": actions or [{"type": "Event"}]}


def _selection(spec: FieldReader, field: str) -> Object:
    choice = to_cluster_choice(spec.child(field))
    return {**choice.selection(), **({"clusters": choice.names} if choice.names else {})}


def _conditions(spec: FieldReader, field: str) -> list[Object]:
    return [
        {
            "type": each.text("conditionType"),
            "operator": each.one_of("operator", ("In", "NotIn")),
            "values": each.texts("statusValues"),
        }
        for each in spec.children(field)
    ]


def _taint(taint: FieldReader) -> Object:
    return {key: value for key in ("key", "value", "effect") if (value := taint.text(key))}
