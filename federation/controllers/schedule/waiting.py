"""Objects that could not be scheduled, by what can help them: thousands may wait, and a change wakes those it can help.

Units that were rejected alike, as those of one policy mostly are, share one hope, so that a change of a cluster is
compared with few of them. An object that something may have helped is marked until it is decided about again; without a
mark, and as long as nothing of its own changed, there is nothing new to decide.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from federation.runtime.controller import Key
from federation.scheduling.framework.types import Change
from federation.scheduling.hope import NO_CLUSTER_HELPS, Hope


@dataclass(frozen=True, slots=True)
class Told:
    """What was told of an object: `why` in the condition; `digest` and `at` of the journal's record.

    `basis` is what of the object, its policy and its profile the decision depended on; "" when none was made.
    """

    why: str
    digest: bytes
    at: datetime
    basis: str = ""
    hope: Hope = NO_CLUSTER_HELPS


class Waiting:
    """Who waits, for what."""

    def __init__(self) -> None:
        self._told: dict[Key, Told] = {}
        self._helped: set[Key] = set()
        self._groups: dict[Hashable, tuple[Hope, dict[Key, None]]] = {}

    def __len__(self) -> int:
        """Return how many objects wait."""
        return len(self._told)

    def __contains__(self, key: Key) -> bool:
        """Say whether the object's last decision was unsuccessful."""
        return key in self._told

    def told(self, key: Key) -> Told | None:
        """Return what was told of the object, None when it does not wait."""
        return self._told.get(key)

    def add(self, key: Key, told: Told) -> None:
        """Note that the object could not be scheduled."""
        self._leave_group(key)
        shared, members = self._groups.setdefault(told.hope.key(), (told.hope, {}))
        members[key] = None
        # One map of clusters for all that were rejected alike: with hundreds of clusters these are what takes memory.
        self._told[key] = replace(told, hope=replace(shared, at=told.hope.at))

    def discard(self, key: Key) -> None:
        """Note that the object waits for nothing."""
        self._leave_group(key)
        self._told.pop(key, None)
        self._helped.discard(key)

    def mark(self, keys: Iterable[Key]) -> None:
        """Note that something happened that may help these objects; those that do not wait are left out."""
        self._helped.update(key for key in keys if key in self._told)

    def helped_by(self, cluster: str, change: Change) -> list[Key]:
        """Return, and mark, the objects that this change of a cluster may help."""
        found = [key for hope, keys in self._groups.values() if hope.is_helped_by(cluster, change) for key in keys]
        self.mark(found)
        return found

    def is_helped(self, key: Key) -> bool:
        """Say whether something happened that may help the object."""
        return key in self._helped

    def is_due(self, key: Key, now: datetime) -> bool:
        """Say whether something happened that may help the object, or the time has come that does."""
        told = self._told.get(key)
        return key in self._helped or (told is not None and told.hope.at is not None and told.hope.at <= now)

    def unmark(self, key: Key) -> None:
        """Note that what happened so far is being made use of."""
        self._helped.discard(key)

    def all(self) -> list[Key]:
        """Return everybody who waits."""
        return list(self._told)

    def _leave_group(self, key: Key) -> None:
        told = self._told.get(key)
        if told is not None:
            group = told.hope.key()
            members = self._groups[group][1]
            del members[key]
            if not members:
                del self._groups[group]
