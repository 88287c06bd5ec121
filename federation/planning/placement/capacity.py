"""Divide replicas by free capacity: the capacity planner (docs/decisions/0012).

New replicas are shared in proportion to the free capacity of the clusters, first to those that have less than their
share of all replicas. The remainder of rounding goes, one each, to the clusters that stay least utilised, so that small
divisions spread widely and all clusters fill evenly. Running replicas move only if that is allowed. A scale-down
removes in proportion, from the fullest first. Replicas beyond all free capacity are divided by size and wait there.
`plan_within_capacity` bounds the planners by weight and by priority in the same way. Pure and deterministic.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import add, sub, truediv
from typing import Any

from federation.apimachinery.hashing import fnv1_32_each
from federation.planning.placement.replicas import Column, Demand, Plan, Preference, Steps, to_dict

_NEVER = float("-inf")
"""The level of a cluster that has no replicas left to remove."""
_NO_PREFERENCE = Preference()
Planner = Callable[[Demand, Steps | None], Plan]
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FreeCapacity:
    """Free capacity per cluster, in replicas of one workload.

    `free` is the number that fits, `unreserved` the number that fits even if all reservations of other workloads are
    used, `sizes` the number that an empty cluster holds (at least 1), `waiting` the number that would fit into the
    requests of pods without a node.
    """

    free: Counts
    unreserved: Counts
    sizes: Counts
    waiting: Counts = field(default_factory=dict)
    tiers: tuple[Counts, ...] = field(init=False, repr=False, compare=False)
    """`unreserved`, then `free`; one when they are equal. Computed once, as every domain of a topology needs it."""

    def __post_init__(self) -> None:
        tiers = (
            (self.free,)
            if self.unreserved is self.free or self.unreserved == self.free
            else (self.unreserved, self.free)
        )
        object.__setattr__(self, "tiers", tiers)

    def with_openings(self, openings: Counts) -> "FreeCapacity":
        """Return the same with at least `openings` free in clusters where that exceeds their reported capacity."""
        more = {name: count - self.free[name] for name, count in openings.items() if count > self.free.get(name, count)}
        if not more:
            return self
        free, unreserved = (
            {name: n + more.get(name, 0) for name, n in room.items()} for room in (self.free, self.unreserved)
        )
        return replace(self, free=free, unreserved=unreserved)

    def explain(self) -> dict[str, Any]:
        """Return the explanation of a division."""
        reserved: dict[str, int] = {}
        if len(self.tiers) > 1:
            free, unreserved = self.free, self.unreserved
            if isinstance(free, Column) and isinstance(unreserved, Column) and free.names is unreserved.names:
                left: Iterable[int] = unreserved.numbers
            else:
                left = map(to_dict(unreserved).__getitem__, free)
            missing = list(map(sub, free.values(), left))
            reserved = dict(zip(compress(free, missing), filter(None, missing), strict=True))
        parts = {"replicas": to_dict(self.free), "promised": reserved, "waiting": self.waiting}
        return {name: part for name, part in parts.items() if part}


def plan_by_capacity(capacity: FreeCapacity, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` by free capacity; weights have no effect."""
    table = _Table(tuple(demand.clusters), demand.key, demand.total, capacity, steps)
    present = list(countable_replicas(demand).values()) if demand.current else [0] * len(table.names)
    plan = present if demand.avoid_disruption else [0] * len(present)
    missing = demand.total - sum(plan)
    if missing < 0:
        plan = _take(table, demand, -missing, plan)
        table.trace("scaleDown", plan, missing)
        return table.to_plan(demand, plan)
    bounds = upper_bounds(demand)
    for number, room in enumerate(capacity.tiers):
        if number and sum(plan) >= demand.total:
            break
        spare = table.column(room)
        if plan is not present:
            spare = [there + free - planned for there, free, planned in zip(present, spare, plan, strict=True)]
        if not number:
            plan, spare = _with_minimums(table, demand, plan, spare, bounds)
        name = "reservedRoom" if number else "room"
        if any(plan):
            fuller = _add(table, plan, _lacking(table, plan, spare), bounds, "catchUp")
            if sum(fuller) < demand.total:
                spare = [free - now + before for free, now, before in zip(spare, fuller, plan, strict=True)]
            plan = fuller
        plan = _add(table, plan, spare, bounds, name)
    if sum(plan) < demand.total:
        plan = _beyond_room(table, demand, plan)
    return table.to_plan(demand, plan)


