"""Member objects after a restore of a backup: the host does not know the objects of the time between. Pure.

The restore writes both times on the system namespace. A member object created between them may be one that the host
knew and has forgotten, so it is reported instead of removed. A deletion that began before the restore was meant for an
earlier object. Members' clocks count: they must not be wrong by more than the pause between loss and restore.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from federation.api import names
from federation.apimachinery.clock import parse_rfc3339, to_rfc3339


@dataclass(frozen=True, slots=True)
class Restoration:
    """The times of a backup and of its restore; the text form is that of an ISO 8601 interval."""

    backup_at: datetime
    restored_at: datetime

    def __str__(self) -> str:
        return f"{to_rfc3339(self.backup_at)}/{to_rfc3339(self.restored_at)}"

    @classmethod
    def of(cls, namespace: Mapping[str, Any] | None) -> Self | None:
        """Return the restoration that the system namespace names, None without one."""
        text = str(((namespace or {}).get("metadata", {}).get("annotations") or {}).get(names.RESTORED) or "")
        start, _, end = text.partition("/")
        backup_at, restored_at = parse_rfc3339(start), parse_rfc3339(end)
        return cls(backup_at, restored_at) if backup_at is not None and restored_at is not None else None

    def is_forgotten(self, live: Mapping[str, Any]) -> bool:
        """Return whether the member object was created between the backup and its restore."""
        created_at = parse_rfc3339(live["metadata"].get("creationTimestamp"))
        return created_at is not None and self.backup_at.replace(microsecond=0) <= created_at <= self.restored_at

    def is_outdated(self, terminating: Mapping[str, Any]) -> bool:
        """Return whether the deletion of an object of the host began before the restore."""
        since = parse_rfc3339(terminating["metadata"].get("deletionTimestamp"))
        return since is not None and since <= self.restored_at
