"""Divide replicas by the room that clusters have for them: the capacity planner (docs/decisions/0012).

Where `replicas.py` asks how much weight a cluster has, this asks how many replicas fit there. New replicas are shared
in proportion to room, clusters that have less than their share of all replicas first; what rounding leaves over goes,
one by one, to the clusters with the largest share of themselves still free, so that small divisions spread widely and
all clusters fill up evenly. Replicas that run are not moved
(unless that is allowed), a scale-down takes from each in proportion, the fullest first. Only when nobody has room left
are more given out than fit, by size, and wait there. Pure and deterministic.

`plan_within` is the same bound for the planners that divide by weight or by priority.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.planning.hashing import fnv1_32_each
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps

_NEVER = float("inf")
_NO_PREFERENCE = Preference()
Planner = Callable[[Demand, Steps | None], Plan]
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Rooms:
    """Replicas per cluster: how many more fit (`free`), how many surely do whatever was promised to others (`sure`).

    `sizes` are how many an empty cluster would hold, at least 1; `waiting` how many would fit into what pods that no
    node has room for request, where there are any.
    """

    free: Counts
    sure: Counts
    sizes: Counts
    waiting: Counts = field(default_factory=dict)

    @property
    def tiers(self) -> tuple[Counts, ...]:
        """Both rooms, the surest first; one when nothing is promised."""
        return (self.free,) if self.sure is self.free or self.sure == self.free else (self.sure, self.free)

    def explain(self) -> dict[str, Any]:
        """Return what goes into a division's explanation."""
        promised: dict[str, int] = {}
        if self.sure is not self.free:
            promised = {name: count - sure for name, count in self.free.items() if (sure := self.sure[name]) != count}
        parts = {"replicas": self.free, "promised": promised, "waiting": self.waiting}
        return {name: part for name, part in parts.items() if part}


