"""Divide replicas by the room that clusters have for them: the capacity planner (docs/decisions/0012).

Where `replicas.py` asks how much weight a cluster has, this asks how many replicas fit there. New replicas are shared
in proportion to room; what rounding leaves over goes, one by one, to the clusters with the largest share of themselves
still free, so that small divisions spread widely and all clusters fill up evenly. Replicas that run are not moved
(unless that is allowed), a scale-down takes from each in proportion, the fullest first. Only when nobody has room left
are more given out than fit, by size, and wait there. Pure and deterministic.

`plan_within` is the same bound for the planners that divide by weight or by priority.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from federation.planning.hashing import fnv1_32_each
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps

_SCALE = 1_000_000
_UNBOUNDED = 2**62
_NO_PREFERENCE = Preference()
Planner = Callable[[Demand, Steps | None], Plan]
Counts = Mapping[str, int]


def plan_by_room(rooms: Sequence[Counts], sizes: Counts, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total`; weights play no part.

    `rooms` are what fits beside what runs, the surest first: the next counts when the one before is used up. `sizes`
    are what would fit into empty clusters, at least 1.
    """
    held = {cluster: _holds(demand, cluster) for cluster in demand.clusters}
    plan = held if demand.avoid_disruption else dict.fromkeys(held, 0)
    surplus = sum(plan.values()) - demand.total
    if surplus > 0:
        plan = _take(demand, surplus, plan, rooms[-1], sizes)
        _note(steps, "scaleDown", plan, -surplus)
        return Plan(plan, _kept(demand, held))
    for number, room in enumerate(rooms):
        limits = {cluster: held[cluster] + room[cluster] for cluster in plan}
        if not number:
            plan = _with_minimums(demand, plan, limits)
        plan = _add(demand, plan, limits, sizes, steps, "reservedRoom" if number else "room")
    if sum(plan.values()) < demand.total:
        plan = _beyond_room(demand, plan, sizes, steps)
    return Plan(plan, _kept(demand, held))


def _beyond_room(demand: Demand, plan: Counts, sizes: Counts, steps: Steps | None) -> dict[str, int]:
    """Let what has no room anywhere wait where clusters are large, as far as the policy's and the user's caps allow."""
    demand = replace(demand, estimated={})
    result = _with_minimums(demand, plan, {cluster: count + demand.total for cluster, count in plan.items()})
    while (missing := demand.total - sum(result.values())) > 0:
        times = -(-missing // sum(sizes[cluster] for cluster in result)) if result else 0
        limits = {cluster: count + sizes[cluster] * times for cluster, count in result.items()}
        fuller = _add(demand, result, limits, sizes, steps, "beyondRoom")
        if fuller == result:
            break
        result = fuller
    return result


def plan_within(rooms: Sequence[Counts], plan: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide with another planner, giving no cluster more than runs and fits there while others can have it.

    `rooms` as in `plan_by_room`. What no cluster has room for is then planned without that bound, on top.
    """
    planned = Plan({}, {})
    for number, room in enumerate((*rooms, None)):
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


def _take(demand: Demand, amount: int, plan: Counts, room: Counts, sizes: Counts) -> dict[str, int]:
    """Take so many from the clusters in proportion to what they have; what rounding leaves over, from the fullest."""
    total, ranks = sum(plan.values()), _ranks(demand)
    shares = {cluster: amount * count // total for cluster, count in plan.items()}
    fullest = sorted(
        (cluster for cluster, count in plan.items() if shares[cluster] < count),
        key=lambda cluster: ((room[cluster] + shares[cluster]) * _SCALE // sizes[cluster], ranks[cluster], cluster),
    )
    for cluster in fullest[: amount - sum(shares.values())]:
        shares[cluster] += 1
    return {cluster: count - shares[cluster] for cluster, count in plan.items()}


def _ranks(demand: Demand) -> dict[str, int]:
    """Return what decides between equals, differently for every workload."""
    return dict(zip(demand.clusters, fnv1_32_each(demand.clusters, demand.key), strict=True))


def _note(steps: Steps | None, name: str, plan: Counts, difference: int) -> None:
    if steps is not None:
        steps.append({"step": name, "difference": difference, "replicas": {c: n for c, n in plan.items() if n}})
