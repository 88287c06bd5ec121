"""Divide the replicas of a UnitedDeployment over its subsets. Pure and deterministic.

Four rules, of which `allocate` chooses one:

- specific: subsets have counts of their own; subsets without one share the rest evenly;
- elastic: minimums in the order of the topology, then up to the maximums in that order; a scale-in is the reverse;
- adaptive: elastic, but an unschedulable subset gets no more than its ready replicas, and a healthy one keeps them;
- reserving (`reservation.py`): unschedulable pods stay, and other subsets get substitutes.

Results map every subset to its replicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.features.uniteddeployment.rules.strategy import strategy_of
from federation.features.uniteddeployment.rules.subsetcounts import (
    UNLIMITED,
    AllocationError,
    Problem,
    is_bounded,
    parse_or,
    specified_counts,
)

Subset = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SubsetState:
    """The observed workload of one subset. `replicas` is its spec, the other counts are from status and pods."""

    replicas: int = 0
    ready: int = 0
    reserved: int = 0
    """Pods that are labelled as reserved."""
    is_schedulable: bool = True
    was_schedulable: bool = True
    """Whether the condition Schedulable was not False before this reconcile."""
    is_reachable: bool = True
    """Whether the cluster of the workload answers."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A subset and the fewest and most replicas that it may get."""

    name: str
    minimum: int
    maximum: int


def allocate(
    spec: Mapping[str, Any], observed: Mapping[str, SubsetState], *, is_strict: bool = False
) -> dict[str, int]:
    """Return the replicas of each subset; AllocationError when the counts do not fit together.

    `observed` has the subsets with a workload. A subset in a cluster that does not answer keeps its replicas, which
    count in the total. `is_strict` keeps OpenKruise's rounding (`subsetcounts.py`).
    """
    subsets: Sequence[Subset] = (spec.get("topology") or {}).get("subsets") or ()
    total = spec.get("replicas")
    frozen = {
        subset["name"]: observed[subset["name"]].replicas
        for subset in subsets
        if subset["name"] in observed and not observed[subset["name"]].is_reachable
    }
    strategy = strategy_of(spec)
    if not strategy.is_adaptive and not any(map(is_bounded, subsets)):
        specified = specified_counts(subsets, total, is_strict=is_strict)
        current = {
            subset["name"]: observed[subset["name"]].replicas if subset["name"] in observed else 0 for subset in subsets
        }
        return _divide_around(current, total, specified, frozen)
    bounds = bounds_of(subsets, total)
    movable = [subset for subset in bounds if subset.name not in frozen]
    # Reserved pods have substitutes in other subsets already.
    held = {name: count - (observed[name].reserved if strategy.reserves_pods else 0) for name, count in frozen.items()}
    rest = max(0, (1 if total is None else total) - sum(held.values()))
    if strategy.reserves_pods:
        divided = fill_reserving(movable, rest, observed)
    else:
        divided = fill(adapt_bounds(movable, observed) if strategy.is_adaptive else movable, rest)
    return {subset.name: (divided | frozen)[subset.name] for subset in bounds}


def _divide_around(
    current: Mapping[str, int], total: int | None, specified: Mapping[str, int], frozen: Mapping[str, int]
) -> dict[str, int]:
    """Divide as `divide_rest`, but subsets in `frozen` without a specified count keep their replicas."""
    kept = {name: count for name, count in frozen.items() if name not in specified}
    given = sum(specified.values())
    if not kept or total is None or given > total:
        return divide_rest(current, total, specified)
    movable = {name: count for name, count in current.items() if name not in kept}
    if not movable.keys() - specified.keys():
        return {**specified, **kept}
    return divide_rest(movable, max(given, total - sum(kept.values())), specified) | kept


