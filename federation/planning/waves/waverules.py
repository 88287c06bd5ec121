"""The rules of a rollout in waves: `spec.rollout` of a policy, compiled. Pure.

The schedule and the override controller copy the rules of the policy in force into an annotation of the federated
object, in the patch that makes the policy effective. So they are in force before the first template that they hold,
and `features/waves`, which decides by them, needs no policies.

Reference: docs/reference/rollout.md.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord

REMAINING = "remaining"
"""The last wave, which takes all clusters that no other wave takes."""
_TIMEOUT_S = 600.0
_BROKEN_S = 180.0
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


@dataclass(frozen=True, slots=True)
class HTTPCheck:
    """A GET request that must be answered with a status."""

    url: str
    expect_status: int = 200
    timeout_s: float = 5.0


class Comparison(StrEnum):
    """What a new template is compared with: its cluster before the wave, or clusters that still wait."""

    BEFORE = "Before"
    WAITING = "Waiting"


@dataclass(frozen=True, slots=True)
class Objective:
    """A limit of the share of bad samples, counted by a source of metrics. Shares and increases are 1 for 100 %.

    Samples are those of a counter (`metric`, of which `bad` matches the bad ones), of a histogram (`seconds_max`), or
    of an administrator's `template`.
    """

    name: str
    source: str
    metric: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    bad: Mapping[str, str] = field(default_factory=dict)
    seconds_max: str = ""
    template: str = ""
    target: float | None = None
    burn_rate_max: float = 1.0
    increase_max: float = 0.5
    compare_with: frozenset[Comparison] = frozenset(Comparison)
    samples_min: int = 500


@dataclass(frozen=True, slots=True)
class Gate:
    """Conditions on the clusters of a wave that must hold before the next wave starts."""

    is_ready_required: bool = True
    expression: str = ""
    http: HTTPCheck | None = None
    soak_s: float = 0.0
    objectives: tuple[Objective, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether nothing has to hold."""
        return not (self.is_ready_required or self.expression or self.http or self.soak_s or self.objectives)


