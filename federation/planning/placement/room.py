"""Divide replicas by the room that clusters have for them: the capacity planner (docs/decisions/0012).

Where `replicas.py` asks how much weight a cluster has, this asks how many replicas fit there. New replicas are shared
in proportion to room; what rounding leaves over goes, one by one, to the clusters with the largest share of themselves
still free, so that small divisions spread widely and all clusters fill up evenly. Replicas that run are not moved
(unless that is allowed), a scale-down takes from each in proportion, the fullest first. Only when nobody has room left
are more given out than fit, by size, and wait there. Pure and deterministic.

`plan_within` is the same bound for the planners that divide by weight or by priority.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.planning.hashing import fnv1_32_each
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps

_SCALE = 1_000_000
_UNBOUNDED = 2**62
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
        return (self.sure, self.free) if self.sure != self.free else (self.free,)

    def explain(self) -> dict[str, Any]:
        """Return what goes into a division's explanation."""
        promised = {name: count - sure for name, count in self.free.items() if (sure := self.sure[name]) != count}
        parts = {"replicas": self.free, "promised": promised, "waiting": self.waiting}
        return {name: part for name, part in parts.items() if part}


def plan_by_room(rooms: Rooms, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total`; weights play no part."""
    sizes = rooms.sizes
    held = {cluster: _holds(demand, cluster) for cluster in demand.clusters}
    plan = held if demand.avoid_disruption else dict.fromkeys(held, 0)
    surplus = sum(plan.values()) - demand.total
    if surplus > 0:
        plan = _take(demand, surplus, plan, rooms)
        _note(steps, "scaleDown", plan, -surplus)
        return Plan(plan, _kept(demand, held))
    for number, room in enumerate(rooms.tiers):
        limits = {cluster: held[cluster] + room[cluster] for cluster in plan}
        if not number:
            plan = _with_minimums(demand, plan, limits)
        plan = _add(demand, plan, limits, sizes, steps, "reservedRoom" if number else "room")
    if sum(plan.values()) < demand.total:
        plan = _beyond_room(demand, plan, rooms, steps)
    return Plan(plan, _kept(demand, held))


def _beyond_room(demand: Demand, plan: Counts, rooms: Rooms, steps: Steps | None) -> dict[str, int]:
    """Let what has no room anywhere wait where clusters are large and little waits already, as far as caps allow."""
    demand, sizes = replace(demand, estimated={}), rooms.sizes
    if demand.avoid_disruption:
        # What cannot run where it is stays there when it can run nowhere else either.
        plan = _add(demand, plan, {cluster: _holds(demand, cluster) for cluster in plan}, sizes, steps, "stays")
    result = _with_minimums(demand, plan, {cluster: count + demand.total for cluster, count in plan.items()})
    while (missing := demand.total - sum(result.values())) > 0:
        waiting = {cluster: rooms.waiting.get(cluster, 0) for cluster in result}
        times = -(-(missing + sum(waiting.values())) // sum(sizes[cluster] for cluster in result)) if result else 0
        limits = {c: count + max(0, sizes[c] * times - waiting[c]) for c, count in result.items()}
        fuller = _add(demand, result, limits, sizes, steps, "beyondRoom")
        if fuller == result:
            break
        result = fuller
    return result


def plan_within(rooms: Rooms, plan: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide with another planner, giving no cluster more than runs and fits there while others can have it.

    What no cluster has room for is then planned without that bound, on top.
    """
    planned = Plan({}, {})
    for number, room in enumerate((*rooms.tiers, None)):
        asked = demand if not number else replace(demand, current=planned.totals(), scheduled={}, avoid_disruption=True)
        planned = plan(asked if room is None else _bounded(demand, asked, room), steps)
        if sum(planned.totals().values()) >= demand.total:
            break
    return planned


def _bounded(demand: Demand, asked: Demand, room: Counts) -> Demand:
    preferences = {}
    for cluster in demand.clusters:
        own = demand.preferences.get(cluster, _NO_PREFERENCE)
        top = max(demand.current.get(cluster, 0), _holds(demand, cluster) + room[cluster])
        maximum = top if own.maximum is None else min(top, own.maximum)
        preferences[cluster] = Preference(own.weight, min(own.minimum, maximum), maximum)
    return replace(asked, preferences=preferences)


def _holds(demand: Demand, cluster: str) -> int:
    """Return the cluster's current replicas as far as caps and what members report let them count."""
    held = demand.current.get(cluster, 0)
    if cluster in demand.limited:
        held = min(held, demand.limited[cluster])
    return min(held, demand.estimated[cluster]) if cluster in demand.estimated else held


def _kept(demand: Demand, held: Counts) -> dict[str, int]:
    """Return the replicas that cannot run where they are and that the policy wants kept there all the same."""
    if not demand.keep_unschedulable:
        return {}
    return {
        cluster: stuck
        for cluster, count in held.items()
        if cluster in demand.estimated
        and (stuck := min(demand.current.get(cluster, 0), demand.limited.get(cluster, demand.total)) - count) > 0
    }


def _bound(demand: Demand, cluster: str) -> int:
    """Return the most that the policy, the user's caps and feedback allow."""
    own = demand.preferences.get(cluster, _NO_PREFERENCE)
    bounds = (own.maximum, demand.limited.get(cluster), demand.estimated.get(cluster))
    return min((bound for bound in bounds if bound is not None), default=_UNBOUNDED)


def _with_minimums(demand: Demand, plan: Counts, limits: Counts) -> dict[str, int]:
    """Give every cluster its minimum, in order, as far as total and limits reach."""
    result = dict(plan)
    missing = demand.total - sum(plan.values())
    for cluster in demand.clusters:
        minimum = demand.preferences.get(cluster, _NO_PREFERENCE).minimum
        top = min(minimum, limits[cluster], _bound(demand, cluster))
        given = min(missing, top - result[cluster])
        if given > 0:
            result[cluster] += given
            missing -= given
    return result


def _add(
    demand: Demand,
    plan: Counts,
    limits: Counts,
    sizes: Counts,
    steps: Steps | None,
    name: str,
) -> dict[str, int]:
    """Share what is missing between the clusters that are below their limits, in proportion to how much below."""
    room = {cluster: max(0, min(limits[cluster], _bound(demand, cluster)) - count) for cluster, count in plan.items()}
    total = sum(room.values())
    amount = min(demand.total - sum(plan.values()), total)
    if amount <= 0:
        return dict(plan)
    shares = {cluster: amount * count // total for cluster, count in room.items()}
    rest = amount - sum(shares.values())
    if rest:
        ranks = _ranks(demand)
        emptiest = sorted(
            (cluster for cluster, count in room.items() if shares[cluster] < count),
            key=lambda cluster: (
                -((room[cluster] - shares[cluster]) * _SCALE // sizes[cluster]),
                ranks[cluster],
                cluster,
            ),
        )
        for cluster in emptiest[:rest]:
            shares[cluster] += 1
    result = {cluster: count + shares[cluster] for cluster, count in plan.items()}
    _note(steps, name, result, amount)
    return result


def _take(demand: Demand, amount: int, plan: Counts, rooms: Rooms) -> dict[str, int]:
    """Take so many from the clusters in proportion to what they have; what rounding leaves over, from the fullest.

    Clusters in which pods wait for room go first, with up to half of what they have: what they lose is used at once.
    """
    result = dict(plan)
    relief = {
        cluster: min(-(-plan[cluster] // 2), count) for cluster, count in rooms.waiting.items() if plan.get(cluster)
    }
    for shares in (relief, result):
        total = sum(shares.values())
        part = min(amount, total)
        if part:
            _take_part(demand, part, dict(shares), rooms, result)
            amount -= part
    return result


def _take_part(demand: Demand, amount: int, most: Counts, rooms: Rooms, result: dict[str, int]) -> None:
    total, ranks = sum(most.values()), _ranks(demand)
    shares = {cluster: amount * count // total for cluster, count in most.items()}
    fullest = sorted(
        (cluster for cluster, count in most.items() if shares[cluster] < count),
        key=lambda cluster: (
            (rooms.free[cluster] + shares[cluster]) * _SCALE // rooms.sizes[cluster],
            ranks[cluster],
            cluster,
        ),
    )
    for cluster in fullest[: amount - sum(shares.values())]:
        shares[cluster] += 1
    for cluster, count in shares.items():
        result[cluster] -= count


def _ranks(demand: Demand) -> dict[str, int]:
    """Return what decides between equals, differently for every workload."""
    return dict(zip(demand.clusters, fnv1_32_each(demand.clusters, demand.key), strict=True))


def _note(steps: Steps | None, name: str, plan: Counts, difference: int) -> None:
    if steps is not None:
        steps.append({"step": name, "difference": difference, "replicas": {c: n for c, n in plan.items() if n}})
