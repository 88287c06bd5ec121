"""Read the replica counts of a topology: integers and percentages of the total. Pure.

A percentage is rounded half up, as in OpenKruise. Rounded percentages can exceed the total: 50/25/25 of 10 gives
5 + 3 + 3. Percentages of all subsets that add up to 100 are therefore divided by largest remainder, unless the caller
asks for strict parity with OpenKruise.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from federation.apimachinery.errors import InvalidInput

UNLIMITED = 2**31 - 1
"""The maximum of a subset without maxReplicas: the largest value of Kubernetes' replica fields."""

_PERCENTAGE = re.compile(r"([+-]?[0-9]+)%", re.ASCII)


class Problem(StrEnum):
    """The reason why replicas cannot be divided."""

    INVALID_COUNT = "invalid_count"
    SUM_TOO_LARGE = "specified_sum_greater_than_total"
    SUM_TOO_SMALL = "specified_sum_less_than_total_and_no_elastic_subset"
    NO_TOTAL = "total_unset_and_not_every_subset_specified"
    MIN_ABOVE_MAX = "min_replicas_greater_than_max_replicas"


class AllocationError(InvalidInput):
    """The counts of the topology do not fit together or to the total. `problem` is the reason."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


def parse_count(value: Any, total: int | None) -> int:
    """Return an integer count, or a percentage of `total` rounded half up; AllocationError for anything else.

    A count is at least 0 and at most 2^31-1; a percentage is an integer from 0 to 100 and needs a total.
    """
    if type(value) is int:
        if not 0 <= value <= UNLIMITED:
            raise AllocationError(Problem.INVALID_COUNT, f"{value} must be from 0 to {UNLIMITED}")
        return value
    percentage = parse_percentage(value)
    if percentage is None:
        raise AllocationError(
            Problem.INVALID_COUNT, f"{value!r} must be an integer or a percentage from 0% to 100% without decimals"
        )
    if total is None:
        raise AllocationError(Problem.INVALID_COUNT, f"{value!r} is a percentage and needs spec.replicas")
    return (2 * percentage * total + 100) // 200


def parse_percentage(value: Any) -> int | None:
    """Return the number of a percentage from 0% to 100%, None for any other value."""
    matched = _PERCENTAGE.fullmatch(value) if isinstance(value, str) and len(value) <= 16 else None
    percentage = int(matched[1]) if matched else -1
    return percentage if 0 <= percentage <= 100 else None


def parse_or(value: Any, total: int | None, default: int) -> int:
    """Return the count of an optional field: `default` when it is absent, 0 when it cannot be parsed."""
    if value is None:
        return default
    try:
        return parse_count(value, total)
    except AllocationError:
        return 0


def specified_counts(
    subsets: Sequence[Mapping[str, Any]], total: int | None, *, is_strict: bool = False
) -> dict[str, int]:
    """Return the counts of the subsets with a valid `replicas`, by name, in the order of the topology.

    A value that cannot be parsed is left out, as if it was absent.
    """
    percentages = [parse_percentage(subset.get("replicas")) for subset in subsets]
    if total is not None and not is_strict and sum_if_all(percentages) == 100:
        shares = divide_by_percentage([percentage or 0 for percentage in percentages], total)
        return {subset["name"]: share for subset, share in zip(subsets, shares, strict=True)}
    counts = {}
    for subset in subsets:
        try:
            counts[subset["name"]] = parse_count(subset.get("replicas"), total)
        except AllocationError:
            continue
    return counts


def sum_if_all(values: Sequence[int | None]) -> int | None:
    """Return the sum of the values, None when one is missing or there are none."""
    present = [value for value in values if value is not None]
    return sum(present) if present and len(present) == len(values) else None


def divide_by_percentage(percentages: Sequence[int], total: int) -> list[int]:
    """Divide `total` by percentages with a sum of 100; the largest remainders get one more, earlier ones first."""
    shares = [percentage * total // 100 for percentage in percentages]
    by_remainder = sorted(range(len(percentages)), key=lambda index: -(percentages[index] * total % 100))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return shares


def is_specified(subset: Mapping[str, Any]) -> bool:
    """Return True if the subset has a count of its own (`replicas`)."""
    return subset.get("replicas") is not None


def is_bounded(subset: Mapping[str, Any]) -> bool:
    """Return True if the subset has a minimum or a maximum."""
    return subset.get("minReplicas") is not None or subset.get("maxReplicas") is not None
