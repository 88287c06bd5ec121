"""What dispatch knows of members beyond their caches: writes that the cache has not seen yet, writes that were never
answered and may still take effect, and recent failures.

A cache lags behind our own writes. Without this memory a reconcile that runs in between would write the same again, or
ask for the deletion of what is being deleted. Entries are hints only: they may be lost at any time (a restart begins
with none) and cost at most a write that changes nothing. They leave when the cache has caught up, when the desired
content changes, or when the object is gone. One ledger per control plane; `operations.py` makes the entries.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from federation.api.resources import Object, Resource
from federation.dispatch.status import ClusterStatus

_BACKOFF_S_MIN = 0.25
_BACKOFF_S_MAX = 60.0
ENTRIES_MAX = 200_000
"""More entries than this and the oldest are forgotten."""


class MemberKey(NamedTuple):
    """One object in one cluster."""

    cluster: str
    resource: Resource
    namespace: str
    name: str


def revision_of(obj: Object | None) -> int:
    """Return an object's resourceVersion as a number, 0 when it has none that is one."""
    text = ((obj or {}).get("metadata") or {}).get("resourceVersion") or ""
    return int(text) if text.isdecimal() else 0


def generation_of(obj: Object | None) -> int:
    """Return an object's generation, 0 for kinds without."""
    return int(((obj or {}).get("metadata") or {}).get("generation") or 0)


@dataclass(frozen=True, slots=True)
class Failure:
    """An operation that did not succeed: what to publish, and when (monotonic seconds) to try again."""

    status: ClusterStatus
    message: str
    hash: str
    count: int
    retry_at_s: float


class Ledger:
    """Expectations, accepted deviations and failures by member object."""

    def __init__(self) -> None:
        self._written: dict[MemberKey, Object] = {}
        self._deleting: set[MemberKey] = set()
        self._deleted: dict[MemberKey, str] = {}
        self._accepted: dict[MemberKey, tuple[str, str]] = {}
        self._failures: dict[MemberKey, Failure] = {}
        self._doubts: dict[MemberKey, bool] = {}

    def newest(self, key: MemberKey, cached: Object | None, *, cache_revision: int) -> Object | None:
        """Return what the member holds as far as we know: the cache's object, or our own write when that is newer.

        `cache_revision` is the revision that the cache as a whole has reached: when it is beyond our write and the
        object is not there, somebody deleted it.
        """
        written = self._written.get(key)
        if written is None:
            return cached
        if revision_of(cached) >= revision_of(written) or cache_revision >= revision_of(written):
            del self._written[key]
            return cached
        return written

    def revision(self, key: MemberKey) -> int:
        """Return the revision of our own last write that the cache has not shown yet, 0 when there is none."""
        return revision_of(self._written.get(key))

    def is_deletion_asked(self, key: MemberKey, uid: str) -> bool:
        """Say whether this very object's deletion was asked for already."""
        return self._deleted.get(key) == uid

    def is_being_deleted(self, key: MemberKey) -> bool:
        """Say whether a deletion is under way whose answer has not come."""
        return key in self._deleting

    def is_accepted(self, key: MemberKey, digest: str, live: Object) -> bool:
        """Say whether this content was applied and the member turned it into exactly this.

        An API server may write a value differently from what was sent. Comparing what it made of it with itself is the
        only way not to send it for ever.
        """
        return self._accepted.get(key) == (digest, _state_of(live))

    def failure(self, key: MemberKey, digest: str) -> Failure | None:
        """Return the last failure to bring this content there; another content is a new attempt."""
        found = self._failures.get(key)
        return found if found is not None and found.hash == digest else None

    def is_in_doubt(self, key: MemberKey) -> bool:
        """Say whether a write of ours was never answered, so that the object may be there or still appear."""
        return key in self._doubts

    def note_doubt(self, key: MemberKey) -> None:
        """Remember that a write was not answered."""
        _bound(self._doubts)[key] = True

    def note_written(self, key: MemberKey, obj: Object, digest: str, *, is_subset: bool) -> None:
        """Remember a successful apply; `is_subset` says whether the result holds all that was sent."""
        self._failures.pop(key, None)
        self._deleted.pop(key, None)
        self._doubts.pop(key, None)
        metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
        _bound(self._written)[key] = {**obj, "metadata": metadata}
        if is_subset:
            self._accepted.pop(key, None)
        else:
            _bound(self._accepted)[key] = (digest, _state_of(obj))

    def note_seen(self, key: MemberKey, revision: int) -> None:
        """Forget our write when the cache has reached it."""
        written = self._written.get(key)
        if written is not None and revision_of(written) <= revision:
            del self._written[key]

    def note_deletion(self, key: MemberKey, *, is_under_way: bool) -> None:
        """Remember that a deletion has begun, or that it has ended in whichever way."""
        if is_under_way:
            self._deleting.add(key)
        else:
            self._deleting.discard(key)

    def note_deletion_asked(self, key: MemberKey, uid: str) -> None:
        """Remember that a deletion was asked for."""
        self._written.pop(key, None)
        self._failures.pop(key, None)
        _bound(self._deleted)[key] = uid

    def note_failed(
        self,
        key: MemberKey,
        status: ClusterStatus,
        message: str,
        digest: str,
        now_s: float,
        *,
        retry_after_s: float = 0.0,
    ) -> Failure:
        """Remember a failure and return it with the time of the next attempt (doubling from 0.25 s to 60 s)."""
        before = self._failures.get(key)
        count = before.count + 1 if before is not None else 1
        delay_s = max(min(_BACKOFF_S_MIN * 2 ** min(count - 1, 20), _BACKOFF_S_MAX), retry_after_s)
        failure = Failure(status, message, digest, count, now_s + delay_s)
        _bound(self._failures)[key] = failure
        return failure

    def note_gone(self, key: MemberKey) -> None:
        """Forget everything of an object that the member no longer has."""
        for entries in (self._written, self._deleted, self._accepted):
            entries.pop(key, None)

    def note_confirmed_gone(self, key: MemberKey) -> None:
        """Take down that the member itself said that it has no such object."""
        self.note_gone(key)
        self._failures.pop(key, None)
        self._doubts.pop(key, None)

    def forget_failure(self, key: MemberKey) -> None:
        """Let the next attempt happen at once."""
        self._failures.pop(key, None)

    def forget_cluster(self, cluster: str) -> None:
        """Forget everything of a cluster that left or came back."""
        tables: tuple[dict[MemberKey, Any], ...] = (
            self._written,
            self._deleted,
            self._accepted,
            self._failures,
            self._doubts,
        )
        for entries in tables:
            for key in [key for key in entries if key.cluster == cluster]:
                del entries[key]
        self._deleting = {key for key in self._deleting if key.cluster != cluster}


def _state_of(obj: Object) -> str:
    """Return what changes when somebody changes anything but the status: the generation, else the resourceVersion."""
    metadata = obj["metadata"]
    generation = metadata.get("generation")
    return f"{metadata.get('uid', '')}/{generation or metadata.get('resourceVersion', '')}"


def _bound(entries: dict[MemberKey, Any]) -> dict[MemberKey, Any]:
    if len(entries) >= ENTRIES_MAX:
        del entries[next(iter(entries))]
    return entries