@dataclass(slots=True)
class _Table:
    """The constants of one division. A column has one number per cluster, in the order of `names`."""

    names: tuple[str, ...]
    key: str
    total: int
    capacity: FreeCapacity
    steps: Steps | None
    sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = self.column(self.capacity.sizes)

    def column(self, counts: Counts) -> list[int]:
        """Return the counts as a column."""
        if isinstance(counts, Column) and counts.names is self.names:
            return list(counts.numbers)
        if len(counts) == len(self.names) and tuple(counts) == self.names:
            return list(counts.values())
        return [counts[name] for name in self.names]  # the clusters are those of one domain

    def positions(self) -> dict[str, int]:
        """Return the position of each cluster in a column."""
        return {name: at for at, name in enumerate(self.names)}

    def trace(self, name: str, plan: Sequence[int], difference: int) -> None:
        """Append a step to the trace."""
        if self.steps is not None:
            placed = Column(self.names, plan).placed()
            self.steps.append({"step": name, "difference": difference, "replicas": placed})

    def to_plan(self, demand: Demand, plan: Sequence[int]) -> Plan:
        """Return the plan of a column."""
        replicas = Column(self.names, plan)
        return Plan(
            replicas,
            kept_unschedulable(demand, countable_replicas(demand), replicas) if demand.keep_unschedulable else {},
        )


