"""Validate the replica counts of a UnitedDeployment's subsets. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.fielderrors import Causes, invalid, required
from federation.features.uniteddeployment.rules.subsetcounts import (
    AllocationError,
    is_bounded,
    is_specified,
    parse_count,
    specified_counts,
)

Subsets = Sequence[Mapping[str, Any]]
_UNLIMITED = 1_000_000
"""The amount that a subset without a maximum adds to the sum of the maximums."""


def validate_counts(total: int | None, subsets: Subsets, field: str, *, is_strict: bool = False) -> Causes:
    """Check the counts of the subsets at `field` against each other and `spec.replicas`, which is `total`.

    `is_strict` rounds percentages as OpenKruise does, also those that add up to 100.
    """
    causes = [cause for index, subset in enumerate(subsets) for cause in _of_subset(total, subset, f"{field}[{index}]")]
    if any(map(is_specified, subsets)) and any(map(is_bounded, subsets)):
        text = "replicas cannot be combined with minReplicas and maxReplicas"
        return [*causes, invalid(field, len(subsets), text)]
    if any(map(is_bounded, subsets)):
        return causes + _elastic(total, subsets, field)
    return causes or _specific(total, subsets, field, is_strict=is_strict)


def _of_subset(total: int | None, subset: Mapping[str, Any], field: str) -> Causes:
    causes: Causes = []
    counts = {}
    for name in ("replicas", "minReplicas", "maxReplicas"):
        value = subset.get(name)
        if value is None:
            continue
        try:
            counts[name] = parse_count(value, total)
        except AllocationError as error:
            causes.append(invalid(f"{field}.{name}", value, str(error)))
    if "maxReplicas" in counts and counts.get("minReplicas", 0) > counts["maxReplicas"]:
        text = "must not be greater than maxReplicas"
        causes.append(invalid(f"{field}.minReplicas", subset["minReplicas"], text))
    return causes


def _elastic(total: int | None, subsets: Subsets, field: str) -> Causes:
    causes: Causes = []
    if total is None:
        causes.append(required("spec.replicas", "must be set when a subset has minReplicas or maxReplicas"))
    if all(subset.get("maxReplicas") is not None for subset in subsets):
        causes.append(invalid(field, len(subsets), "at least one subset must have no maxReplicas"))
    lowest = sum(_parsed(subset.get("minReplicas"), total, 0) for subset in subsets)
    highest = sum(_parsed(subset.get("maxReplicas"), total, _UNLIMITED) for subset in subsets)
    if lowest > highest:
        text = f"the sum of minReplicas is {lowest}, more than the sum of maxReplicas, which is {highest}"
        causes.append(invalid(field, len(subsets), text))
    return causes


def _parsed(value: Any, total: int | None, default: int) -> int:
    if value is None:
        return default
    try:
        return parse_count(value, total)
    except AllocationError:
        return default


def _specific(total: int | None, subsets: Subsets, field: str, *, is_strict: bool) -> Causes:
    counts = specified_counts(subsets, total, is_strict=is_strict)
    if not counts:
        return []
    given = sum(counts.values())
    is_complete = len(counts) == len(subsets)
    if total is None:
        text = "without spec.replicas every subset must have replicas"
        return [] if is_complete else [invalid(field, len(subsets), text)]
    if given > total:
        return [invalid(field, given, f"the replicas of the subsets add up to more than spec.replicas, {total}")]
    if is_complete and given < total:
        text = f"the replicas of the subsets add up to less than spec.replicas, {total}, and no subset takes the rest"
        return [invalid(field, given, text)]
    return []
