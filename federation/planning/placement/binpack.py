"""Fill one cluster after the other: the bin packing planner (docs/reference/replica-division.md).

Clusters come in the order of preference. Each first gets its minimum; then the first takes as much as its bounds and
capacity allow, then the second, and so on. A new division is computed only when the members' feedback agrees with the
last one (`_is_settled`), a cap is exceeded or a cluster is no longer a candidate; otherwise replicas would move back
and forth while feedback is outdated.

Pure and deterministic. Weights have no effect. Known oddities of KubeAdmiral's planner are kept and marked, because
existing installations depend on the numbers.
"""

from collections.abc import Mapping

from federation.planning.placement.replicas import Demand, Plan, Preference, Steps

_ANY = Preference()
_Ordered = list[tuple[str, int, int | None]]
"""(cluster, minimum, maximum) in the order in which they are filled."""


def plan_binpack(demand: Demand, steps: Steps | None = None, *, waits: bool | None = None) -> Plan:
    """Divide `demand.total` replicas; append a trace to `steps` when given.

    `waits` keeps the current division; the default is KubeAdmiral's rule (`is_due`).
    """
    if not is_due(demand) if waits is None else waits:
        if steps is not None:
            steps.append({"step": "wait", "because": "the members have not confirmed the last division yet"})
        return Plan(dict(demand.current), {})
    plan = _plan(demand)
    if steps is not None:
        steps.append({"step": "fill", "total": demand.total, "order": list(demand.clusters), "replicas": plan.replicas})
    return plan


def fill(order: _Ordered, total: int, estimated: Mapping[str, int], limited: Mapping[str, int]) -> Plan:
    """Return the minimums of all clusters in order, then the most for each in order; overflow is not trimmed."""
    plan: dict[str, int] = {}
    overflow: dict[str, int] = {}
    remaining = total
    for cluster, minimum, _ in order:
        given = min(minimum, remaining)
        if cluster in limited:
            given = min(given, limited[cluster])
        if cluster in estimated and estimated[cluster] < given:
            overflow[cluster] = given - estimated[cluster]
            given = estimated[cluster]
        plan[cluster] = given
        remaining -= given
    for cluster, _, maximum in order:
        target = plan[cluster] + remaining
        if maximum is not None:
            target = min(target, maximum)
        if cluster in limited:
            target = min(target, limited[cluster])
        if cluster in estimated and target > estimated[cluster]:
            overflow[cluster] = max(overflow.get(cluster, 0), target - estimated[cluster])
            target = estimated[cluster]
        remaining -= target - plan[cluster]
        plan[cluster] = target
    return Plan(plan, overflow)


def is_due(demand: Demand, *, allows_higher_estimate: bool = False) -> bool:
    """Return True if a new division is due; until the members confirm the current one it stays.

    With `allows_higher_estimate` a member that runs its replicas confirms them even if its estimate is higher.
    KubeAdmiral waits in that case, but its estimates are never higher.
    """
    candidates = set(demand.clusters)
    if any(cluster not in candidates for cluster in demand.current):
        return True
    if any(held > demand.limited[cluster] for cluster, held in demand.current.items() if cluster in demand.limited):
        return True
    return all(
        _is_settled(demand, cluster, running, allows_higher_estimate) for cluster, running in demand.scheduled.items()
    )


def has_other_total(demand: Demand) -> bool:
    """Return True if the total differs from the current division: more than placed, or less than can run.

    Placed replicas beyond the total replace waiting ones until these run elsewhere.
    """
    running = sum(_capped(count, demand.estimated.get(cluster)) for cluster, count in demand.current.items())
    return sum(demand.current.values()) < demand.total or running > demand.total


def _is_settled(demand: Demand, cluster: str, running: int, allows_higher_estimate: bool) -> bool:
    """Return True if the member runs its replicas, or as many as its estimated capacity."""
    current = demand.current.get(cluster, 0)
    estimated = demand.estimated.get(cluster, current)
    return running == estimated or (allows_higher_estimate and running == current < estimated)


def _plan(demand: Demand) -> Plan:
    order = [(c, (p := demand.preferences.get(c, _ANY)).minimum, p.maximum) for c in demand.clusters]
    desired = fill(order, demand.total, demand.estimated, demand.limited)
    keep = demand.keep_unschedulable or not demand.avoid_disruption
    running = sum(_capped(count, demand.limited.get(c)) for c, count in demand.scheduled.items())
    if not keep and running == demand.total:
        return Plan(dict(demand.scheduled), {})
    if not demand.avoid_disruption:
        return desired
    overflow = desired.overflow
    if not keep:
        trimmed = {cluster: min(extra, demand.total - running) for cluster, extra in overflow.items()}
        overflow = {cluster: extra for cluster, extra in trimmed.items() if extra > 0}
    current = {
        cluster: _capped(demand.current.get(cluster, 0), demand.estimated.get(cluster), demand.limited.get(cluster))
        for cluster in demand.clusters
    }
    return Plan(_approach(demand, desired.replicas, current), overflow)


def _approach(demand: Demand, desired: Mapping[str, int], current: dict[str, int]) -> dict[str, int]:
    """Move from the current to the desired division; both amounts use `total`, not the desired sum (kept oddity)."""
    have, want = sum(current.values()), sum(desired.values())
    if have == want:
        return current
    if have > want:
        order: _Ordered = [(c, 0, current[c]) for c in reversed(demand.clusters) if desired[c] < current[c]]
        taken = fill(order, have - demand.total, {}, {}).replicas
        return {cluster: held - taken.get(cluster, 0) for cluster, held in current.items()}
    lacking: _Ordered = []
    for cluster in demand.clusters:
        if desired[cluster] > current[cluster]:
            own = demand.preferences.get(cluster, _ANY)
            room = None if own.maximum is None else own.maximum - current[cluster]
            lacking.append((cluster, own.minimum, room))
    given = fill(lacking, demand.total - have, {}, demand.limited).replicas
    return {cluster: held + given.get(cluster, 0) for cluster, held in current.items()}


def _capped(amount: int, *caps: int | None) -> int:
    return min([amount, *(cap for cap in caps if cap is not None)])
