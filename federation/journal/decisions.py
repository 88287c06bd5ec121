"""The decision journal: every scheduling decision with its object, time, outcome and full explanation.

`fedctl why` and `GET /federation/v1/decisions` read it; no controller depends on it. A decision with the same result as
the one before is counted on that record. The journal is bounded by age, by records per object and in total. The newest
record of an object is exempt from the age limit, because it explains the current placement. `sqljournal.py` stores the
journal in the store's database.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from federation.scheduling.replay.logentries import Chunk
from federation.scheduling.replay.recorder import InputRecorder

Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""

ENCRYPTION_PREFIX = "decision/"
"""Prefix of the names under which explanations are encrypted; store keys start with a slash."""


@dataclass(frozen=True, slots=True)
class JournalOptions:
    """Limits of the decision journal."""

    age_days_max: float = 14.0
    """How long a decision is kept; an object's newest decision is kept longer."""

    rows_per_object_max: int = 20
    """Decisions kept of one object; `fedctl why` shows the newest, older ones show what changed."""

    rows_max: int = 200_000
    """Decisions kept in total: one of every object, and more."""

    bytes_max: int = 512 * 1024 * 1024
    """Bytes of all explanations. One has 1.5 kB with 3 clusters, 14 kB with 100 and 120 kB with 1,000."""

    pending_max: int = 10_000
    """Decisions that may wait to be written; beyond it the oldest waiting one is dropped and counted."""

    rows_per_transaction_max: int = 100
    """Decisions written in one transaction."""

    flush_interval_s: float = 0.5
    """Time between two writes of the buffer."""

    prune_interval_s: float = 60.0
    """Time between two checks of age and total."""

    inputs_bytes_max: int = 256 * 1024 * 1024
    """Bytes of what decisions depended on, for `fedctl replay`; 0 records nothing. One has 0.2 to 0.5 kB."""

    inputs_interval_s: float = 5.0
    """Time between two writes of these records: together they compress better."""

    rows_per_prune_max: int = 2_000
    """Old decisions that one check examines; the next check continues after them."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One decision about one object; `explanation` is a JSON object.

    `repeats` counts later decisions with the same result, `last_at` is the time of the last one. The journal assigns
    `number`, which grows with every record.
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
        """The object of the decision."""
        return self.group, self.kind, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Selects decisions; None means any. `since` and `until` are inclusive and compare with `at`, not `last_at`.

    `kinds` has groups and kinds with a namespace, "" for all.
    """

    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    kinds: frozenset[tuple[str, str, str]] | None = None

    def matches(self, record: DecisionRecord) -> bool:
        """Return whether the filter selects the record."""
        return (
            all(
                getattr(self, field) in (None, getattr(record, field))
                for field in ("group", "kind", "namespace", "name", "outcome")
            )
            and (
                self.kinds is None
                or any((record.group, record.kind, where) in self.kinds for where in ("", record.namespace))
            )
            and (self.since is None or record.at >= self.since)
            and (self.until is None or record.at <= self.until)
        )


class Journal(Protocol):
    """Records decisions and answers queries about them."""

    @property
    def inputs(self) -> InputRecorder:
        """Records what decisions depend on."""
        ...

    async def read_inputs(self, since_us: int, after: tuple[int, int], bytes_max: int) -> list[Chunk]:
        """Return the next chunks of these records after a segment and number, of segments that reach the time.

        At least one if there are more, and no more than `bytes_max` allows.
        """
        ...

    async def append(self, record: DecisionRecord) -> None:
        """Record a decision; never waits for a database and never fails."""
        ...

    async def record_repeat(self, identity: Identity, first_at: datetime, at: datetime) -> None:
        """Count a decision at `at` with the result of the object's record of `first_at`; like `append` otherwise."""
        ...

    async def query(
        self, selection: DecisionFilter, *, limit: int = 1, below: int | None = None
    ) -> list[DecisionRecord]:
        """Return the selected decisions, newest first; `below` is the last number of the previous page."""
        ...
