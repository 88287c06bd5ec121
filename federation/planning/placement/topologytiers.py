"""Limits of the leaves of a domain tree, in tiers: unreserved capacity first, bounds of policy and user last. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from federation.planning.placement.capacity import Counts, FreeCapacity, countable_replicas, upper_bounds
from federation.planning.placement.replicas import Demand, to_dict
from federation.planning.placement.topologydomains import Domain, Shares


class Tier(NamedTuple):
    """The maximum per leaf, and the minimums of its clusters as far as the maximum allows."""

    maximum: Shares
    minimum: Shares


class _ClusterLimits(NamedTuple):
    """The limits of one tier: `bounded` per cluster, or else the `free` capacity beyond present replicas.

    Both None means no limit.
    """

    free: Counts | None = None
    bounded: Counts | None = None


def compute_tiers(
    demand: Demand,
    leaves: Sequence[Domain],
    present: Shares,
    bounds: Counts,
    leaf_limits: Shares,
    capacity: FreeCapacity | None,
) -> Iterator[Tier]:
    """Yield the tiers in their order; the last one has only the bounds of policy and user."""
    held, total = countable_replicas(demand), demand.total
    minimums = {c: own.minimum for c, own in demand.preferences.items() if own.minimum and c in held}
    for free, bounded in _cluster_limits(demand, held, bounds, minimums, capacity):
        maximum, minimum = {}, dict.fromkeys(leaves, 0)
        for leaf in leaves:
            most = total
            if bounded is not None:
                most = sum(map(bounded.__getitem__, leaf.clusters))
                if minimums:
                    minimum[leaf] = sum([min(minimums[c], bounded[c]) for c in leaf.clusters if c in minimums])
            elif free is not None:
                most = present[leaf] + sum(map(free.__getitem__, leaf.clusters))
            maximum[leaf] = min(lesser(most, leaf_limits.get(leaf)), total)
        yield Tier(maximum, minimum)


def _cluster_limits(
    demand: Demand, held: Counts, bounds: Counts, minimums: Counts, capacity: FreeCapacity | None
) -> Iterable[_ClusterLimits]:
    """Yield the limits per cluster of each tier; replicas that need not move are always within them."""
    total, estimated = demand.total, upper_bounds(demand) if demand.estimated else bounds

    def with_held(bounded: dict[str, int]) -> _ClusterLimits:
        if demand.avoid_disruption:
            bounded |= {c: count for c, count in held.items() if count > bounded[c]}
        return _ClusterLimits(bounded=bounded)

    for free in (None,) if capacity is None else map(to_dict, capacity.tiers):
        if not estimated and not minimums:
            yield _ClusterLimits(free)
        elif free is None:
            yield with_held({c: min(estimated.get(c, total), total) for c in held})
        else:
            yield with_held({c: min(estimated.get(c, total), count + free[c]) for c, count in held.items()})
    if demand.estimated and demand.avoid_disruption:
        # Unschedulable replicas stay in their cluster rather than wait in another one.
        yield with_held({c: min(bounds.get(c, total), demand.current.get(c, 0)) for c in held})
    unlimited = not bounds and not minimums
    yield _ClusterLimits() if unlimited else with_held({c: min(bounds.get(c, total), total) for c in held})


def lesser(amount: int, limit: int | None) -> int:
    """Return the smaller of both; None is no limit."""
    return amount if limit is None else min(amount, limit)
