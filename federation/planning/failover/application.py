"""The memory of an application's failover, kept in annotations of its federated object. Pure.

`rules` are the policy's, which the scheduler writes. The record is written by `features/applicationfailover`, which
decides which cluster a workload leaves; the scheduler places it elsewhere, and the delivery keeps or removes the old
copy as `purgeMode` says. A cluster in the record is avoided for as long as the template is the same, so a workload
leaves each cluster at most once, and not more clusters than `max_moves`.

Decision: docs/decisions/0105-unhealthy-applications-leave-a-cluster-once.md
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord, Time
from federation.planning.federatedobject.placements import departed_clusters, effective_placement

_ALL = "all"


class PurgeMode(StrEnum):
    """When the old copy is removed: before the new one is created, when that is healthy, or on request."""

    DIRECTLY = "Directly"
    GRACIOUSLY = "Graciously"
    NEVER = "Never"


class StateRule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A path within the status of the old copy, and the one target in the new copy."""

    json_path: str
    label: str = ""
    annotation: str = ""
    field_path: str = ""


class ApplicationRules(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`spec.failover.application` of a policy."""

    toleration_s: int = 300
    grace_s: int = 600
    max_moves: int = 3
    purge_mode: PurgeMode = PurgeMode.GRACIOUSLY
    state: tuple[StateRule, ...] = ()


class Eviction(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One cluster that the workload leaves or has left: when that was decided, why, and the replicas there."""

    at: Time
    reason: str
    replicas: int | None = None
    """The replicas that were placed there, None for a whole copy."""


class Purge(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How the old copy in one cluster leaves; the entry ends when it may be removed, or is gone."""

    mode: PurgeMode
    at: Time


Scalar = str | int | float | bool


class State(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Values of the last status of the copy in `source`, for copies that are new since then."""

    source: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    fields: Mapping[str, Scalar] = msgspec.field(default_factory=dict)


class ApplicationRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The memory of one workload. `template` identifies what `was_healthy` and `evicted` are about."""

    template: str = ""
    was_healthy: bool = False
    """Whether a copy of the template has been healthy for a while, in any cluster."""
    evicted: Mapping[str, Eviction] = msgspec.field(default_factory=dict)
    purges: Mapping[str, Purge] = msgspec.field(default_factory=dict)
    state: State | None = None
    """The state given to new copies, until one of them was healthy with it."""


NO_RECORD = ApplicationRecord()
_RULES = AnnotationRecord(names.APPLICATION_FAILOVER_RULES, ApplicationRules)
_RECORD = AnnotationRecord(names.APPLICATION_FAILOVER, ApplicationRecord)
_HANDED = AnnotationRecord(names.HANDED_STATE, dict[str, State])


def compile_application(source: Mapping[str, Any] | None) -> ApplicationRules | None:
    """Return `spec.failover.application` of a policy, None without it."""
    if source is None:
        return None
    return ApplicationRules(
        int(source.get("tolerationSeconds") or 300),
        int(source.get("gracePeriodSeconds") or 600),
        int(source.get("maxMoves") or 3),
        PurgeMode(source.get("purgeMode") or PurgeMode.GRACIOUSLY),
        compile_state(source.get("statePreservation")),
    )


def compile_state(source: Mapping[str, Any] | None) -> tuple[StateRule, ...]:
    """Return the rules of a `statePreservation` of a policy, () without it."""
    return tuple(
        StateRule(
            str(rule["jsonPath"]),
            str(rule.get("aliasLabelName") or ""),
            str(rule.get("annotation") or ""),
            str(rule.get("fieldPath") or ""),
        )
        for rule in (source or {}).get("rules") or ()
    )


def rules_text(rules: ApplicationRules | None) -> str | None:
    """Return the annotation with the policy's rules, None without any."""
    return None if rules is None else _RULES.text(rules)


def rules_of(federated: Mapping[str, Any]) -> ApplicationRules | None:
    """Return the policy's rules for a federated object, None if it does not fail over."""
    return _RULES.of(federated)


def record_of(federated: Mapping[str, Any]) -> ApplicationRecord:
    """Return the record of a federated object, an empty one without any."""
    return _RECORD.of(federated) or NO_RECORD


def record_text(record: ApplicationRecord) -> str | None:
    """Return the annotation's value, None for an empty record."""
    return None if record == NO_RECORD else _RECORD.text(record)


def avoided_clusters(federated: Mapping[str, Any]) -> dict[str, str]:
    """Return the clusters that the scheduler must not use for the object, with the reasons; {} without rules."""
    if names.APPLICATION_FAILOVER not in (federated["metadata"].get("annotations") or {}):
        return {}
    if rules_of(federated) is None:
        return {}
    return {name: each.reason for name, each in record_of(federated).evicted.items()}


def purge_of(federated: Mapping[str, Any], cluster: str) -> PurgeMode | None:
    """Return how the old copy in a cluster that the object has left is removed, None for the usual way."""
    if names.APPLICATION_FAILOVER not in (federated["metadata"].get("annotations") or {}):
        return None
    purge = record_of(federated).purges.get(cluster)
    return None if purge is None or cluster in effective_placement(federated) else purge.mode


def removed_first(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters whose old copies must be gone before a new one is created."""
    if names.APPLICATION_FAILOVER not in (federated["metadata"].get("annotations") or {}):
        return frozenset()
    purges = record_of(federated).purges
    first = frozenset(name for name, purge in purges.items() if purge.mode is PurgeMode.DIRECTLY)
    return (first & departed_clusters(federated)) - effective_placement(federated)


def is_purge_confirmed(federated: Mapping[str, Any], cluster: str) -> bool:
    """Return whether a user said that the copy which stayed in the cluster may be removed."""
    text = (federated["metadata"].get("annotations") or {}).get(names.PURGE) or ""
    return not {_ALL, cluster}.isdisjoint(part.strip() for part in text.split(","))


def handed_states(federated: Mapping[str, Any]) -> Mapping[str, State]:
    """Return what the copies in clusters got of earlier copies."""
    if names.HANDED_STATE not in ((federated.get("metadata") or {}).get("annotations") or {}):
        return {}
    return _HANDED.of(federated) or {}


def handed_text(states: Mapping[str, State]) -> str | None:
    """Return the annotation with what the copies in clusters got, None for nothing."""
    return _HANDED.text(dict(states)) if states else None
