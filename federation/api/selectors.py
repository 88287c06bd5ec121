"""Selecting objects and clusters: label selectors, cluster affinity terms, tolerations.

Selectors are compiled once into closed values with a `matches` method and then asked for every object or cluster.
A selector that no cluster could ever satisfy because it is malformed raises `SelectorError` naming the requirement.
Semantics: Kubernetes for LabelSelector and Toleration, spec §6.3 for cluster affinity terms.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.api.quantity import INT64_MAX, INT64_MIN

Labels = Mapping[str, str]

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]+")


class SelectorError(ValueError):
    """A requirement that no validation would let pass; the message names key and operator."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One validated expression over a map of labels."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Labels) -> bool:
        """Say whether the labels satisfy the expression; NotIn and DoesNotExist hold when the key is absent."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                number = _to_int64(value)
                if number is None:
                    return False
                return number > self.bound if self.operator == "Gt" else number < self.bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; with `is_nothing` it matches no object at all."""

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False

    def matches(self, labels: Labels | None) -> bool:
        """Say whether the labels satisfy every requirement."""
        if self.is_nothing:
            return False
        held = labels or {}
        return all(requirement.matches(held) for requirement in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector(is_nothing=True)


def compile_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """Return a LabelSelector's compiled form: None matches nothing, {} everything. SelectorError when malformed."""
    if selector is None:
        return NOTHING
    requirements = list(_equalities(selector.get("matchLabels") or {}))
    requirements += [
        _requirement(expression, {"In", "NotIn", "Exists", "DoesNotExist"})
        for expression in selector.get("matchExpressions") or ()
    ]
    return Selector(tuple(requirements))


def compile_label_map(labels: Labels | None) -> Selector:
    """Return the selector of a plain label map (nodeSelector, clusterSelector); empty matches everything."""
    return Selector(tuple(_equalities(labels or {})))


def matches_label_selector(selector: Mapping[str, Any] | None, labels: Labels | None) -> bool:
    """Compile the LabelSelector and ask it once."""
    return compile_label_selector(selector).matches(labels)


def _equalities(labels: Labels) -> Iterable[Requirement]:
    for key, value in labels.items():
        _check_key(key)
        _check_value(key, value)
        yield Requirement(key, "In", frozenset((value,)))


def _requirement(expression: Mapping[str, Any], operators: Collection[str]) -> Requirement:
    key, operator = str(expression.get("key", "")), str(expression.get("operator", ""))
    values: Sequence[str] = expression.get("values") or ()
    _check_key(key)
    if operator not in operators:
        raise SelectorError(f"{key}: {operator!r} is not a valid operator")
    if operator in ("In", "NotIn") and not values:
        raise SelectorError(f"{key}: {operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        raise SelectorError(f"{key}: {operator} takes no values")
    if operator in ("Gt", "Lt"):
        bound = _to_int64(values[0]) if len(values) == 1 else None
        if bound is None:
            raise SelectorError(f"{key}: {operator} needs exactly one integer")
        return Requirement(key, operator, bound=bound)
    for value in values:
        _check_value(key, value)
    return Requirement(key, operator, frozenset(values))


def _to_int64(text: str | None) -> int | None:
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    is_valid = len(name) <= 63 and _NAME.fullmatch(name) is not None
    if slash:
        is_valid = is_valid and len(prefix) <= 253 and _PREFIX.fullmatch(prefix) is not None
    if not is_valid:
        raise SelectorError(f"{key!r} is not a valid label key")


def _check_value(key: str, value: str) -> None:
    if value and (len(value) > 63 or _NAME.fullmatch(value) is None):
        raise SelectorError(f"{key}: {value!r} is not a valid label value")


@dataclass(frozen=True, slots=True)
class ClusterTerm:
    """One affinity term: requirements over labels and over the name, or what is wrong with it.

    A fault in what is said about the name counts only where the labels match: names are looked at after them.
    """

    labels: tuple[Requirement, ...]
    name_in: tuple[str, ...] = ()
    name_not_in: tuple[str, ...] = ()
    error: str = ""

    def matches(self, name: str, labels: Labels) -> bool:
        """Say whether all expressions hold; a term without any matches nothing. SelectorError when it is invalid."""
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

    `source` is what they were written as, for whoever passes them on.
    """

    terms: tuple[ClusterTerm, ...]
    source: tuple[Mapping[str, Any], ...] = field(default=(), compare=False, repr=False)

    def matches(self, name: str, labels: Labels | None) -> bool:
        """Say whether any term matches the cluster; SelectorError when an invalid term is reached before a match."""
        held = labels or {}
        return any(term.matches(name, held) for term in self.terms)


def compile_cluster_terms(terms: Iterable[Mapping[str, Any]] | None) -> ClusterTerms:
    """Return the compiled form of clusterAffinity or clusterSelectorTerms; invalid terms raise only when asked."""
    source = tuple(terms or ())
    return ClusterTerms(tuple(map(_cluster_term, source)), source)


_CLUSTER_OPERATORS = frozenset(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))


def _cluster_term(term: Mapping[str, Any]) -> ClusterTerm:
    labels: tuple[Requirement, ...] = ()
    try:
        labels = tuple(
            _requirement(expression, _CLUSTER_OPERATORS) for expression in term.get("matchExpressions") or ()
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
    """Say whether the toleration matches the taint: no effect and no key match any, the operator defaults to Equal."""
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
    """A policy's `spec.resourceSelectors` (ours), compiled: objects by apiVersion, kind, and then name or labels."""

    entries: tuple[tuple[str, str, str, Selector], ...] = ()

    def matches(self, api_version: str, kind: str, name: str, labels: Labels | None) -> bool:
        """Say whether any entry selects the object; no entry selects nothing."""
        return any(
            entry_version == api_version
            and entry_kind == kind
            and (not entry_name or entry_name == name)
            and selector.matches(labels)
            for entry_version, entry_kind, entry_name, selector in self.entries
        )


def compile_resource_selectors(selectors: Iterable[Mapping[str, Any]] | None) -> ResourceSelectors:
    """Return the compiled form; SelectorError when a label selector is malformed."""
    return ResourceSelectors(
        tuple(
            (
                str(entry.get("apiVersion", "")),
                str(entry.get("kind", "")),
                str(entry.get("name") or ""),
                EVERYTHING if entry.get("labelSelector") is None else compile_label_selector(entry["labelSelector"]),
            )
            for entry in selectors or ()
        )
    )
