"""Divide replicas over clusters by weight: the spread planner (spec §7.1).

Problem: so many replicas, these clusters, each with a weight, a minimum, a maximum and perhaps a capacity; who gets how
many? The desired division gives every cluster its minimum and shares the rest by weight, round by round, until nothing
moves. When running replicas must not be disrupted, the planner then goes from the current division towards the desired
one only by the difference: a scale-down takes from those who have too many, a scale-up gives to those who have too few.

Pure arithmetic on integers, deterministic: equal weights are ordered by a hash of cluster and workload, so that
different workloads spread their remainders over different clusters. It does not know clusters' health, taints or
resources: the plugin `ClusterCapacityWeight` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from federation.planning.hashing import fnv1_32_each

WILDCARD = "*"
"""The preference of clusters that have none of their own."""

Steps = list[dict[str, Any]]
"""A trace: one JSON-able mapping per step, in order, for `fedctl why`."""


class Preference(NamedTuple):
    """What one cluster may get: at least `minimum`, at most `maximum` (None: unbounded), the rest by `weight`."""

    weight: int = 0
    minimum: int = 0
    maximum: int | None = None

    @property
    def is_free(self) -> bool:
        """Say whether only the weight counts."""
        return not self.minimum and self.maximum is None


@dataclass(frozen=True, slots=True)
class Demand:
    """One question to a planner. `current`, `estimated` and `limited` map clusters to replicas.

    `estimated` is what is believed to fit (more becomes overflow), `limited` a hard cap, `scheduled` what has a node in
    the members (feedback for `binpack.py`), `ready` what runs there (`failback.py` holds on to it). Clusters without a
    preference of their own and without the wildcard are not considered. `key` is the workload, "namespace/name".
    """

    total: int
    clusters: tuple[str, ...]
    preferences: Mapping[str, Preference]
    key: str = ""
    current: Mapping[str, int] = field(default_factory=dict)
    estimated: Mapping[str, int] = field(default_factory=dict)
    limited: Mapping[str, int] = field(default_factory=dict)
    scheduled: Mapping[str, int] = field(default_factory=dict)
    ready: Mapping[str, int] = field(default_factory=dict)
    avoid_disruption: bool = True
    keep_unschedulable: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer: replicas that fit, and those beyond the estimated capacity that stay where they cannot run yet."""

    replicas: dict[str, int]
    overflow: dict[str, int]
    because: str = ""
    """What kept the rest from being placed, when that is known: "maxSkew 1 of topology key zone"."""

    def totals(self) -> dict[str, int]:
        """Return what is to be written per cluster: replicas and overflow together."""
        if not self.overflow:
            return dict(self.replicas)
        return {
            cluster: self.replicas.get(cluster, 0) + self.overflow.get(cluster, 0)
            for cluster in self.replicas | self.overflow
        }


_Share = tuple[str, Preference]
"""A cluster and its preference."""


@dataclass(frozen=True, slots=True)
class _Caps:
    """What a cluster is believed to hold, and what it must not exceed."""

    estimated: Mapping[str, int]
    limited: Mapping[str, int]


_NO_CAPS = _Caps({}, {})


