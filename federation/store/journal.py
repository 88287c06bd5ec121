"""The journal of decisions: what was decided for an object, when, with which outcome, and the whole explanation.

`fedctl why` and `GET /federation/v1/decisions` ask it. Decisions explain, nothing depends on them. It forgets by age,
by records per object and by records altogether; the newest record of an object outlives its age, because it says why
the object is where it is. A decision that came to the same as the one before is counted on that record. Here is what a
journal is, and `MemoryJournal`, which forgets with the process; `sqljournal.py` keeps one beside the store.
"""

import itertools
from collections import deque
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from federation.store.options import JournalOptions

Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name of the object that was decided about."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One decision about one object; `explanation` is a JSON object.

    `repeats` says how often it was decided again with the same result, `last_at` when last. `number` grows with every
    record; the journal gives it.
    """

    at: datetime
    group: str
    kind: str
    namespace: str
    name: str
    outcome: str
    duration_ms: float
    explanation: bytes
    repeats: int = 0
    last_at: datetime | None = None
    number: int = 0

    @property
    def identity(self) -> Identity:
        """The object that was decided about."""
        return self.group, self.kind, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions; None means any. `since` and `until` include their moment and look at when it was made first."""

    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, record: DecisionRecord) -> bool:
        """Say whether the record is one of them."""
        return (
            all(
                getattr(self, field) in (None, getattr(record, field))
                for field in ("group", "kind", "namespace", "name", "outcome")
            )
            and (self.since is None or record.at >= self.since)
            and (self.until is None or record.at <= self.until)
        )


class Journal(Protocol):
    """Where decisions are told and asked for."""

    async def append(self, record: DecisionRecord) -> None:
        """Take a decision; never waits for a database and never fails."""
        ...

    async def repeat(self, identity: Identity, first_at: datetime, at: datetime) -> None:
        """Count up the object's record of `first_at`: the same was decided again at `at`. Like `append` otherwise."""
        ...

    async def query(self, wanted: DecisionFilter, *, limit: int = 1, below: int | None = None) -> list[DecisionRecord]:
        """Return decisions, newest first; `below` is exclusive: the number of the last record of the page before."""
        ...


class MemoryJournal:
    """`Journal` in memory, bounded by age, by records per object and altogether."""

    def __init__(self, options: JournalOptions | None = None) -> None:
        self._options = options or JournalOptions()
        self._records: dict[int, DecisionRecord] = {}
        self._of: dict[Identity, deque[int]] = {}
        self._numbers = itertools.count(1)

    async def append(self, record: DecisionRecord) -> None:
        number, held = next(self._numbers), self._of.setdefault(record.identity, deque())
        oldest = record.at - timedelta(days=self._options.age_days_max)
        while held and (len(held) >= self._options.rows_per_object_max or self._records[held[0]].at < oldest):
            del self._records[held.popleft()]
        self._records[number] = replace(record, number=number)
        held.append(number)
        if len(self._records) > self._options.rows_max:
            first = self._records.pop(next(iter(self._records)))
            self._of[first.identity].popleft()
            if not self._of[first.identity]:
                del self._of[first.identity]

    async def repeat(self, identity: Identity, first_at: datetime, at: datetime) -> None:
        for number in self._of.get(identity, ()):
            record = self._records[number]
            if record.at == first_at:
                self._records[number] = replace(record, repeats=record.repeats + 1, last_at=at)

    async def query(self, wanted: DecisionFilter, *, limit: int = 1, below: int | None = None) -> list[DecisionRecord]:
        found = (
            record
            for number, record in reversed(self._records.items())
            if (below is None or number < below) and wanted.matches(record)
        )
        return list(itertools.islice(found, limit))