def divide_rest(current: Mapping[str, int], total: int | None, specified: Mapping[str, int]) -> dict[str, int]:
    """Return the specified counts, and even shares of the rest for the other subsets of `current`.

    `current` holds the replicas of each subset's workload, 0 without one. When the rest does not divide evenly, the
    largest subsets keep one more; among equals those with the greatest names. AllocationError when the sum of
    `specified` is above the total, or below it without a subset for the rest, or when subsets without a count have no
    total to share.
    """
    open_subsets = current.keys() - specified.keys()
    given = sum(specified.values())
    if total is None:
        if open_subsets:
            raise AllocationError(Problem.NO_TOTAL, "spec.replicas is required unless every subset has replicas")
        return dict(specified)
    if given > total:
        raise AllocationError(
            Problem.SUM_TOO_LARGE, f"the replicas of the subsets add up to {given}, more than {total}"
        )
    if given < total and specified and not open_subsets:
        raise AllocationError(
            Problem.SUM_TOO_SMALL,
            f"the replicas of the subsets add up to {given}, less than {total}, and no subset takes the rest",
        )
    allocation = dict(specified)
    if open_subsets:
        share, extra = divmod(total - given, len(open_subsets))
        largest_first = sorted(open_subsets, key=lambda name: (current[name], name), reverse=True)
        allocation |= {name: share + (place < extra) for place, name in enumerate(largest_first)}
    return allocation


def bounds_of(subsets: Sequence[Subset], total: int | None) -> list[Bounds]:
    """Return the bounds of each subset; AllocationError when a minimum is above its maximum.

    Without minReplicas the minimum is 0, without maxReplicas there is no maximum. A value that cannot be parsed is 0.
    """
    bounds = []
    for subset in subsets:
        minimum = parse_or(subset.get("minReplicas"), total, 0)
        maximum = parse_or(subset.get("maxReplicas"), total, UNLIMITED)
        if minimum > maximum:
            raise AllocationError(
                Problem.MIN_ABOVE_MAX,
                f"subset {subset['name']}: minReplicas is {minimum}, more than maxReplicas, which is {maximum}",
            )
        bounds.append(Bounds(subset["name"], minimum, maximum))
    return bounds


def fill(bounds: Sequence[Bounds], total: int) -> dict[str, int]:
    """Return the minimums in order, then as much as fits up to the maximums in order.

    Replicas beyond the sum of the maximums are not allocated.
    """
    allocation: dict[str, int] = {}
    remaining = max(0, total)
    for subset in bounds:
        allocation[subset.name] = min(subset.minimum, remaining)
        remaining -= allocation[subset.name]
    for subset in bounds:
        added = max(0, min(subset.maximum - subset.minimum, remaining))
        allocation[subset.name] += added
        remaining -= added
    return allocation


def adapt_bounds(bounds: Sequence[Bounds], observed: Mapping[str, SubsetState]) -> list[Bounds]:
    """Return bounds that leave unschedulable subsets at their ready replicas and drain no healthy replicas.

    An unschedulable subset still gets its minimum, also above its adapted maximum. Subsets without a workload keep
    their bounds.
    """
    adapted = []
    for subset in bounds:
        state = observed.get(subset.name)
        if state is None:
            adapted.append(subset)
        elif not state.is_schedulable:
            lowest = max(state.ready, subset.minimum)
            adapted.append(Bounds(subset.name, lowest, min(state.ready, subset.maximum)))
        else:
            lowest = max(subset.minimum, min(state.ready, subset.maximum))
            adapted.append(Bounds(subset.name, lowest, subset.maximum))
    return adapted


def fill_reserving(bounds: Sequence[Bounds], total: int, observed: Mapping[str, SubsetState]) -> dict[str, int]:
    """Return the division that keeps reserved pods and adds substitutes for them in other subsets.

    Every subset is filled as in `fill`. Of the replicas of a subset that is or was unschedulable, only as many as it
    runs without reserved pods reduce the total, so the sum can exceed it by the replicas that are expected to be
    unschedulable.
    """
    capacity = {subset.name: _reliable_replicas(observed.get(subset.name)) for subset in bounds}
    allocation = dict.fromkeys(capacity, 0)
    remaining = total
    targets = [(subset.name, subset.minimum) for subset in bounds]
    targets += [(subset.name, _target(subset, observed.get(subset.name))) for subset in bounds]
    for name, target in targets:
        if remaining <= 0:
            break
        added = min(target - allocation[name], remaining)
        allocation[name] += added
        capacity[name] -= added
        missing = min(capacity[name], 0)
        remaining -= max(0, added + missing) if missing else added
    return allocation


def _reliable_replicas(state: SubsetState | None) -> int:
    if state is None or (state.is_schedulable and state.was_schedulable):
        return UNLIMITED
    return state.replicas - state.reserved


def _target(subset: Bounds, state: SubsetState | None) -> int:
    return subset.maximum if state is None or state.is_schedulable else state.replicas
