"""Selection of clusters and resources: cluster affinity terms, tolerations and the resource selectors of policies.

Each is compiled once into an immutable value with a `matches` method. Label selectors are in
`apimachinery/selectors.py`; the rules of cluster affinity terms are in docs/reference/scheduling.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.resources import GroupKind, group_kind_of
from federation.apimachinery.selectors import (
    EVERYTHING,
    LABEL_OPERATORS,
    Labels,
    Requirement,
    Selector,
    SelectorError,
    compile_label_selector,
    compile_requirement,
)

_AFFINITY_OPERATORS = LABEL_OPERATORS | {"Gt", "Lt"}


@dataclass(frozen=True, slots=True)
class ClusterTerm:
    """One affinity term: requirements on the labels and on the name of a cluster, or why it is invalid.

    An invalid requirement on the name is an error only for clusters whose labels match: kube-scheduler's node affinity
    evaluates labels first.
    """

    labels: tuple[Requirement, ...]
    name_in: tuple[str, ...] = ()
    name_not_in: tuple[str, ...] = ()
    error: str = ""

    def matches(self, name: str, labels: Labels) -> bool:
        """Return True if all expressions hold; a term without any matches nothing. SelectorError when it is invalid."""
        if not all(requirement.matches(labels) for requirement in self.labels):
            return False
        if self.error:
            raise SelectorError(self.error)
        if not (self.labels or self.name_in or self.name_not_in):
            return False
        return all(wanted == name for wanted in self.name_in) and name not in self.name_not_in


@dataclass(frozen=True, slots=True)
class ClusterTerms:
    """Affinity terms, ORed in order; an empty list matches nothing (the caller decides what an absent list means).

    `source` holds the terms as they were written, for webhook plugins.
    """

    terms: tuple[ClusterTerm, ...]
    source: tuple[Mapping[str, Any], ...] = field(default=(), compare=False, repr=False)

    def matches(self, name: str, labels: Labels | None) -> bool:
        """Return True if any term matches the cluster; SelectorError when an invalid term comes before a match."""
        present = labels or {}
        return any(term.matches(name, present) for term in self.terms)


def compile_cluster_terms(terms: Iterable[Mapping[str, Any]] | None) -> ClusterTerms:
    """Return the compiled form of clusterAffinity or clusterSelectorTerms; invalid terms raise only in `matches`."""
    source = tuple(terms or ())
    return ClusterTerms(tuple(map(_cluster_term, source)), source)


def _cluster_term(term: Mapping[str, Any]) -> ClusterTerm:
    labels: tuple[Requirement, ...] = ()
    try:
        labels = tuple(
            compile_requirement(expression, _AFFINITY_OPERATORS) for expression in term.get("matchExpressions") or ()
        )
        wanted: dict[str, list[str]] = {"In": [], "NotIn": []}
        for expression in term.get("matchFields") or ():
            operator, value = _name_field(expression)
            wanted[operator].append(value)
    except SelectorError as error:
        return ClusterTerm(labels, error=str(error))
    return ClusterTerm(labels, tuple(wanted["In"]), tuple(wanted["NotIn"]))


def _name_field(expression: Mapping[str, Any]) -> tuple[str, str]:
    key, operator = expression.get("key"), expression.get("operator")
    values: Sequence[str] = expression.get("values") or ()
    if key != "metadata.name":
        raise SelectorError(f"{key!r} is not a valid field: only metadata.name is")
    if operator not in ("In", "NotIn"):
        raise SelectorError(f"metadata.name: {operator!r} is not a valid operator for a field")
    if len(values) != 1:
        raise SelectorError(f"metadata.name: {operator} needs exactly one value")
    return str(operator), str(values[0])


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Return True if the toleration matches the taint; an empty effect or key matches any, no operator means Equal."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
        case "Exists":
            return True
        case _:
            return False


@dataclass(frozen=True, slots=True)
class ResourceSelectors:
    """A policy's `spec.resourceSelectors`, compiled: objects by group, kind, and name or labels."""

    entries: tuple[tuple[GroupKind, str, Selector], ...] = ()

    def matches(self, kind: GroupKind, name: str, labels: Labels | None) -> bool:
        """Return True if any entry selects the object; without entries nothing is selected."""
        return any(
            entry_kind == kind and (not entry_name or entry_name == name) and selector.matches(labels)
            for entry_kind, entry_name, selector in self.entries
        )


def compile_resource_selectors(selectors: Iterable[Mapping[str, Any]] | None) -> ResourceSelectors:
    """Return the compiled form; SelectorError when a label selector is malformed."""
    return ResourceSelectors(
        tuple(
            (
                group_kind_of(entry),
                str(entry.get("name") or ""),
                EVERYTHING if entry.get("labelSelector") is None else compile_label_selector(entry["labelSelector"]),
            )
            for entry in selectors or ()
        )
    )
