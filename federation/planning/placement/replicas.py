"""Divide replicas over clusters by weight: the spread planner (spec §7.1).

Problem: so many replicas, these clusters, each with a weight, a minimum, a maximum and perhaps a capacity; who gets how
many? The desired division gives every cluster its minimum and shares the rest by weight, round by round, until nothing
moves. When running replicas must not be disrupted, the planner then goes from the current division towards the desired
one only by the difference: a scale-down takes from those who have too many, a scale-up gives to those who have too few.

Pure arithmetic on integers, deterministic: equal weights are ordered by a hash of cluster and workload, so that
different workloads spread their remainders over different clusters. It does not know clusters' health, taints or
resources: the plugin `ClusterCapacityWeight` does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.planning.hashing import fnv1_32_each

WILDCARD = "*"
"""The preference of clusters that have none of their own."""

Steps = list[dict[str, Any]]
"""A trace: one JSON-able mapping per step, in order, for `fedctl why`."""


@dataclass(frozen=True, slots=True)
class Preference:
    """What one cluster may get: at least `minimum`, at most `maximum` (None: unbounded), the rest by `weight`."""

    weight: int = 0
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """One question to a planner. `current`, `estimated` and `limited` map clusters to replicas.

    `estimated` is what is believed to fit (more becomes overflow), `limited` a hard cap, `scheduled` what the members
    report as running (the bin packer's feedback). Clusters without a preference of their own and without the wildcard
    are not considered. `key` is the workload, "namespace/name".
    """

    total: int
    clusters: tuple[str, ...]
    preferences: Mapping[str, Preference]
    key: str = ""
    current: Mapping[str, int] = field(default_factory=dict)
    estimated: Mapping[str, int] = field(default_factory=dict)
    limited: Mapping[str, int] = field(default_factory=dict)
    scheduled: Mapping[str, int] = field(default_factory=dict)
    avoid_disruption: bool = True
    keep_unschedulable: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer: replicas that fit, and those beyond the estimated capacity that stay where they cannot run yet."""

    replicas: dict[str, int]
    overflow: dict[str, int]

    def totals(self) -> dict[str, int]:
        """Return what is to be written per cluster: replicas and overflow together."""
        if not self.overflow:
            return dict(self.replicas)
        return {
            cluster: self.replicas.get(cluster, 0) + self.overflow.get(cluster, 0)
            for cluster in self.replicas | self.overflow
        }


@dataclass(frozen=True, slots=True)
class _Share:
    """A cluster's preference in the order in which the rounds visit it."""

    cluster: str
    weight: int
    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class _Caps:
    """What a cluster is believed to hold, and what it must not exceed."""

    estimated: Mapping[str, int]
    limited: Mapping[str, int]


_NO_CAPS = _Caps({}, {})


def plan_replicas(demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` replicas; append what was done to `steps` when given."""
    shares = _shares_of(demand)
    ranks = _ranks(shares, demand.key)
    shares = _in_order(shares, ranks)
    keep = demand.keep_unschedulable or not demand.avoid_disruption
    desired = _divide(shares, demand.total, keep, _Caps(demand.estimated, demand.limited), steps)
    if not demand.avoid_disruption:
        return desired
    current = {share.cluster: _holds(demand, share.cluster) for share in shares}
    if not any(current.values()) and all(
        share.maximum is None or desired.replicas[share.cluster] <= share.maximum for share in shares
    ):
        return desired  # Nothing runs yet: going there step by step would arrive at the same.
    return Plan(_approach(demand, ranks, desired.replicas, current, steps), desired.overflow)


def _shares_of(demand: Demand) -> list[_Share]:
    fallback = demand.preferences.get(WILDCARD)
    shares = []
    for cluster in demand.clusters:
        preference = demand.preferences.get(cluster, fallback)
        if preference is not None:
            shares.append(_Share(cluster, preference.weight, preference.minimum, preference.maximum))
    return shares


def _ranks(shares: list[_Share], key: str) -> dict[str, tuple[int, str]]:
    """Return what decides between equal weights: a hash of cluster and workload, the name should two hashes collide."""
    names = [share.cluster for share in shares]
    return {name: (value, name) for name, value in zip(names, fnv1_32_each(names, key), strict=True)}


def _in_order(shares: Iterable[_Share], ranks: Mapping[str, tuple[int, str]]) -> list[_Share]:
    """Heaviest first, equal weights by rank."""
    return sorted(shares, key=lambda share: (-share.weight, ranks[share.cluster]))


def _holds(demand: Demand, cluster: str) -> int:
    """Return the cluster's current replicas as far as caps and capacity let them count."""
    held = demand.current.get(cluster, 0)
    if cluster in demand.limited:
        held = min(held, demand.limited[cluster])
    if cluster in demand.estimated:
        held = min(held, demand.estimated[cluster])
    return held


def _divide(shares: list[_Share], total: int, keep: bool, caps: _Caps, steps: Steps | None) -> Plan:
    """Return the division that weights, bounds and capacities ask for, whatever runs now."""
    plan: dict[str, int] = {}
    overflow: dict[str, int] = {}
    remaining = _give_minimums(shares, total, caps, plan, overflow)
    if steps is not None:
        steps.append({"step": "minimums", "total": total, "replicas": dict(plan), "remaining": remaining})
    is_changed = True
    while is_changed and remaining > 0 and any(share.weight > 0 for share in shares):
        distribute = remaining
        is_changed, shares, remaining = _share_out(shares, remaining, caps, plan, overflow)
        if steps is not None:
            steps.append({"step": "share", "distribute": distribute, "replicas": dict(plan), "remaining": remaining})
    if keep:
        return Plan(plan, overflow)
    trimmed = {cluster: min(extra, remaining) for cluster, extra in overflow.items()}
    return Plan(plan, {cluster: extra for cluster, extra in trimmed.items() if extra > 0})


def _give_minimums(
    shares: list[_Share], total: int, caps: _Caps, plan: dict[str, int], overflow: dict[str, int]
) -> int:
    """Fill in the minimums as far as the total reaches, and what did not fit of them; return what remains."""
    remaining = total
    for share in shares:
        cluster = share.cluster
        given = min(share.minimum, remaining)
        if cluster in caps.limited:
            given = min(given, caps.limited[cluster])
        if cluster in caps.estimated and caps.estimated[cluster] < given:
            overflow[cluster] = given - caps.estimated[cluster]
            given = caps.estimated[cluster]
        plan[cluster] = given
        remaining -= given
    return remaining


def _share_out(
    shares: list[_Share], remaining: int, caps: _Caps, plan: dict[str, int], overflow: dict[str, int]
) -> tuple[bool, list[_Share], int]:
    """Run one round in place: everybody's share of `remaining` by weight, rounded up, while there is something left.

    Return whether somebody got more, who takes part in the next round (those who hit no bound), and what remains.
    """
    distribute, weights = remaining, sum(share.weight for share in shares)
    is_changed, open_shares = False, []
    for share in shares:
        cluster, start = share.cluster, plan[share.cluster]
        wanted = target = start + min(-(-distribute * share.weight // weights), remaining)
        if share.maximum is not None and target > share.maximum:
            target = share.maximum
        if cluster in caps.limited and target > caps.limited[cluster]:
            target = caps.limited[cluster]
        if cluster in caps.estimated and target > caps.estimated[cluster]:
            overflow[cluster] = overflow.get(cluster, 0) + target - caps.estimated[cluster]
            target = caps.estimated[cluster]
        if target == wanted:
            open_shares.append(share)
        is_changed = is_changed or target > start
        remaining -= target - start
        plan[cluster] = target
    return is_changed, open_shares, remaining


def _approach(
    demand: Demand,
    ranks: Mapping[str, tuple[int, str]],
    desired: dict[str, int],
    current: dict[str, int],
    steps: Steps | None,
) -> dict[str, int]:
    """Return the division nearest to `desired` that moves no running replica without need."""
    have, want = sum(current.values()), sum(desired.values())
    if steps is not None:
        steps.append({"step": "desired", "replicas": dict(desired), "current": dict(current)})
    if have == want:
        result = current
    elif have > want:
        result = _scale_down(ranks, desired, current, have - want)
    else:
        result = _scale_up(demand, ranks, desired, current)
    if steps is not None and have != want:
        name = "scaleDown" if have > want else "scaleUp"
        steps.append({"step": name, "difference": want - have, "replicas": dict(result)})
    return result


def _scale_down(
    ranks: Mapping[str, tuple[int, str]], desired: dict[str, int], current: dict[str, int], amount: int
) -> dict[str, int]:
    """Take `amount` from the clusters that have too many, in proportion to how many too many."""
    surplus = [
        _Share(cluster, current[cluster] - desired[cluster], 0, current[cluster])
        for cluster in desired
        if desired[cluster] < current[cluster]
    ]
    taken = _divide(_in_order(surplus, ranks), amount, True, _NO_CAPS, None).replicas
    return {cluster: held - taken.get(cluster, 0) for cluster, held in current.items()}


def _scale_up(
    demand: Demand, ranks: Mapping[str, tuple[int, str]], desired: dict[str, int], current: dict[str, int]
) -> dict[str, int]:
    """Give what is missing to the clusters that have too few, in proportion to how many too few."""
    lacking = []
    for cluster, wanted in desired.items():
        if wanted > current[cluster]:
            own = demand.preferences.get(cluster)
            room = None if own is None or own.maximum is None else own.maximum - current[cluster]
            lacking.append(_Share(cluster, wanted - current[cluster], 0, room))
    amount = sum(desired.values()) - sum(current.values())
    given = _divide(_in_order(lacking, ranks), amount, True, _NO_CAPS, None).replicas
    return {cluster: held + given.get(cluster, 0) for cluster, held in current.items()}
