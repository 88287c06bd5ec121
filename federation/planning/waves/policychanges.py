"""Changes of policies in waves of objects: the record in a policy's status, and the version that an object has. Pure.

A policy with `spec.changeRollout` has up to two versions: its spec, and the one before the change. An object belongs to
a wave by a hash of its identity, so the record has one number per wave and no list of objects. Holding is the default:
a spec that the record is not about yet applies to no object. `features/waves/rules/changeplan.py` computes the record.

Decision: docs/decisions/0168-policy-changes-have-a-version-per-object.md
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.listening import Wait
from federation.planning.waves.waverecord import Phase

FIELD = "changeRollout"
"""The field of a policy's spec with the rules, and of its status with the record."""
ALL_BELOW = "g"
"""A bound that is greater than every hash."""
SPEC_BYTES_MAX = 256 * 1024
"""A larger spec is not kept beside the present one: an object of the host has a limit of its own."""
_KEPT_ANNOTATIONS = (names.AUTHORS, names.CHANGE)


@dataclass(frozen=True, slots=True)
class ChangeWave:
    """The progress of a wave: the objects that match `labels` and whose hash is at most `bound`, "" before its start.

    `objects` is their number at the start. One that is done without `held_since` was passed by approval. `started_at`
    is moved forward by the time that does not count against the timeout; since `stopped_at` no time counts. `taken_at`
    stays: what users change in its objects from then on proves nothing.
    """

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    bound: str = ""
    objects: int = 0
    started_at: datetime | None = None
    held_since: datetime | None = None
    is_done: bool = False
    stopped_at: datetime | None = None
    taken_at: datetime | None = None

    def waited(self, now: datetime, *, counts: bool) -> "ChangeWave":
        """Return the wave after a look at it: the time until the next look counts against its timeout, or not."""
        wait = Wait(self.started_at or now, self.stopped_at).at(now, counts=counts)
        return replace(self, started_at=wait.since, stopped_at=wait.stopped_at)


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """The last change of a policy. `content` is a hash of the spec that it is about; `earlier` the version before it.

    `earlier` is a policy object with its spec and a few annotations. When the change is complete, it is the present
    version. `unhealthy` are objects of the current wave that prove nothing, because they were not healthy before it or
    their users have changed them since; `NAMESPACE/*` are all of a namespace.
    """

    revision: int
    phase: Phase
    content: str
    earlier: Mapping[str, Any]
    begun_at: datetime | None = None
    waves: tuple[ChangeWave, ...] = ()
    reason: str = ""
    paused_since: datetime | None = None
    unhealthy: frozenset[str] = frozenset()
    message: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """The objects that the present version of a policy applies to, while the others have the earlier one."""

    salt: str
    waves: tuple[ChangeWave, ...] = ()
    begun_at: str = ""
    takes_new: bool = False
    """Whether objects that did not exist when the change began get the present version."""

    @property
    def is_wide(self) -> bool:
        """Whether the last wave has started, which takes all objects."""
        return any(wave.bound == ALL_BELOW and not wave.labels for wave in self.waves)

    def includes(self, identity: str, labels: Mapping[str, str], created: str) -> bool:
        """Return whether an object has the present version; `created` is its RFC 3339 time, "" for a new one."""
        if self.is_wide:
            return True
        if not created or (self.begun_at and created > self.begun_at):
            return self.takes_new
        return self.wave_of(identity, labels) is not None

    def wave_of(self, identity: str, labels: Mapping[str, str]) -> str | None:
        """Return the first started wave that has the object, None without one."""
        number = hash_of_object(self.salt, identity)
        return next((wave.name for wave in self.waves if number <= wave.bound and is_in(wave, labels)), None)


@dataclass(frozen=True, slots=True)
class Versions:
    """The version before the present one, and the objects of the present one; both None if all objects have that.

    `revision` is the number of the change.
    """

    earlier: Mapping[str, Any] | None = None
    reach: Reach | None = None
    revision: int = 0


def is_in(wave: ChangeWave, labels: Mapping[str, str]) -> bool:
    """Return whether a wave may take an object with these labels."""
    return all(labels.get(key) == value for key, value in wave.labels)


def hash_of_object(salt: str, identity: str) -> str:
    """Return the place of an object in the order of a change, which differs from change to change."""
    return blake2b(f"{salt} {identity}".encode(), digest_size=8).hexdigest()


