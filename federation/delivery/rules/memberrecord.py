"""The record of one member object: what is known of it beyond the member's cache, and how events change that.

A cache lags behind our own writes, and it does not show a write without an answer, a failure, or who scales an object.
Without the record, a reconcile in between would repeat a write or a deletion. A record is a hint only: a restart begins
without any, and a lost one costs at most a write that changes nothing.

`TRANSITIONS` is the life of a record's `State`; `diagram` prints it (docs/reference/sync.md). The other fields belong
to states, or live beside them: a failure until the content changes, drift for an hour. Pure.
`members/memberrecords.py` keeps the records.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.errors import Bug
from federation.apimachinery.resources import Object, Resource
from federation.delivery.rules.status import ClusterStatus
from federation.planning.drift.fields import Author
from federation.planning.drift.fights import Burst
from federation.planning.steps.steps import Unobserved

_BACKOFF_S_MIN = 0.25
_BACKOFF_S_MAX = 60.0
PATIENCE_S = 15.0
"""How long an acknowledged write or deletion is believed that the member's cache does not show."""
_PATIENCE_S_MAX = 600.0
_LOSSES_SHOWN = 3
"""Losses in a row from which on the status names them, and the next attempts are delayed."""


class MemberKey(NamedTuple):
    """One object in one cluster."""

    cluster: str
    resource: Resource
    namespace: str
    name: str


class State(StrEnum):
    """The state of a member object beyond its cache."""

    CACHED = "Cached"
    """Nothing: the cache has all that is known."""
    WRITTEN = "Written"
    """Our last write was answered, and the cache does not show it yet."""
    UNCONFIRMED = "Unconfirmed"
    """A write got no answer: it may have taken effect, or still do so. Only the member itself can tell."""
    DELETED = "Deleted"
    """The member accepted our deletion or release, and the cache still shows the object."""
    GONE = "Gone"
    """It was deleted together with its federated object, and the watch showed that: the member need not be asked."""
    LOST = "Lost"
    """It left the cache, and not because of us: somebody deleted it, or it lost our label and is still there."""


class Event(StrEnum):
    """Events that change the state of a record."""

    WRITTEN = "write answered"
    UNANSWERED = "write unanswered"
    SHOWN = "write shown"
    """The cache has reached our write."""
    DELETED = "deletion accepted"
    REMOVED = "removed"
    """The object whose deletion was accepted left the cache."""
    ENDED = "removed for good"
    """The same, together with its federated object, so that nothing writes it again."""
    LOST = "left"
    """An object left the cache whose deletion was not accepted."""
    ABSENT = "absence confirmed"
    """The member itself answered that it has no such object of ours."""


_C, _W, _U, _D, _G, _L = State.CACHED, State.WRITTEN, State.UNCONFIRMED, State.DELETED, State.GONE, State.LOST
TRANSITIONS: Mapping[State, Mapping[Event, State]] = {
    _C: {Event.WRITTEN: _W, Event.UNANSWERED: _U, Event.DELETED: _D, Event.LOST: _L, Event.ABSENT: _C},
    _W: {
        Event.WRITTEN: _W,
        Event.UNANSWERED: _U,
        Event.SHOWN: _C,
        Event.DELETED: _D,
        Event.LOST: _L,
        Event.ABSENT: _C,
    },
    # Whatever the cache shows: until the member answers, the write may still create the object again.
    _U: {
        Event.WRITTEN: _W,
        Event.UNANSWERED: _U,
        Event.SHOWN: _U,
        Event.DELETED: _U,
        Event.REMOVED: _U,
        Event.ENDED: _U,
        Event.LOST: _U,
        Event.ABSENT: _C,
    },
    _D: {
        Event.WRITTEN: _W,
        Event.UNANSWERED: _U,
        Event.DELETED: _D,
        Event.REMOVED: _C,
        Event.ENDED: _G,
        Event.LOST: _L,
        Event.ABSENT: _C,
    },
    _G: {Event.WRITTEN: _W, Event.UNANSWERED: _U, Event.DELETED: _D, Event.LOST: _L, Event.ABSENT: _G},
    # The watch may be faster than the answer to our deletion; then the object has left before it counts as deleted.
    _L: {
        Event.WRITTEN: _W,
        Event.UNANSWERED: _U,
        Event.DELETED: _D,
        Event.REMOVED: _C,
        Event.ENDED: _G,
        Event.LOST: _L,
        Event.ABSENT: _C,
    },
}
"""The next state by state and event. A pair that is missing cannot happen."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed operation: the status to publish, and the time of the next attempt in monotonic seconds.

    `hash` is the attempt that failed (`Write.attempt`), or the content that was not kept. A deletion has the uid in its
    place, a question its name.
    """

    status: ClusterStatus
    message: str
    hash: str
    count: int
    retry_at_s: float


