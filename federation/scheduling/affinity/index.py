"""The workloads of the federation by label, with their clusters and rules. Pure.

It costs nothing until a policy has a rule about other workloads; from then on it knows every workload. Look-ups cost
what they find: workloads are found by one of the label pairs that a selector names, and rules about a workload by the
pairs that it has. A decision counts at once, before its write is observed.
"""

from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from federation.scheduling.affinity.rules import ALL_NAMESPACES, ObjectRule

Pair = tuple[str, str]
_ANY_LABEL: Pair = ("", "")
_CHAIN_MAX = 256
"""Workloads that are visited to find out whether a group of them wait for each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A workload: where it is placed, and the rules of its policy."""

    key: Hashable
    namespace: str
    name: str
    labels: Mapping[str, str] | None = field(default_factory=dict)
    """None for an object that no rule is about."""
    clusters: frozenset[str] = frozenset()
    rules: tuple[ObjectRule, ...] = ()

    def is_selected_by(self, rule: ObjectRule) -> bool:
        """Return whether a rule is about the workload."""
        return self.labels is not None and rule.selects(self.namespace, self.labels)

    def pairs(self) -> Iterator[Pair]:
        """Yield the label pairs by which it is found."""
        if self.labels is not None:
            yield _ANY_LABEL
            yield from self.labels.items()


@dataclass(frozen=True, slots=True)
class Waiters:
    """Workloads that a change concerns: `to_check` may have to move, `to_retry` may be schedulable now."""

    to_check: frozenset[Hashable] = frozenset()
    to_retry: frozenset[Hashable] = frozenset()


NOBODY = Waiters()


