"""Objects that could not be scheduled, and the cluster changes after which they are tried again.

Thousands of objects may be unschedulable; a cluster change retries only those whose queueing hint matches it. Objects
with the same hint, mostly those of one policy, form a group, so that a change is compared once per group. A matching
change marks the object until its next attempt. Without a mark, and while its own inputs are unchanged, another attempt
would have the same result.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from federation.runtime.controller import Key
from federation.scheduling.framework.types import ClusterChange
from federation.scheduling.queueinghints import NO_CLUSTER_CHANGE, QueueingHint


@dataclass(frozen=True, slots=True)
class UnschedulableRecord:
    """The last report about an object: the condition's `message`; `digest` and `recorded_at` of the journal's record.

    `inputs_hash` covers the decision's inputs other than clusters; it is "" without a decision.
    """

    message: str
    digest: bytes
    recorded_at: datetime
    inputs_hash: str = ""
    hint: QueueingHint = NO_CLUSTER_CHANGE


class UnschedulableObjects:
    """Unschedulable objects by key, with their retry marks."""

    def __init__(self) -> None:
        self._records: dict[Key, UnschedulableRecord] = {}
        self._retries: set[Key] = set()
        self._groups: dict[Hashable, tuple[QueueingHint, dict[Key, None]]] = {}

    def __len__(self) -> int:
        """Return the number of unschedulable objects."""
        return len(self._records)

    def __contains__(self, key: Key) -> bool:
        """Return whether the object is unschedulable."""
        return key in self._records

    def get(self, key: Key) -> UnschedulableRecord | None:
        """Return the object's record, None when it is schedulable."""
        return self._records.get(key)

    def add(self, key: Key, record: UnschedulableRecord) -> None:
        """Add or replace the object's record."""
        self._leave_group(key)
        shared, members = self._groups.setdefault(record.hint.group_key(), (record.hint, {}))
        members[key] = None
        # The group shares one mapping of clusters: with hundreds of clusters the mappings are most of the memory.
        self._records[key] = replace(record, hint=replace(shared, at=record.hint.at))

    def remove(self, key: Key) -> None:
        """Remove the object."""
        self._leave_group(key)
        self._records.pop(key, None)
        self._retries.discard(key)

    def mark_retry(self, keys: Iterable[Key]) -> None:
        """Mark the unschedulable ones of these objects for another attempt."""
        self._retries.update(key for key in keys if key in self._records)

    def mark_retry_on(self, cluster: str, change: ClusterChange) -> list[Key]:
        """Mark the objects whose hint matches a cluster change, and return them."""
        found = [key for hint, keys in self._groups.values() if hint.matches(cluster, change) for key in keys]
        self.mark_retry(found)
        return found

    def has_retry(self, key: Key) -> bool:
        """Return whether the object is marked."""
        return key in self._retries

    def is_due(self, key: Key, now: datetime) -> bool:
        """Return whether the object is marked, or the time in its hint has come."""
        record = self._records.get(key)
        return key in self._retries or (record is not None and record.hint.at is not None and record.hint.at <= now)

    def clear_retry(self, key: Key) -> None:
        """Remove the object's mark, at the start of an attempt."""
        self._retries.discard(key)

    def list_keys(self) -> list[Key]:
        """Return all unschedulable objects."""
        return list(self._records)

    def _leave_group(self, key: Key) -> None:
        record = self._records.get(key)
        if record is not None:
            group = record.hint.group_key()
            members = self._groups[group][1]
            del members[key]
            if not members:
                del self._groups[group]