def next_failure(
    before: Failure | None,
    status: ClusterStatus,
    message: str,
    digest: str,
    now_s: float,
    *,
    retry_after_s: float = 0.0,
) -> Failure:
    """Return a failure with the time of the next attempt (back-off doubles from 0.25 s to 60 s)."""
    count = before.count + 1 if before is not None else 1
    delay_s = max(min(_BACKOFF_S_MIN * 2 ** min(count - 1, 20), _BACKOFF_S_MAX), retry_after_s)
    return Failure(status, message, digest, count, now_s + delay_s)


class Scaler(NamedTuple):
    """The autoscaler in the member that owns the replicas, "" for none, and until when that answer holds."""

    name: str
    until_s: float


class Sent(NamedTuple):
    """The content that a member may act on until it has observed the last write, and the hash of that write."""

    unobserved: Unobserved
    hash: str


@dataclass(frozen=True, slots=True)
class Drifted:
    """The last corrections of an object that somebody in the member has changed."""

    burst: Burst
    fields: tuple[str, ...]
    author: Author | None
    first: datetime
    last: datetime


class MemberRecord(NamedTuple):
    """Facts about one member object beyond the member's cache. Times are monotonic seconds."""

    state: State = State.CACHED
    written: Object | None = None
    """The answer to our last write, while it is ahead of the cache."""
    deleted_uid: str = ""
    """The uid of the object whose deletion was accepted, while the cache may still show it."""
    owner: str = ""
    """The uid of the federated object if it is deleted together with it, else ""."""
    since_s: float = 0.0
    """When the write or deletion was acknowledged that the cache does not show, or the member confirmed it last."""
    confirmations: int = 0
    """How often the member has confirmed it since."""
    losses: int = 0
    """How many acknowledged writes or deletions in a row the member did not keep."""
    lost_uid: str = ""
    """The uid of the object that left the cache and that we did not delete: somebody else did, or it lost our label."""
    is_loss_seen: bool = False
    """Whether a watch showed that it left, and so its last state; a list shows only that it is not there."""
    end_asked: str = ""
    """The uid of the object that is gone and of which the member's events do not tell whether it had finished."""
    accepted: tuple[str, str] | None = None
    """The hash of content that the member stored differently, and the state of the object that came of it."""
    content: str = ""
    """The hash of our last write."""
    failure: Failure | None = None
    is_deleting: bool = False
    """Whether a deletion or release is in flight."""
    finished: Object | None = None
    """The evidence that an object which left the cache had finished; it may belong to an earlier run."""
    sent: Sent | None = None
    """The content that the member's controller has not observed yet, of divided workloads."""
    scaler: Scaler | None = None
    drifted: Drifted | None = None
    absent_since_s: float | None = None
    """When the member answered that it lacks the object, after the end of the reconcile that had asked."""

    # -- what it tells

    @property
    def is_pending(self) -> bool:
        """Whether it matters to the next decision; the rest is history."""
        return (
            self.state is not State.CACHED
            or self.written is not None
            or self.accepted is not None
            or self.failure is not None
            or self.is_deleting
            or self.finished is not None
            or self.sent is not None
            or self.absent_since_s is not None
            or self.losses > 0
            or bool(self.end_asked)
        )

    @property
    def overdue_at_s(self) -> float | None:
        """When the member has to be asked if it has kept what it acknowledged, None if the cache shows all."""
        if self.state not in (State.WRITTEN, State.DELETED):
            return None
        return self.since_s + min(PATIENCE_S * (1 << min(self.confirmations, 10)), _PATIENCE_S_MAX)

    @property
    def look_again_at_s(self) -> float | None:
        """When the object has to be reconciled although no event announces anything, None for never."""
        if self.state is State.CACHED and self.losses:
            return self.since_s + PATIENCE_S
        return self.overdue_at_s

    def is_overdue(self, now_s: float) -> bool:
        """Return whether the cache has not shown an acknowledged write or deletion for too long."""
        return self.overdue_at_s is not None and now_s >= self.overdue_at_s

    @property
    def is_unconfirmed(self) -> bool:
        """Whether a write got no answer, so that the object may exist or may still be created."""
        return self.state is State.UNCONFIRMED

    @property
    def scaler_name(self) -> str:
        """The autoscaler that owns the replicas as far as is known, "" without one."""
        return self.scaler.name if self.scaler is not None else ""

    def is_deletion_requested(self, uid: str) -> bool:
        """Return True if the deletion of the object with this uid was accepted."""
        return bool(self.deleted_uid) and self.deleted_uid == uid

    def is_gone(self, owner: str) -> bool:
        """Return True if the object was deleted for good with this federated object, and the watch showed that."""
        return self.state is State.GONE and bool(owner) and self.owner == owner

    def is_accepted(self, digest: str, live: Object) -> bool:
        """Return True if `live` is the result of applying this content.

        An API server may store a value differently from what was sent. Comparing its result with itself is the only way
        not to send the content again and again.
        """
        return self.accepted == (digest, _state_of(live))

    def failure_of(self, digest: str) -> Failure | None:
        """Return the last failure with this content; other content starts without failures."""
        return self.failure if self.failure is not None and self.failure.hash == digest else None

    def is_repetition(self, digest: str) -> bool:
        """Return whether nothing but this content may be on its way to the member."""
        return self.sent is None or self.sent.hash == digest

    # -- how it changes

    def after_write(self, obj: Object, digest: str, *, is_subset: bool, now_s: float = 0.0) -> "MemberRecord":
        """Return the record after an answered write. `is_subset`: the result contains everything that was sent."""
        return self._after(
            Event.WRITTEN,
            written=obj,
            since_s=now_s,
            confirmations=0,
            deleted_uid="",
            owner="",
            lost_uid="",
            failure=None,
            finished=None,
            absent_since_s=None,
            accepted=None if is_subset else (digest, _state_of(obj)),
        )

    def after_unanswered_write(self) -> "MemberRecord":
        """Return the record after a write without an answer."""
        return self._after(Event.UNANSWERED)

    def after_shown_write(self, cached: Object | None, now_s: float, *, is_newer: bool = False) -> "MemberRecord":
        """Return the record once the cache has reached our write, with what it shows.

        Without an object, somebody deleted it at once, or the member did not keep it. Neither did a member that shows
        other content, and not under a newer revision than that of our write.
        """
        checked = self._after(Event.SHOWN, written=None)
        if cached is None or (not is_newer and not self._is_written(cached)):
            return self._with_loss(checked, now_s)
        return checked._replace(losses=0)

    def after_deletion(self, uid: str, owner: str = "", now_s: float = 0.0) -> "MemberRecord":
        """Return the record after the deletion of the object with this uid was accepted.

        `owner` is the uid of its federated object when that is being deleted too, so that nothing writes it again.
        """
        if uid and self.state is State.LOST and self.lost_uid == uid:  # the watch was faster than the answer
            return self._after(Event.ENDED if owner else Event.REMOVED, owner=owner, lost_uid="", failure=None)
        changes = {"written": None, "failure": None, "deleted_uid": uid, "owner": owner}
        return self._after(Event.DELETED, since_s=now_s, confirmations=0, **changes)

    def after_removal(self, uid: str, *, is_seen: bool = True) -> "MemberRecord":
        """Return the record after the object with this uid left the cache. `is_seen`: a watch showed that."""
        if self.written is not None and self.written["metadata"].get("uid", uid) != uid:
            return self  # an earlier object, in whose place we have written another one
        if uid and uid == self.deleted_uid:
            event, sent = (Event.ENDED, None) if self.owner else (Event.REMOVED, self.sent)
            return self._after(event, written=None, accepted=None, deleted_uid="", sent=sent, losses=0)
        lost = {"lost_uid": uid, "is_loss_seen": is_seen}
        return self._after(Event.LOST, written=None, accepted=None, deleted_uid="", owner="", **lost)

    def after_absence(self) -> "MemberRecord":
        """Return the record after the member itself confirmed that it has no such object of ours."""
        owner = self.owner if self.state is State.GONE else ""
        changes = {"written": None, "accepted": None, "failure": None, "deleted_uid": "", "lost_uid": "", "sent": None}
        return self._after(Event.ABSENT, owner=owner, **changes)

    def after_check(self, found: Object | None, now_s: float) -> "MemberRecord":
        """Return the record after the member was asked if it has kept what it acknowledged.

        `found` is its object, None without one of ours. What it has is the truth, whatever its cache shows. An event
        that came before the answer has settled the question.
        """
        if self.overdue_at_s is None:
            return self
        if self.state is State.DELETED:
            is_lost = found is not None and not found["metadata"].get("deletionTimestamp") and self._is_deleted(found)
        else:
            is_lost = found is None or not self._is_written(found)
        if found is None:
            checked = self.after_absence()
        else:
            checked = self.after_write(found, "", is_subset=True, now_s=now_s)
            checked = checked._replace(accepted=self.accepted, confirmations=self.confirmations + 1)
        return self._with_loss(checked, now_s) if is_lost else checked._replace(losses=0)

    def _is_deleted(self, found: Object) -> bool:
        return bool(found["metadata"].get("uid") == self.deleted_uid)

    def _is_written(self, found: Object) -> bool:
        """Return whether the object's content is the content of our write."""
        written = (self.written or {}).get("metadata", {})
        held, ours = (each.get("annotations") or {} for each in (found["metadata"], written))
        is_same = found["metadata"].get("uid") == written.get("uid")
        return is_same and held.get(names.TEMPLATE_HASH) == ours.get(names.TEMPLATE_HASH)

    def _with_loss(self, checked: "MemberRecord", now_s: float) -> "MemberRecord":
        """Return the record with one more loss; after some in a row, the next attempt is delayed and says why."""
        losses = self.losses + 1
        if losses < _LOSSES_SHOWN:
            return checked._replace(losses=losses, since_s=now_s)
        if self.state is State.DELETED:
            status, text, digest = ClusterStatus.DELETION_FAILED, "the deletion and still has it", self.deleted_uid
        else:
            status = ClusterStatus.CREATION_FAILED if checked.written is None else ClusterStatus.UPDATE_FAILED
            text, digest = "the write and does not have it", self.content
        message = f"the cluster acknowledged {text}, {losses} times in a row"
        failure = Failure(status, message, digest, losses, now_s + _BACKOFF_S_MAX)
        return checked._replace(losses=losses, since_s=now_s, failure=failure)

    def _after(self, event: Event, **changes: Any) -> "MemberRecord":
        following = TRANSITIONS[self.state].get(event)
        if following is None:
            raise Bug(f"a member object that is {self.state} cannot have the event {event!r}")
        return self._replace(state=following, **changes)


NOTHING_KNOWN = MemberRecord()


def generation_of(obj: Object | None) -> int:
    """Return an object's generation, 0 without an object or for kinds without generations."""
    return int(((obj or {}).get("metadata") or {}).get("generation") or 0)


def diagram() -> str:
    """Return the transitions that change something as a state diagram of Mermaid."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.CACHED}"]
    for state, following in TRANSITIONS.items():
        by_next: dict[State, list[Event]] = {}
        for event, after in following.items():
            if after is not state:
                by_next.setdefault(after, []).append(event)
        lines += [f"    {state} --> {after}: {', '.join(events)}" for after, events in by_next.items()]
    return "\n".join(lines) + "\n"


def _state_of(obj: Object) -> str:
    """Return a text that changes with anything but the status: uid and generation, else the resourceVersion."""
    metadata = obj["metadata"]
    generation = metadata.get("generation")
    return f"{metadata.get('uid', '')}/{generation or metadata.get('resourceVersion', '')}"
