"""Who belongs where: the tree of domains that topology constraints make of clusters, and how even a placement is.

A constraint parts the clusters of its parent by a label's value; clusters without the label are the parent's `rest`.
Further constraints part each of these again. Domains are compared by identity; a tree is made once for as long as the
same clusters are asked about (`domains_of`). `topology.py` divides over them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

SEPARATOR = "/"
NO_LABEL = "(no label)"
Groups = dict[tuple[str | None, ...], list[str]]
"""The values of all constraints' labels, None for a missing one → clusters that have these."""


class SpreadConstraint(NamedTuple):
    """One entry of `spec.topologySpread`. `is_hard` is DoNotSchedule; 1 for `domains_min` asks for nothing."""

    key: str
    skew_max: int = 1
    domains_min: int = 1
    is_hard: bool = True

    def describe(self, domains: int) -> str:
        """Return the bound for people, given how many domains count."""
        few = f" (it has {domains} of at least {self.domains_min} domains)" if domains < self.domains_min else ""
        return f"maxSkew {self.skew_max} of topology key {self.key}{few}"

    def to_json(self) -> dict[str, Any]:
        """Return the constraint as it is written in a policy."""
        said: dict[str, Any] = {
            "topologyKey": self.key,
            "maxSkew": self.skew_max,
            "whenUnsatisfiable": "DoNotSchedule" if self.is_hard else "ScheduleAnyway",
        }
        return said if self.domains_min == 1 else said | {"minDomains": self.domains_min}


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """Clusters; `constraint` says how replicas are spread over the children, None in a leaf. `path` are label values.

    `rest` are the clusters without the constraint's label.
    """

    path: tuple[str, ...]
    clusters: tuple[str, ...]
    constraint: SpreadConstraint | None = None
    children: tuple["Domain", ...] = ()
    rest: "Domain | None" = None

    def __str__(self) -> str:
        return SEPARATOR.join(self.path)

    def parts(self) -> tuple["Domain", ...]:
        """Return the children and the rest: together all clusters."""
        return self.children if self.rest is None else (*self.children, self.rest)

    def leaves(self) -> list["Domain"]:
        """Return the domains that are not parted further."""
        if self.constraint is None:
            return [self]
        return [leaf for part in self.parts() for leaf in part.leaves()]

    def below(self) -> list["Domain"]:
        """Return all domains inside of this one."""
        return [found for part in self.parts() for found in (part, *part.below())]

    def constraints(self) -> list[SpreadConstraint]:
        """Return the constraints from here downwards."""
        first = self.parts()[:1]
        return [] if self.constraint is None else [self.constraint, *(c for part in first for c in part.constraints())]


def tree_of(groups: Groups, constraints: Sequence[SpreadConstraint]) -> Domain:
    """Return the tree of clusters whose labels have been read already."""
    return _to_domain(groups, constraints, ())


def _to_domain(groups: Groups, constraints: Sequence[SpreadConstraint], path: tuple[str, ...]) -> Domain:
    clusters, depth = tuple(chain.from_iterable(groups.values())), len(path)
    if depth == len(constraints):
        return Domain(path, clusters)
    parts: dict[str | None, Groups] = {}
    for values, names in groups.items():
        parts.setdefault(values[depth], {})[values] = names
    others = parts.pop(None, None)
    named = {value: part for value, part in parts.items() if value is not None}
    children = tuple(_to_domain(named[value], constraints, (*path, value)) for value in sorted(named))
    rest = _to_domain(others, constraints, (*path, NO_LABEL)) if others else None
    return Domain(path, clusters, constraints[depth], children, rest)


def summarise(
    root: Domain,
    constraints: Sequence[SpreadConstraint],
    counts: Mapping[str, int],
    closed: frozenset[str],
    barred: frozenset[str],
) -> list[dict[str, Any]]:
    """Return per constraint its domains' counts and the largest difference between two of one parent.

    `counts` are replicas per cluster, or 1 for each copy. Domains of only `closed` clusters (unready or tainted) do not
    count, nor those where policy or user allow none (`barred`).
    """
    told: list[dict[str, Any]] = []
    sums, shut = count_each(root, counts), shut_domains(root, (closed, barred))
    level = [root]
    for constraint in constraints:
        domains: dict[str, int] = {}
        uncounted: list[Domain] = []
        skew = without = 0
        for parent in level:
            domains |= {str(child): sums[child] for child in parent.children}
            uncounted += [child for child in parent.children if child in shut]
            counted = [sums[child] for child in parent.children if child not in shut]
            skew = max(skew, max(counted, default=0) - min(counted, default=0))
            without += 0 if parent.rest is None else sums[parent.rest]
        beside = {
            "withoutLabel": without,
            "notCounted": [str(domain) for domain in uncounted if closed.issuperset(domain.clusters)],
            "notAllowed": [str(domain) for domain in uncounted if not closed.issuperset(domain.clusters)],
        }
        told.append(
            {
                **constraint.to_json(),
                "domains": domains,
                "skew": skew,
                **{key: said for key, said in beside.items() if said},
            }
        )
        level = [part for parent in level for part in parent.parts()]
    return told


def shut_domains(root: Domain, barring: Iterable[frozenset[str]]) -> set[Domain]:
    """Return the domains, at all levels, of which all leaves that count have only clusters of one of the sets.

    Where a hard constraint parts a domain, leaves without its label do not count.
    """
    sets = [clusters for clusters in barring if clusters]
    found: set[Domain] = set()

    def visit(node: Domain) -> bool:
        if node.constraint is None:
            is_shut = any(clusters.issuperset(node.clusters) for clusters in sets)
        else:
            parts = [visit(part) for part in node.parts()]
            is_shut = all(parts[: len(node.children) if node.constraint.is_hard else None])
        if is_shut:
            found.add(node)
        return is_shut

    visit(root)
    return found


def count_each(root: Domain, counts: Mapping[str, int]) -> dict[Domain, int]:
    """Return the sum of what a domain's clusters have, for every domain of a tree."""
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
