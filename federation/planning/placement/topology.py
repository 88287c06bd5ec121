"""Plan replicas under `spec.topologySpread`: first per topology domain, then within each (docs/decisions/0017).

Constraints are nested in their order, so the domains form a tree (`topologydomains.py`); another planner divides within
its leaves. The replicas of a leaf come from its clusters' limits, tier by tier (`topologytiers.py`), under the
constraints (`topologyspread.py`). When a leaf's planner places fewer than that, its number becomes a limit of the leaf
and all replicas are distributed again. Pure and deterministic.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from federation.planning.placement.capacity import (
    FreeCapacity,
    Planner,
    countable_replicas,
    kept_unschedulable,
    upper_bounds,
)
from federation.planning.placement.replicas import WILDCARD, Demand, Plan, Preference, Steps
from federation.planning.placement.topologydomains import Domain, Shares
from federation.planning.placement.topologyspread import Spread, rank_domains
from federation.planning.placement.topologytiers import Tier, compute_tiers, lesser


@dataclass(frozen=True, slots=True)
class Topology:
    """The tree of domains. A domain with only `unavailable` clusters (unready or tainted) gets no more replicas."""

    root: Domain
    unavailable: frozenset[str] = frozenset()
    capacity: FreeCapacity | None = None


class _LeafPlan(NamedTuple):
    """The division within a leaf, its trace, and the number of replicas that it places."""

    plan: Plan
    trace: Steps
    placed: int


def plan_topology_spread(topology: Topology, planner: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` over the domains, and within each of them with `planner`."""
    leaf_limits: Shares = {}
    leaf_plans: dict[tuple[Domain, int], _LeafPlan] = {}
    while True:
        shares, binding = _distribute(topology, demand, leaf_limits)
        lower: Shares = {}
        for leaf, amount in shares.items():
            leaf_plan = leaf_plans.get((leaf, amount))
            if leaf_plan is None:
                leaf_plan = leaf_plans[leaf, amount] = _plan_leaf(planner, demand, leaf, amount)
            if leaf_plan.placed < amount:
                lower[leaf] = leaf_plan.placed
        if not lower:
            break
        leaf_limits |= lower
        # For exactly that number a planner might place fewer still, so this plan is kept for it.
        leaf_plans |= {(leaf, placed): leaf_plans[leaf, shares[leaf]] for leaf, placed in lower.items()}
    reason = " and ".join(binding) if sum(shares.values()) < demand.total else ""
    return _merge(demand, {leaf: leaf_plans[leaf, amount] for leaf, amount in shares.items()}, shares, reason, steps)


def _merge(
    demand: Demand, leaf_plans: Mapping[Domain, _LeafPlan], shares: Shares, reason: str, steps: Steps | None
) -> Plan:
    """Return the plans of all leaves as one."""
    replicas: dict[str, int] = {}
    plan = Plan(replicas, {}, because=reason)
    if steps is not None:
        steps.append({"step": "topology", "domains": {str(leaf): n for leaf, n in shares.items()}})
    for leaf, (part, trace, _) in leaf_plans.items():
        replicas.update(part.replicas)
        plan.overflow.update(part.overflow)
        if steps is not None and trace:
            domain = str(leaf)
            steps += [{"step": step["step"], "domain": domain, **step} for step in trace]
    if demand.keep_unschedulable:
        every = dict.fromkeys(demand.clusters, 0) | replicas
        for cluster, count in kept_unschedulable(demand, countable_replicas(demand), every).items():
            plan.overflow[cluster] = max(count, plan.overflow.get(cluster, 0))
    return plan


def _plan_leaf(planner: Planner, demand: Demand, leaf: Domain, amount: int) -> _LeafPlan:
    """Return the planner's division of the amount over the clusters of a leaf."""
    if not amount and demand.current.keys().isdisjoint(leaf.clusters):
        return _LeafPlan(Plan(dict.fromkeys(leaf.clusters, 0), {}), [], 0)
    leaf_demand = _restrict(demand, leaf.clusters, amount)
    result = _run(planner, leaf_demand)
    if result.placed < amount and leaf_demand.current and demand.avoid_disruption:
        preferences = demand.preferences
        stays = {
            c: lesser(n, preferences[c].maximum if c in preferences else None)
            for c, n in countable_replicas(leaf_demand).items()
            if n
        }
        if result.placed < min(amount, sum(stays.values())):
            # All weight is on other clusters than those that run the replicas. That is no reason to move them.
            return _run(planner, replace(leaf_demand, preferences={c: Preference(n, 0, n) for c, n in stays.items()}))
    return result


def _restrict(demand: Demand, clusters: tuple[str, ...], total: int) -> Demand:
    """Return the demand for some of its clusters."""

    def only(values: Mapping[str, int]) -> dict[str, int]:
        return {cluster: values[cluster] for cluster in clusters if cluster in values} if values else {}

    preferences = demand.preferences
    if preferences:
        preferences = {name: preferences[name] for name in (*clusters, WILDCARD) if name in preferences}
    return Demand(
        total=total,
        clusters=clusters,
        preferences=preferences,
        key=demand.key,
        current=only(demand.current),
        estimated=only(demand.estimated),
        limited=only(demand.limited),
        scheduled=only(demand.scheduled),
        avoid_disruption=demand.avoid_disruption,
        keep_unschedulable=demand.keep_unschedulable,
    )


