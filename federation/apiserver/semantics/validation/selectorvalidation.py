"""Validate selectors of labels and of nodes, and the affinity, tolerations and spread constraints that use them."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    problems_of,
    required,
)
from federation.apimachinery.objectmeta import validate_labels

Fields = Mapping[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES = ("Honor", "Ignore")
_IN = frozenset({"In", "NotIn"})
_EXISTS = frozenset({"Exists", "DoesNotExist"})
_IN_TEXT = "must be specified when `operator` is 'In' or 'NotIn'"
_EXISTS_TEXT = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_OPERATOR_TEXT = "not a valid selector operator"


def validate_label_selector(selector: Fields, field: str) -> Causes:
    """Validate a LabelSelector."""
    causes = validate_labels(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{field}.matchExpressions[{index}]"
        operator, values = expression.get("operator") or "", expression.get("values") or ()
        if operator in _IN:
            if not values:
                causes.append(required(f"{at}.values", _IN_TEXT))
        elif operator not in _EXISTS:
            causes.append(invalid(f"{at}.operator", operator, _OPERATOR_TEXT))
        elif values:
            causes.append(forbidden(f"{at}.values", _EXISTS_TEXT))
        key = expression.get("key") or ""
        causes += problems_of(f"{at}.key", key, nameformats.qualified_name(key))
        causes += _validate_values(values, f"{at}.values")
    return causes


def _validate_values(values: Sequence[str], field: str) -> Causes:
    return [
        found
        for index, value in enumerate(values)
        for found in problems_of(f"{field}[{index}]", value, nameformats.label_value(value))
    ]


def validate_node_selector(selector: Fields, field: str) -> Causes:
    """Validate the required terms of a node selector."""
    terms = selector.get("nodeSelectorTerms") or ()
    at = f"{field}.nodeSelectorTerms"
    if not terms:
        return [required(at, "must have at least one node selector term")]
    return [found for i, term in enumerate(terms) for found in validate_node_term(term, f"{at}[{i}]", strict=True)]


def validate_node_term(term: Fields, field: str, *, strict: bool) -> Causes:
    """Validate a term; a preferred one, which is not strict, may have values that no label has."""
    causes: Causes = []
    for index, wanted in enumerate(term.get("matchExpressions") or ()):
        causes += _validate_node_expression(wanted, f"{field}.matchExpressions[{index}]", strict=strict)
    for index, wanted in enumerate(term.get("matchFields") or ()):
        causes += _validate_node_field(wanted, f"{field}.matchFields[{index}]")
    return causes


def _validate_node_expression(wanted: Fields, field: str, *, strict: bool) -> Causes:
    causes: Causes = []
    operator, values = wanted.get("operator") or "", wanted.get("values") or ()
    if operator in _IN:
        if not values:
            causes.append(required(f"{field}.values", _IN_TEXT))
    elif operator in _EXISTS:
        if values:
            causes.append(forbidden(f"{field}.values", _EXISTS_TEXT))
    elif operator not in {"Gt", "Lt"}:
        causes.append(invalid(f"{field}.operator", operator, _OPERATOR_TEXT))
    elif len(values) != 1:
        causes.append(required(f"{field}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    key = wanted.get("key") or ""
    causes += problems_of(f"{field}.key", key, nameformats.qualified_name(key))
    return causes + _validate_values(values, f"{field}.values") if strict else causes


def _validate_node_field(wanted: Fields, field: str) -> Causes:
    causes: Causes = []
    operator, values = wanted.get("operator") or "", wanted.get("values") or ()
    if operator not in _IN:
        causes.append(invalid(f"{field}.operator", operator, _OPERATOR_TEXT))
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.append(required(f"{field}.values", text))
    key = wanted.get("key") or ""
    if key != "metadata.name":
        return [*causes, invalid(f"{field}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        causes += problems_of(f"{field}.values[{index}]", value, nameformats.dns1123_subdomain(value))
    return causes


def validate_affinity(affinity: Fields, field: str) -> Causes:
    """Validate the affinity of a pod to nodes and pods."""
    causes: Causes = []
    if nodes := affinity.get("nodeAffinity"):
        at = f"{field}.nodeAffinity"
        hard, soft = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
        if (wanted := nodes.get(hard)) is not None:
            causes += validate_node_selector(wanted, f"{at}.{hard}")
        for index, term in enumerate(nodes.get(soft) or ()):
            causes += _validate_weight(term, f"{at}.{soft}[{index}].weight")
            preference = term.get("preference") or {}
            causes += validate_node_term(preference, f"{at}.{soft}[{index}].preference", strict=False)
    for name in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(name):
            causes += _validate_pod_affinity(pods, f"{field}.{name}")
    return causes


def _validate_pod_affinity(affinity: Fields, field: str) -> Causes:
    causes: Causes = []
    hard, soft = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(affinity.get(hard) or ()):
        causes += _validate_pod_term(term, f"{field}.{hard}[{index}]")
    for index, weighted in enumerate(affinity.get(soft) or ()):
        at = f"{field}.{soft}[{index}]"
        causes += _validate_weight(weighted, f"{at}.weight")
        causes += _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return causes


def _validate_weight(term: Fields, field: str) -> Causes:
    weight = term.get("weight") or 0
    return [] if 0 < weight <= 100 else [invalid(field, weight, "must be in the range 1-100")]


def _validate_pod_term(term: Fields, field: str) -> Causes:
    causes: Causes = []
    for name in ("labelSelector", "namespaceSelector"):
        if selector := term.get(name):
            causes += validate_label_selector(selector, f"{field}.{name}")
    for name in term.get("namespaces") or ():
        causes += problems_of(f"{field}.namespace", name, nameformats.dns1123_label(name))
    has_selector = term.get("labelSelector") is not None
    for part in ("matchLabelKeys", "mismatchLabelKeys"):
        causes += _validate_label_keys(term.get(part) or (), f"{field}.{part}", has_selector=has_selector)
    excluded = term.get("mismatchLabelKeys") or ()
    text = "exists in both matchLabelKeys and mismatchLabelKeys"
    for index, key in enumerate(term.get("matchLabelKeys") or ()):
        if key in excluded:
            causes.append(invalid(f"{field}.matchLabelKeys[{index}]", key, text))
    key = term.get("topologyKey") or ""
    if not key:
        causes.append(required(f"{field}.topologyKey", "can not be empty"))
    return causes + problems_of(f"{field}.topologyKey", key, nameformats.qualified_name(key))


def _validate_label_keys(keys: Sequence[str], field: str, *, has_selector: bool) -> Causes:
    if keys and not has_selector:
        return [forbidden(field, "must not be specified when labelSelector is not set")]
    return [
        found
        for index, key in enumerate(keys)
        for found in problems_of(f"{field}[{index}]", key, nameformats.qualified_name(key))
    ]


def validate_spread(constraints: Sequence[Fields], field: str) -> Causes:
    """Validate topology spread constraints, which must be unique by key and action."""
    causes: Causes = []
    pairs = [(found.get("topologyKey") or "", found.get("whenUnsatisfiable") or "") for found in constraints]
    for index, constraint in enumerate(constraints):
        at = f"{field}[{index}]"
        causes += _validate_positive(constraint.get("maxSkew") or 0, f"{at}.maxSkew")
        key, action = pairs[index]
        if not key:
            causes.append(required(f"{at}.topologyKey", "can not be empty"))
        if action not in _WHEN_UNSATISFIABLE:
            causes.append(not_supported(f"{at}.whenUnsatisfiable", action, _WHEN_UNSATISFIABLE))
        if pairs[index] in pairs[index + 1 :]:
            causes.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        if (domains := constraint.get("minDomains")) is not None:
            causes += _validate_positive(domains, f"{at}.minDomains")
            if action != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                causes.append(invalid(f"{at}.minDomains", domains, text))
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            causes += one_of(f"{at}.{name}", constraint.get(name), _NODE_POLICIES)
        selector = constraint.get("labelSelector")
        keys = constraint.get("matchLabelKeys") or ()
        causes += _validate_label_keys(keys, f"{at}.matchLabelKeys", has_selector=selector is not None)
        causes += validate_label_selector(selector or {}, f"{at}.labelSelector")
    return causes


def _validate_positive(number: int, field: str) -> Causes:
    return [] if number > 0 else [invalid(field, number, "must be greater than zero")]


def validate_toleration(toleration: Fields, field: str) -> Causes:
    """Validate a toleration."""
    causes: Causes = []
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        causes += problems_of(f"{field}.key", key, nameformats.qualified_name(key))
    elif operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.append(invalid(f"{field}.operator", operator, text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        causes.append(invalid(f"{field}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if operator not in {"Equal", "Exists"}:
        causes.append(not_supported(f"{field}.operator", operator, ("Equal", "Exists")))
    elif operator == "Exists":
        if value:
            causes.append(invalid(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'"))
    elif problems := nameformats.label_value(value):
        causes.append(invalid(f"{field}.operator", value, ";".join(problems)))
    return causes + (one_of(f"{field}.effect", effect, _EFFECTS) if effect else [])


def validate_taints(taints: Sequence[Fields], field: str) -> Causes:
    """Validate taints, which must be unique by key and effect."""
    causes: Causes = []
    seen: set[tuple[Any, Any]] = set()
    for index, taint in enumerate(taints):
        at, key, effect = f"{field}[{index}]", taint.get("key") or "", taint.get("effect") or ""
        causes += problems_of(f"{at}.key", key, nameformats.qualified_name(key))
        value = taint.get("value") or ""
        if problems := nameformats.label_value(value):
            causes.append(invalid(f"{at}.value", value, ";".join(problems)))
        causes += [required(f"{at}.effect")] if not effect else one_of(f"{at}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            found = duplicate(at, dict(taint))
            causes.append({**found, "message": f"{found['message']}: taints must be unique by key and effect pair"})
        seen.add((key, effect))
    return causes
