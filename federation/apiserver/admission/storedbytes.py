"""How many bytes each namespace stores, in total and by kind, kept up to date from the store's watch.

Sizes are those of the stored values. A write that is checked against a limit also holds its growth from the check until
the watch has passed its revision, so concurrent writes cannot exceed a limit together, and a write right after a
deletion finds the space free. Several processes each hold their own writes only: together they may exceed a limit by
the writes in flight. `namespacequota.py` has the limits.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from federation.apiserver.store.interface import Entry, Event, EventType


class Account(NamedTuple):
    """A namespace's objects of one kind, by the kind's store prefix; "" for all kinds."""

    namespace: str
    prefix: str


class _Unsettled(NamedTuple):
    revision: int
    account: Account
    growth: int


@lru_cache(maxsize=4096)
def _accounts_of(collection: str) -> tuple[Account, ...]:
    parts = collection.split("/")
    if len(parts) != 4:  # /group/plural/namespace; a collection without a namespace is shorter
        return ()
    return Account(parts[3], f"/{parts[1]}/{parts[2]}/"), Account(parts[3], "")


class StoredBytes:
    """The stored bytes of one registry's namespaces."""

    def __init__(self) -> None:
        self.is_loaded = False
        self._revision = 0
        # By `Account`; a look-up with a plain tuple costs less.
        self._stored: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}
        self._unsettled: deque[_Unsettled] = deque()

    def load(self, entries: Iterable[Entry], revision: int) -> None:
        """Count a snapshot of all entries at `revision`."""
        self._stored = {}
        for entry in entries:
            self._add(entry.key, len(entry.value))
        self._advance(revision)
        self.is_loaded = True

    def apply(self, events: Sequence[Event], revision: int) -> None:
        """Count changes up to `revision`."""
        for event in events:
            size = 0 if event.type is EventType.DELETED else len(event.value)
            self._add(event.key, size - len(event.previous or b""))
        self._advance(max(revision, events[-1].revision if events else 0))

    def usage(self, namespace: str, prefix: str = "") -> int:
        """Return the bytes of a namespace, or of its objects of one kind, with those of writes in flight."""
        account = (namespace, prefix)
        return self._stored.get(account, 0) + self._held.get(account, 0)

    def hold(self, account: Account, growth: int) -> None:
        """Count a write that will be stored; a negative growth ends that."""
        for each in (account, Account(account.namespace, "")):
            self._change(self._held, each, growth)

    def settle(self, account: Account, growth: int, revision: int) -> None:
        """Keep the held growth of a stored write until the watch has passed its revision."""
        if self.is_loaded and revision > self._revision:
            self._unsettled.append(_Unsettled(revision, account, growth))
        else:
            self.hold(account, -growth)

    def largest(self, count: int) -> list[tuple[str, int]]:
        """Return the namespaces with the most stored bytes."""
        totals = [(namespace, size) for (namespace, prefix), size in self._stored.items() if not prefix]
        return heapq.nlargest(count, totals, key=itemgetter(1))

    def _add(self, key: str, growth: int) -> None:
        if growth:
            for account in _accounts_of(key.rpartition("/")[0]):
                self._change(self._stored, account, growth)

    @staticmethod
    def _change(sizes: dict[tuple[str, str], int], account: Account, growth: int) -> None:
        size = sizes.get(account, 0) + growth
        if size:
            sizes[account] = size
        else:
            sizes.pop(account, None)

    def _advance(self, revision: int) -> None:
        self._revision = max(self._revision, revision)
        while self._unsettled and self._unsettled[0].revision <= self._revision:
            settled = self._unsettled.popleft()
            self.hold(settled.account, -settled.growth)
