"""Divide replicas by the room that clusters have for them: the capacity planner (docs/decisions/0012).

Where `replicas.py` asks how much weight a cluster has, this asks how many replicas fit there. New replicas are shared
in proportion to room, clusters that have less than their share of all replicas first; what rounding leaves over goes,
one by one, to the clusters with the largest share of themselves still free, so that small divisions spread widely and
all clusters fill up evenly. Replicas that run are not moved
(unless that is allowed), a scale-down takes from each in proportion, the fullest first. Only when nobody has room left
are more given out than fit, by size, and wait there. Pure and deterministic.

`plan_within` is the same bound for the planners that divide by weight or by priority.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import add, sub, truediv
from typing import Any

from federation.planning.hashing import fnv1_32_each
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps

_NEVER = float("-inf")
"""The level of a cluster that has given all it has."""
_NO_PREFERENCE = Preference()
Planner = Callable[[Demand, Steps | None], Plan]
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Rooms:
    """Replicas per cluster: how many more fit (`free`), how many surely do whatever was promised to others (`sure`).

    `sizes` are how many an empty cluster would hold, at least 1; `waiting` how many would fit into what pods that no
    node has room for request, where there are any. `tiers` are both rooms, the surest first; one when nothing is
    promised. They are compared once: domains of clusters are divided one by one.
    """

    free: Counts
    sure: Counts
    sizes: Counts
    waiting: Counts = field(default_factory=dict)
    tiers: tuple[Counts, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tiers = (self.free,) if self.sure is self.free or self.sure == self.free else (self.sure, self.free)
        object.__setattr__(self, "tiers", tiers)

    def with_openings(self, openings: Counts) -> "Rooms":
        """Return the same with at least so much room in clusters where more was counted than their reports show."""
        more = {name: count - self.free[name] for name, count in openings.items() if count > self.free.get(name, count)}
        if not more:
            return self
        free, sure = ({name: n + more.get(name, 0) for name, n in room.items()} for room in (self.free, self.sure))
        return replace(self, free=free, sure=sure)

    def explain(self) -> dict[str, Any]:
        """Return what goes into a division's explanation."""
        promised: dict[str, int] = {}
        if self.sure is not self.free:
            sure = self.sure if list(self.sure) == list(self.free) else {name: self.sure[name] for name in self.free}
            missing = list(map(sub, self.free.values(), sure.values()))
            promised = dict(zip(compress(self.free, missing), filter(None, missing), strict=True))
        parts = {"replicas": self.free, "promised": promised, "waiting": self.waiting}
        return {name: part for name, part in parts.items() if part}