def plan_replicas(demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` replicas; append what was done to `steps` when given."""
    shares = _shares_of(demand)
    keep = demand.keep_unschedulable or not demand.avoid_disruption
    desired = _divide(shares, demand.total, keep, _Caps(demand.estimated, demand.limited), demand.key, steps)
    if not demand.avoid_disruption:
        return desired
    current = _current(demand, shares)
    if not any(current.values()) and all(
        own.maximum is None or desired.replicas[cluster] <= own.maximum for cluster, own in shares
    ):
        return desired  # Nothing runs yet: going there step by step would arrive at the same.
    return Plan(_approach(demand, desired.replicas, current, steps), desired.overflow)


def _shares_of(demand: Demand) -> list[_Share]:
    fallback, preferences = demand.preferences.get(WILDCARD), demand.preferences
    # A cluster that is named twice is one cluster.
    owned = [(cluster, preferences.get(cluster, fallback)) for cluster in dict.fromkeys(demand.clusters)]
    return [(cluster, own) for cluster, own in owned if own is not None]


def _in_order(shares: list[_Share], key: str) -> list[_Share]:
    """Heaviest first, equal weights by the hash of cluster and workload, and by name should two hashes collide."""
    hashes = fnv1_32_each([cluster for cluster, _ in shares], key)
    ranked = sorted(zip(hashes, shares, strict=True), key=lambda entry: (-entry[1][1].weight, entry[0], entry[1][0]))
    return [share for _, share in ranked]


def _current(demand: Demand, shares: list[_Share]) -> dict[str, int]:
    """Return what runs per cluster as far as caps and capacity let it count."""
    current = demand.current
    held = {cluster: current.get(cluster, 0) for cluster, _ in shares}
    for caps in (demand.limited, demand.estimated):
        for cluster, cap in caps.items():
            if held.get(cluster, 0) > cap:
                held[cluster] = cap
    return held


def _divide(shares: list[_Share], total: int, keep: bool, caps: _Caps, key: str, steps: Steps | None = None) -> Plan:
    """Return the division that weights, bounds and capacities ask for, whatever runs now."""
    plan = dict.fromkeys([cluster for cluster, _ in shares], 0)
    alike = _alike(shares)
    if not caps.estimated and not caps.limited and all(own.is_free for own in alike):
        _share_freely(alike, total, key, plan, steps)
        return Plan(plan, {})
    overflow: dict[str, int] = {}
    remaining = _give_minimums(shares := _in_order(shares, key), total, caps, plan, overflow)
    if steps is not None:
        steps.append({"step": "minimums", "total": total, "replicas": _placed(plan), "remaining": remaining})
    is_changed = True
    while is_changed and remaining > 0 and any(own.weight for _, own in shares):
        distribute = remaining
        is_changed, shares, remaining = _share_out(shares, remaining, caps, plan, overflow)
        if steps is not None:
            steps.append({"step": "share", "distribute": distribute, "replicas": _placed(plan), "remaining": remaining})
    if keep:
        return Plan(plan, overflow)
    trimmed = {cluster: min(extra, remaining) for cluster, extra in overflow.items()}
    return Plan(plan, {cluster: extra for cluster, extra in trimmed.items() if extra > 0})


def _alike(shares: list[_Share]) -> dict[Preference, list[str]]:
    """Return the clusters by preference: with hundreds of clusters many have the same."""
    alike: dict[Preference, list[str]] = {}
    for cluster, own in shares:
        alike.setdefault(own, []).append(cluster)
    return alike


def _share_freely(
    alike: Mapping[Preference, list[str]], total: int, key: str, plan: dict[str, int], steps: Steps | None
) -> None:
    """Fill in the division when nobody has bounds: then one round gives everything away.

    Everybody of one weight gets the same, so only those among whom it runs out have to be brought into an order.
    """
    weights = sum(own.weight * len(clusters) for own, clusters in alike.items())
    remaining = total
    for own in sorted(alike, reverse=True):
        clusters = alike[own]
        given = -(-total * own.weight // weights) if weights else 0
        if not given or not remaining:
            break
        if given * len(clusters) > remaining:
            ranked = sorted(zip(fnv1_32_each(clusters, key), clusters, strict=True))
            served, rest = divmod(remaining, given)
            clusters = [cluster for _, cluster in ranked[:served]]
            if rest:
                plan[ranked[served][1]] = rest
            remaining = 0
        else:
            remaining -= given * len(clusters)
        for cluster in clusters:
            plan[cluster] = given
    if steps is not None:
        steps.append({"step": "minimums", "total": total, "replicas": {}, "remaining": total})
        steps.append({"step": "share", "distribute": total, "replicas": _placed(plan), "remaining": remaining})


def _placed(replicas: Mapping[str, int]) -> dict[str, int]:
    """Return only the clusters that get any: with hundreds of clusters most get none."""
    return {cluster: number for cluster, number in replicas.items() if number}


def _give_minimums(
    shares: list[_Share], total: int, caps: _Caps, plan: dict[str, int], overflow: dict[str, int]
) -> int:
    """Fill in the minimums as far as the total reaches, and what did not fit of them; return what remains."""
    remaining = total
    for cluster, (_, minimum, _) in shares:
        if not minimum:
            continue
        given = min(minimum, remaining)
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
    distribute, weights = remaining, sum(own.weight for _, own in shares)
    estimated, limited = caps.estimated, caps.limited
    is_changed, open_shares = False, []
    for share in shares:
        cluster, (weight, _, maximum) = share
        start = plan[cluster]
        wanted = target = start + min(-(-distribute * weight // weights), remaining)
        if maximum is not None and target > maximum:
            target = maximum
        if cluster in limited and target > limited[cluster]:
            target = limited[cluster]
        if cluster in estimated and target > estimated[cluster]:
            overflow[cluster] = overflow.get(cluster, 0) + target - estimated[cluster]
            target = estimated[cluster]
        if target == wanted:
            open_shares.append(share)
        is_changed = is_changed or target > start
        remaining -= target - start
        plan[cluster] = target
    return is_changed, open_shares, remaining


def _approach(demand: Demand, desired: dict[str, int], current: dict[str, int], steps: Steps | None) -> dict[str, int]:
    """Return the division nearest to `desired` that moves no running replica without need."""
    have, want = sum(current.values()), sum(desired.values())
    if steps is not None:
        steps.append({"step": "desired", "replicas": _placed(desired), "current": _placed(current)})
    if have == want:
        result = current
    elif have > want:
        result = _scale_down(demand, desired, current, have - want)
    else:
        result = _scale_up(demand, desired, current, want - have)
    if steps is not None and have != want:
        name = "scaleDown" if have > want else "scaleUp"
        steps.append({"step": name, "difference": want - have, "replicas": _placed(result)})
    return result


def _scale_down(demand: Demand, desired: dict[str, int], current: dict[str, int], amount: int) -> dict[str, int]:
    """Take `amount` from the clusters that have too many, in proportion to how many too many."""
    # Nobody is asked for more than it has too many of: `amount` is at most the sum of that.
    surplus = [
        (cluster, Preference(held - desired[cluster])) for cluster, held in current.items() if held > desired[cluster]
    ]
    taken = _divide(surplus, amount, True, _NO_CAPS, demand.key).replicas
    return current | {cluster: current[cluster] - number for cluster, number in taken.items()}


def _scale_up(demand: Demand, desired: dict[str, int], current: dict[str, int], amount: int) -> dict[str, int]:
    """Give `amount` to the clusters that have too few, in proportion to how many too few."""
    lacking = []
    for cluster, wanted in desired.items():
        held = current[cluster]
        if wanted > held:
            own = demand.preferences.get(cluster)
            room = None if own is None or own.maximum is None else own.maximum - held
            lacking.append((cluster, Preference(wanted - held, 0, room)))
    given = _divide(lacking, amount, True, _NO_CAPS, demand.key).replicas
    return current | {cluster: current[cluster] + number for cluster, number in given.items()}