def _beyond_room(table: _Table, demand: Demand, plan: list[int]) -> list[int]:
    """Divide replicas without free capacity by cluster size, less the replicas that wait already, within the caps."""
    demand = replace(demand, estimated={})
    bounds = upper_bounds(demand)
    if demand.avoid_disruption:
        # Unschedulable replicas that fit nowhere else stay in their cluster.
        stuck = [count - planned for count, planned in zip(countable_replicas(demand).values(), plan, strict=True)]
        plan = _add(table, plan, stuck, bounds, "stays")
    plan, _ = _with_minimums(table, demand, plan, [demand.total] * len(plan), bounds)
    waiting = [table.capacity.waiting.get(name, 0) for name in table.names]
    tops = [bounds.get(name, demand.total) for name in table.names]
    while (missing := demand.total - sum(plan)) > 0:
        size = sum([own for own, count, top in zip(table.sizes, plan, tops, strict=True) if count < top])
        times = -(-(missing + sum(waiting)) // size) if size else 0
        spare = [max(0, own * times - count) for own, count in zip(table.sizes, waiting, strict=True)]
        fuller = _add(table, plan, spare, bounds, "beyondRoom")
        if fuller == plan:
            break
        plan = fuller
    return plan


def plan_within_capacity(capacity: FreeCapacity, plan: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide with another planner, first within the free capacity of each cluster, then the rest without that bound."""
    planned = Plan({}, {})
    for number, room in enumerate((*capacity.tiers, None)):
        if room is None and steps is not None:
            placed = {name: count for name, count in planned.totals().items() if count}
            difference = demand.total - sum(placed.values())
            steps.append({"step": "beyondRoom", "difference": difference, "replicas": placed})
        asked = demand if not number else replace(demand, current=planned.totals(), scheduled={}, avoid_disruption=True)
        planned = plan(asked if room is None else _bounded(demand, asked, room), steps)
        if sum(planned.totals().values()) >= demand.total:
            break
    return planned


def _bounded(demand: Demand, asked: Demand, room: Counts) -> Demand:
    held, room, preferences = countable_replicas(demand), to_dict(room), {}
    for cluster in demand.clusters:
        own = demand.preferences.get(cluster, _NO_PREFERENCE)
        top = max(demand.current.get(cluster, 0), held[cluster] + room[cluster])
        maximum = top if own.maximum is None else min(top, own.maximum)
        preferences[cluster] = Preference(own.weight, min(own.minimum, maximum), maximum)
    return replace(asked, preferences=preferences)


def countable_replicas(demand: Demand) -> dict[str, int]:
    """Return the current replicas of every cluster, at most its cap and its capacity estimate."""
    held, current = dict.fromkeys(demand.clusters, 0), demand.current
    if not (demand.limited or demand.estimated):
        held.update(
            current if current.keys() <= held.keys() else {name: current[name] for name in current if name in held}
        )
        return held
    for cluster, count in current.items():
        if cluster in held:
            held[cluster] = min(count, demand.limited.get(cluster, count), demand.estimated.get(cluster, count))
    return held


def kept_unschedulable(demand: Demand, held: Counts, plan: Counts) -> dict[str, int]:
    """Return the unschedulable replicas that the policy keeps beside the plan's.

    None where the plan removes running ones: a kept replica would run in their place.
    """
    if not demand.keep_unschedulable:
        return {}
    present = countable_replicas(replace(demand, estimated={}))
    stuck = {cluster: count - plan[cluster] for cluster, count in present.items() if plan[cluster] >= held[cluster]}
    return {cluster: count for cluster, count in stuck.items() if count > 0}


def _lacking(table: _Table, plan: Sequence[int], spare: Sequence[int]) -> list[int]:
    """Return the replicas that each cluster lacks of its share of the total, as far as they fit."""
    most = list(map(add, plan, spare))
    capacity = sum(most)
    # Capping the total keeps every share within what fits.
    wanted = min(table.total, capacity)
    if not capacity:
        return most
    return [
        lacking if (lacking := wanted * fits // capacity - there) > 0 else 0
        for fits, there in zip(most, plan, strict=True)
    ]


def upper_bounds(demand: Demand) -> dict[str, int]:
    """Return the lowest of the maximum, cap and capacity estimate of each cluster that has any."""
    maximums = {c: own.maximum for c, own in demand.preferences.items() if own.maximum is not None}
    bounds: dict[str, int] = {}
    for caps in (maximums, demand.limited, demand.estimated):
        for cluster, cap in caps.items():
            bounds[cluster] = min(cap, bounds.get(cluster, cap))
    return bounds


def _with_minimums(
    table: _Table, demand: Demand, plan: list[int], spare: list[int], bounds: Counts
) -> tuple[list[int], list[int]]:
    """Give every cluster its minimum, in order, as far as possible; return the plan and the spare capacity."""
    minimums = {cluster: own.minimum for cluster, own in demand.preferences.items() if own.minimum}
    if not minimums:
        return plan, spare
    result, left, missing = plan.copy(), spare.copy(), demand.total - sum(plan)
    for at, cluster in enumerate(table.names):
        minimum = min(minimums.get(cluster, 0), bounds.get(cluster, demand.total))
        given = min(missing, minimum - result[at], left[at])
        if given > 0:
            result[at] += given
            left[at] -= given
            missing -= given
    return result, left


def _add(table: _Table, plan: list[int], spare: list[int], bounds: Counts, name: str) -> list[int]:
    """Share the missing replicas in proportion to spare capacity within the bounds."""
    missing = table.total - sum(plan)
    if missing <= 0:
        return plan
    room = spare if min(spare, default=0) >= 0 else [max(0, free) for free in spare]
    if bounds:
        positions, room = table.positions(), room.copy()
        for at, bound in [(positions[cluster], bound) for cluster, bound in bounds.items() if cluster in positions]:
            room[at] = max(0, min(room[at], bound - plan[at]))
    amount = min(missing, sum(room))
    if not amount:
        return plan
    result = list(map(add, plan, _share_out(table.names, table.key, amount, room, room, table.sizes, emptiest=True)))
    table.trace(name, result, amount)
    return result


def _take(table: _Table, demand: Demand, amount: int, plan: Sequence[int]) -> list[int]:
    """Remove `amount` replicas in proportion to what clusters have; the remainder of rounding from the fullest.

    Clusters with waiting pods lose first, up to half of their replicas: the freed capacity is used at once. Minimums go
    last.
    """
    result, own = list(plan), demand.preferences
    waits, names = table.capacity.waiting, table.names
    held = list(compress(range(len(plan)), plan))
    half = {at: min(-(-plan[at] // 2), waits.get(names[at], 0)) for at in held} if waits else {}
    least = {at: own[name].minimum for at in held if (name := names[at]) in own and own[name].minimum} if own else {}
    rounds = ((half, least), (None, least), (None, {})) if least else ((half, least), (None, least))
    every = table.column(table.capacity.free)
    for some, kept in rounds:
        if some is not None and not any(some.values()):
            continue
        most = [(at, result[at] - kept.get(at, 0)) for at in held] if kept else [(at, result[at]) for at in held]
        most = [(at, count if some is None else min(some[at], count)) for at, count in most if count > 0]
        most = [(at, count) for at, count in most if count > 0] if some else most
        part = min(amount, sum([count for _, count in most]))
        if part:
            places, counts = zip(*most, strict=True)
            tied = [names[at] for at in places]
            free = [every[at] + count for at, count in most]
            sizes = [table.sizes[at] for at in places]
            for at, share in zip(
                places, _share_out(tied, table.key, part, counts, free, sizes, emptiest=False), strict=True
            ):
                result[at] -= share
            amount -= part
    return result


def _share_out(
    names: Sequence[str],
    key: str,
    amount: int,
    most: Sequence[int],
    free: Sequence[int],
    sizes: Sequence[int],
    *,
    emptiest: bool,
) -> list[int]:
    """Share an amount in proportion to `most`; it is more than 0 and at most their sum.

    The remainder of rounding goes, one each, to the clusters with the largest free fraction after that, or the
    smallest; a hash that differs between workloads breaks ties.
    """
    total = sum(most)
    shares = [0] * len(most)
    if amount * max(most) >= total:
        shares = [amount * count // total for count in most]
    rest = amount - sum(shares)
    if rest:
        if emptiest:
            # A cluster without anything left has level 0, which is below all others.
            levels = list(map(truediv, map(sub, free, shares) if rest < amount else free, sizes))
        else:
            columns = zip(most, shares, free, sizes, strict=True)
            levels = [
                (count - share - left) / size if share < count else _NEVER for count, share, left, size in columns
            ]
        last = sorted(levels)[-rest]
        chosen = [at for at, level in enumerate(levels) if level >= last]
        if len(chosen) > rest:
            first = [at for at in chosen if levels[at] > last]
            equals = [at for at in chosen if levels[at] == last]
            tied = [names[at] for at in equals]
            ranked = [at for _, _, at in sorted(zip(fnv1_32_each(tied, key), tied, equals, strict=True))]
            chosen = first + ranked[: rest - len(first)]
        for at in chosen:
            shares[at] += 1
    return shares
