"""The records of all member objects: the one place that remembers what the caches of members do not show.

Each cluster has its own limits, so that one hostile member costs the others nothing. Beyond a limit the record that
changed longest ago is forgotten. There is one instance per control plane. What a record means, and how it changes, is
in `rules/memberrecord.py`.
"""

from collections import OrderedDict

from federation.apimachinery.clock import Clock
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object, Resource
from federation.delivery.rules import corrections
from federation.delivery.rules.memberrecord import (
    NOTHING_KNOWN,
    PATIENCE_S,
    Failure,
    MemberKey,
    MemberRecord,
    Scaler,
    Sent,
    next_failure,
)
from federation.delivery.rules.status import ClusterStatus
from federation.planning.drift.fights import pause_left_s
from federation.planning.status.delivery import Drift
from federation.runtime.transforms import drop_managed_fields

PENDING_MAX = 200_000
"""Records per cluster that matter to the next decision."""
HISTORY_MAX = 10_000
"""Records per cluster that are history: what was written last, corrected or scaled; some 10 MB."""
_OWNED_S = 300.0
"""How long the replicas stay an autoscaler's before it is looked up again."""
_NOT_OWNED_S = 10.0
_ABSENCE_S = 10.0
"""How long a late answer that the member has no such object is good for."""


class _Cluster:
    def __init__(self, pending_max: int, history_max: int) -> None:
        self.pending_max = pending_max
        self.history_max = history_max
        self.pending: OrderedDict[MemberKey, MemberRecord] = OrderedDict()
        self.history: OrderedDict[MemberKey, MemberRecord] = OrderedDict()
        self.unshown: dict[MemberKey, float] = {}
        """When the objects that the cache does not show as acknowledged were recorded last, in this order."""

    def overdue(self, now_s: float) -> list[MemberKey]:
        """Return the objects whose records are overdue; later acknowledgements cannot be."""
        found = []
        for key, since_s in self.unshown.items():
            if now_s - since_s < PATIENCE_S:
                break
            at_s = self.pending[key].look_again_at_s
            if at_s is not None and now_s >= at_s:
                found.append(key)
        return found

    def put(self, key: MemberKey, record: MemberRecord) -> None:
        self.unshown.pop(key, None)
        self.pending.pop(key, None)
        self.history.pop(key, None)
        if record == NOTHING_KNOWN:
            return
        is_pending = record.is_pending
        records = self.pending if is_pending else self.history
        records[key] = record
        if record.look_again_at_s is not None:
            self.unshown[key] = record.since_s
        if len(records) > (self.pending_max if is_pending else self.history_max):
            oldest, _ = records.popitem(last=False)
            self.unshown.pop(oldest, None)