class WorkloadIndex:
    """All workloads while it is active, and nothing before."""

    def __init__(self) -> None:
        self.is_active = False
        self._workloads: dict[Hashable, Workload] = {}
        self._observed: dict[Hashable, frozenset[str]] = {}
        """The observed clusters of workloads whose decision is not observed yet."""
        self._by_label: dict[tuple[str, Pair], dict[Hashable, Workload]] = {}
        self._rules: dict[tuple[str, Pair], dict[ObjectRule, dict[Hashable, Workload]]] = {}
        """The owners of each rule. Workloads of one policy often share a rule, which is then compared once."""

    def __len__(self) -> int:
        """Return the number of workloads."""
        return len(self._workloads)

    def get(self, key: Hashable) -> Workload | None:
        """Return a workload, None if it is not known."""
        return self._workloads.get(key)

    # -- changes

    def observe(self, key: Hashable, workload: Workload | None) -> Waiters:
        """Record what was observed of a workload, None when it is gone; return the workloads that are concerned."""
        if not self.is_active:
            return NOBODY
        old = self._workloads.get(key)
        if workload is None:
            before = self._observed.pop(key, old.clusters if old is not None else frozenset())
            self._replace(key, None)
            return self._concerned(old, None, before) if old is not None else NOBODY
        before = self._observed.get(key, old.clusters if old is not None else frozenset())
        assumed = old.clusters if old is not None and key in self._observed else None
        if assumed is not None and workload.clusters == before:
            kept = replace(workload, clusters=assumed)  # an event of before the decision was written
            self._replace(key, kept)
            return self._concerned(old, kept, assumed)
        self._observed.pop(key, None)
        self._replace(key, workload)
        return self._concerned(old, workload, before)

    def assume(self, workload: Workload) -> None:
        """Count a decision before it is written."""
        if not self.is_active:
            return
        old = self._workloads.get(workload.key)
        if old is not None and old.clusters == workload.clusters:
            return
        self._observed.setdefault(workload.key, old.clusters if old is not None else frozenset())
        self._replace(workload.key, workload)

    def forget(self, key: Hashable) -> None:
        """Take back an assumed decision that could not be written."""
        if (clusters := self._observed.pop(key, None)) is not None and (held := self._workloads.get(key)) is not None:
            self._replace(key, replace(held, clusters=clusters))

    # -- look-ups

    def selected(self, rule: ObjectRule, but: Hashable) -> Iterator[Workload]:
        """Yield the workloads, placed or not, that a rule selects, without one."""
        anchors = rule.anchors() or frozenset((_ANY_LABEL,))
        for namespace in rule.namespaces:
            for pair in anchors:
                for workload in self._by_label.get((namespace, pair), {}).values():
                    if workload.key != but and workload.is_selected_by(rule):
                        yield workload

    def rules_about(self, workload: Workload) -> Iterator[tuple[ObjectRule, Mapping[Hashable, Workload]]]:
        """Yield the rules that select a workload, with their owners; it may be among them."""
        for namespace in (workload.namespace, ALL_NAMESPACES):
            for pair in workload.pairs():
                for rule, owners in self._rules.get((namespace, pair), {}).items():
                    if workload.is_selected_by(rule):
                        yield rule, owners

    def may_be_first(self, workload: Workload, rule: ObjectRule) -> bool:
        """Return whether a workload need not wait for the partners of a rule, because they wait for it.

        So it is if the rule selects the workload itself, as in Kubernetes, or if a partner has to be together with it,
        directly or through others. The caller has found that no partner is placed.
        """
        if workload.is_selected_by(rule):
            return True
        waiting, seen = [rule], {workload.key}
        while waiting:
            for partner in self.selected(waiting.pop(), workload.key):
                if partner.key in seen:
                    continue
                if len(seen) >= _CHAIN_MAX:
                    return False
                seen.add(partner.key)
                needs = [each for each in partner.rules if each.is_required_together]
                if any(workload.is_selected_by(each) for each in needs):
                    return True
                waiting += needs
        return False

    # -- inside

    def _concerned(self, old: Workload | None, new: Workload | None, before: AbstractSet[str]) -> Waiters:
        """Return whom it concerns that a workload was in the clusters `before`, and is what `new` says now."""
        now = new.clusters if new is not None else frozenset[str]()
        is_other = old is None or new is None or old.labels != new.labels or old.rules != new.rules
        if now == before and not is_other:
            return NOBODY
        has_left = bool(before - now) or (is_other and bool(before))
        to_check: set[Hashable] = set()
        to_retry: set[Hashable] = set()
        for version in (old, new):
            if version is None:
                continue
            for rule, owners in self.rules_about(version):
                if rule.is_required_together:
                    (to_check if has_left else to_retry).update(owners)
                elif rule.is_required and has_left:
                    to_retry.update(owners)
            for rule in version.rules:
                # Who waits for a partner that waits for it need wait no longer as soon as it exists.
                if rule.is_required and (has_left if rule.is_apart else is_other):
                    to_retry.update(partner.key for partner in self.selected(rule, version.key))
        itself = {version.key for version in (old, new) if version is not None}
        return Waiters(frozenset(to_check - itself), frozenset(to_retry - to_check - itself))

    def _replace(self, key: Hashable, workload: Workload | None) -> None:
        old = self._workloads.pop(key, None)
        if old is not None:
            for place in _labels_of(old):
                _discard(self._by_label, place, key)
            for place, rule in _rules_of(old):
                owners = self._rules[place][rule]
                del owners[key]
                if not owners:
                    _discard(self._rules, place, rule)
        if workload is None:
            return
        self._workloads[key] = workload
        for place in _labels_of(workload):
            self._by_label.setdefault(place, {})[key] = workload
        for place, rule in _rules_of(workload):
            self._rules.setdefault(place, {}).setdefault(rule, {})[key] = workload


def _labels_of(workload: Workload) -> list[tuple[str, Pair]]:
    """Return where a workload is listed, by namespace and label pair."""
    return [(namespace, pair) for namespace in (workload.namespace, ALL_NAMESPACES) for pair in workload.pairs()]


def _rules_of(workload: Workload) -> dict[tuple[tuple[str, Pair], ObjectRule], None]:
    """Return where its rules are listed: by namespace and label pair of the workloads that they select."""
    return {
        ((namespace, pair), rule): None
        for rule in workload.rules
        for namespace in rule.namespaces
        for pair in rule.anchors() or (_ANY_LABEL,)
    }


def _discard(lists: dict[Any, dict[Any, Any]], place: Hashable, entry: Hashable) -> None:
    held = lists[place]
    del held[entry]
    if not held:
        del lists[place]
