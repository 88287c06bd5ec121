"""The scopes of ResourceQuotas: which exist, which resources they can limit, and which operators they take.

The amounts are checked by `podvalidation.py`, the use of scopes is in `semantics/quota`.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.fielderrors import Causes, invalid, required

_POD_COUNTS = frozenset({"pods"})
_POD_RESOURCES = _POD_COUNTS | {
    "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory",
}  # fmt: skip
_CLAIM_RESOURCES = frozenset({"persistentvolumeclaims", "requests.storage"})
_VALID: Mapping[str, frozenset[str]] = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "BestEffort": _POD_COUNTS,
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "VolumeAttributesClass": _CLAIM_RESOURCES,
}
"""The scopes, and the resources that a quota with the scope can limit besides names outside of `_STANDARD`."""
_STANDARD = (
    _POD_RESOURCES
    | _CLAIM_RESOURCES
    | {
        "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "resourcequotas", "services",
        "replicationcontrollers", "secrets", "configmaps", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_WITH_VALUES = frozenset({"PriorityClass", "VolumeAttributesClass"})
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating,"
    " ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def validate_scopes(spec: Mapping[str, Any]) -> Causes:
    """Check `scopes` and `scopeSelector` of a ResourceQuota's spec."""
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    causes: Causes = []
    for scope in scopes:
        causes += _validate_scope(scope, hard, ("spec.scopes", scopes), ("spec.scopes", scopes))
    causes += _validate_conflicts(set(scopes), "spec.scopes", scopes)
    selector = spec.get("scopeSelector") or {}
    field, expressions = "spec.scopeSelector.matchExpressions", selector.get("matchExpressions") or ()
    for expression in expressions:
        name = expression.get("scopeName", "")
        causes += _validate_scope(name, hard, (f"{field}.scopeName", name), (field, selector))
        causes += _validate_operator(name, expression, field)
    return causes + _validate_conflicts({expression.get("scopeName", "") for expression in expressions}, field, scopes)


def _validate_scope(scope: str, hard: Mapping[str, Any], unknown: tuple[str, Any], unfit: tuple[str, Any]) -> Causes:
    if scope not in _VALID:
        return [invalid(*unknown, "unsupported scope")]
    is_standard = (name for name in sorted(hard) if name in _STANDARD or name.startswith("requests.hugepages-"))
    return [
        invalid(*unfit, "unsupported scope applied to resource") for name in is_standard if name not in _VALID[scope]
    ]


def _validate_operator(scope: str, expression: Mapping[str, Any], field: str) -> Causes:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    causes: Causes = []
    if scope in _VALID and scope not in _WITH_VALUES and operator != "Exists":
        causes.append(invalid(f"{field}.operator", operator, _ONLY_EXISTS))
    match operator:
        case "In" | "NotIn":
            if not values:
                text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                causes.append(required(f"{field}.values", text))
        case "Exists" | "DoesNotExist":
            if values:
                text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                causes.append(invalid(f"{field}.values", values, text))
        case _:
            causes.append(invalid(f"{field}.operator", operator, "not a valid selector operator"))
    return causes


def _validate_conflicts(present: set[str], field: str, scopes: list[str]) -> Causes:
    return [invalid(field, scopes, "conflicting scopes") for pair in _CONFLICTS if pair <= present]
