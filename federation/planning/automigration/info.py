"""The annotation `auto-migration-info`: what the schedulers read, and what is believed, in one JSON text (spec §13).

`estimatedCapacity` and `scheduledReplicas` are KubeAdmiral's. `readyReplicas`, `offeredReplicas`, `refutedRoom`,
`template` and `openings` are ours: with them a control plane that starts again goes on where another stopped. What was
refuted holds for the pod template that it was seen with. Times are not stored; after a restart evidence has to last
anew. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from federation.api.durations import parse_duration
from federation.planning.automigration.belief import Belief

_CAPACITY, _SCHEDULED = "estimatedCapacity", "scheduledReplicas"
_READY, _OFFERED, _REFUTED, _OPENINGS = "readyReplicas", "offeredReplicas", "refutedRoom", "openings"


@dataclass(frozen=True, slots=True)
class Info:
    """The content of the annotation, by cluster."""

    beliefs: Mapping[str, Belief] = field(default_factory=dict)
    scheduled: Mapping[str, int] = field(default_factory=dict)
    template: str = ""
    openings: Mapping[str, int] = field(default_factory=dict)
    """Replicas of those that wait that fit elsewhere: the scheduler should look again, and count on that room."""
    ready: Mapping[str, int] = field(default_factory=dict)
    """Replicas that run, where they are not as many as are scheduled."""

    def for_template(self, template: str) -> "Info":
        """Return the same for a pod template: another one refutes nothing."""
        if template == self.template:
            return self
        beliefs = {cluster: replace(belief, refuted=0) for cluster, belief in self.beliefs.items()}
        return replace(self, beliefs=beliefs, template=template)

    def without_counts(self) -> "Info":
        """Return the same without what changes with every pod."""
        return replace(self, scheduled={}, ready={}, openings=dict.fromkeys(self.openings, 1))


def to_text(info: Info) -> str:
    """Return the annotation's text: sorted, and without what is empty."""
    beliefs = sorted(info.beliefs.items())
    parts: dict[str, Any] = {
        _CAPACITY: {cluster: belief.capacity for cluster, belief in beliefs},
        _READY: dict(sorted(info.ready.items())),
        _OFFERED: {cluster: belief.offered for cluster, belief in beliefs if belief.offered},
        _REFUTED: {cluster: belief.refuted for cluster, belief in beliefs if belief.refuted},
        _OPENINGS: dict(sorted(info.openings.items())),
    }
    text = {key: value for key, value in parts.items() if value}
    text[_SCHEDULED] = dict(sorted(info.scheduled.items()))
    if _REFUTED in text:
        text["template"] = info.template
    return orjson.dumps(text, option=orjson.OPT_SORT_KEYS).decode()


def from_text(text: str | None) -> Info:
    """Return what the annotation says; nothing when it is absent or not ours."""
    try:
        stored = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return Info()
    if not isinstance(stored, dict):
        return Info()
    refuted, offered = _numbers(stored, _REFUTED), _numbers(stored, _OFFERED)
    beliefs = {
        cluster: Belief(capacity, refuted.get(cluster, 0), offered.get(cluster, 0))
        for cluster, capacity in _numbers(stored, _CAPACITY).items()
    }
    return Info(
        beliefs,
        _numbers(stored, _SCHEDULED),
        str(stored.get("template") or ""),
        to_openings(stored.get(_OPENINGS)),
        _numbers(stored, _READY),
    )


def to_openings(value: Any) -> dict[str, int]:
    """Return `openings` out of the annotation; a list of names, the form before, says that one replica fits in each."""
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
    """How replicas come back, as the policy says it: the annotation `failback` that the schedule controller writes."""

    stable_s: float
    batch: int


def failback_to_text(stable_for: str, batch: int) -> str:
    """Return the annotation's text."""
    return orjson.dumps({"batchSize": batch, "stableFor": stable_for}).decode()


def failback_from_text(text: str | None, default: Failback) -> Failback:
    """Return what the annotation says, the default when it is absent or unreadable."""
    try:
        stored = orjson.loads(text or "")
        return Failback(max(0.0, parse_duration(str(stored["stableFor"]))), max(0, int(stored["batchSize"])))
    except (ValueError, TypeError, KeyError):
        return default


def describe(before: Info, after: Info, placed: Mapping[str, int]) -> str:
    """Return for people what is believed now and was not before; "" when only the counts of pods differ."""
    parts = []
    for cluster in sorted(before.beliefs.keys() | after.beliefs.keys()):
        old, new = before.beliefs.get(cluster), after.beliefs.get(cluster)
        if new is None:
            parts.append(f"{cluster} has enough room again")
        elif old is None or new.capacity < old.capacity:
            wanted = max(placed.get(cluster, 0), new.capacity)
            parts.append(f"{cluster} can run only {new.capacity} of {_replicas(wanted)}")
        elif new.capacity > old.capacity:
            parts.append(f"{cluster} runs {_replicas(new.capacity)} again")
        elif new.offered > old.offered:
            parts.append(f"{cluster} has room again, {_replicas(new.offered)} may come back")
        elif old.is_on_trial and not new.offered:
            parts.append(f"{cluster} still can run only {_replicas(new.capacity)}")
    return "; ".join(parts)


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"
