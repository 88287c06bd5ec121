"""The journal, in memory and in SQL: newest first, bounded every way, never in the way of who appends."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from federation.base.clock import ManualClock
from federation.base.errors import StoreUnavailable
from federation.store.database import Database, open_database
from federation.store.journal import DecisionFilter, DecisionRecord, Journal, MemoryJournal
from federation.store.options import JournalOptions, StoreOptions
from federation.store.schema import decision
from federation.store.sqljournal import SQLJournal

START = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def a_record(number: int = 0, *, name: str = "nginx", group: str = "apps") -> DecisionRecord:
    return DecisionRecord(
        START + timedelta(seconds=number), group, "Deployment", "default", name, f"outcome {number}", 1.5, b'{"n":1}'
    )


async def asked(journal: Journal, *, limit: int = 100, below: int | None = None, **query: Any) -> list[str]:
    wanted = DecisionFilter(**{"kind": "Deployment", "namespace": "default", "name": "nginx"} | query)
    return [record.outcome.removeprefix("outcome ") for record in await journal.query(wanted, limit=limit, below=below)]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_database(f"sqlite:///{tmp_path}/state.db", StoreOptions())
    await database.open()
    yield database
    await database.close()


@pytest.fixture(params=["memory", "sql"])
def journal(request: pytest.FixtureRequest, database: Database) -> Journal:
    options = JournalOptions(rows_per_object_max=8)
    return MemoryJournal(options) if request.param == "memory" else SQLJournal(database, options)


async def rows(database: Database) -> int:
    return await database.read(lambda connection: connection.execute(select(func.count(decision.c.id))).scalar_one())


async def test_a_decision_comes_back_as_it_was_told(journal: Journal) -> None:
    await journal.append(a_record())
    (record,) = await journal.query(DecisionFilter(name="nginx"))
    assert record.number > 0
    assert replace(record, number=0) == a_record()


async def test_decisions_are_newest_first_and_limited(journal: Journal) -> None:
    for number in range(5):
        await journal.append(a_record(number))
        await journal.append(a_record(number, name="other"))
    assert await asked(journal) == ["4", "3", "2", "1", "0"]
    assert await asked(journal, limit=2) == ["4", "3"]
    assert await asked(journal, namespace="elsewhere") == []


async def test_decisions_are_found_by_whatever_is_given(journal: Journal) -> None:
    for number in range(4):
        await journal.append(a_record(number))
        await journal.append(a_record(number, name="other"))
    moment = START + timedelta(seconds=2)
    assert await asked(journal, until=moment) == ["2", "1", "0"]
    assert await asked(journal, since=moment) == ["3", "2"]
    assert await asked(journal, since=moment, until=moment) == ["2"]
    assert await asked(journal, outcome="outcome 1") == ["1"]
    assert await asked(journal, name=None, outcome="outcome 1") == ["1", "1"]
    assert await asked(journal, name=None, kind=None, namespace=None) == ["3", "3", "2", "2", "1", "1", "0", "0"]


async def test_a_list_goes_on_where_a_page_ended(journal: Journal) -> None:
    for number in range(5):
        await journal.append(a_record(number))
    first = await journal.query(DecisionFilter(name="nginx"), limit=2)
    await journal.append(a_record(5))
    assert await asked(journal, below=first[-1].number) == ["2", "1", "0"]


async def test_a_repetition_is_counted_on_its_record(journal: Journal) -> None:
    for number in (0, 10):
        await journal.append(a_record(number))
    for seconds in (11, 12):
        await journal.repeat(a_record().identity, START + timedelta(seconds=10), START + timedelta(seconds=seconds))
    await journal.repeat(a_record(name="unknown").identity, START, START)
    newest, oldest = await journal.query(DecisionFilter(name="nginx"), limit=5)
    assert (newest.repeats, newest.last_at) == (2, START + timedelta(seconds=12))
    assert (oldest.repeats, oldest.last_at) == (0, None)
    await journal.repeat(a_record().identity, START + timedelta(seconds=10), START + timedelta(seconds=20))
    (newest,) = await journal.query(DecisionFilter(name="nginx"))
    assert newest.repeats == 3


async def test_the_group_matters_only_when_it_is_given(journal: Journal) -> None:
    await journal.append(a_record(1, group="apps"))
    await journal.append(a_record(2, group="other.io"))
    assert await asked(journal) == ["2", "1"]
    assert await asked(journal, group="apps") == ["1"]
    assert await asked(journal, group="") == []


async def test_an_objects_oldest_decisions_are_forgotten(journal: Journal) -> None:
    for number in range(30):
        await journal.append(a_record(number))
        await journal.append(a_record(number, name=f"other-{number}"))
        if number % 3 == 0:
            await asked(journal)
    newest = await asked(journal)
    assert newest[:8] == [str(number) for number in range(29, 21, -1)]
    assert len(newest) <= 9
    assert await asked(journal, name="other-0") == ["0"]


async def test_all_decisions_together_are_bounded(database: Database) -> None:
    journal = SQLJournal(database, JournalOptions(rows_max=10), clock=ManualClock(START))
    for number in range(25):
        await journal.append(a_record(number, name=f"n{number}"))
    await journal.flush()
    await journal.prune()
    assert await rows(database) == 10
    assert await asked(journal, name="n24") == ["24"]
    assert await asked(journal, name="n14") == []


async def test_old_decisions_are_forgotten(database: Database) -> None:
    clock = ManualClock(START + timedelta(days=14, seconds=3))
    journal = SQLJournal(database, clock=clock)
    await journal.prune()
    for number in range(6):
        await journal.append(a_record(number))
    await journal.flush()
    await journal.prune()
    assert await asked(journal) == ["5", "4", "3"]


async def test_an_objects_newest_decision_outlives_its_age(database: Database) -> None:
    clock = ManualClock(START + timedelta(days=15))
    journal = SQLJournal(database, JournalOptions(rows_per_prune_max=3), clock=clock)
    for name in ("a", "b", "c"):
        for number in range(3):
            await journal.append(a_record(number, name=name))
    await journal.flush()
    for _ in range(3):
        await journal.prune()
    assert [await asked(journal, name=name) for name in ("a", "b", "c")] == [["2"]] * 3
    await journal.append(replace(a_record(7, name="b"), at=clock.now()))
    await journal.flush()
    for _ in range(3):
        await journal.prune()
    assert await asked(journal, name="b") == ["7"]
    assert await rows(database) == 3


async def test_the_memory_forgets_by_age_and_count_too() -> None:
    journal = MemoryJournal(JournalOptions(rows_max=3, age_days_max=1))
    await journal.append(a_record(0))
    await journal.append(a_record(86_400 + 1))
    assert await asked(journal) == ["86401"]
    for number in range(3):
        await journal.append(a_record(86_402 + number, name=f"n{number}"))
    assert await asked(journal) == []
    assert len(await asked(journal, name=None)) == 3


async def test_a_full_buffer_drops_its_oldest_decisions(database: Database) -> None:
    journal = SQLJournal(database, JournalOptions(pending_max=4))
    for number in range(7):
        await journal.append(a_record(number))
    assert await asked(journal) == ["6", "5", "4", "3"]


async def test_running_writes_in_batches_forgets_in_time_and_finishes_at_the_end(database: Database) -> None:
    clock = ManualClock(START)
    journal = SQLJournal(database, JournalOptions(flush_interval_s=1, prune_interval_s=3, rows_max=2), clock=clock)
    running = asyncio.create_task(journal.run())
    await clock.advance(0)
    for number in range(5):
        await journal.append(a_record(number, name=f"n{number}"))
    await clock.advance(1)
    assert await rows(database) == 5
    await clock.advance(1)
    await clock.advance(1)
    assert await rows(database) == 2
    await journal.append(a_record(9))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await rows(database) == 3


async def test_decisions_wait_while_the_database_is_unavailable(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/state.db", StoreOptions())
    journal = SQLJournal(database)
    await journal.append(a_record(1))
    await journal.append(a_record(2))
    with pytest.raises(StoreUnavailable):
        await journal.flush()
    await journal.repeat(a_record().identity, a_record(2).at, START + timedelta(seconds=5))
    with pytest.raises(StoreUnavailable):
        await journal.flush()
    await database.open()
    assert await asked(journal) == ["2", "1"]
    (newest,) = await journal.query(DecisionFilter(name="nginx"))
    assert newest.repeats == 1
    await database.close()