class MemberRecords:
    """The records by member object."""

    def __init__(self, clock: Clock, *, pending_max: int = PENDING_MAX, history_max: int = HISTORY_MAX) -> None:
        self._clock = clock
        self._pending_max = pending_max
        self._history_max = history_max
        self._clusters: dict[str, _Cluster] = {}

    def get(self, key: MemberKey) -> MemberRecord:
        """Return the record of an object."""
        cluster = self._clusters.get(key.cluster)
        if cluster is None:
            return NOTHING_KNOWN
        return cluster.pending.get(key) or cluster.history.get(key) or NOTHING_KNOWN

    def put(self, key: MemberKey, record: MemberRecord) -> None:
        """Replace the record of an object."""
        cluster = self._clusters.get(key.cluster)
        if cluster is None:
            if record == NOTHING_KNOWN:
                return
            cluster = self._clusters[key.cluster] = _Cluster(self._pending_max, self._history_max)
        cluster.put(key, record)

    def remove_cluster(self, cluster: str) -> None:
        """Remove the records of a cluster that left."""
        self._clusters.pop(cluster, None)

    # -- writes and deletions

    def newest(self, key: MemberKey, cached: Object | None, *, cache_revision: int) -> Object | None:
        """Return the newest known state of the object: the cached one, or our own write when it is newer.

        `cache_revision` is the revision of the whole cache: an object that is absent beyond our write was deleted by
        another client.
        """
        record = self.get(key)
        if record.written is None:
            return cached
        revision = revision_of(record.written)
        if revision_of(cached) >= revision or cache_revision >= revision:
            self._record_shown(key, record, cached)
            return cached
        return record.written

    def record_shown(self, key: MemberKey, cached: Object | None) -> None:
        """Remove our write if the cache, which has reached it, shows it or a newer object."""
        record = self.get(key)
        if record.written is not None and revision_of(record.written) <= revision_of(cached):
            self._record_shown(key, record, cached)

    def _record_shown(self, key: MemberKey, record: MemberRecord, cached: Object | None) -> None:
        is_newer = revision_of(cached) > revision_of(record.written)
        self.put(key, record.after_shown_write(cached, self._clock.monotonic(), is_newer=is_newer))

    def record_kept_writes(self, key: MemberKey) -> None:
        """Record that the member has what it should have, after it did not keep writes."""
        self.put(key, self.get(key)._replace(losses=0))

    def record_write(self, key: MemberKey, obj: Object, digest: str, *, is_subset: bool) -> None:
        """Record an answered write, or what the member itself has of an unconfirmed one."""
        # As in the cache, which keeps who scales the object.
        kept = drop_managed_fields({**obj, "metadata": {**obj["metadata"]}})
        self.put(key, self.get(key).after_write(kept, digest, is_subset=is_subset, now_s=self._clock.monotonic()))

    def record_content(self, key: MemberKey, digest: str) -> None:
        """Record the hash of the content of an answered write."""
        self.put(key, self.get(key)._replace(content=digest))

    def record_unanswered_write(self, key: MemberKey) -> None:
        """Record that a write got no answer."""
        self.put(key, self.get(key).after_unanswered_write())

    def record_deleting(self, key: MemberKey, *, is_under_way: bool) -> None:
        """Record that a deletion is in flight, or that it has ended with any result."""
        record = self.get(key)
        if record.is_deleting is not is_under_way:
            self.put(key, record._replace(is_deleting=is_under_way))

    def record_deletion(self, key: MemberKey, uid: str, owner: str = "") -> None:
        """Record that the deletion of the object was accepted: delivering it again is no correction."""
        self.put(
            key, self.get(key).after_deletion(uid, owner, self._clock.monotonic())._replace(content="", drifted=None)
        )

    def record_removal(self, key: MemberKey, uid: str, *, is_seen: bool = True) -> None:
        """Record that the object with this uid left the cache. `is_seen`: a watch showed that, and not only a list."""
        self.put(key, self.get(key).after_removal(uid, is_seen=is_seen))

    def record_absence(self, key: MemberKey) -> None:
        """Record that the member itself confirmed the absence of the object."""
        self.put(key, self.get(key).after_absence())

    def record_check(self, key: MemberKey, found: Object | None) -> None:
        """Record what the member has of a write or deletion that it acknowledged, None for no object of ours."""
        kept = None if found is None else drop_managed_fields({**found, "metadata": {**found["metadata"]}})
        self.put(key, self.get(key).after_check(kept, self._clock.monotonic()))

    def overdue(self) -> list[MemberKey]:
        """Return the objects whose cache has not shown an acknowledged write or deletion for too long."""
        now_s = self._clock.monotonic()
        return [key for cluster in self._clusters.values() for key in cluster.overdue(now_s)]

    def record_failure(
        self, key: MemberKey, status: ClusterStatus, message: str, digest: str, *, retry_after_s: float = 0.0
    ) -> Failure:
        """Record a failure and return it with the time of the next attempt."""
        now_s, record = self._clock.monotonic(), self.get(key)
        failure = next_failure(record.failure, status, message, digest, now_s, retry_after_s=retry_after_s)
        self.put(key, record._replace(failure=failure))
        return failure

    def record_retry(self, key: MemberKey) -> None:
        """Remove the failure, so that the next attempt is not delayed."""
        record = self.get(key)
        if record.failure is not None:
            self.put(key, record._replace(failure=None))

    def retry_all(self, cluster: str, resource: Resource | None = None) -> list[MemberKey]:
        """Remove the failures in a cluster, of one kind or of all; return their objects."""
        known = self._clusters.get(cluster)
        failed = [] if known is None else [key for key, record in known.pending.items() if record.failure is not None]
        failed = [key for key in failed if resource is None or key.resource == resource]
        for key in failed:
            self.record_retry(key)
        return failed

    def record_sent(self, key: MemberKey, sent: Sent | None) -> None:
        """Record what a member may act by, None once its controller has observed it."""
        record = self.get(key)
        if record.sent != sent:
            self.put(key, record._replace(sent=sent))

    def record_finished(self, key: MemberKey, evidence: Object) -> None:
        """Record that an object had finished when it left the cache; it counts until the evidence is published."""
        self.put(key, self.get(key)._replace(finished=evidence))

    def record_end_unknown(self, key: MemberKey, uid: str) -> None:
        """Record that the member's events do not tell whether the object with this uid had finished."""
        self.put(key, self.get(key)._replace(end_asked=uid, failure=None))

    # -- answers

    def record_scaler(self, key: MemberKey, scaler: str) -> bool:
        """Record which autoscaler owns the replicas; return whether it is another one, or none, now.

        An answer "none" is short-lived: somebody may have scaled by hand just before an autoscaler was created.
        """
        record = self.get(key)
        until_s = self._clock.monotonic() + (_OWNED_S if scaler else _NOT_OWNED_S)
        self.put(key, record._replace(scaler=Scaler(scaler, until_s)))
        return scaler != record.scaler_name

    def scaler_left_s(self, key: MemberKey) -> float:
        """Return for how many seconds the answer about autoscalers holds, 0 when the member has to be asked."""
        scaler = self.get(key).scaler
        return 0.0 if scaler is None else max(scaler.until_s - self._clock.monotonic(), 0.0)

    def record_late_absence(self, key: MemberKey) -> None:
        """Record an answer that the member lacks the object, which came after the reconcile that had asked."""
        self.put(key, self.get(key)._replace(absent_since_s=self._clock.monotonic()))

    def is_late_absence(self, key: MemberKey) -> bool:
        """Return whether such an answer came a moment ago."""
        since_s = self.get(key).absent_since_s
        return since_s is not None and self._clock.monotonic() - since_s < _ABSENCE_S

    def take_late_absence(self, key: MemberKey) -> bool:
        """Return whether such an answer came a moment ago, and forget it."""
        record, is_recent = self.get(key), self.is_late_absence(key)
        if record.absent_since_s is not None:
            self.put(key, record._replace(absent_since_s=None))
        return is_recent

    # -- corrections

    def record_correction(self, key: MemberKey, correction: corrections.Correction) -> corrections.News:
        """Record a correction; return what is new about it."""
        record = self.get(key)
        drifted, news = corrections.after(record.drifted, correction, self._clock.monotonic(), self._clock.now())
        self.put(key, record._replace(drifted=drifted))
        return news

    def pause_left_s(self, key: MemberKey) -> float:
        """Return for how many seconds the object must not be corrected, 0 when it may be."""
        known = self.get(key).drifted
        return pause_left_s(known.burst if known is not None else None, self._clock.monotonic())

    def drift(self, key: MemberKey) -> Drift | None:
        """Return the drift of an object within the last hour, None without any."""
        return corrections.shown(self.get(key).drifted, self._clock.monotonic(), self._clock.now())