def plan_by_room(rooms: Rooms, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total`; weights play no part."""
    held = held_of(demand)
    plan: Counts = held if demand.avoid_disruption else dict.fromkeys(held, 0)
    missing = demand.total - sum(plan.values())
    if missing < 0:
        plan = _take(demand, -missing, plan, rooms)
        _note(steps, "scaleDown", plan, missing)
        return Plan(dict(plan), kept_of(demand, held, plan))
    bounds = bounds_of(demand)
    for number, room in enumerate(rooms.tiers):
        spare = room if plan is held else {cluster: held[cluster] + room[cluster] - plan[cluster] for cluster in plan}
        if not number:
            plan, spare = _with_minimums(demand, plan, spare, bounds)
        name = "reservedRoom" if number else "room"
        if any(plan.values()):
            fuller = _add(demand, plan, _lacking(demand, plan, spare), bounds, rooms, steps, "catchUp")
            if sum(fuller.values()) < demand.total:
                spare = {cluster: spare[cluster] - fuller[cluster] + count for cluster, count in plan.items()}
            plan = fuller
        plan = _add(demand, plan, spare, bounds, rooms, steps, name)
    if sum(plan.values()) < demand.total:
        plan = _beyond_room(demand, plan, rooms, steps)
    return Plan(dict(plan), kept_of(demand, held, plan))


def _beyond_room(demand: Demand, plan: Counts, rooms: Rooms, steps: Steps | None) -> Counts:
    """Let what has no room anywhere wait where clusters are large and little waits already, as far as caps allow."""
    demand = replace(demand, estimated={})
    bounds = bounds_of(demand)
    if demand.avoid_disruption:
        # What cannot run where it is stays there when it can run nowhere else either.
        stuck = {cluster: count - plan[cluster] for cluster, count in held_of(demand).items()}
        plan = _add(demand, plan, stuck, bounds, rooms, steps, "stays")
    plan, _ = _with_minimums(demand, plan, dict.fromkeys(plan, demand.total), bounds)
    sizes, waiting = rooms.sizes, {cluster: rooms.waiting.get(cluster, 0) for cluster in plan}
    while (missing := demand.total - sum(plan.values())) > 0:
        size = sum(sizes[c] for c, count in plan.items() if count < bounds.get(c, demand.total))
        times = -(-(missing + sum(waiting.values())) // size) if size else 0
        spare = {cluster: max(0, sizes[cluster] * times - waiting[cluster]) for cluster in plan}
        fuller = _add(demand, plan, spare, bounds, rooms, steps, "beyondRoom")
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
        if room is None:
            _note(steps, "beyondRoom", planned.totals(), demand.total - sum(planned.totals().values()))
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


def _lacking(demand: Demand, plan: Counts, spare: Counts) -> Counts:
    """Return how many replicas the clusters lack that have less than their share of the total, as far as they fit."""
    most = {cluster: count + spare[cluster] for cluster, count in plan.items()}
    capacity = sum(most.values())
    # No share is more than fits: what is there beyond the total is shared by more than one.
    wanted = min(demand.total, capacity)
    return {cluster: wanted * fits // capacity - plan[cluster] for cluster, fits in most.items()} if capacity else most


def bounds_of(demand: Demand) -> dict[str, int]:
    """Return the most that the policy, the user's caps and feedback allow, for clusters where they say anything."""
    maximums = {c: own.maximum for c, own in demand.preferences.items() if own.maximum is not None}
    bounds: dict[str, int] = {}
    for caps in (maximums, demand.limited, demand.estimated):
        for cluster, cap in caps.items():
            bounds[cluster] = min(cap, bounds.get(cluster, cap))
    return bounds


def _with_minimums(demand: Demand, plan: Counts, spare: Counts, bounds: Counts) -> tuple[Counts, Counts]:
    """Give every cluster its minimum, in order, as far as total and room reach; return plan and spare room then."""
    minimums = {cluster: own.minimum for cluster, own in demand.preferences.items() if own.minimum}
    if not minimums:
        return plan, spare
    result, left, missing = dict(plan), dict(spare), demand.total - sum(plan.values())
    for cluster in demand.clusters:
        minimum = min(minimums.get(cluster, 0), bounds.get(cluster, demand.total))
        given = min(missing, minimum - result[cluster], left[cluster])
        if given > 0:
            result[cluster] += given
            left[cluster] -= given
            missing -= given
    return result, left


def _add(
    demand: Demand, plan: Counts, spare: Counts, bounds: Counts, rooms: Rooms, steps: Steps | None, name: str
) -> Counts:
    """Share what is missing between the clusters that have room to spare within their bounds, in proportion to it."""
    missing = demand.total - sum(plan.values())
    if missing <= 0:
        return plan
    room = {cluster: spare[cluster] for cluster in plan if spare[cluster] > 0}
    for cluster in bounds.keys() & room.keys():
        room[cluster] = max(0, min(room[cluster], bounds[cluster] - plan[cluster]))
    total = sum(room.values())
    amount = min(missing, total)
    if not amount:
        return plan
    result = dict(plan)
    for cluster, share in _share_out(demand, amount, room, room, rooms.sizes, emptiest=True).items():
        result[cluster] += share
    _note(steps, name, result, amount)
    return result


def _take(demand: Demand, amount: int, plan: Counts, rooms: Rooms) -> dict[str, int]:
    """Take so many from the clusters in proportion to what they have; what rounding leaves over, from the fullest.

    Clusters in which pods wait for room go first, with up to half of what they have: what they lose is used at once.
    """
    result = dict(plan)
    half = {
        cluster: min(-(-plan[cluster] // 2), count) for cluster, count in rooms.waiting.items() if plan.get(cluster)
    }
    for most in (half, result):
        part = min(amount, sum(most.values()))
        if part:
            free = {cluster: rooms.free[cluster] + count for cluster, count in most.items()}
            for cluster, share in _share_out(demand, part, dict(most), free, rooms.sizes, emptiest=False).items():
                result[cluster] -= share
            amount -= part
    return result


def _share_out(
    demand: Demand, amount: int, most: Counts, free: Counts, sizes: Counts, *, emptiest: bool
) -> dict[str, int]:
    """Share an amount in proportion to what is possible, more than 0 and not more than that in all; leave out zeros.

    What rounding leaves over goes, one each, to the clusters with the largest share of themselves free after that, or
    the smallest; between equals to others for every workload.
    """
    names, counts, total = list(most), list(most.values()), sum(most.values())
    shares = [amount * count // total for count in counts]
    rest = amount - sum(shares)
    if rest:
        columns = zip(counts, shares, map(free.__getitem__, names), map(sizes.__getitem__, names), strict=True)
        # A cluster that has given or got all that is possible has no level.
        if emptiest:
            levels = [(share - left) / size if share < count else _NEVER for count, share, left, size in columns]
        else:
            levels = [
                (left - count + share) / size if share < count else _NEVER for count, share, left, size in columns
            ]
        last = sorted(levels)[rest - 1]
        first = [at for at, level in enumerate(levels) if level < last]
        equals = [at for at, level in enumerate(levels) if level == last]
        if len(equals) > rest - len(first):
            tied = [names[at] for at in equals]
            equals = [at for _, _, at in sorted(zip(fnv1_32_each(tied, demand.key), tied, equals, strict=True))]
        for at in (*first, *equals[: rest - len(first)]):
            shares[at] += 1
    return {cluster: share for cluster, share in zip(names, shares, strict=True) if share}


def _note(steps: Steps | None, name: str, plan: Counts, difference: int) -> None:
    if steps is not None:
        steps.append({"step": name, "difference": difference, "replicas": {c: n for c, n in plan.items() if n}})
