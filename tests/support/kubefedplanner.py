"""KubeFed's division of replicas, as a reference for tests (docs/reference/replica-division.md).

Tests compare it with `replicas.py`, which divides ReplicaSchedulingPreferences (docs/decisions/0061). Without
`rebalance` every cluster first keeps its current replicas within its bounds, and these are subtracted from its later
shares. So a scale-down can empty clusters (30 → 15 over 15, 15, 0 gives 15, 0, 0), which the spread planner avoids.
Clusters without a preference get an explicit 0. Pure and deterministic.
"""

from collections.abc import Mapping, Sequence

from federation.apimachinery.hashing import fnv1_32_each
from federation.planning.placement.replicas import WILDCARD, Demand, Plan, Preference

_Shares = list[tuple[str, Preference]]


def plan_kubefed(demand: Demand, *, rebalance: bool) -> Plan:
    """Divide `demand.total` replicas; `limited`, `avoid_disruption` and `keep_unschedulable` have no effect."""
    shares = _in_order(demand)
    plan: dict[str, int] = dict.fromkeys(demand.clusters, 0)
    overflow: dict[str, int] = {}
    remaining = _give_minimums(shares, demand, plan)
    kept: dict[str, int] = {}
    if not rebalance:
        remaining = _keep_current(shares, remaining, demand, plan, kept)
    is_changed = True
    while is_changed and remaining > 0 and any(preference.weight for _, preference in shares):
        is_changed, shares, remaining = _share_out(shares, remaining, demand.estimated, (plan, overflow, kept))
    if rebalance:
        return Plan(plan, overflow)
    trimmed = {cluster: min(extra, remaining) for cluster, extra in overflow.items()}
    return Plan(plan, {cluster: extra for cluster, extra in trimmed.items() if extra > 0})


def select_clusters(
    clusters: Mapping[str, Mapping[str, str]], names: Sequence[str] | None, selector: Mapping[str, str] | None
) -> list[str]:
    """Return the clusters of a placement, out of `clusters` (name → labels): its list, or else its selector.

    None is absent. An empty list selects no cluster, an empty selector all, and without both there is none.
    """
    if names is not None:
        return sorted(set(names) & clusters.keys())
    if selector is None:
        return []
    return sorted(name for name, labels in clusters.items() if selector.items() <= labels.items())


def _in_order(demand: Demand) -> _Shares:
    fallback = demand.preferences.get(WILDCARD)
    ranks = dict(zip(demand.clusters, fnv1_32_each(demand.clusters, demand.key), strict=True))
    shares = [
        (cluster, preference)
        for cluster in demand.clusters
        if (preference := demand.preferences.get(cluster, fallback)) is not None
    ]
    return sorted(shares, key=lambda share: (-share[1].weight, ranks[share[0]], share[0]))


def _give_minimums(shares: _Shares, demand: Demand, plan: dict[str, int]) -> int:
    """Fill in the minimums; unlike in the spread planner, parts that do not fit are no overflow."""
    remaining = demand.total
    for cluster, preference in shares:
        given = min(preference.minimum, remaining, demand.estimated.get(cluster, remaining))
        plan[cluster] = given
        remaining -= given
    return remaining


def _keep_current(shares: _Shares, remaining: int, demand: Demand, plan: dict[str, int], kept: dict[str, int]) -> int:
    """Keep current replicas within the bounds and the total; return the remaining replicas."""
    for cluster, preference in shares:
        held = demand.current.get(cluster, 0)
        if held <= plan[cluster]:
            continue
        if preference.maximum is not None:
            held = min(held, preference.maximum)
        held = min(held, demand.estimated.get(cluster, held))
        extra = max(0, min(held - plan[cluster], remaining))
        kept[cluster] = extra
        plan[cluster] += extra
        remaining -= extra
    return remaining


def _share_out(
    shares: _Shares,
    remaining: int,
    estimated: Mapping[str, int],
    state: tuple[dict[str, int], dict[str, int], dict[str, int]],
) -> tuple[bool, _Shares, int]:
    """Run one round in place; replicas that a cluster kept are subtracted from its share."""
    plan, overflow, kept = state
    distribute, weights = remaining, sum(preference.weight for _, preference in shares)
    is_changed, open_shares = False, []
    for cluster, preference in shares:
        start = plan[cluster]
        extra = min(-(-distribute * preference.weight // weights), remaining)
        offset = min(extra, kept.get(cluster, 0))
        if offset:
            kept[cluster] -= offset
        wanted = target = start + extra - offset
        if preference.maximum is not None:
            target = min(target, preference.maximum)
        if cluster in estimated and target > estimated[cluster]:
            overflow[cluster] = target - estimated[cluster]
            target = estimated[cluster]
        if target == wanted:
            open_shares.append((cluster, preference))
        is_changed = is_changed or offset > 0 or target > start
        remaining -= target - start
        plan[cluster] = target
    return is_changed, open_shares, remaining
