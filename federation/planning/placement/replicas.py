"""Divide replicas over clusters by weight as KubeAdmiral does (docs/reference/replica-division.md).

The default is the planner of `nearest.py`; a scheduling profile chooses this one by name. The types are those of all
planners.

Every cluster has a weight, a minimum, a maximum and perhaps a capacity estimate. The desired division gives every
cluster its minimum and shares the rest by weight, round by round, until nothing changes. Without disruption the planner
moves from the current division towards the desired one only by the difference of the totals: a scale-down removes from
clusters with too many replicas, a scale-up adds to those with too few.

Pure arithmetic on integers and deterministic: a hash of cluster and workload orders equal weights, so that different
workloads put their remainders into different clusters. Health, taints and resources of clusters are not considered.

Decision: docs/decisions/0023-where-we-decide-otherwise-than-kubeadmiral.md
"""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

from federation.apimachinery.hashing import fnv1_32_each

WILDCARD = "*"
"""The preference of clusters that have none of their own."""

Steps = list[dict[str, Any]]
"""A trace: one JSON object per step, in order, for `fedctl why`."""


class Preference(NamedTuple):
    """The bounds and weight of one cluster; a `maximum` of None is unbounded."""

    weight: int = 0
    minimum: int = 0
    maximum: int | None = None

    @property
    def is_free(self) -> bool:
        """True without bounds."""
        return not self.minimum and self.maximum is None


@dataclass(frozen=True, slots=True)
class Demand:
    """The input of a planner. `current`, `estimated`, `limited`, `scheduled` and `ready` map clusters to replicas.

    `estimated` is the estimated capacity (more becomes overflow), `limited` a hard cap, `scheduled` the replicas with a
    node (feedback for `binpack.py`), `ready` the running ones (`failback.py` keeps them). Clusters without a preference
    of their own and without the wildcard are not considered. `key` is the workload, "namespace/name".
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


class Column(Mapping[str, int]):
    """One number per cluster, in the order of the clusters. The dictionary is made when a number is looked up."""

    __slots__ = ("_by_name", "names", "numbers")

    def __init__(self, names: tuple[str, ...], numbers: Sequence[int]) -> None:
        self.names = names
        self.numbers = numbers
        self._by_name: dict[str, int] | None = None

    def to_dict(self) -> dict[str, int]:
        """Return the numbers by name, the same dictionary each time."""
        if self._by_name is None:
            self._by_name = dict(zip(self.names, self.numbers, strict=True))
        return self._by_name

    def placed(self) -> dict[str, int]:
        """Return the numbers that are not 0, by name."""
        return dict(zip(compress(self.names, self.numbers), filter(None, self.numbers), strict=True))

    def values(self) -> Sequence[int]:  # type: ignore[override]  # without a dictionary
        """Return the numbers, in the order of the clusters."""
        return self.numbers

    def items(self) -> ItemsView[str, int]:
        """Return the names with their numbers."""
        return self.to_dict().items()

    def __getitem__(self, name: str) -> int:
        return self.to_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Column) and other.names == self.names:
            return list(other.numbers) == list(self.numbers)
        return self.to_dict() == other

    __hash__ = None  # type: ignore[assignment]  # as of dictionaries


def to_dict(counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return the counts as a dictionary, for many that are looked up."""
    return counts.to_dict() if isinstance(counts, Column) else counts


@dataclass(frozen=True, slots=True)
class Plan:
    """A division: replicas that fit, and those beyond the estimated capacity that stay in their cluster."""

    replicas: Mapping[str, int]
    overflow: dict[str, int]
    because: str = ""
    """Why the rest is not placed, if known: "maxSkew 1 of topology key zone"."""

    def totals(self) -> dict[str, int]:
        """Return the sum of replicas and overflow per cluster."""
        if not self.overflow:
            return dict(self.replicas)
        return {
            cluster: self.replicas.get(cluster, 0) + self.overflow.get(cluster, 0)
            for cluster in {**self.replicas, **self.overflow}
        }


Share = tuple[str, Preference]
"""A cluster and its preference."""


@dataclass(frozen=True, slots=True)
class _Caps:
    """The estimated capacities and the hard caps."""

    estimated: Mapping[str, int]
    limited: Mapping[str, int]


_NO_CAPS = _Caps({}, {})


