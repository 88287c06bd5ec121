"""The annotation `auto-migration-info`: the estimates that the schedulers read, as JSON text. Pure.

`estimatedCapacity` and `scheduledReplicas` are KubeAdmiral's. `readyReplicas`, `offeredReplicas`, `refutedRoom`,
`template` and `openings` are ours; with them a restarted control plane continues from the stored state. Refuted
capacity holds for the pod template of its trial. Times are not stored: after a restart evidence must last again.

Reference: docs/reference/auto-migration.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from federation.api import names
from federation.apimachinery.amounts import to_count
from federation.apimachinery.annotationrecords import AnnotationRecord, Count
from federation.apimachinery.durations import parse_duration
from federation.planning.automigration.capacityestimate import CapacityEstimate


@dataclass(frozen=True, slots=True)
class MigrationInfo:
    """The content of the annotation, by cluster."""

    estimates: Mapping[str, CapacityEstimate] = field(default_factory=dict)
    scheduled: Mapping[str, int] = field(default_factory=dict)
    template: str = ""
    openings: Mapping[str, int] = field(default_factory=dict)
    """How many waiting replicas fit into other members; the scheduler must schedule again and use that capacity."""
    ready: Mapping[str, int] = field(default_factory=dict)
    """Running replicas, where they differ from the scheduled ones."""

    def for_template(self, template: str) -> "MigrationInfo":
        """Return the same for a pod template; with another template nothing is refuted."""
        if template == self.template:
            return self
        estimates = {cluster: replace(estimate, refuted=0) for cluster, estimate in self.estimates.items()}
        return replace(self, estimates=estimates, template=template)

    def without_counts(self) -> "MigrationInfo":
        """Return the same without the numbers that change with every pod."""
        return replace(self, scheduled={}, ready={}, openings=dict.fromkeys(self.openings, 1))


class _Stored(msgspec.Struct, rename="camel", omit_defaults=True):
    """The annotation as it is written; a field can be null, which Go writes for an empty map."""

    estimated_capacity: dict[str, int] | None = None
    scheduled_replicas: dict[str, int] | None = None
    ready_replicas: dict[str, int] | None = None
    offered_replicas: dict[str, int] | None = None
    refuted_room: dict[str, int] | None = None
    openings: dict[str, int] | list[str] | None = None
    """In the older form a list of names: one replica fits into each."""
    template: str = ""


_INFO = AnnotationRecord(names.AUTO_MIGRATION_INFO, _Stored)


def to_text(info: MigrationInfo) -> str:
    """Return the annotation's text, without empty fields other than the scheduled replicas."""
    estimates = info.estimates.items()
    refuted = {cluster: estimate.refuted for cluster, estimate in estimates if estimate.refuted}
    return _INFO.text(
        _Stored(
            {cluster: estimate.capacity for cluster, estimate in estimates} or None,
            dict(info.scheduled),
            dict(info.ready) or None,
            {cluster: estimate.offered for cluster, estimate in estimates if estimate.offered} or None,
            refuted or None,
            dict(info.openings) or None,
            info.template if refuted else "",
        )
    )


def from_text(text: str | None) -> MigrationInfo:
    """Return the content of the annotation, empty when it is absent or malformed."""
    stored = _INFO.read(text)
    if stored is None:
        return MigrationInfo()
    refuted, offered = _numbers(stored.refuted_room), _numbers(stored.offered_replicas)
    estimates = {
        cluster: CapacityEstimate(capacity, refuted.get(cluster, 0), offered.get(cluster, 0))
        for cluster, capacity in _numbers(stored.estimated_capacity).items()
    }
    openings = stored.openings
    return MigrationInfo(
        estimates,
        _numbers(stored.scheduled_replicas),
        stored.template,
        dict.fromkeys(openings, 1) if isinstance(openings, list) else _numbers(openings),
        _numbers(stored.ready_replicas),
    )


def _numbers(counts: Mapping[str, int] | None) -> dict[str, int]:
    return {cluster: number for cluster, number in (counts or {}).items() if number >= 0}


@dataclass(frozen=True, slots=True)
class Failback:
    """The policy's rules for returning replicas: the annotation `failback` of the schedule controller."""

    stable_s: float
    batch: int


class _StoredFailback(msgspec.Struct, rename="camel"):
    batch_size: Count
    stable_for: str


_FAILBACK = AnnotationRecord(names.FAILBACK, _StoredFailback)


def failback_to_text(stable_for: str, batch: int) -> str:
    """Return the annotation's text."""
    return _FAILBACK.text(_StoredFailback(batch, stable_for))


def failback_from_text(text: str | None, default: Failback) -> Failback:
    """Return the content of the annotation, the default when it is absent or malformed."""
    stored = _FAILBACK.read(text)
    try:
        return default if stored is None else Failback(parse_duration(stored.stable_for), stored.batch_size)
    except ValueError:
        return default


def describe_changes(before: MigrationInfo, after: MigrationInfo, placed: Mapping[str, int]) -> str:
    """Return a message about changed estimates, "" when only numbers of pods differ."""
    parts = []
    for cluster in sorted(before.estimates.keys() | after.estimates.keys()):
        old, new = before.estimates.get(cluster), after.estimates.get(cluster)
        if new is None:
            parts.append(f"{cluster} has enough capacity again")
        elif old is None or new.capacity < old.capacity:
            wanted = max(placed.get(cluster, 0), new.capacity)
            parts.append(f"{cluster} can run only {new.capacity} of {to_count(wanted, 'replica')}")
        elif new.capacity > old.capacity:
            parts.append(f"{cluster} runs {to_count(new.capacity, 'replica')} again")
        elif new.offered > old.offered:
            parts.append(f"{cluster} has capacity again, {to_count(new.offered, 'replica')} may return")
        elif old.is_on_trial and not new.offered:
            parts.append(f"{cluster} still can run only {to_count(new.capacity, 'replica')}")
    return "; ".join(parts)
