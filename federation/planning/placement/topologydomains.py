"""The tree of topology domains that spread constraints make of clusters, and the skew of a placement. Pure.

A constraint divides the clusters of a domain by the value of a label; clusters without the label are `unlabelled`. The
next constraint divides each of these again. Domains compare by identity, and a tree is built once per set of clusters.
`topology.py` divides replicas over the tree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

SEPARATOR = "/"
NO_LABEL = "(no label)"
Groups = dict[tuple[str | None, ...], list[str]]
"""Clusters by the values of all constraints' labels, None for a missing label."""
Shares = dict["Domain", int]
"""Replicas per domain."""


class SpreadConstraint(NamedTuple):
    """One entry of `spec.topologySpread`. `is_hard` is whenUnsatisfiable DoNotSchedule."""

    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    is_hard: bool = True

    def describe(self, domains: int) -> str:
        """Return the constraint as a reason for unplaced replicas; `domains` is the number of eligible domains."""
        few = f" (it has {domains} of at least {self.min_domains} domains)" if domains < self.min_domains else ""
        return f"maxSkew {self.max_skew} of topology key {self.topology_key}{few}"

    def to_json(self) -> dict[str, Any]:
        """Return the constraint as in a policy."""
        entry: dict[str, Any] = {
            "topologyKey": self.topology_key,
            "maxSkew": self.max_skew,
            "whenUnsatisfiable": "DoNotSchedule" if self.is_hard else "ScheduleAnyway",
        }
        return entry if self.min_domains == 1 else entry | {"minDomains": self.min_domains}


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """Clusters with the label values `path`; `constraint` spreads replicas over the children, None in a leaf."""

    path: tuple[str, ...]
    clusters: tuple[str, ...]
    constraint: SpreadConstraint | None = None
    children: tuple["Domain", ...] = ()
    unlabelled: "Domain | None" = None
    """The clusters without the constraint's label."""

    def __str__(self) -> str:
        return SEPARATOR.join(self.path)

    def parts(self) -> tuple["Domain", ...]:
        """Return the children and the unlabelled domain, which together have all clusters."""
        return self.children if self.unlabelled is None else (*self.children, self.unlabelled)

    def leaves(self) -> list["Domain"]:
        """Return the domains without a constraint."""
        if self.constraint is None:
            return [self]
        return [leaf for part in self.parts() for leaf in part.leaves()]

    def descendants(self) -> list["Domain"]:
        """Return all domains below this one."""
        return [found for part in self.parts() for found in (part, *part.descendants())]

    def constraints(self) -> list[SpreadConstraint]:
        """Return the constraint of this domain and those below it."""
        first = self.parts()[:1]
        return [] if self.constraint is None else [self.constraint, *(c for part in first for c in part.constraints())]


def build_domain_tree(groups: Groups, constraints: Sequence[SpreadConstraint]) -> Domain:
    """Return the tree of the clusters."""
    return _to_domain(groups, constraints, ())


def _to_domain(groups: Groups, constraints: Sequence[SpreadConstraint], path: tuple[str, ...]) -> Domain:
    clusters, depth = tuple(chain.from_iterable(groups.values())), len(path)
    if depth == len(constraints):
        return Domain(path, clusters)
    parts: dict[str | None, Groups] = {}
    for values, names in groups.items():
        parts.setdefault(values[depth], {})[values] = names
    missing = parts.pop(None, None)
    named = {value: part for value, part in parts.items() if value is not None}
    children = tuple(_to_domain(named[value], constraints, (*path, value)) for value in sorted(named))
    unlabelled = _to_domain(missing, constraints, (*path, NO_LABEL)) if missing else None
    return Domain(path, clusters, constraints[depth], children, unlabelled)


def summarise_skew(
    root: Domain,
    constraints: Sequence[SpreadConstraint],
    counts: Mapping[str, int],
    unavailable: frozenset[str],
    barred: frozenset[str],
) -> list[dict[str, Any]]:
    """Return per constraint the count of each domain and the largest skew between siblings.

    `counts` are replicas per cluster, or 1 per member object. Domains with only `unavailable` clusters (unready or
    tainted) do not count, nor do those where policy or user allow no replicas (`barred`).
    """
    entries: list[dict[str, Any]] = []
    sums, ineligible = count_by_domain(root, counts), ineligible_domains(root, (unavailable, barred))
    level = [root]
    for constraint in constraints:
        domains: dict[str, int] = {}
        uncounted: list[Domain] = []
        skew = without = 0
        for parent in level:
            domains |= {str(child): sums[child] for child in parent.children}
            uncounted += [child for child in parent.children if child in ineligible]
            counted = [sums[child] for child in parent.children if child not in ineligible]
            skew = max(skew, max(counted, default=0) - min(counted, default=0))
            without += 0 if parent.unlabelled is None else sums[parent.unlabelled]
        beside = {
            "withoutLabel": without,
            "notCounted": [str(domain) for domain in uncounted if unavailable.issuperset(domain.clusters)],
            "notAllowed": [str(domain) for domain in uncounted if not unavailable.issuperset(domain.clusters)],
        }
        entries.append(
            {
                **constraint.to_json(),
                "domains": domains,
                "skew": skew,
                **{key: value for key, value in beside.items() if value},
            }
        )
        level = [part for parent in level for part in parent.parts()]
    return entries


def ineligible_domains(root: Domain, excluded: Iterable[frozenset[str]]) -> set[Domain]:
    """Return the domains, at all levels, whose leaves each have only clusters of one of the sets.

    Under a hard constraint the unlabelled leaves are not considered.
    """
    sets = [clusters for clusters in excluded if clusters]
    found: set[Domain] = set()

    def visit(node: Domain) -> bool:
        if node.constraint is None:
            is_ineligible = any(clusters.issuperset(node.clusters) for clusters in sets)
        else:
            parts = [visit(part) for part in node.parts()]
            is_ineligible = all(parts[: len(node.children) if node.constraint.is_hard else None])
        if is_ineligible:
            found.add(node)
        return is_ineligible

    visit(root)
    return found


def count_by_domain(root: Domain, counts: Mapping[str, int]) -> dict[Domain, int]:
    """Return the sum over its clusters for every domain of a tree."""
    sums: dict[Domain, int] = {}

    def visit(domain: Domain) -> int:
        if domain.constraint is None:
            found = sum(map(counts.__getitem__, filter(counts.__contains__, domain.clusters)))
        else:
            found = sum([visit(part) for part in domain.parts()])
        sums[domain] = found
        return found

    visit(root)
    return sums
