"""The annotation `auto-migration-info`: the estimates that the schedulers read, as JSON text. Pure.

`estimatedCapacity` and `scheduledReplicas` are KubeAdmiral's. `readyReplicas`, `offeredReplicas`, `refutedRoom`,
`template` and `openings` are ours; with them a restarted control plane continues from the stored state. Refuted
capacity holds for the pod template of its trial. Times are not stored: after a restart evidence must last again.

Reference: docs/reference/auto-migration.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from federation.apimachinery.amounts import to_count
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.jsonobject import parse_object
from federation.planning.automigration.capacityestimate import CapacityEstimate

_CAPACITY, _SCHEDULED = "estimatedCapacity", "scheduledReplicas"
_READY, _OFFERED, _REFUTED, _OPENINGS = "readyReplicas", "offeredReplicas", "refutedRoom", "openings"


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


def to_text(info: MigrationInfo) -> str:
    """Return the annotation's text, sorted and without empty fields."""
    estimates = sorted(info.estimates.items())
    parts: dict[str, Any] = {
        _CAPACITY: {cluster: estimate.capacity for cluster, estimate in estimates},
        _READY: dict(sorted(info.ready.items())),
        _OFFERED: {cluster: estimate.offered for cluster, estimate in estimates if estimate.offered},
        _REFUTED: {cluster: estimate.refuted for cluster, estimate in estimates if estimate.refuted},
        _OPENINGS: dict(sorted(info.openings.items())),
    }
    text = {key: value for key, value in parts.items() if value}
    text[_SCHEDULED] = dict(sorted(info.scheduled.items()))
    if _REFUTED in text:
        text["template"] = info.template
    return orjson.dumps(text, option=orjson.OPT_SORT_KEYS).decode()


def from_text(text: str | None) -> MigrationInfo:
    """Return the content of the annotation, empty when it is absent or malformed."""
    stored = parse_object(text or "")
    if stored is None:
        return MigrationInfo()
    refuted, offered = _numbers(stored, _REFUTED), _numbers(stored, _OFFERED)
    estimates = {
        cluster: CapacityEstimate(capacity, refuted.get(cluster, 0), offered.get(cluster, 0))
        for cluster, capacity in _numbers(stored, _CAPACITY).items()
    }
    return MigrationInfo(
        estimates,
        _numbers(stored, _SCHEDULED),
        str(stored.get("template") or ""),
        to_openings(stored.get(_OPENINGS)),
        _numbers(stored, _READY),
    )


def to_openings(value: Any) -> dict[str, int]:
    """Return `openings` of the annotation; in the older form, a list of names, one replica fits into each."""
    if isinstance(value, list):
        return {name: 1 for name in value if isinstance(name, str)}
    return _numbers({_OPENINGS: value}, _OPENINGS)


def _numbers(stored: Mapping[str, Any], key: str) -> dict[str, int]:
    value = stored.get(key)
    if not isinstance(value, dict):
        return {}
    return {cluster: number for cluster, number in value.items() if isinstance(number, int) and number >= 0}


@dataclass(frozen=True, slots=True)
class Failback:
    """The policy's rules for returning replicas: the annotation `failback` of the schedule controller."""

    stable_s: float
    batch: int


def failback_to_text(stable_for: str, batch: int) -> str:
    """Return the annotation's text."""
    return orjson.dumps({"batchSize": batch, "stableFor": stable_for}).decode()


def failback_from_text(text: str | None, default: Failback) -> Failback:
    """Return the content of the annotation, the default when it is absent or malformed."""
    try:
        stored = orjson.loads(text or "")
        return Failback(max(0.0, parse_duration(str(stored["stableFor"]))), max(0, int(stored["batchSize"])))
    except (ValueError, TypeError, KeyError):
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
