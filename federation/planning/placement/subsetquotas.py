"""Divide the replicas of one workload over the subsets of a WorkloadSpread, and within each over its clusters. Pure.

Subsets are filled in their order, up to their caps and to the capacity of their clusters; each passes the rest on, and
the last rest is divided over all clusters. Scale-in goes in the opposite order. Within a subset another planner
divides, with the weights, bounds and capacities of the workload's policy. Unless disruption is allowed, replicas keep
their subset and their cluster while the total allows it. Clusters that do not answer keep their quotas: their pods are
unknown, so no other cluster gets their share, and they lose replicas only after all others. Where pods of a subset have
no node, the subset keeps the replicas that have one, and the others go to its other clusters, then to later subsets.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from federation.planning.placement.capacity import Planner, countable_replicas, kept_unschedulable, upper_bounds
from federation.planning.placement.replicas import WILDCARD, Demand, Plan, Preference, Steps

Counts = Mapping[str, int]
Quotas = dict[str, dict[str, int]]
"""Replicas by subset and cluster; neither has entries of 0."""
REST = ""
"""The stage behind the subsets; no subset has an empty name."""


@dataclass(frozen=True, slots=True)
class SubsetClusters:
    """A subset: its cap in replicas (None without one), and its clusters, of which some may not be selected."""

    name: str
    cap: int | None
    clusters: frozenset[str]


@dataclass(frozen=True, slots=True)
class SubsetSpread:
    """The subsets of a workload, highest priority first.

    `held` are the quotas of the last decision. `frozen` are the clusters that do not answer. `running` are the replicas
    with a node by cluster and subset, only where a subset also has replicas without one.
    """

    name: str
    subsets: tuple[SubsetClusters, ...]
    held: Quotas = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    running: Mapping[str, Counts] = field(default_factory=dict)

    def caps(self) -> dict[str, int]:
        """Return the cap of each subset that has one."""
        return {subset.name: subset.cap for subset in self.subsets if subset.cap is not None}


def attribute_replicas(subsets: Iterable[SubsetClusters], replicas: Counts, known: Mapping[str, Counts]) -> Quotas:
    """Return the quotas of replicas that are divided over clusters already.

    Known quotas hold as far as cluster and cap have the replicas. The others are adopted by the subsets in their order;
    what no subset can take has no quota.
    """
    left, quotas = dict(replicas), {}
    listed = tuple(subsets)
    for subset in listed:
        quotas[subset.name] = _take_over(subset, left, known.get(subset.name) or {}, subset.cap)
    for subset in listed:
        own = quotas[subset.name]
        spare = None if subset.cap is None else subset.cap - sum(own.values())
        for cluster, count in _take_over(subset, left, left, spare).items():
            own[cluster] = own.get(cluster, 0) + count
    return {name: own for name, own in quotas.items() if own}


def _take_over(subset: SubsetClusters, left: dict[str, int], wanted: Counts, spare: int | None) -> dict[str, int]:
    """Return the replicas of `wanted` that the subset takes, and remove them from `left`."""
    taken = {}
    for cluster in sorted(subset.clusters & wanted.keys() & left.keys()):
        count = min(wanted[cluster], left[cluster])
        if spare is not None:
            count = min(count, spare)
            spare -= max(0, count)
        if count > 0:
            taken[cluster] = count
    for cluster, count in taken.items():
        left[cluster] -= count
    return taken


def by_cluster(quotas: Mapping[str, Counts]) -> Quotas:
    """Return quotas by cluster and subset, clusters in alphabetical order."""
    turned: Quotas = {}
    for subset, own in quotas.items():
        for cluster, count in own.items():
            turned.setdefault(cluster, {})[subset] = count
    return dict(sorted(turned.items()))


def plan_quotas(
    spread: SubsetSpread, free: Counts, planner: Planner, demand: Demand, steps: Steps | None = None
) -> Plan:
    """Divide `demand.total` over the subsets and their clusters.

    `free` is the number of further replicas that fit into each cluster; a missing cluster has any number. Replicas
    that fit nowhere are divided without that limit, in the order of the subsets. The step `subsets` of the trace has
    the quotas, those of the rest under the name "".
    """
    division = _Division(spread, free, planner, demand, steps)
    division.shrink()
    division.fill(is_within_capacity=True)
    division.fill(is_within_capacity=False)
    if steps is not None:
        quotas = {stage.name: _positive(division.quotas[stage.name]) for stage in division.stages}
        steps.append({"step": "subsets", "quotas": quotas})
    replicas = {cluster: division.planned(cluster) for cluster in demand.clusters}
    return Plan(replicas, kept_unschedulable(demand, division.present, replicas))


class _Division:
    """The quotas of one division while they are computed."""

    def __init__(
        self, spread: SubsetSpread, free: Counts, planner: Planner, demand: Demand, steps: Steps | None
    ) -> None:
        clusters = frozenset(demand.clusters)
        stages = [replace(subset, clusters=subset.clusters & clusters) for subset in spread.subsets]
        self.stages = [*stages, SubsetClusters(REST, None, clusters)]
        self.present = countable_replicas(demand)
        self.held = attribute_replicas(self.stages, self.present, spread.held)
        self._frozen = spread.frozen & clusters
        self._running = spread.running
        self._planner, self._demand, self._steps, self._free = planner, demand, steps, free
        self._bounds = upper_bounds(demand)
        self._bounds_without_estimates = (
            upper_bounds(replace(demand, estimated={})) if demand.estimated else self._bounds
        )
        self.quotas: Quotas = {
            stage.name: {
                cluster: count if cluster in self._frozen else min(count, self._running_in(stage.name, cluster, count))
                for cluster, count in self.held.get(stage.name, {}).items()
                if demand.avoid_disruption or cluster in self._frozen
            }
            for stage in self.stages
        }

    def _running_in(self, stage: str, cluster: str, default: int) -> int:
        """Return the replicas with a node in a stage of a cluster if it has some without; else the default."""
        return self._running.get(cluster, {}).get(stage, default)

    def planned(self, cluster: str) -> int:
        """Return the replicas of a cluster in all stages."""
        return sum(own.get(cluster, 0) for own in self.quotas.values())

    def missing(self) -> int:
        """Return the replicas that are not divided yet; a negative number when there are too many."""
        return self._demand.total - sum(sum(own.values()) for own in self.quotas.values())

    def shrink(self) -> None:
        """Remove surplus replicas: the rest first, then the subsets in reverse; silent clusters lose theirs last."""
        for is_frozen in (False, True):
            for stage in reversed(self.stages):
                surplus, own = -self.missing(), self.quotas[stage.name]
                if surplus <= 0:
                    return
                held = {c: count for c, count in own.items() if count and (c in self._frozen) is is_frozen}
                kept = max(0, sum(held.values()) - surplus)
                plan = self._plan(held, kept, held, held, avoid_disruption=True) if kept else {}
                losses = {cluster: count - plan.get(cluster, 0) for cluster, count in held.items()}
                for cluster, loss in _trimmed(losses, held, sum(held.values()) - kept).items():
                    own[cluster] -= loss

    def fill(self, *, is_within_capacity: bool) -> None:
        """Give the missing replicas to the stages in their order."""
        for stage in self.stages:
            missing, own = self.missing(), self.quotas[stage.name]
            if stage.cap is not None:
                missing = min(missing, stage.cap - sum(own.values()))
            if missing <= 0:
                continue
            tops = {cluster: self._top(stage.name, cluster, is_within_capacity) for cluster in stage.clusters}
            held = self.held.get(stage.name, {}) if is_within_capacity else own
            # Other planners let replicas stay above a limit.
            current = {c: count if (top := tops[c]) is None else min(count, top) for c, count in held.items()}
            fits = [top for top in tops.values() if top is not None]
            if len(fits) == len(tops):
                missing = min(missing, sum(fits) - sum(own.values()))
            if missing <= 0:
                continue
            keeps = self._demand.avoid_disruption or not is_within_capacity
            plan = self._plan(stage.clusters, sum(own.values()) + missing, current, tops, avoid_disruption=keeps)
            for cluster in self._demand.clusters:
                gain = min(missing, plan.get(cluster, 0) - own.get(cluster, 0))
                if gain > 0:
                    own[cluster] = own.get(cluster, 0) + gain
                    missing -= gain

    def _top(self, stage: str, cluster: str, is_within_capacity: bool) -> int | None:
        """Return the largest quota of a cluster in a stage, not below its present one; None without a limit."""
        bounds = self._bounds if is_within_capacity else self._bounds_without_estimates
        limits = [bounds[cluster]] if cluster in bounds else []
        if is_within_capacity and cluster in self._free:
            limits.append(self.present[cluster] + max(0, self._free[cluster]))
        if cluster in self._frozen:
            limits.append(self.present[cluster])
        own = self.quotas[stage].get(cluster, 0)
        tops = [min(limits) - self.planned(cluster) + own] if limits else []
        if is_within_capacity and cluster in self._running:
            # The rest has no other nodes: its pods would be pending where those of the subsets are.
            running = own if stage == REST else self._running_in(stage, cluster, -1)
            tops += [running] if running >= 0 else []
        return max(own, min(tops)) if tops else None

    def _plan(
        self,
        clusters: Iterable[str],
        total: int,
        current: Counts,
        tops: Mapping[str, int | None],
        *,
        avoid_disruption: bool,
    ) -> dict[str, int]:
        """Return the other planner's division over some clusters."""
        chosen = frozenset(clusters)
        demand, preferences = self._demand, {}
        fallback = demand.preferences.get(WILDCARD)
        for cluster in chosen:
            own = demand.preferences.get(cluster, fallback)
            if own is not None or not demand.preferences:
                weight, minimum, _ = own or Preference()
                top = tops[cluster]
                preferences[cluster] = Preference(weight, minimum if top is None else min(minimum, top), top)
        plan = self._planner(
            Demand(
                total=total,
                clusters=tuple(cluster for cluster in demand.clusters if cluster in chosen),
                preferences=preferences,
                key=demand.key,
                current={cluster: count for cluster, count in current.items() if cluster in chosen},
                scheduled={c: min(n, current.get(c, 0)) for c, n in demand.scheduled.items() if c in chosen},
                avoid_disruption=avoid_disruption,
            ),
            self._steps,
        )
        return plan.totals()


def _trimmed(losses: Counts, held: Counts, amount: int) -> dict[str, int]:
    """Return losses of exactly `amount` in total: the planner's first, then those of the largest quotas."""
    result = {}
    for cluster, loss in losses.items():
        result[cluster] = max(0, min(loss, amount, held[cluster]))
        amount -= result[cluster]
    for cluster in sorted(held, key=lambda name: (result[name] - held[name], name)):
        more = min(amount, held[cluster] - result[cluster])
        result[cluster] += more
        amount -= more
    return result


def _positive(counts: Counts) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def planned_quotas(steps: Sequence[Mapping[str, object]]) -> Mapping[str, Counts]:
    """Return the quotas of the first step `subsets` of a trace; {} without one."""
    for step in steps:
        if step.get("step") == "subsets":
            quotas = step.get("quotas")
            return quotas if isinstance(quotas, Mapping) else {}
    return {}