def plan_by_room(rooms: Rooms, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total`; weights play no part."""
    table = _Table(tuple(demand.clusters), demand.key, demand.total, rooms, steps)
    present = list(held_of(demand).values()) if demand.current else [0] * len(table.names)
    plan = present if demand.avoid_disruption else [0] * len(present)
    missing = demand.total - sum(plan)
    if missing < 0:
        plan = _take(table, demand, -missing, plan)
        table.note("scaleDown", plan, missing)
        return table.to_plan(demand, plan)
    bounds = bounds_of(demand)
    for number, room in enumerate(rooms.tiers):
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
    """One division under way. Its columns have one number per cluster, in the order of `names`."""

    names: tuple[str, ...]
    key: str
    total: int
    rooms: Rooms
    steps: Steps | None
    sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = self.column(self.rooms.sizes)

    def column(self, counts: Counts) -> list[int]:
        """Return the counts of the clusters."""
        if len(counts) == len(self.names) and tuple(counts) == self.names:
            return list(counts.values())
        return [counts[name] for name in self.names]  # of some clusters only, as within a domain

    def positions(self) -> dict[str, int]:
        """Return where in a column each cluster is."""
        return {name: at for at, name in enumerate(self.names)}

    def note(self, name: str, plan: Sequence[int], difference: int) -> None:
        """Add a step to the trace."""
        if self.steps is not None:
            placed = dict(zip(compress(self.names, plan), filter(None, plan), strict=True))
            self.steps.append({"step": name, "difference": difference, "replicas": placed})

    def to_plan(self, demand: Demand, plan: Sequence[int]) -> Plan:
        """Return the answer."""
        replicas = dict(zip(self.names, plan, strict=True))
        return Plan(replicas, kept_of(demand, held_of(demand), replicas) if demand.keep_unschedulable else {})


def _beyond_room(table: _Table, demand: Demand, plan: list[int]) -> list[int]:
    """Let what has no room anywhere wait where clusters are large and little waits already, as far as caps allow."""
    demand = replace(demand, estimated={})
    bounds = bounds_of(demand)
    if demand.avoid_disruption:
        # What cannot run where it is stays there when it can run nowhere else either.
        stuck = [count - planned for count, planned in zip(held_of(demand).values(), plan, strict=True)]
        plan = _add(table, plan, stuck, bounds, "stays")
    plan, _ = _with_minimums(table, demand, plan, [demand.total] * len(plan), bounds)
    waiting = [table.rooms.waiting.get(name, 0) for name in table.names]
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


def plan_within(rooms: Rooms, plan: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide with another planner, giving no cluster more than runs and fits there while others can have it.

    What no cluster has room for is then planned without that bound, on top.
    """
    planned = Plan({}, {})
    for number, room in enumerate((*rooms.tiers, None)):
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
    held, preferences = held_of(demand), {}
    for cluster in demand.clusters:
        own = demand.preferences.get(cluster, _NO_PREFERENCE)
        top = max(demand.current.get(cluster, 0), held[cluster] + room[cluster])
        maximum = top if own.maximum is None else min(top, own.maximum)
        preferences[cluster] = Preference(own.weight, min(own.minimum, maximum), maximum)
    return replace(asked, preferences=preferences)


def held_of(demand: Demand) -> dict[str, int]:
    """Return every cluster's current replicas as far as caps and what members report let them count."""
    held = dict.fromkeys(demand.clusters, 0)
    for cluster, count in demand.current.items():
        if cluster in held:
            held[cluster] = min(count, demand.limited.get(cluster, count), demand.estimated.get(cluster, count))
    return held


def kept_of(demand: Demand, held: Counts, plan: Counts) -> dict[str, int]:
    """Return the replicas that cannot run where they are and that the policy wants kept there besides the plan's.

    Where the plan takes away some that run, one that stayed would run in their place.
    """
    if not demand.keep_unschedulable:
        return {}
    present = held_of(replace(demand, estimated={}))
    stuck = {cluster: count - plan[cluster] for cluster, count in present.items() if plan[cluster] >= held[cluster]}
    return {cluster: count for cluster, count in stuck.items() if count > 0}


def _lacking(table: _Table, plan: Sequence[int], spare: Sequence[int]) -> list[int]:
    """Return how many replicas the clusters lack that have less than their share of the total, as far as they fit."""
    most = list(map(add, plan, spare))
    capacity = sum(most)
    # No share is more than fits: what is there beyond the total is shared by more than one.
    wanted = min(table.total, capacity)
    if not capacity:
        return most
    return [
        lacking if (lacking := wanted * fits // capacity - there) > 0 else 0
        for fits, there in zip(most, plan, strict=True)
    ]


def bounds_of(demand: Demand) -> dict[str, int]:
    """Return the most that the policy, the user's caps and feedback allow, for clusters where they say anything."""
    maximums = {c: own.maximum for c, own in demand.preferences.items() if own.maximum is not None}
    bounds: dict[str, int] = {}
    for caps in (maximums, demand.limited, demand.estimated):
        for cluster, cap in caps.items():
            bounds[cluster] = min(cap, bounds.get(cluster, cap))
    return bounds


def _with_minimums(
    table: _Table, demand: Demand, plan: list[int], spare: list[int], bounds: Counts
) -> tuple[list[int], list[int]]:
    """Give every cluster its minimum, in order, as far as total and room reach; return plan and spare room then."""
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
    """Share what is missing between the clusters that have room to spare within their bounds, in proportion to it."""
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
    table.note(name, result, amount)
    return result


def _take(table: _Table, demand: Demand, amount: int, plan: Sequence[int]) -> list[int]:
    """Take so many from the clusters in proportion to what they have; what rounding leaves over, from the fullest.

    Clusters in which pods wait for room go first, with up to half of what they have: what they lose is used at once.
    Minimums go last.
    """
    result, own = list(plan), demand.preferences
    waiting = table.rooms.waiting.get
    half = {at: min(-(-count // 2), waiting(table.names[at], 0)) for at, count in enumerate(plan) if count}
    least = {at: own[name].minimum for at in half if (name := table.names[at]) in own and own[name].minimum}
    rounds = ((half, least), (None, least), (None, {})) if least else ((half, least), (None, least))
    for some, kept in rounds:
        most = [(at, min(some[at] if some else result[at], result[at] - kept.get(at, 0))) for at in half]
        most = [(at, count) for at, count in most if count > 0]
        part = min(amount, sum(count for _, count in most))
        if part:
            places, counts = zip(*most, strict=True)
            names = [table.names[at] for at in places]
            free = [table.rooms.free[name] + count for name, count in zip(names, counts, strict=True)]
            sizes = [table.sizes[at] for at in places]
            for at, share in zip(
                places, _share_out(names, table.key, part, counts, free, sizes, emptiest=False), strict=True
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
    """Share an amount in proportion to what is possible, more than 0 and not more than that in all.

    What rounding leaves over goes, one each, to the clusters with the largest share of themselves free after that, or
    the smallest; between equals to others for every workload.
    """
    total = sum(most)
    shares = [0] * len(most)
    if amount * max(most) >= total:
        shares = [amount * count // total for count in most]
    rest = amount - sum(shares)
    if rest:
        if emptiest:
            # A cluster that has got all that is possible has nothing free, the others something.
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
