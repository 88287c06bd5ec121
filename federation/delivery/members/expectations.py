"""State of member objects that their caches do not show: own writes ahead of the cache, unanswered writes, failures.

A cache lags behind our own writes. Without expectations, a reconcile in between would repeat a write or a deletion.
Entries are hints only: a restart begins with none, and a lost entry costs at most a write that changes nothing. An
entry is removed when the cache has caught up, the desired content changes, or the object is deleted. There is one
instance per control plane; `operations.py` runs the operations that it records.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from federation.apimachinery.resources import Object, Resource
from federation.delivery.rules.status import ClusterStatus
from federation.runtime.indexer import revision_of
from federation.runtime.transforms import drop_managed_fields

_BACKOFF_S_MIN = 0.25
_BACKOFF_S_MAX = 60.0
ENTRIES_MAX = 200_000
"""Limit of each kind of entry; beyond it the oldest entry is removed."""


class MemberKey(NamedTuple):
    """One object in one cluster."""

    cluster: str
    resource: Resource
    namespace: str
    name: str


def generation_of(obj: Object | None) -> int:
    """Return an object's generation, 0 without an object or for kinds without generations."""
    return int(((obj or {}).get("metadata") or {}).get("generation") or 0)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed operation: the status to publish, and the time of the next attempt in monotonic seconds."""

    status: ClusterStatus
    message: str
    hash: str
    count: int
    retry_at_s: float


class Expectations:
    """Expectations, accepted deviations and failures by member object."""

    def __init__(self) -> None:
        self._written: dict[MemberKey, Object] = {}
        self._deleting: set[MemberKey] = set()
        self._deleted: dict[MemberKey, tuple[str, str]] = {}
        self._gone: dict[MemberKey, str] = {}
        self._accepted: dict[MemberKey, tuple[str, str]] = {}
        self._failures: dict[MemberKey, Failure] = {}
        self._unconfirmed: dict[MemberKey, bool] = {}
        self._lost: dict[MemberKey, str] = {}
        self._finished: dict[MemberKey, Object] = {}

    def newest(self, key: MemberKey, cached: Object | None, *, cache_revision: int) -> Object | None:
        """Return the newest known state of the object: the cached one, or our own write when it is newer.

        `cache_revision` is the revision of the whole cache: an object that is absent beyond our write was deleted by
        another client.
        """
        written = self._written.get(key)
        if written is None:
            return cached
        if revision_of(cached) >= revision_of(written) or cache_revision >= revision_of(written):
            del self._written[key]
            return cached
        return written

    def revision(self, key: MemberKey) -> int:
        """Return the revision of our last write if it is ahead of the cache, else 0."""
        return revision_of(self._written.get(key))

    def is_deletion_requested(self, key: MemberKey, uid: str) -> bool:
        """Return True if the deletion of the object with this uid was requested."""
        return key in self._deleted and self._deleted[key][0] == uid

    def is_deletion_pending(self, key: MemberKey) -> bool:
        """Return True while a deletion of the object is in flight."""
        return key in self._deleting

    def is_gone(self, key: MemberKey, owner: str) -> bool:
        """Return True if the object was deleted for good with this federated object, and the watch showed its removal.

        Then the member need not be queried. `owner` is the uid that `record_deletion_request` got.
        """
        return bool(owner) and self._gone.get(key) == owner

    def is_accepted(self, key: MemberKey, digest: str, live: Object) -> bool:
        """Return True if `live` is the result of applying this content.

        An API server may store a value differently from what was sent. Comparing its result with itself is the only way
        not to send the content again and again.
        """
        return self._accepted.get(key) == (digest, _state_of(live))

    def failure(self, key: MemberKey, digest: str) -> Failure | None:
        """Return the last failure with this content; other content starts without failures."""
        found = self._failures.get(key)
        return found if found is not None and found.hash == digest else None

    def is_unconfirmed(self, key: MemberKey) -> bool:
        """Return True if a write got no answer, so that the object may exist or may still be created."""
        return key in self._unconfirmed

    def lost_uid(self, key: MemberKey) -> str:
        """Return the uid of the object that left the cache and that we did not delete, "" when there is none.

        It was deleted by somebody else, or it lost our label and is still there.
        """
        return self._lost.get(key, "")

    def finished(self, key: MemberKey) -> Object | None:
        """Return the evidence that an object which left the cache had finished; it may belong to an earlier run."""
        return self._finished.get(key)

    def record_finished(self, key: MemberKey, evidence: Object) -> None:
        """Record that an object had finished when it left the cache; it counts until the evidence is published."""
        _bound(self._finished)[key] = evidence

    def record_unconfirmed_write(self, key: MemberKey) -> None:
        """Record that a write got no answer."""
        self._gone.pop(key, None)
        _bound(self._unconfirmed)[key] = True

    def record_write(self, key: MemberKey, obj: Object, digest: str, *, is_subset: bool) -> None:
        """Record a successful apply. `is_subset`: the result contains everything that was sent."""
        self._failures.pop(key, None)
        self._deleted.pop(key, None)
        self._gone.pop(key, None)
        self._unconfirmed.pop(key, None)
        self._lost.pop(key, None)
        self._finished.pop(key, None)
        # As in the cache, which keeps who scales the object.
        _bound(self._written)[key] = drop_managed_fields({**obj, "metadata": {**obj["metadata"]}})
        if is_subset:
            self._accepted.pop(key, None)
        else:
            _bound(self._accepted)[key] = (digest, _state_of(obj))

    def observe(self, key: MemberKey, revision: int) -> None:
        """Remove our write once the cache has reached it."""
        written = self._written.get(key)
        if written is not None and revision_of(written) <= revision:
            del self._written[key]

    def set_deletion_pending(self, key: MemberKey, *, is_under_way: bool) -> None:
        """Record that a deletion is in flight, or that it has ended with any result."""
        if is_under_way:
            self._deleting.add(key)
        else:
            self._deleting.discard(key)

    def record_deletion_request(self, key: MemberKey, uid: str, owner: str = "") -> None:
        """Record that the deletion of the object with this uid was accepted.

        `owner` is the uid of its federated object when that is being deleted too, so that nothing writes it again.
        """
        self._written.pop(key, None)
        self._failures.pop(key, None)
        _bound(self._deleted)[key] = uid, owner
        if owner and self._lost.get(key) == uid:  # the watch was faster than the answer
            _bound(self._gone)[key] = owner

    def record_failure(
        self,
        key: MemberKey,
        status: ClusterStatus,
        message: str,
        digest: str,
        now_s: float,
        *,
        retry_after_s: float = 0.0,
    ) -> Failure:
        """Record a failure and return it with the time of the next attempt (back-off doubles from 0.25 s to 60 s)."""
        before = self._failures.get(key)
        count = before.count + 1 if before is not None else 1
        delay_s = max(min(_BACKOFF_S_MIN * 2 ** min(count - 1, 20), _BACKOFF_S_MAX), retry_after_s)
        failure = Failure(status, message, digest, count, now_s + delay_s)
        _bound(self._failures)[key] = failure
        return failure

    def record_removal(self, key: MemberKey, uid: str = "") -> None:
        """Remove the entries of an object that left the cache, and record its uid unless we have deleted it."""
        deleted, owner = self._deleted.get(key, ("", ""))
        if uid and uid != deleted:
            _bound(self._lost)[key] = uid
        elif uid and owner:
            _bound(self._gone)[key] = owner
        for entries in (self._written, self._deleted, self._accepted):
            entries.pop(key, None)

    def record_absence(self, key: MemberKey) -> None:
        """Remove the entries of an object whose absence the member itself confirmed."""
        self.record_removal(key)
        self._failures.pop(key, None)
        self._unconfirmed.pop(key, None)
        self._lost.pop(key, None)

    def forget_failure(self, key: MemberKey) -> None:
        """Remove the failure, so that the next attempt is not delayed."""
        self._failures.pop(key, None)

    def forget_cluster(self, cluster: str) -> None:
        """Remove all entries of a cluster."""
        tables: tuple[dict[MemberKey, Any], ...] = (
            self._written,
            self._deleted,
            self._gone,
            self._accepted,
            self._failures,
            self._unconfirmed,
            self._lost,
            self._finished,
        )
        for entries in tables:
            for key in [key for key in entries if key.cluster == cluster]:
                del entries[key]
        self._deleting = {key for key in self._deleting if key.cluster != cluster}


def _state_of(obj: Object) -> str:
    """Return a text that changes with anything but the status: uid and generation, else the resourceVersion."""
    metadata = obj["metadata"]
    generation = metadata.get("generation")
    return f"{metadata.get('uid', '')}/{generation or metadata.get('resourceVersion', '')}"


def _bound(entries: dict[MemberKey, Any]) -> dict[MemberKey, Any]:
    if len(entries) >= ENTRIES_MAX:
        del entries[next(iter(entries))]
    return entries