@dataclass(frozen=True, slots=True)
class Wave:
    """Clusters that get a new template together. `clusters` None matches every name; `share` is a percentage.

    `takes_first`: if it has no cluster, it takes the first ones of later waves. `broken_s` is the timeout while pods
    crash or cannot start.
    """

    name: str
    clusters: frozenset[str] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    share: int = 100
    gate: Gate = Gate()
    is_paused: bool = False
    timeout_s: float = _TIMEOUT_S
    takes_first: bool = False
    broken_s: float = _BROKEN_S
    at_a_time: int | None = None
    """The most clusters that change at a time, None for all."""

    def matches(self, cluster: str, labels: Mapping[str, str]) -> bool:
        """Return whether the wave may take the cluster."""
        if self.clusters is not None and cluster not in self.clusters:
            return False
        return all(labels.get(key) == value for key, value in self.labels)

    def holds_empty(self, present: Mapping[str, Mapping[str, str]]) -> bool:
        """Return whether later waves must not start without an approval if this one has no cluster.

        `present` are the labels of all clusters that have the workload. A gate does not hold those that the change
        reaches if a cluster of the wave has the workload, too, and is not reached.
        """
        if self.is_paused:
            return True
        return not self.gate.is_open and not any(self.matches(name, labels) for name, labels in present.items())

    def first_of(self, clusters: Sequence[str]) -> Sequence[str]:
        """Return those of the clusters of later waves that one without any takes: its share, or as many as it names."""
        if not self.takes_first:
            return ()
        count = -(-len(clusters) * self.share // 100) if self.share < 100 else len(self.clusters or "1")
        return clusters[:count]


@dataclass(frozen=True, slots=True)
class OrderedLabel:
    """A label by which clusters change: those with the first of `values` first, or by number or text without any."""

    label: str
    values: tuple[str, ...] = ()

    def key(self, labels: Mapping[str, str]) -> tuple[int, float, str]:
        """Return the sort key of a cluster. One without the label, or with a value that is not listed, is last."""
        value = labels.get(self.label)
        if value is None or (self.values and value not in self.values):
            return len(self.values) + 1, 0.0, ""
        if self.values:
            return self.values.index(value), 0.0, ""
        number = float(value) if _NUMBER.fullmatch(value) else inf
        return 0, number, value


@dataclass(frozen=True, slots=True)
class Rules:
    """The waves, the last of which is `REMAINING`, and what happens after a failure. `policy` names their policy."""

    policy: str
    waves: tuple[Wave, ...]
    rolls_back: bool = False
    order: tuple[OrderedLabel, ...] = ()

    def sort(self, clusters: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Return the clusters, given with their labels, in the order in which they change."""
        return sorted(clusters, key=lambda name: (*(each.key(clusters[name]) for each in self.order), name))


class _Stored(msgspec.Struct):
    policy: str
    rollout: dict[str, Any]


_RULES = AnnotationRecord(names.ROLLOUT, _Stored)
"""The form of `names.OVERRIDE_ROLLOUT`, too."""


def to_annotation(policy: str, rollout: Mapping[str, Any] | None) -> str | None:
    """Return the annotation with a policy's `spec.rollout`, None without one."""
    if not rollout or not rollout.get("waves"):
        return None
    return _RULES.text(_Stored(policy, dict(rollout)))


def find_rules(federated: Mapping[str, Any]) -> Rules | None:
    """Return the rules of a federated object, None without any. Those of its propagation policy come first.

    Malformed rules are none: only the control plane and users who may write federated objects write them.
    """
    annotations = (federated.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(names.ROLLOUT) or annotations.get(names.OVERRIDE_ROLLOUT)
    return _parse(text) if text else None


def is_approval_due(federated: Mapping[str, Any]) -> bool:
    """Return whether clusters without the object need an approval, too: what waves bring has changed once."""
    return names.APPROVED_REVISIONS in ((federated.get("metadata") or {}).get("annotations") or {})


def mark_change(federated: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the annotation for the patch that first changes what waves bring of an object that has some, else {}.

    With it, clusters that get the object before the rollout controller has seen the change wait for its approval.
    """
    return {} if find_rules(federated) is None or is_approval_due(federated) else {names.APPROVED_REVISIONS: "{}"}


def divide_into_waves(
    rules: Rules, clusters: Mapping[str, Mapping[str, str]], present: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, list[str]]]:
    """Return the waves in order with their clusters.

    `clusters` are the labels of the clusters that the change reaches, `present` of all that have the workload. A wave
    takes its share of the clusters that match it and are in no earlier wave, in their order. One without clusters is
    left out, unless it holds later waves.
    """
    left, waves = rules.sort(clusters), []
    for wave in rules.waves:
        matched = [name for name in left if wave.matches(name, clusters[name])]
        taken = matched[: -(-len(matched) * wave.share // 100)]
        is_holding = not taken and bool(left) and wave.holds_empty(present)
        if is_holding:
            taken = list(wave.first_of(left))
        left = [name for name in left if name not in taken]
        if taken or is_holding:
            waves.append((wave.name, taken))
    return waves


@lru_cache(512)
def _parse(text: str) -> Rules | None:
    stored = _RULES.read(text)
    try:
        return None if stored is None else compile_rules(stored.policy, stored.rollout)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def compile_rules(policy: str, rollout: Mapping[str, Any]) -> Rules:
    """Return the compiled rules; ValueError, TypeError or KeyError if they are malformed."""
    entries = rollout.get("waves") or ()
    waves = [*map(_wave, entries), Wave(REMAINING)]
    for index, entry in enumerate(entries, 1):
        if entry.get("pauseAfter"):
            waves[index] = replace(waves[index], is_paused=True)
    order = tuple(
        OrderedLabel(str(each["label"]), tuple(each.get("values") or ())) for each in rollout.get("order") or ()
    )
    return Rules(policy, tuple(waves), rollout.get("onFailure") == "RollBack", order)


def _wave(entry: Mapping[str, Any]) -> Wave:
    clusters = entry.get("clusters")
    return Wave(
        str(entry["name"]),
        frozenset(map(str, clusters)) if clusters else None,
        tuple(sorted((entry.get("clusterSelector") or {}).items())),
        int(entry.get("share") or 100),
        _gate(entry.get("gate") or {}),
        bool(entry.get("pause")),
        float(entry.get("timeoutSeconds") or _TIMEOUT_S),
        entry.get("whenEmpty") == "TakeFirst",
        float(entry.get("brokenSeconds") or _BROKEN_S),
        entry.get("clustersAtATime"),
    )


def _gate(entry: Mapping[str, Any]) -> Gate:
    http = entry.get("http")
    return Gate(
        entry.get("ready") is not False,
        str(entry.get("expression") or ""),
        None
        if not http
        else HTTPCheck(str(http["url"]), int(http.get("expectStatus") or 200), float(http.get("timeoutSeconds") or 5)),
        float(entry.get("soakSeconds") or 0),
        to_objectives(entry),
    )


def to_objectives(gate: Mapping[str, Any]) -> tuple[Objective, ...]:
    """Return the objectives of a gate; ValueError, TypeError or KeyError if they are malformed."""
    return tuple(map(_objective, gate.get("objectives") or ()))


def _objective(entry: Mapping[str, Any]) -> Objective:
    errors, latency = entry.get("errors") or {}, entry.get("latency") or {}
    counted = errors or latency
    compared = entry.get("compareWith")
    target = entry.get("target")
    increase = entry.get("increaseMax")
    return Objective(
        str(entry["name"]),
        str(entry["source"]),
        str(counted.get("metric") or ""),
        {str(key): str(value) for key, value in (counted.get("labels") or {}).items()},
        {str(key): str(value) for key, value in (errors.get("bad") or {}).items()},
        str(latency.get("seconds") or ""),
        str(entry.get("template") or ""),
        None if target is None else float(target) / 100,
        float(entry.get("burnRateMax") or 1),
        0.5 if increase is None else float(increase) / 100,
        frozenset(Comparison) if compared is None else frozenset(map(Comparison, compared)),
        int(entry.get("samplesMin") or 500),
    )
