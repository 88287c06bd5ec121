"""Validate the policies of Jobs: what a failed pod means, and when enough indexes have succeeded."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.errors import cause
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    invalid,
    non_negative,
    not_supported,
    one_of,
    problems_of,
    required,
    too_many,
)

Fields = Mapping[str, Any]

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_RULES_MAX, _PATTERNS_MAX, _VALUES_MAX = 20, 20, 255
_INDEXES_MAX, _OF_MANY_MAX = 100_000, 10_000
_OF_INDEXES = ("backoffLimitPerIndex", "maxFailedIndexes")
_INDEXED = "requires indexed completion mode"


def validate_job_policies(spec: Fields, field: str) -> Causes:
    """Validate the failure, success and replacement policies of a Job's spec."""
    causes: Causes = []
    is_indexed = spec.get("completionMode") == "Indexed"
    for name in _OF_INDEXES:
        causes += non_negative(f"{field}.{name}", spec.get(name))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        causes.append(required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if is_indexed:
        causes += _validate_indexed(spec, field)
    else:
        causes += [
            invalid(f"{field}.{name}", spec[name], _INDEXED) for name in _OF_INDEXES if spec.get(name) is not None
        ]
    if (policy := spec.get("podFailurePolicy")) is not None:
        causes += _validate_failure_policy(spec, policy, f"{field}.podFailurePolicy.rules")
    if (policy := spec.get("successPolicy")) is not None:
        at = f"{field}.successPolicy"
        causes += _validate_success_policy(spec, policy, at) if is_indexed else [invalid(at, dict(policy), _INDEXED)]
    return causes + _validate_replacement(spec, f"{field}.podReplacementPolicy")


def _validate_indexed(spec: Fields, field: str) -> Causes:
    """Validate how many pods and failed indexes an Indexed Job may have: its status lists them."""
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    causes = [required(f"{field}.completions", "when completion mode is Indexed")] if completions is None else []
    if parallelism > _INDEXES_MAX:
        text = f"must be less than or equal to {_INDEXES_MAX} when completion mode is Indexed"
        causes.append(invalid(f"{field}.parallelism", parallelism, text))
    if failed is not None and completions is not None and failed > completions:
        causes.append(invalid(f"{field}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > _INDEXES_MAX:
        causes.append(invalid(f"{field}.maxFailedIndexes", failed, f"must be less than or equal to {_INDEXES_MAX}"))
    if (completions or 0) > _INDEXES_MAX and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            text = f"must be specified when completions is above {_INDEXES_MAX}"
            causes.append(required(f"{field}.maxFailedIndexes", text))
        text = (
            f"must be less than or equal to {_OF_MANY_MAX} when completions are above {_INDEXES_MAX} and used with"
            " backoff limit per index"
        )
        for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed or 0)):
            if value > _OF_MANY_MAX:
                causes.append(invalid(f"{field}.{name}", value, text))
    return causes


def _validate_replacement(spec: Fields, field: str) -> Causes:
    supported = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    return one_of(field, spec.get("podReplacementPolicy"), supported)


def _validate_failure_policy(spec: Fields, policy: Fields, field: str) -> Causes:
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {container.get("name") for part in ("containers", "initContainers") for container in pod.get(part) or ()}
    rules = policy.get("rules") or ()
    causes = too_many(field, rules, _RULES_MAX)
    for index, rule in enumerate(rules):
        at, action = f"{field}[{index}]", rule.get("action") or ""
        if not action:
            causes.append(required(f"{at}.action", _valid(_ACTIONS)))
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            causes.append(invalid(f"{at}.action", action, "requires the backoffLimitPerIndex to be set"))
        else:
            causes += one_of(f"{at}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            causes += _validate_exit_codes(codes, f"{at}.onExitCodes", names)
        causes += _validate_conditions(conditions, f"{at}.onPodConditions")
        if codes is not None and conditions:
            text = "specifying both OnExitCodes and OnPodConditions is not supported"
            causes.append(cause("FieldValueInvalid", f"Invalid value: {text}", at))
        elif codes is None and not conditions:
            text = "specifying one of OnExitCodes and OnPodConditions is required"
            causes.append(cause("FieldValueInvalid", f"Invalid value: {text}", at))
    return causes


def _valid(values: Sequence[str]) -> str:
    listed = " ".join(f'"{value}"' for value in values)
    return f"valid values: [{listed}]"


def _validate_exit_codes(codes: Fields, field: str, names: set[Any]) -> Causes:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    causes = one_of(f"{field}.operator", operator, _OPERATORS) if operator else []
    if not operator:
        causes.append(required(f"{field}.operator", _valid(_OPERATORS)))
    name = codes.get("containerName")
    if name is not None and name not in names:
        text = "must be one of the container or initContainer names in the pod template"
        causes.append(invalid(f"{field}.containerName", name, text))
    if not values:
        causes.append(invalid(f"{field}.values", values, "at least one value is required"))
    causes += too_many(f"{field}.values", values, _VALUES_MAX)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            causes.append(invalid(f"{field}.values[{index}]", value, "must not be 0 for the In operator"))
        if value in values[:index]:
            causes.append(duplicate(f"{field}.values[{index}]", value))
    if values != sorted(values):
        causes.append(invalid(f"{field}.values", values, "must be ordered"))
    return causes


def _validate_conditions(patterns: Sequence[Fields], field: str) -> Causes:
    causes = too_many(field, patterns, _PATTERNS_MAX)
    for index, pattern in enumerate(patterns):
        type_, status = pattern.get("type") or "", pattern.get("status") or ""
        causes += problems_of(f"{field}[{index}].type", type_, nameformats.qualified_name(type_))
        if status not in _STATUSES:
            causes.append(not_supported(f"{field}[{index}].status", status, _STATUSES))
    return causes


def _validate_success_policy(spec: Fields, policy: Fields, field: str) -> Causes:
    rules, completions = policy.get("rules") or (), spec.get("completions")
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        return [required(f"{field}.rules", text)]
    causes = too_many(f"{field}.rules", rules, _RULES_MAX)
    for index, rule in enumerate(rules):
        at, count = f"{field}.rules[{index}]", rule.get("succeededCount")
        causes += _validate_indexes(rule.get("succeededIndexes"), completions, f"{at}.succeededIndexes")
        if count is None and rule.get("succeededIndexes") is None:
            causes.append(required(at, "at least one of succeededCount or succeededIndexes must be specified"))
        causes += non_negative(f"{at}.succeededCount", count)
        if count is not None and completions is not None and count > completions:
            text = f"must be less than or equal to {completions} (the number of specified completions)"
            causes.append(invalid(f"{at}.succeededCount", count, text))
    return causes


def _validate_indexes(text: str | None, completions: int | None, field: str) -> Causes:
    """Validate a list of indexes and ranges in ascending order, such as 0,2-4."""
    if text is None:
        return []
    last = -1
    for part in text.split(",") if text else ():
        first, dash, end = part.partition("-")
        for number in (first, end) if dash else (first,):
            if not (number.isascii() and number.isdigit()):
                problem = f'error parsing succeededIndexes: cannot convert string to integer for index: "{number}"'
                return [invalid(field, text, problem)]
        low, high = int(first), int(end or first)
        if low <= last or high < low + bool(dash):
            problem = f"error parsing succeededIndexes: non-increasing order, previous: {last}, current: {low}"
            return [invalid(field, text, problem)]
        if completions is not None and high >= completions:
            problem = f'error parsing succeededIndexes: too large index: "{high}"'
            return [invalid(field, text, problem)]
        last = high
    return []
