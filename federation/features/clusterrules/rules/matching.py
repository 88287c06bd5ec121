"""Whether a rule holds in a cluster: conditions, labels and amounts that the cluster reports. Pure.

What the cluster does not report says nothing, so a rule neither becomes active nor ends by it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federation.api.selectors import ClusterTerms, compile_cluster_terms
from federation.apimachinery import conditions, quantity
from federation.apimachinery.selectors import EVERYTHING, Selector, SelectorError, compile_label_selector

UNREADABLE = (SelectorError, ValueError, TypeError, KeyError, AttributeError)
"""The errors that a malformed rule raises."""
_AMOUNTS = {"Allocatable": "allocatable", "Free": "available", "Waiting": "waiting"}


class Verdict(StrEnum):
    """Holds: the rule should be active. Clears: it should end. Neither: nothing is known, or nothing is said."""

    HOLDS = "holds"
    CLEARS = "clears"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class _ConditionMatch:
    type: str
    values: frozenset[str]
    is_among: bool

    def holds(self, cluster: Mapping[str, Any]) -> bool | None:
        found = conditions.find((cluster.get("status") or {}).get("conditions"), self.type)
        return None if found is None else (found.get("status") in self.values) is self.is_among


@dataclass(frozen=True, slots=True)
class _MetricMatch:
    """A limit in nano units, or in percent of the allocatable amount."""

    measure: str
    resource: str
    limit: int
    is_percentage: bool
    is_above: bool

    def holds(self, cluster: Mapping[str, Any]) -> bool | None:
        resources = (cluster.get("status") or {}).get("resources") or {}
        amount = _amount(resources, self.measure, self.resource)
        if amount is None:
            return None
        limit = self.limit
        if self.is_percentage:
            total = _amount(resources, "Allocatable", self.resource)
            if not total:
                return None
            amount, limit = amount * 100, self.limit * total
        return amount > limit if self.is_above else amount < limit


def _amount(resources: Mapping[str, Any], measure: str, resource: str) -> int | None:
    """Return the reported amount in nano units, None if the cluster reports none."""
    if measure == "Nodes":
        nodes = resources.get("schedulableNodes")
        return None if nodes is None else int(nodes) * quantity.NANOS
    found = resources.get(_AMOUNTS[measure])
    if found is None:
        return 0 if measure == "Waiting" and resources.get("allocatable") is not None else None
    value = found.get(resource)
    if value is None:
        return 0 if measure != "Allocatable" and resource in (resources.get("allocatable") or {}) else None
    return quantity.parse(value).nanos


@dataclass(frozen=True, slots=True)
class Term:
    """Parts that must all hold."""

    labels: Selector
    parts: tuple[_ConditionMatch | _MetricMatch, ...]

    def holds(self, cluster: Mapping[str, Any]) -> bool | None:
        """Return whether the term holds, None if a part that would decide is not known."""
        if not self.labels.matches(cluster["metadata"].get("labels") or {}):
            return False
        found = [part.holds(cluster) for part in self.parts]
        return False if False in found else None if None in found else True


@dataclass(frozen=True, slots=True)
class Matching:
    """The clusters that a rule selects, and the terms by which it holds and clears; without terms it always holds."""

    clusters: frozenset[str]
    labels: Mapping[str, str]
    affinity: ClusterTerms | None
    when: tuple[Term, ...]
    clear_when: tuple[Term, ...]

    def selects(self, cluster: Mapping[str, Any]) -> bool:
        """Return whether the rule is about a FederatedCluster."""
        metadata = cluster["metadata"]
        labels = metadata.get("labels") or {}
        if self.clusters and metadata["name"] not in self.clusters:
            return False
        if any(labels.get(key) != value for key, value in self.labels.items()):
            return False
        return self.affinity is None or self.affinity.matches(metadata["name"], labels)

    def judge(self, cluster: Mapping[str, Any]) -> Verdict:
        """Return whether the rule holds or clears in a cluster that it selects."""
        holds = _any(self.when, cluster) if self.when else True
        if holds:
            return Verdict.HOLDS
        clears = _any(self.clear_when, cluster) if self.clear_when else holds is False
        return Verdict.CLEARS if clears else Verdict.NEITHER


def _any(terms: Sequence[Term], cluster: Mapping[str, Any]) -> bool | None:
    found = [term.holds(cluster) for term in terms]
    return True if True in found else None if None in found else False


def compile_matching(spec: Mapping[str, Any]) -> Matching:
    """Return the compiled form of a rule's spec; raises one of UNREADABLE."""
    affinity = spec.get("clusterAffinity")
    terms = compile_cluster_terms(affinity) if affinity else None
    if terms is not None:
        terms.matches("", {})  # invalid terms raise here and not for each cluster
    return Matching(
        frozenset(map(str, spec.get("clusters") or ())),
        dict(spec.get("clusterSelector") or {}),
        terms,
        tuple(map(_compile_term, spec.get("when") or ())),
        tuple(map(_compile_term, spec.get("clearWhen") or ())),
    )


def problems_of(spec: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with a spec that its schema has accepted: the field, and why."""
    for field in ("when", "clearWhen"):
        for index, term in enumerate(spec.get(field) or ()):
            try:
                _compile_term(term)
            except UNREADABLE as error:
                yield f"spec.{field}[{index}]", str(error)
    try:
        compile_matching({"clusterAffinity": spec.get("clusterAffinity")})
    except UNREADABLE as error:
        yield "spec.clusterAffinity", str(error)


def _compile_term(term: Mapping[str, Any]) -> Term:
    labels = term.get("clusterLabels")
    return Term(
        compile_label_selector(labels) if labels else EVERYTHING,
        (*map(_compile_condition, term.get("conditions") or ()), *map(_compile_metric, term.get("metrics") or ())),
    )


def _compile_condition(match: Mapping[str, Any]) -> _ConditionMatch:
    return _ConditionMatch(str(match["type"]), frozenset(map(str, match["values"])), match.get("operator") != "NotIn")


def _compile_metric(match: Mapping[str, Any]) -> _MetricMatch:
    is_above = match.get("above") is not None
    limit = match["above"] if is_above else match["below"]
    measure, resource = str(match["measure"]), str(match.get("resource") or "")
    if measure not in (*_AMOUNTS, "Nodes"):
        raise ValueError(f"measure {measure!r} is none of {', '.join((*_AMOUNTS, 'Nodes'))}")
    if isinstance(limit, str) and limit.endswith("%"):
        if measure in ("Nodes", "Allocatable"):
            raise ValueError(f"{measure} has no percentage; give an amount")
        return _MetricMatch(measure, resource, int(limit.removesuffix("%")), is_percentage=True, is_above=is_above)
    return _MetricMatch(measure, resource, quantity.parse(limit).nanos, is_percentage=False, is_above=is_above)
