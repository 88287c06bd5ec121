"""Divide replicas over domains of clusters, then within each: `spec.topologySpread` (docs/decisions/0017).

A domain is the clusters that carry the same value of a label. Constraints are nested in their order: domains of the
first, inside each of them domains of the second, and so on; a tree, whose leaves another planner divides as the policy
says. Between the domains of one parent replicas are as even as possible; a hard constraint (DoNotSchedule) never lets
one get a replica that puts it more than `skew_max` above the domain with the fewest.

What a domain can take comes from its clusters' bounds, in steps (`_tiers`): first what surely fits, last what waits for
room. What the planner of a leaf cannot place, contrary to these bounds, is learnt and divided anew. Pure and
deterministic; `tree.py` knows who belongs where.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from federation.planning.hashing import fnv1_32_each
from federation.planning.placement.replicas import WILDCARD, Demand, Plan, Preference, Steps
from federation.planning.placement.room import Counts, Planner, Rooms, bounds_of, held_of, kept_of
from federation.planning.placement.tree import Domain, SpreadConstraint

Shares = dict[Domain, int]
"""Domain → replicas."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The tree of domains; `closed` clusters are unready or tainted: a domain of only such gets no more."""

    root: Domain
    closed: frozenset[str] = frozenset()
    rooms: Rooms | None = None