def _run(planner: Planner, demand: Demand) -> _LeafPlan:
    trace: Steps = []
    plan = planner(demand, trace)
    return _LeafPlan(plan, trace, sum(plan.replicas.values()) + sum(plan.overflow.values()))


def _distribute(topology: Topology, demand: Demand, leaf_limits: Shares) -> tuple[Shares, Iterable[str]]:
    """Return the replicas per leaf, and the constraints that kept some replicas from being placed."""
    root, held = topology.root, countable_replicas(demand)
    leaves, has_held = root.leaves(), any(held.values())
    present = dict.fromkeys(leaves, 0)
    if has_held:
        present = {leaf: sum(map(held.__getitem__, leaf.clusters)) for leaf in leaves}
    start = dict.fromkeys(leaves, 0)
    if has_held and demand.avoid_disruption:
        start = {leaf: lesser(count, leaf_limits.get(leaf)) for leaf, count in present.items()}
    ranks = rank_domains(root, demand.key)
    if sum(start.values()) >= demand.total:
        return Spread(ranks, maximum=start).shrink(root, demand.total), ()
    bounds = upper_bounds(replace(demand, estimated={}) if demand.estimated else demand)
    distribution = _Distribution(root, demand.total, ranks, leaves, _eligible(topology, demand, leaf_limits, bounds))
    for tier in compute_tiers(demand, leaves, present, bounds, leaf_limits, topology.capacity):
        start = distribution.extend(tier, start)
        if sum(start.values()) == demand.total:
            break
    return start, distribution.binding


def _eligible(topology: Topology, demand: Demand, leaf_limits: Shares, bounds: Mapping[str, int]) -> frozenset[Domain]:
    """Return the leaves that may get more replicas."""
    unavailable, unweighted = topology.unavailable, _unweighted(demand)
    return frozenset(
        [
            leaf
            for leaf in topology.root.leaves()
            if leaf_limits.get(leaf, 1) > 0
            and (not bounds or any(bounds.get(c, 1) > 0 for c in leaf.clusters))
            and not (unavailable and unavailable.issuperset(leaf.clusters))
            and not (unweighted and unweighted.issuperset(leaf.clusters))
        ]
    )


def _unweighted(demand: Demand) -> frozenset[str]:
    """Return the clusters that get nothing, because others have weights and they do not."""
    preferences = demand.preferences.items()
    if not any(own.weight for _, own in preferences):
        return frozenset()
    return frozenset([cluster for cluster, own in preferences if not own.weight and not own.minimum])


@dataclass(slots=True)
class _Distribution:
    """A distribution over the leaves that grows tier by tier."""

    root: Domain
    total: int
    ranks: Shares
    leaves: list[Domain]
    eligible: frozenset[Domain]
    tiers: list[Tier] = field(default_factory=list)
    binding: Iterable[str] = ()

    def extend(self, tier: Tier, start: Shares) -> Shares:
        """Return the shares with as many more as the tier and the constraints allow."""
        self.tiers.append(tier)
        spread = self._spread(tier, start)
        self.binding = spread.binding
        shares = spread.fill(self.root, min(self.total, spread.maximum[self.root]))
        if len(self.tiers) == 1 or sum(shares.values()) < self.total or not self._has_hard_constraint():
            return shares
        # A replica that waits for capacity in the domain with the fewest may let others run elsewhere within maxSkew.
        # The search finds the smallest number of this tier's replicas with which the earlier tiers place all others.
        low, high = 0, self.total - sum(start.values())
        while low < high:
            middle = (low + high) // 2
            if sum(self._refill(start, middle).values()) < self.total:
                low = middle + 1
            else:
                high = middle
        return self._refill(start, low)

    def _has_hard_constraint(self) -> bool:
        return any(constraint.is_hard for constraint in self.root.constraints())

    def _refill(self, start: Shares, more: int) -> Shares:
        """Return the shares after `more` replicas of the last tier, and then as many as the earlier tiers allow."""
        shares = self._raise(self.tiers[-1], start, sum(start.values()) + more)
        for tier in self.tiers[:-1]:
            shares = self._raise(tier, shares, self.total)
        return shares

    def _raise(self, tier: Tier, shares: Shares, amount: int) -> Shares:
        spread = self._spread(tier, shares)
        return spread.fill(self.root, min(amount, spread.maximum[self.root]))

    def _spread(self, tier: Tier, shares: Shares) -> Spread:
        spread = Spread(self.ranks, start=dict(shares), minimum=dict(tier.minimum), eligible=set(self.eligible))
        for leaf in self.leaves:
            spread.maximum[leaf] = max(shares[leaf], tier.maximum[leaf] if leaf in self.eligible else 0)
        spread.apply_constraints(self.root)
        return spread
