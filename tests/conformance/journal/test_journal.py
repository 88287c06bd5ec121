"""The decision journal on both databases: recording, repeats, filters, pages and pruning."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest_asyncio

from federation.apimachinery.clock import ManualClock
from federation.apiserver.store.database import Database
from federation.apiserver.store.databases import open_database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.migrate import downgrade, migrate
from federation.apiserver.store.options import StoreOptions
from federation.journal.decisions import DecisionFilter, DecisionRecord, JournalOptions
from federation.journal.inputlog import SQLInputLog
from federation.journal.sqljournal import SQLJournal
from federation.scheduling.replay.logentries import Chunk

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = open_database(database_url, StoreOptions())
    await database.open()
    yield database
    await database.close()


def a_record(minute: int, name: str = "web", outcome: str = "Scheduled") -> DecisionRecord:
    at = START + timedelta(minutes=minute)
    return DecisionRecord(at, "apps", "Deployment", "default", name, outcome, 1.5, b'{"n":1}')


async def minutes(journal: SQLJournal, **fields: object) -> list[float]:
    found = await journal.query(DecisionFilter(**fields), limit=100)  # type: ignore[arg-type]  # a test's shorthand
    return [(record.at - START).total_seconds() / 60 for record in found]


async def test_decisions_are_recorded_counted_selected_and_pruned(database: Database) -> None:
    clock = ManualClock(START)
    options = JournalOptions(rows_per_object_max=4, rows_max=6, age_days_max=1, rows_per_prune_max=2)
    journal = SQLJournal(database, options, clock=clock)
    for minute in range(6):
        await journal.append(a_record(minute))
    await journal.append(a_record(6, "other", "NoFeasibleCluster"))
    await journal.record_repeat(a_record(6, "other").identity, a_record(6).at, START + timedelta(minutes=9))
    assert await minutes(journal, name="web") == [5, 4, 3, 2]
    assert await minutes(journal, since=START + timedelta(minutes=3), until=START + timedelta(minutes=4)) == [4, 3]
    (other,) = await journal.query(DecisionFilter(outcome="NoFeasibleCluster"))
    assert (other.repeats, other.last_at) == (1, START + timedelta(minutes=9))
    assert [record.name for record in await journal.query(DecisionFilter(), limit=9, below=other.number)] == ["web"] * 4
    for minute in range(7, 10):
        await journal.append(a_record(minute, f"more-{minute}"))
    await journal.flush()
    await journal.prune()
    assert len(await minutes(journal)) == 6
    await clock.advance(2 * 86_400)
    for _ in range(5):
        await journal.prune()
    assert sorted(await minutes(journal)) == [5, 6, 7, 8, 9], "the newest decision of each object is kept"


async def test_decisions_of_an_earlier_schema_are_found_and_limited(database: Database) -> None:
    journal = SQLJournal(database, JournalOptions(bytes_max=2 * 4_096), clock=ManualClock(START))
    for minute in range(3):
        await journal.append(a_record(minute, f"web-{minute}"))
    await journal.flush()
    await database.write(lambda connection: downgrade(connection, "0004"))
    await database.write(lambda connection: migrate(connection, database.name))
    assert await minutes(journal, name="web-1", namespace="default", kind="Deployment", group="apps") == [1]
    assert await minutes(journal, outcome="Scheduled") == [2, 1, 0]
    await journal.prune()
    assert await minutes(journal) == [2, 1], "their size is not known, so each counts as 4 KiB"


async def test_records_of_inputs_are_read_by_segments_and_removed_by_age_and_size(database: Database) -> None:
    log = SQLInputLog(database, ValueCipher())
    for segment in (10, 20, 30):
        for number in (1, 2):
            await log.append(Chunk(segment, number, segment, segment + number, 5, bytes(100)))

    async def left(since_us: int = 0, after: tuple[int, int] = (0, 0), most: int = 10_000) -> list[tuple[int, int]]:
        return [(chunk.segment, chunk.number) for chunk in await log.read(since_us, after, most)]

    assert (await log.read(0, (0, 0), 1_000))[0] == Chunk(10, 1, 10, 11, 5, bytes(100))
    assert await left(22) == [(20, 1), (20, 2), (30, 1), (30, 2)], "a segment is read from its beginning"
    assert await left(0, (10, 2), 150) == [(20, 1)]
    assert await left(0, (10, 2), 1) == [(20, 1)], "at least one, whatever its size"
    await log.prune(15, 10_000)
    assert await left() == [(20, 1), (20, 2), (30, 1), (30, 2)]
    await log.prune(15, 300)
    assert await left() == [(30, 1), (30, 2)]
    await log.prune(99, 1)
    assert await left() == [(30, 1), (30, 2)], "the segment that is being written stays"