def identity_of(federated: Mapping[str, Any]) -> str:
    """Return what makes a federated object the same one: it is known before the object is stored."""
    metadata = federated["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"


def labels_of(federated: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of the user's object."""
    template = (federated.get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def salt_of(policy: Mapping[str, Any], revision: int) -> str:
    """Return what makes the order of objects another one for each change."""
    metadata = policy["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata['name']} {revision}"


def content_of(policy: Mapping[str, Any]) -> str:
    """Return a hash of the spec without the rules of its change."""
    spec = {key: value for key, value in (policy.get("spec") or {}).items() if key != FIELD}
    return blake2b(orjson.dumps(spec, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()


def version_of(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is kept of a policy as a version: its spec, and the annotations that decisions depend on."""
    found = (policy.get("metadata") or {}).get("annotations") or {}
    annotations = {key: found[key] for key in _KEPT_ANNOTATIONS if key in found}
    spec = {key: value for key, value in (policy.get("spec") or {}).items() if key != FIELD}
    return {"spec": spec} | ({"annotations": annotations} if annotations else {})


def versions_of(policy: Mapping[str, Any]) -> Versions:
    """Return the versions of a policy object."""
    if not (policy.get("spec") or {}).get(FIELD) or (record := record_of(policy)) is None:
        return Versions()
    is_known = record.content == content_of(policy)
    if is_known and record.phase is Phase.COMPLETE:
        return Versions()
    metadata, kept = policy["metadata"], record.earlier
    identity = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    earlier = {
        "apiVersion": policy.get("apiVersion"),
        "kind": policy.get("kind"),
        "metadata": {**identity, "annotations": kept.get("annotations") or {}},
        "spec": kept.get("spec") or {},
    }
    salt, revision = salt_of(policy, record.revision), record.revision + (not is_known)
    if not is_known or record.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        return Versions(earlier, Reach(salt), revision)
    started = tuple(wave for wave in record.waves if wave.bound)
    begun_at = to_rfc3339(record.begun_at) if record.begun_at is not None else ""
    return Versions(earlier, Reach(salt, started, begun_at, any(wave.is_done for wave in record.waves)), revision)


def describe_version(policy: Mapping[str, Any], federated: Mapping[str, Any]) -> str:
    """Return why an object of the policy has its earlier version, "" if it has the present one."""
    found, record = versions_of(policy), record_of(policy)
    if found.reach is None or record is None:
        return ""
    created = str(federated["metadata"].get("creationTimestamp") or "")
    if found.reach.includes(identity_of(federated), labels_of(federated), created):
        return ""
    what = f"change {found.revision} of {policy.get('kind')} {policy['metadata']['name']}"
    if record.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK) and record.revision == found.revision:
        return f"{what} was taken back: {record.reason}"
    return f"{what} has not reached it: {record.message or 'it begins'}"


def is_policy_changed(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return whether an event of a policy changes its spec or the objects of its versions."""
    if old is None or new is None or old.get("spec") != new.get("spec"):
        return True
    return bool((old.get("status") or {}).get(FIELD) != (new.get("status") or {}).get(FIELD))


def without_record(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy as it is when its change is complete."""
    status = {key: value for key, value in (policy.get("status") or {}).items() if key != FIELD}
    return {**policy, "status": status}


def record_of(policy: Mapping[str, Any]) -> ChangeRecord | None:
    """Return the record in a policy's status, None without one. Only the control plane writes it."""
    stored = (policy.get("status") or {}).get(FIELD)
    if not stored:
        return None
    return ChangeRecord(
        int(stored.get("revision") or 0),
        Phase(stored.get("state") or Phase.COMPLETE),
        str(stored.get("content") or ""),
        stored.get("earlier") or {},
        _time(stored, "begunAt"),
        tuple(
            ChangeWave(
                str(wave["name"]),
                tuple(sorted((wave.get("labels") or {}).items())),
                str(wave.get("bound") or ""),
                int(wave.get("objects") or 0),
                _time(wave, "startedAt"),
                _time(wave, "heldSince"),
                bool(wave.get("isDone")),
                _time(wave, "stoppedAt"),
                _time(wave, "takenAt"),
            )
            for wave in stored.get("waves") or ()
        ),
        str(stored.get("reason") or ""),
        _time(stored, "pausedSince"),
        frozenset(stored.get("unhealthyBefore") or ()),
        str(stored.get("message") or ""),
    )


def to_status(record: ChangeRecord) -> dict[str, Any]:
    """Return the record as the policy's status has it."""
    waves = [
        _present(
            {
                "name": wave.name,
                "labels": dict(wave.labels),
                "bound": wave.bound,
                "objects": wave.objects,
                "startedAt": wave.started_at,
                "heldSince": wave.held_since,
                "isDone": wave.is_done,
                "stoppedAt": wave.stopped_at,
                "takenAt": wave.taken_at,
            }
        )
        for wave in record.waves
    ]
    return {
        "revision": record.revision,
        "state": str(record.phase),
        "content": record.content,
        "earlier": record.earlier,
        **_present(
            {
                "begunAt": record.begun_at,
                "waves": waves,
                "reason": record.reason,
                "pausedSince": record.paused_since,
                "unhealthyBefore": sorted(record.unhealthy),
                "message": record.message,
            }
        ),
    }


def with_wave(record: ChangeRecord, changed: ChangeWave) -> ChangeRecord:
    """Return the record with another state of one wave."""
    return replace(record, waves=tuple(changed if wave.name == changed.name else wave for wave in record.waves))


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: to_rfc3339(value) if isinstance(value, datetime) else value for key, value in fields.items() if value}


def _time(stored: Mapping[str, Any], key: str) -> datetime | None:
    text = stored.get(key)
    return from_rfc3339(text) if text else None
