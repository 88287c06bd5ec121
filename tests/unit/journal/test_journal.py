"""The decision journal in memory and in SQL: order, filters, pages, limits, and buffering."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, func, select, update

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.database import Database
from federation.apiserver.store.databases import open_database
from federation.apiserver.store.options import StoreOptions
from federation.journal.decisions import DecisionFilter, DecisionRecord, Journal, JournalOptions
from federation.journal.memoryjournal import MemoryJournal
from federation.journal.sqljournal import SQLJournal, decision

START = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def a_record(number: int = 0, *, name: str = "nginx", group: str = "apps") -> DecisionRecord:
    return DecisionRecord(
        START + timedelta(seconds=number), group, "Deployment", "default", name, f"outcome {number}", 1.5, b'{"n":1}'
    )


async def outcomes(journal: Journal, *, limit: int = 100, below: int | None = None, **query: Any) -> list[str]:
    selection = DecisionFilter(**{"kind": "Deployment", "namespace": "default", "name": "nginx"} | query)
    return [
        record.outcome.removeprefix("outcome ") for record in await journal.query(selection, limit=limit, below=below)
    ]


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


async def test_a_decision_is_returned_as_it_was_recorded(journal: Journal) -> None:
    await journal.append(a_record())
    (record,) = await journal.query(DecisionFilter(name="nginx"))
    assert record.number > 0
    assert replace(record, number=0) == a_record()


async def test_decisions_are_newest_first_and_limited(journal: Journal) -> None:
    for number in range(5):
        await journal.append(a_record(number))
        await journal.append(a_record(number, name="other"))
    assert await outcomes(journal) == ["4", "3", "2", "1", "0"]
    assert await outcomes(journal, limit=2) == ["4", "3"]
    assert await outcomes(journal, namespace="elsewhere") == []


async def test_a_filter_selects_by_pairs_of_group_and_kind(journal: Journal) -> None:
    for group, kind in (("apps", "Deployment"), ("", "Service"), ("other", "Deployment")):
        await journal.append(replace(a_record(), group=group, kind=kind))
    selection = DecisionFilter(kinds=frozenset({("apps", "Deployment", ""), ("", "Service", ""), ("", "Secret", "")}))
    found = await journal.query(selection, limit=5)
    assert [(record.group, record.kind) for record in found] == [("", "Service"), ("apps", "Deployment")]
    assert await journal.query(DecisionFilter(kinds=frozenset()), limit=5) == []


async def test_a_filter_selects_by_every_field_that_is_set(journal: Journal) -> None:
    for number in range(4):
        await journal.append(a_record(number))
        await journal.append(a_record(number, name="other"))
    at = START + timedelta(seconds=2)
    assert await outcomes(journal, until=at) == ["2", "1", "0"]
    assert await outcomes(journal, since=at) == ["3", "2"]
    assert await outcomes(journal, since=at, until=at) == ["2"]
    assert await outcomes(journal, outcome="outcome 1") == ["1"]
    assert await outcomes(journal, name=None, outcome="outcome 1") == ["1", "1"]
    assert await outcomes(journal, name=None, kind=None, namespace=None) == ["3", "3", "2", "2", "1", "1", "0", "0"]


async def test_a_list_continues_below_the_previous_page(journal: Journal) -> None:
    for number in range(5):
        await journal.append(a_record(number))
    first = await journal.query(DecisionFilter(name="nginx"), limit=2)
    await journal.append(a_record(5))
    assert await outcomes(journal, below=first[-1].number) == ["2", "1", "0"]


async def test_a_repeat_is_counted_on_its_record(journal: Journal) -> None:
    for number in (0, 10):
        await journal.append(a_record(number))
    for seconds in (11, 12):
        await journal.record_repeat(
            a_record().identity, START + timedelta(seconds=10), START + timedelta(seconds=seconds)
        )
    await journal.record_repeat(a_record(name="unknown").identity, START, START)
    newest, oldest = await journal.query(DecisionFilter(name="nginx"), limit=5)
    assert (newest.repeats, newest.last_at) == (2, START + timedelta(seconds=12))
    assert (oldest.repeats, oldest.last_at) == (0, None)
    await journal.record_repeat(a_record().identity, START + timedelta(seconds=10), START + timedelta(seconds=20))
    (newest,) = await journal.query(DecisionFilter(name="nginx"))
    assert newest.repeats == 3


async def test_an_unset_group_selects_every_group(journal: Journal) -> None:
    await journal.append(a_record(1, group="apps"))
    await journal.append(a_record(2, group="other.io"))
    assert await outcomes(journal) == ["2", "1"]
    assert await outcomes(journal, group="apps") == ["1"]
    assert await outcomes(journal, group="") == []


async def test_the_oldest_decisions_of_an_object_are_pruned(journal: Journal) -> None:
    for number in range(30):
        await journal.append(a_record(number))
        await journal.append(a_record(number, name=f"other-{number}"))
        if number % 3 == 0:
            await outcomes(journal)
    newest = await outcomes(journal)
    assert newest[:8] == [str(number) for number in range(29, 21, -1)]
    assert len(newest) <= 9
    assert await outcomes(journal, name="other-0") == ["0"]


async def test_the_total_of_decisions_is_bounded(database: Database) -> None:
    journal = SQLJournal(database, JournalOptions(rows_max=10), clock=ManualClock(START))
    for number in range(25):
        await journal.append(a_record(number, name=f"n{number}"))
    await journal.flush()
    await journal.prune()
    assert await rows(database) == 10
    assert await outcomes(journal, name="n24") == ["24"]
    assert await outcomes(journal, name="n14") == []


async def test_the_bytes_of_all_explanations_are_bounded(database: Database) -> None:
    size = len(a_record().explanation)
    journal = SQLJournal(database, JournalOptions(bytes_max=4 * size + 1), clock=ManualClock(START))
    for number in range(9):
        await journal.append(a_record(number, name=f"n{number}"))
    await journal.flush()
    await journal.prune()
    assert await rows(database) == 4
    assert await outcomes(journal, name="n8") == ["8"]


async def test_a_record_of_an_earlier_version_counts_with_an_assumed_size(database: Database) -> None:
    journal = SQLJournal(database, JournalOptions(bytes_max=3 * 4_096), clock=ManualClock(START))
    for number in range(5):
        await journal.append(a_record(number))
    await journal.flush()
    await database.write(lambda connection: connection.execute(update(decision).values(explanation_bytes=None)))
    await journal.prune()
    assert await outcomes(journal) == ["4", "3", "2"]


async def test_filters_and_limits_never_read_explanations(database: Database) -> None:
    """SQLite keeps large explanations in the rows: a query that reads rows to compare them reads them all."""
    plans: list[str] = []

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        del connection
        if statement.lstrip().startswith("SELECT"):
            plan = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
            plans.extend(row[3] for row in plan if "decision" in row[3])

    journal = SQLJournal(database, clock=ManualClock(START + timedelta(days=99)))
    await journal.append(a_record())
    event.listen(Engine, "before_cursor_execute", explain)
    try:
        await journal.query(DecisionFilter(outcome="outcome 0"))
        await journal.query(DecisionFilter(kind="Deployment", group="apps", until=START), below=99)
        await journal.prune()
    finally:
        event.remove(Engine, "before_cursor_execute", explain)
    assert sum("COVERING INDEX ix_decision_filters" in plan for plan in plans) >= 5, plans
    others = [plan for plan in plans if "COVERING INDEX ix_decision_" not in plan]
    assert all("(rowid=?)" in plan or "newer" in plan for plan in others), plans


async def test_old_decisions_are_pruned(database: Database) -> None:
    clock = ManualClock(START + timedelta(days=14, seconds=3))
    journal = SQLJournal(database, clock=clock)
    await journal.prune()
    for number in range(6):
        await journal.append(a_record(number))
    await journal.flush()
    await journal.prune()
    assert await outcomes(journal) == ["5", "4", "3"]


async def test_the_newest_decision_of_an_object_is_exempt_from_the_age_limit(database: Database) -> None:
    clock = ManualClock(START + timedelta(days=15))
    journal = SQLJournal(database, JournalOptions(rows_per_prune_max=3), clock=clock)
    for name in ("a", "b", "c"):
        for number in range(3):
            await journal.append(a_record(number, name=name))
    await journal.flush()
    for _ in range(3):
        await journal.prune()
    assert [await outcomes(journal, name=name) for name in ("a", "b", "c")] == [["2"]] * 3
    await journal.append(replace(a_record(7, name="b"), at=clock.now()))
    await journal.flush()
    for _ in range(3):
        await journal.prune()
    assert await outcomes(journal, name="b") == ["7"]
    assert await rows(database) == 3


async def test_the_memory_journal_prunes_by_age_and_total() -> None:
    journal = MemoryJournal(JournalOptions(rows_max=3, age_days_max=1))
    await journal.append(a_record(0))
    await journal.append(a_record(86_400 + 1))
    assert await outcomes(journal) == ["86401"]
    for number in range(3):
        await journal.append(a_record(86_402 + number, name=f"n{number}"))
    assert await outcomes(journal) == []
    assert len(await outcomes(journal, name=None)) == 3


async def test_a_full_buffer_drops_its_oldest_decisions(database: Database) -> None:
    journal = SQLJournal(database, JournalOptions(pending_max=4))
    for number in range(7):
        await journal.append(a_record(number))
    assert await outcomes(journal) == ["6", "5", "4", "3"]


async def test_run_flushes_and_prunes_at_intervals_and_flushes_when_cancelled(database: Database) -> None:
    clock = ManualClock(START)
    journal = SQLJournal(database, JournalOptions(flush_interval_s=1, prune_interval_s=9_000, rows_max=2), clock=clock)
    running = asyncio.create_task(journal.run())

    async def advance_until(count: int, step_s: float) -> None:
        async with asyncio.timeout(60):
            while await rows(database) != count:
                await clock.advance(step_s)

    async with asyncio.timeout(60):
        while clock.next_deadline_s is None:  # it prunes at its start, too
            await clock.advance(0)
    for number in range(5):
        await journal.append(a_record(number, name=f"n{number}"))
    await advance_until(5, 1)
    await advance_until(2, 9_000)
    await journal.append(a_record(9))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await rows(database) == 3


async def test_decisions_stay_buffered_while_the_database_is_unavailable(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/state.db", StoreOptions())
    journal = SQLJournal(database)
    await journal.append(a_record(1))
    await journal.append(a_record(2))
    with pytest.raises(StoreUnavailable):
        await journal.flush()
    await journal.record_repeat(a_record().identity, a_record(2).at, START + timedelta(seconds=5))
    with pytest.raises(StoreUnavailable):
        await journal.flush()
    await database.open()
    assert await outcomes(journal) == ["2", "1"]
    (newest,) = await journal.query(DecisionFilter(name="nginx"))
    assert newest.repeats == 1
    await database.close()
