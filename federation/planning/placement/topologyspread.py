"""Spread an amount of replicas over a domain tree: evenly between siblings, within maxSkew of hard constraints. Pure.

A constraint is hard with whenUnsatisfiable DoNotSchedule. No domain then gets a replica that puts it more than maxSkew
above the sibling with the fewest, and clusters without the label get none. With fewer than minDomains eligible
siblings the fewest counts as 0, as in kube-scheduler.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from federation.apimachinery.hashing import fnv1_32_each
from federation.planning.placement.topologydomains import Domain, Shares, SpreadConstraint


@dataclass(slots=True)
class Spread:
    """The state of one distribution: replicas per domain, and the domains that may get more."""

    ranks: Shares
    """The order in which equal siblings get the odd replicas; it differs between workloads."""
    start: Shares = field(default_factory=dict)
    """Replicas that stay."""
    maximum: Shares = field(default_factory=dict)
    minimum: Shares = field(default_factory=dict)
    eligible: set[Domain] = field(default_factory=set)
    binding: dict[str, None] = field(default_factory=dict)
    """Descriptions of the constraints that lower a maximum, in order."""

    def shrink(self, root: Domain, amount: int) -> Shares:
        """Return `amount` replicas per leaf, at most the leaf's maximum; nothing stays and constraints do not apply."""
        self._sum_maximums(root)
        return self.fill(root, amount)

    def _sum_maximums(self, node: Domain) -> None:
        for child in node.parts():
            self._sum_maximums(child)
        if node.constraint is not None:
            self.maximum[node] = sum(self.maximum[child] for child in node.parts())
        self.start[node] = self.minimum[node] = 0

    def apply_constraints(self, node: Domain) -> None:
        """Compute the values of inner domains from those of leaves; hard constraints lower the maximum of domains."""
        if node.constraint is None:
            return
        for part in node.parts():
            self.apply_constraints(part)
        counted = [child for child in node.children if child in self.eligible]
        if node.constraint.is_hard:
            self._apply_hard(node, node.constraint, counted)
        if counted or node.unlabelled in self.eligible:
            self.eligible.add(node)
        for values in (self.start, self.maximum, self.minimum):
            values[node] = sum(values[part] for part in node.parts())

    def _apply_hard(self, node: Domain, constraint: SpreadConstraint, counted: list[Domain]) -> None:
        start, maximum = self.start, self.maximum
        fewest = min((maximum[child] for child in counted), default=0) if len(counted) >= constraint.min_domains else 0
        bound = constraint.max_skew + fewest
        for child in node.children:
            if maximum[child] > max(bound, start[child]):
                maximum[child] = max(bound, start[child])
                self.binding[constraint.describe(len(counted))] = None
        if node.unlabelled is not None:
            self._close(node.unlabelled)
            self.binding[f"the clusters with a label {constraint.topology_key}"] = None

    def _close(self, node: Domain) -> None:
        """Limit a domain to the replicas that stay."""
        for part in node.parts():
            self._close(part)
        self.maximum[node] = self.start[node]
        self.minimum[node] = 0
        self.eligible.discard(node)

    def fill(self, node: Domain, amount: int) -> Shares:
        """Return the replicas per leaf below the node when it gets `amount`."""
        constraint = node.constraint
        if constraint is None:
            return {node: amount}
        start, maximum, unlabelled = self.start, self.maximum, node.unlabelled
        beside = 0
        if unlabelled is not None:
            # Clusters without the label get their minimum, and beyond it only what the labelled ones cannot take.
            spare = amount - sum(start[child] for child in node.children)
            beside = max(start[unlabelled], min(self.minimum[unlabelled], maximum[unlabelled], spare))
            beside = max(beside, amount - sum(maximum[child] for child in node.children))
        counts = self._even(node.children, constraint, amount - beside)
        shares = {} if unlabelled is None else self.fill(unlabelled, beside)
        for child, count in counts.items():
            shares |= self.fill(child, count)
        return shares

    def _even(self, children: tuple[Domain, ...], constraint: SpreadConstraint, amount: int) -> Shares:
        """Return the most even counts that keep `start` and, as far as the constraint allows, the minimums."""
        most = max((min(self.minimum[child], self.maximum[child]) for child in children), default=0)
        if not constraint.is_hard or most == 0:
            return self._level(children, amount, most)
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self._is_within_skew(constraint, self._level(children, amount, middle)):
                low = middle
            else:
                high = middle - 1
        return self._level(children, amount, low)

    def _is_within_skew(self, constraint: SpreadConstraint, counts: Shares) -> bool:
        counted = [count for child, count in counts.items() if child in self.eligible]
        fewest = min(counted, default=0) if len(counted) >= constraint.min_domains else 0
        return all(n <= max(self.start[child], fewest + constraint.max_skew) for child, n in counts.items())

    def _level(self, children: tuple[Domain, ...], amount: int, minimum_max: int) -> Shares:
        """Return counts that start from `start` and minimums up to `minimum_max`; the rest goes to the lowest first."""
        start, maximum = self.start, self.maximum
        floor = {child: start[child] for child in children}
        order: Iterable[Domain] | None = None
        if minimum_max:
            left = amount - sum(floor.values())
            order = sorted(children, key=self.ranks.__getitem__)
            for child in order:
                given = min(left, max(0, min(self.minimum[child], minimum_max, maximum[child]) - floor[child]))
                floor[child] += given
                left -= given
        level = _highest_level(amount, floor, maximum)
        counts = {child: max(floor[child], min(maximum[child], level)) for child in children}
        left = amount - sum(counts.values())
        if left > 0:
            for child in order or sorted(children, key=self.ranks.__getitem__):
                if left and floor[child] <= level < maximum[child]:
                    counts[child] += 1
                    left -= 1
        return counts


def _highest_level(amount: int, floor: Shares, maximum: Shares) -> int:
    """Return the highest level to which the amount raises all, none below its floor or above its maximum."""
    if not floor:
        return 0
    bounds = [(count, maximum[child]) for child, count in floor.items()]
    even = amount // len(bounds)
    if max(floor.values()) <= even < min([most for _, most in bounds]):
        return even  # No bound applies.
    low, high = 0, max([most for _, most in bounds])
    while low < high:
        middle = (low + high + 1) // 2
        if sum([max(least, min(most, middle)) for least, most in bounds]) <= amount:
            low = middle
        else:
            high = middle - 1
    return low


def rank_domains(root: Domain, key: str) -> Shares:
    """Return a rank per domain: by the hash of its name and the workload's key, and by name where hashes are equal."""
    domains, names = _names(root)
    order = sorted(zip(fnv1_32_each(names, key), names, domains, strict=True))
    return {domain: rank for rank, (_, _, domain) in enumerate(order)}


@lru_cache(maxsize=64)
def _names(root: Domain) -> tuple[list[Domain], list[str]]:
    """Return the domains below the root and their names; cached, because one tree serves many workloads."""
    domains = root.descendants()
    return domains, list(map(str, domains))