def plan_over(topology: Topology, planner: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` over the domains, and within each of them with `planner`."""
    learnt: Shares = {}
    answers: dict[tuple[Domain, int], _Answer] = {}
    while True:
        shares, binding = _share_out(topology, demand, learnt)
        less: Shares = {}
        for leaf, amount in shares.items():
            answer = answers.get((leaf, amount))
            if answer is None:
                answer = answers[leaf, amount] = _ask(planner, demand, leaf, amount)
            if answer.placed < amount:
                less[leaf] = answer.placed
        if not less:
            break
        learnt |= less
        # Asked for just that many, a planner might place fewer still.
        answers |= {(leaf, most): answers[leaf, shares[leaf]] for leaf, most in less.items()}
    plan = Plan({}, {}, because=" and ".join(binding) if sum(shares.values()) < demand.total else "")
    if steps is not None:
        steps.append({"step": "topology", "domains": {str(leaf): n for leaf, n in shares.items()}})
    for leaf, amount in shares.items():
        part, trace, _ = answers[leaf, amount]
        plan.replicas.update(part.replicas)
        plan.overflow.update(part.overflow)
        if steps is not None and trace:
            domain = str(leaf)
            steps += [{"step": step["step"], "domain": domain, **step} for step in trace]
    if demand.keep_unschedulable:
        every = dict.fromkeys(demand.clusters, 0) | plan.replicas
        for cluster, count in kept_of(demand, held_of(demand), every).items():
            plan.overflow[cluster] = max(count, plan.overflow.get(cluster, 0))
    return plan


class _Answer(NamedTuple):
    """A planner's division within a leaf, its trace, and how many it places."""

    plan: Plan
    trace: Steps
    placed: int


def _ask(planner: Planner, demand: Demand, leaf: Domain, amount: int) -> _Answer:
    """Return how the planner divides so many replicas over the clusters of a leaf, and its trace."""
    here = leaf.clusters

    def only(values: Mapping[str, int]) -> dict[str, int]:
        return {cluster: values[cluster] for cluster in here if cluster in values} if values else {}

    own, current = demand.preferences, only(demand.current)
    if not amount and not current:
        return _Answer(Plan(dict.fromkeys(here, 0), {}), [], 0)
    asked = Demand(
        total=amount,
        clusters=here,
        preferences={name: own[name] for name in (*here, WILDCARD) if name in own} if own else {},
        key=demand.key,
        current=current,
        estimated=only(demand.estimated),
        limited=only(demand.limited),
        scheduled=only(demand.scheduled),
        avoid_disruption=demand.avoid_disruption,
        keep_unschedulable=demand.keep_unschedulable,
    )
    answer = _answer_of(planner, asked)
    if answer.placed < amount and current and demand.avoid_disruption:
        stays = {c: _least(n, own[c].maximum if c in own else None) for c, n in held_of(asked).items() if n}
        if answer.placed < min(amount, sum(stays.values())):
            # The policy wants nothing of what runs here, in clusters without a weight: that is no reason to move it.
            return _answer_of(planner, replace(asked, preferences={c: Preference(n, 0, n) for c, n in stays.items()}))
    return answer


def _answer_of(planner: Planner, demand: Demand) -> _Answer:
    trace: Steps = []
    plan = planner(demand, trace)
    return _Answer(plan, trace, sum(plan.replicas.values()) + sum(plan.overflow.values()))


@dataclass(slots=True)
class _Round:
    """Replicas per domain: what it has, the most that it may have, its clusters' minimums; and the open ones."""

    ranks: Shares
    """The order in which what is left over goes to equals: another one for every workload."""
    start: Shares = field(default_factory=dict)
    top: Shares = field(default_factory=dict)
    minimum: Shares = field(default_factory=dict)
    is_open: set[Domain] = field(default_factory=set)
    binding: dict[str, None] = field(default_factory=dict)


class _Tier(NamedTuple):
    """The most per leaf of one step, and its clusters' minimums as far as that allows."""

    top: Shares
    minimum: Shares


def _share_out(topology: Topology, demand: Demand, learnt: Shares) -> tuple[Shares, Iterable[str]]:
    """Return replicas per leaf, and what kept more from being placed."""
    root, total, held = topology.root, demand.total, held_of(demand)
    leaves, has_held = root.leaves(), any(held.values())
    here = (
        {leaf: sum(map(held.__getitem__, leaf.clusters)) for leaf in leaves} if has_held else dict.fromkeys(leaves, 0)
    )
    start = dict.fromkeys(leaves, 0)
    if has_held and demand.avoid_disruption:
        start = {leaf: _least(here[leaf], learnt.get(leaf)) for leaf in leaves}
    if sum(start.values()) >= total:
        running = _Round(_ranks(root, demand.key), top=dict(start))
        _sum_up(root, running)
        return _fill(root, total, running), ()
    limits = bounds_of(replace(demand, estimated={}) if demand.estimated else demand)
    unwanted = _unwanted(demand)
    is_open = {
        leaf
        for leaf in leaves
        if learnt.get(leaf, 1) > 0
        and (not limits or any(limits.get(c, 1) > 0 for c in leaf.clusters))
        and not (topology.closed and topology.closed.issuperset(leaf.clusters))
        and not (unwanted and unwanted.issuperset(leaf.clusters))
    }
    is_hard = any(constraint.is_hard for constraint in root.constraints())
    minimums = {c: own.minimum for c, own in demand.preferences.items() if own.minimum and c in held}
    tiers: list[_Tier] = []
    ranks = _ranks(root, demand.key)

    def raised(tier: _Tier, shares: Shares, most: int) -> tuple[Shares, _Round]:
        """Return the shares with more, up to a sum of `most`, as far as the tier and the constraints allow."""
        current = _Round(ranks, start=dict(shares), is_open=set(is_open))
        for leaf in leaves:
            current.top[leaf] = max(shares[leaf], tier.top[leaf] if leaf in is_open else 0)
            current.minimum[leaf] = tier.minimum[leaf]
        _measure(root, current)
        return _fill(root, min(most, current.top[root]), current), current

    def refilled(number: int, more: int) -> Shares:
        """Return the shares after giving away so many in this tier, and then what the earlier ones let follow."""
        shares, _ = raised(tiers[number], start, sum(start.values()) + more)
        for tier in tiers[:number]:
            shares, _ = raised(tier, shares, total)
        return shares

    for number, tops in enumerate(_tiers(demand, held, limits, minimums, topology.rooms)):
        tiers.append(_to_tier(leaves, tops, here, total, minimums, learnt))
        fullest, current = raised(tiers[number], start, total)
        if number and is_hard and sum(fullest.values()) == total:
            # Each replica that waits for room in the domain with the fewest may let others run elsewhere: as few as do.
            low, high = 0, total - sum(start.values())
            while low < high:
                middle = (low + high) // 2
                if sum(refilled(number, middle).values()) < total:
                    low = middle + 1
                else:
                    high = middle
            fullest = refilled(number, low)
        start = fullest
        if sum(start.values()) == total:
            break
    return start, current.binding


def _unwanted(demand: Demand) -> frozenset[str]:
    """Return the clusters that get nothing, because others have weights and they do not."""
    preferences = demand.preferences.items()
    if not any(own.weight for _, own in preferences):
        return frozenset()
    return frozenset([cluster for cluster, own in preferences if not own.weight and not own.minimum])


class _Tops(NamedTuple):
    """The most per cluster of one step: `bounded`, or when nothing bounds clusters what is there and `room` more.

    Without a room either it is everything.
    """

    room: Counts | None = None
    bounded: Counts | None = None


def _tiers(demand: Demand, held: Counts, limits: Counts, minimums: Counts, rooms: Rooms | None) -> Iterator[_Tops]:
    """Yield the most per cluster, in the order in which it is used; the last is what policy and user allow.

    What runs somewhere and need not be disrupted is never more than the most there.
    """
    total, bounds = demand.total, bounds_of(demand) if demand.estimated else limits

    def raised(tops: dict[str, int]) -> _Tops:
        if demand.avoid_disruption:
            tops |= {c: count for c, count in held.items() if count > tops[c]}
        return _Tops(bounded=tops)

    for room in (None,) if rooms is None else rooms.tiers:
        if not bounds and not minimums:
            yield _Tops(room)
        elif room is None:
            yield raised({c: min(bounds.get(c, total), total) for c in held})
        else:
            yield raised({c: min(bounds.get(c, total), count + room[c]) for c, count in held.items()})
    if demand.estimated and demand.avoid_disruption:
        # What cannot run where it is stays there rather than wait elsewhere.
        yield raised({c: min(limits.get(c, total), demand.current.get(c, 0)) for c in held})
    yield raised({c: min(limits.get(c, total), total) for c in held}) if limits or minimums else _Tops()


def _to_tier(
    leaves: Iterable[Domain], tops: _Tops, here: Shares, total: int, minimums: Counts, learnt: Shares
) -> _Tier:
    top, minimum, (room, bounded) = {}, dict.fromkeys(leaves, 0), tops
    for leaf in leaves:
        most = total
        if bounded is not None:
            most = sum(map(bounded.__getitem__, leaf.clusters))
            if minimums:
                minimum[leaf] = sum([min(minimums[c], bounded[c]) for c in leaf.clusters if c in minimums])
        elif room is not None:
            most = here[leaf] + sum(map(room.__getitem__, leaf.clusters))
        top[leaf] = min(_least(most, learnt.get(leaf)), total)
    return _Tier(top, minimum)


def _sum_up(node: Domain, current: _Round) -> None:
    """Fill in the inner domains of a round that takes away: nobody keeps more than it has, nobody must keep any."""
    for child in node.parts():
        _sum_up(child, current)
    if node.constraint is not None:
        current.top[node] = sum(current.top[child] for child in node.parts())
    current.start[node] = current.minimum[node] = 0


def _measure(node: Domain, current: _Round) -> None:
    """Fill in the inner domains of a round, and lower the tops of children that a hard constraint keeps down."""
    constraint, children = node.constraint, node.children
    if constraint is None:
        return
    for part in node.parts():
        _measure(part, current)
    start, top = current.start, current.top
    counted = [child for child in children if child in current.is_open]
    if constraint.is_hard:
        bound = constraint.skew_max + (
            min((top[child] for child in counted), default=0) if len(counted) >= constraint.domains_min else 0
        )
        for child in children:
            if top[child] > max(bound, start[child]):
                top[child] = max(bound, start[child])
                current.binding[constraint.describe(len(counted))] = None
        if node.rest is not None:
            _close(node.rest, current)
            current.binding[f"the clusters with a label {constraint.key}"] = None
    if counted or (node.rest is not None and node.rest in current.is_open):
        current.is_open.add(node)
    for values in (start, top, current.minimum):
        values[node] = sum(values[part] for part in node.parts())


def _close(node: Domain, current: _Round) -> None:
    """Let a domain keep what it has and get no more."""
    for part in node.parts():
        _close(part, current)
    current.top[node] = current.start[node]
    current.minimum[node] = 0
    current.is_open.discard(node)


def _fill(node: Domain, amount: int, current: _Round) -> Shares:
    """Return replicas per leaf below the node, which gets `amount` of them."""
    constraint = node.constraint
    if constraint is None:
        return {node: amount}
    start, top, rest = current.start, current.top, node.rest
    beside = 0
    if rest is not None:
        spare = amount - sum(start[child] for child in node.children)
        beside = max(start[rest], min(current.minimum[rest], top[rest], spare))
        beside = max(beside, amount - sum(top[child] for child in node.children))
    counts = _even(node.children, constraint, amount - beside, current)
    shares = {} if rest is None else _fill(rest, beside, current)
    for child, count in counts.items():
        shares |= _fill(child, count, current)
    return shares


def _even(children: tuple[Domain, ...], constraint: SpreadConstraint, amount: int, current: _Round) -> Shares:
    """Return the most even counts that keep what is there and, as far as the constraint lets them, minimums."""
    start, top, minimum = current.start, current.top, current.minimum
    most = max((min(minimum[child], top[child]) for child in children), default=0)
    if not constraint.is_hard or most == 0:
        return _raised(children, amount, current, most)
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        counts = _raised(children, amount, current, middle)
        counted = [counts[child] for child in children if child in current.is_open]
        fewest = min(counted, default=0) if len(counted) >= constraint.domains_min else 0
        if all(n <= max(start[child], fewest + constraint.skew_max) for child, n in counts.items()):
            low = middle
        else:
            high = middle - 1
    return _raised(children, amount, current, low)


def _raised(children: tuple[Domain, ...], amount: int, current: _Round, minimum_max: int) -> Shares:
    """Return counts from what is there and minimums up to `minimum_max` upwards, always to those with the fewest."""
    start, top = current.start, current.top
    floor = {child: start[child] for child in children}
    order: Iterable[Domain] | None = None
    if minimum_max:
        left = amount - sum(floor.values())
        order = sorted(children, key=current.ranks.__getitem__)
        for child in order:
            given = min(left, max(0, min(current.minimum[child], minimum_max, top[child]) - floor[child]))
            floor[child] += given
            left -= given
    level = _level(amount, floor, top)
    counts = {child: max(floor[child], min(top[child], level)) for child in children}
    left = amount - sum(counts.values())
    if left > 0:
        for child in order or sorted(children, key=current.ranks.__getitem__):
            if left and floor[child] <= level < top[child]:
                counts[child] += 1
                left -= 1
    return counts


def _level(amount: int, floor: Shares, top: Shares) -> int:
    """Return how high all can be filled with the amount, where nobody goes below its floor or above its top."""
    if not floor:
        return 0
    bounds = [(count, top[child]) for child, count in floor.items()]
    even = amount // len(bounds)
    if max(floor.values()) <= even < min([most for _, most in bounds]):
        return even  # Nobody is held down or up.
    low, high = 0, max([most for _, most in bounds])
    while low < high:
        middle = (low + high + 1) // 2
        if sum([max(least, min(most, middle)) for least, most in bounds]) <= amount:
            low = middle
        else:
            high = middle - 1
    return low


def _ranks(root: Domain, key: str) -> Shares:
    """Return a rank for each domain: by the hash of its name and the workload, and by name should two be equal."""
    domains, names = _names_of(root)
    order = sorted(zip(fnv1_32_each(names, key), names, domains, strict=True))
    return {domain: rank for rank, (_, _, domain) in enumerate(order)}


@lru_cache(maxsize=64)
def _names_of(root: Domain) -> tuple[list[Domain], list[str]]:
    """Return the domains below one, and their names; the last ones are remembered, trees are used many times."""
    domains = root.below()
    return domains, list(map(str, domains))


def _least(amount: int, bound: int | None) -> int:
    return amount if bound is None else min(amount, bound)
