"""The terms of `spec.workloadAffinity` and `spec.workloadAntiAffinity`, and what they mean for one object. Pure.

A rule belongs to a policy. Applied to an object it becomes an `ObjectRule`: label keys have the object's values, and
the namespaces are known. Only a ClusterPropagationPolicy can name namespaces: a tenant's policy never reaches beyond
its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from federation.apimachinery.selectors import (
    EVERYTHING,
    Requirement,
    Selector,
    compile_label_selector,
    format_label_selector,
)

ALL_NAMESPACES = "*"


@dataclass(frozen=True, slots=True)
class WorkloadRule:
    """One term of a policy. `weight` is 0 for a required one; no `namespaces` mean the object's own."""

    is_apart: bool
    weight: int
    topology_key: str
    selector: Selector
    text: str
    """The selector as text."""
    label_keys: tuple[str, ...] = ()
    namespaces: frozenset[str] = frozenset()

    def for_object(self, namespace: str, labels: Mapping[str, str]) -> "ObjectRule | None":
        """Return the rule for an object; None if it lacks one of the label keys."""
        selector, text = self.selector, self.text
        if self.label_keys:
            if any(key not in labels for key in self.label_keys):
                return None
            own = tuple(Requirement(key, "In", frozenset((labels[key],))) for key in self.label_keys)
            selector = replace(selector, requirements=(*own, *selector.requirements))
            text = ",".join([*(f"{key}={labels[key]}" for key in self.label_keys), *filter(None, (text,))])
        namespaces = self.namespaces or frozenset((namespace,))
        return ObjectRule(self.is_apart, self.weight, self.topology_key, selector, text or "any label", namespaces)


@dataclass(frozen=True, slots=True)
class ObjectRule:
    """A rule as it holds for one object: the workloads that it selects, by labels and namespaces."""

    is_apart: bool
    weight: int
    topology_key: str
    selector: Selector
    text: str
    namespaces: frozenset[str]

    @property
    def is_required(self) -> bool:
        return not self.weight

    @property
    def is_required_together(self) -> bool:
        return not self.is_apart and not self.weight

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a workload is selected."""
        return self.reaches(namespace) and self.selector.matches(labels)

    def reaches(self, namespace: str) -> bool:
        """Return whether the rule is about workloads of the namespace."""
        return namespace in self.namespaces or ALL_NAMESPACES in self.namespaces

    def anchors(self) -> frozenset[tuple[str, str]]:
        """Return label pairs of which each selected workload has one, as few as possible; empty for any labels."""
        choices = [each for each in self.selector.requirements if each.operator == "In"]
        if not choices:
            return frozenset()
        fewest = min(choices, key=lambda each: len(each.values))
        return frozenset((fewest.key, value) for value in fewest.values)


def compile_workload_rules(spec: Mapping[str, Any], *, is_cluster_wide: bool) -> tuple[WorkloadRule, ...]:
    """Return the rules of a policy's spec; SelectorError when a selector is malformed."""
    return tuple(_compiled(spec, is_cluster_wide=is_cluster_wide))


def _compiled(spec: Mapping[str, Any], *, is_cluster_wide: bool) -> Iterator[WorkloadRule]:
    for field, is_apart in (("workloadAffinity", False), ("workloadAntiAffinity", True)):
        terms = spec.get(field) or {}
        for name, weight_min in (("required", 0), ("preferred", 1)):
            for term in terms.get(name) or ():
                # The schema has no namespaces in a tenant's policy; what was stored otherwise has none either.
                namespaces = term.get("namespaces") or () if is_cluster_wide else ()
                weight = max(weight_min, int(term.get("weight") or 0)) if weight_min else 0
                yield _rule(term, is_apart=is_apart, weight=weight, namespaces=namespaces)


def _rule(term: Mapping[str, Any], *, is_apart: bool, weight: int, namespaces: Iterable[str]) -> WorkloadRule:
    selector = term.get("labelSelector")
    return WorkloadRule(
        is_apart,
        weight,
        str(term.get("topologyKey") or ""),
        EVERYTHING if selector is None else compile_label_selector(selector),
        "" if selector is None else format_label_selector(selector),
        tuple(map(str, term.get("matchLabelKeys") or ())),
        frozenset(map(str, namespaces)),
    )