def plan_replicas(demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` replicas; append a trace to `steps` when given."""
    shares = shares_of(demand)
    keep = demand.keep_unschedulable or not demand.avoid_disruption
    desired = _divide(shares, demand.total, keep, _Caps(demand.estimated, demand.limited), demand.key, steps)
    if not demand.avoid_disruption:
        return desired
    current = capped_current(demand, [cluster for cluster, _ in shares])
    if not any(current.values()) and all(
        own.maximum is None or desired.replicas[cluster] <= own.maximum for cluster, own in shares
    ):
        return desired  # Nothing runs yet, so the approach would end at the same division.
    return Plan(_approach(demand, desired.replicas, current, steps), desired.overflow)


def shares_of(demand: Demand) -> list[Share]:
    """Return the clusters that are considered, each with its preference."""
    fallback, preferences = demand.preferences.get(WILDCARD), demand.preferences
    # A cluster may be listed twice.
    owned = [(cluster, preferences.get(cluster, fallback)) for cluster in dict.fromkeys(demand.clusters)]
    return [(cluster, own) for cluster, own in owned if own is not None]


def _in_order(shares: list[Share], key: str) -> list[Share]:
    """Sort by descending weight, then by the hash of cluster and workload, then by name."""
    hashes = fnv1_32_each([cluster for cluster, _ in shares], key)
    ranked = sorted(zip(hashes, shares, strict=True), key=lambda entry: (-entry[1][1].weight, entry[0], entry[1][0]))
    return [share for _, share in ranked]


def capped_current(demand: Demand, clusters: Iterable[str]) -> dict[str, int]:
    """Return the current replicas per cluster, at most its cap and its capacity estimate."""
    current = demand.current
    held = {cluster: current.get(cluster, 0) for cluster in clusters}
    for caps in (demand.limited, demand.estimated):
        for cluster, cap in caps.items():
            if held.get(cluster, 0) > cap:
                held[cluster] = cap
    return held


def _divide(shares: list[Share], total: int, keep: bool, caps: _Caps, key: str, steps: Steps | None = None) -> Plan:
    """Return the division by weights, bounds and capacities, without regard to current replicas."""
    plan = dict.fromkeys([cluster for cluster, _ in shares], 0)
    alike = _alike(shares)
    if not caps.estimated and not caps.limited and all(own.is_free for own in alike):
        _share_freely(alike, total, key, plan, steps)
        return Plan(plan, {})
    overflow: dict[str, int] = {}
    remaining = _give_minimums(shares := _in_order(shares, key), total, caps, plan, overflow)
    if steps is not None:
        steps.append({"step": "minimums", "total": total, "replicas": placed(plan), "remaining": remaining})
    is_changed = True
    while is_changed and remaining > 0 and any(own.weight for _, own in shares):
        distribute = remaining
        is_changed, shares, remaining = _share_out(shares, remaining, caps, plan, overflow)
        if steps is not None:
            steps.append({"step": "share", "distribute": distribute, "replicas": placed(plan), "remaining": remaining})
    if keep:
        return Plan(plan, overflow)
    trimmed = {cluster: min(extra, remaining) for cluster, extra in overflow.items()}
    return Plan(plan, {cluster: extra for cluster, extra in trimmed.items() if extra > 0})


def _alike(shares: list[Share]) -> dict[Preference, list[str]]:
    """Return the clusters by preference; many of hundreds of clusters share one."""
    alike: dict[Preference, list[str]] = {}
    for cluster, own in shares:
        alike.setdefault(own, []).append(cluster)
    return alike


def _share_freely(
    alike: Mapping[Preference, list[str]], total: int, key: str, plan: dict[str, int], steps: Steps | None
) -> None:
    """Fill in the division for clusters without bounds, in a single round.

    Clusters of one weight get the same number, so only the weight at which the total is used up needs an order.
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
        steps.append({"step": "share", "distribute": total, "replicas": placed(plan), "remaining": remaining})


def placed(replicas: Mapping[str, int]) -> dict[str, int]:
    """Return the clusters with replicas; most of hundreds of clusters have none."""
    return {cluster: number for cluster, number in replicas.items() if number}


def _give_minimums(shares: list[Share], total: int, caps: _Caps, plan: dict[str, int], overflow: dict[str, int]) -> int:
    """Fill in the minimums and their overflow as far as the total suffices; return the remaining replicas."""
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
    shares: list[Share], remaining: int, caps: _Caps, plan: dict[str, int], overflow: dict[str, int]
) -> tuple[bool, list[Share], int]:
    """Run one round in place: give each cluster its share of `remaining` by weight, rounded up.

    Return whether any cluster got more, the clusters of the next round (those at no bound), and the remaining replicas.
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


def _approach(
    demand: Demand, desired: Mapping[str, int], current: dict[str, int], steps: Steps | None
) -> dict[str, int]:
    """Return the division nearest to `desired` that moves no running replica unnecessarily."""
    have, want = sum(current.values()), sum(desired.values())
    if steps is not None:
        steps.append({"step": "desired", "replicas": placed(desired), "current": placed(current)})
    if have == want:
        result = current
    elif have > want:
        result = _scale_down(demand, desired, current, have - want)
    else:
        result = _scale_up(demand, desired, current, want - have)
    if steps is not None and have != want:
        name = "scaleDown" if have > want else "scaleUp"
        steps.append({"step": name, "difference": want - have, "replicas": placed(result)})
    return result


def _scale_down(demand: Demand, desired: Mapping[str, int], current: dict[str, int], amount: int) -> dict[str, int]:
    """Remove `amount` from the clusters with too many replicas, in proportion to their surplus."""
    # No cluster loses more than its surplus, because `amount` is at most the sum of all.
    surplus = [
        (cluster, Preference(held - desired[cluster])) for cluster, held in current.items() if held > desired[cluster]
    ]
    taken = _divide(surplus, amount, True, _NO_CAPS, demand.key).replicas
    return current | {cluster: current[cluster] - number for cluster, number in taken.items()}


def _scale_up(demand: Demand, desired: Mapping[str, int], current: dict[str, int], amount: int) -> dict[str, int]:
    """Add `amount` to the clusters with too few replicas, in proportion to what they lack."""
    lacking = []
    for cluster, wanted in desired.items():
        held = current[cluster]
        if wanted > held:
            # The maximum binds only below the minimum of the same cluster; then it wins, as in KubeAdmiral.
            own = demand.preferences.get(cluster)
            room = None if own is None or own.maximum is None else own.maximum - held
            lacking.append((cluster, Preference(wanted - held, 0, room)))
    given = _divide(lacking, amount, True, _NO_CAPS, demand.key).replicas
    return current | {cluster: current[cluster] + number for cluster, number in given.items()}
