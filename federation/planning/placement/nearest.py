"""Divide replicas as near to the weights as whole numbers can be: the default spread planner.

Without current replicas, or when they may move, the division is that of `apportionment.py`, within minimums, maximums
and capacities. Without disruption as few replicas as possible move: a scale-up only adds and a scale-down only removes,
so that what runs is a minimum of the one and a maximum of the other. The division of a new object is chosen if it can
be reached so, else the nearest to the weights. `replicas.py` has KubeAdmiral's formula, which a scheduling profile can
choose instead (docs/reference/replica-division.md, docs/decisions/0081). Pure and deterministic.
"""

from collections.abc import Mapping

from federation.planning.placement.apportionment import apportion
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps, capped_current, placed, shares_of

_Shares = Mapping[str, Preference]


def plan_nearest(demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` replicas; append a trace to `steps` when given."""
    shares = dict(shares_of(demand))
    desired = _divide(demand, shares, steps)
    if not demand.avoid_disruption:
        return desired
    current = capped_current(demand, shares)
    if not any(current.values()) or _is_reached(current, desired.replicas):
        return desired
    if steps is not None:
        steps.append({"step": "desired", "replicas": placed(desired.replicas), "current": placed(current)})
    difference = sum(desired.replicas.values()) - sum(current.values())
    if not difference:
        return Plan(current, desired.overflow)
    bounds = _within(shares, demand.limited, demand.estimated)
    if difference > 0:
        result = _scale_up(bounds, current, difference, demand.key)
    else:
        result = _scale_down(bounds, current, -difference, demand.key)
    if steps is not None:
        name = "scaleUp" if difference > 0 else "scaleDown"
        steps.append({"step": name, "difference": difference, "replicas": placed(result)})
    return Plan(result, desired.overflow)


def _divide(demand: Demand, shares: _Shares, steps: Steps | None) -> Plan:
    """Return the division without regard to current replicas.

    Replicas beyond the capacity estimates are overflow: those that no cluster has capacity for, or, when unschedulable
    ones are kept, all that the weights would give to clusters without capacity.
    """
    bounds = _within(shares, demand.limited)
    narrow = _within(bounds, demand.estimated) if demand.estimated else bounds
    plan = apportion(demand.total, narrow, demand.key)
    remaining = demand.total - sum(plan.values())
    if steps is not None:
        steps.append({"step": "nearest", "total": demand.total, "replicas": placed(plan), "remaining": remaining})
    if not demand.estimated:
        return Plan(plan, {})
    if demand.keep_unschedulable or not demand.avoid_disruption:
        wanted = apportion(demand.total, bounds, demand.key)
    elif remaining:
        wanted = apportion(demand.total, _at_least(bounds, plan), demand.key)
    else:
        wanted = plan
    over = {cluster: count - plan[cluster] for cluster, count in wanted.items() if count > plan[cluster]}
    return Plan(plan, {cluster: count for cluster, count in over.items() if cluster in demand.estimated})


def _is_reached(current: Mapping[str, int], desired: Mapping[str, int]) -> bool:
    """Return whether replicas have to be added alone, or removed alone, to come to the desired division."""
    differences = [desired[cluster] - count for cluster, count in current.items()]
    return sum(differences) != 0 and (min(differences) >= 0 or max(differences) <= 0)


def _within(shares: _Shares, *caps: Mapping[str, int]) -> _Shares:
    """Return the bounds with maximums cut to the caps, and minimums to the maximums."""
    if not any(caps):
        return shares
    bounds = dict(shares)
    for cap in caps:
        for cluster, most in cap.items():
            if (own := bounds.get(cluster)) is not None and (own.maximum is None or most < own.maximum):
                bounds[cluster] = own._replace(minimum=min(own.minimum, most), maximum=most)
    return bounds


def _at_least(bounds: _Shares, counts: Mapping[str, int]) -> _Shares:
    return {cluster: _raised(own, counts[cluster]) for cluster, own in bounds.items()}


def _raised(own: Preference, count: int) -> Preference:
    """Return bounds with which a cluster keeps its replicas, also those above its maximum."""
    minimum = max(own.minimum if own.maximum is None else min(own.minimum, own.maximum), count)
    return Preference(own.weight, minimum, None if own.maximum is None else max(own.maximum, count))


def _scale_up(bounds: _Shares, current: Mapping[str, int], amount: int, key: str) -> dict[str, int]:
    """Add the amount: minimums first, then nearest to the weights."""
    raised = _at_least(bounds, current)
    lacking = {cluster: own.minimum - current[cluster] for cluster, own in raised.items()}
    if sum(lacking.values()) > amount:
        given = apportion(amount, {c: Preference(bounds[c].weight, count, count) for c, count in lacking.items()}, key)
        return {cluster: count + given[cluster] for cluster, count in current.items()}
    return apportion(sum(current.values()) + amount, raised, key)


def _scale_down(bounds: _Shares, current: Mapping[str, int], amount: int, key: str) -> dict[str, int]:
    """Remove the amount: first what has no weight or exceeds a maximum, then nearest to the weights; minimums last."""
    left = sum(current.values()) - amount
    result = apportion(left, _within(bounds, current), key, is_removal=True)
    if (rest := left - sum(result.values())) > 0:
        beyond = {c: Preference(1, 0, current[c] - count) for c, count in result.items() if count < current[c]}
        for cluster, count in apportion(rest, beyond, key).items():
            result[cluster] += count
    return result
