"""Eight writers on twenty objects, watchers that stop anywhere and resume, paged lists, and a concurrent compaction.

No acknowledged update is lost, no watcher misses, repeats or reorders an event, and each list is one snapshot: the
test compares all of them with the store's own log. It runs on SQLite, on PostgreSQL, and with two registries on one
PostgreSQL. `CONCURRENT_UPDATES=2000` sets the updates per writer on all of them (two minutes each).
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import orjson
import pytest
from tests.support.contention import (
    NAMESPACE,
    STABLE,
    VOLATILE,
    Lister,
    Log,
    Watching,
    Writer,
    a_counter,
    config_maps,
)
from tests.support.postgres import PostgresServer
from tests.support.stores import Recorder, StoreBackend

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Expired
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.paging import ContinuationExpired
from federation.apiserver.verbs.requestoptions import ListOptions, RegistryOptions, WriteOptions

WRITERS = 8
UPDATES = int(os.environ.get("CONCURRENT_UPDATES", "150"))
_S_MAX = 600
RESUMED, LISTS = 20, 5
"""What is compared with the log has more resumed watches and more lists than these."""
_POSTGRES = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]
PLACES = [
    pytest.param("sqlite", 1, id="sqlite"),
    pytest.param("postgres", 1, id="postgres", marks=_POSTGRES),
    pytest.param("postgres", 2, id="two registries on postgres", marks=_POSTGRES),
]
WATCHERS = {
    "all": ListOptions(),
    "odd": ListOptions(label_selector="side=odd"),
    "one": ListOptions(field_selector=f"metadata.name={VOLATILE[0]}"),
    "all with bookmarks": ListOptions(allow_watch_bookmarks=True),
    "even with bookmarks": ListOptions(label_selector="side=even", allow_watch_bookmarks=True),
    "one with bookmarks": ListOptions(field_selector=f"metadata.name={STABLE[0]}", allow_watch_bookmarks=True),
    "streamed": ListOptions(
        allow_watch_bookmarks=True, send_initial_events=True, resource_version_match="NotOlderThan"
    ),
}


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
async def backend(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[StoreBackend]:
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/state.db"
    else:
        url = request.getfixturevalue("postgres").create_database()
    backend = StoreBackend(kind, url)
    yield backend
    await backend.close()


async def registries_of(backend: StoreBackend, number: int) -> list[Registry]:
    """Return registries with a store each; the memory is so small that resumed watches read the database too."""
    options = RegistryOptions(bookmark_interval_s=0.02)
    registries = []
    for _ in range(number):
        store = await backend.open(recent_events_max=256)
        registries.append(Registry(store, clock=SystemClock(), options=options))
        await registries[-1].start()
    return registries


async def contend(backend: StoreBackend, registries: list[Registry], updates: int) -> None:
    """Run all writers, watchers and listers concurrently, then compare their results with the log."""
    first = registries[0]
    recorder = Recorder(first.store)
    for name in (*STABLE, *VOLATILE):
        await first.create(config_maps(first), NAMESPACE, a_counter(name, 0), WriteOptions())
    began = await first.store.revision()
    writers = [Writer(registries[number % len(registries)], number) for number in range(WRITERS)]
    watchings = [
        Watching(registries[number % len(registries)], name, began - 3 * number, options)
        for number, (name, options) in enumerate(WATCHERS.items())
    ]
    listers = [Lister(registry) for registry in registries]
    async with asyncio.timeout(_S_MAX):
        followers = [asyncio.create_task(one.run()) for one in (*watchings, *listers)]
        try:
            middle = began + WRITERS * updates // 2
            async with asyncio.TaskGroup() as group:
                for writer in writers:
                    group.create_task(writer.run(updates))
                while recorder.revision < middle:  # noqa: ASYNC110  # as long as it takes; the limit is around all
                    await asyncio.sleep(0.01)
                await expire_a_list(registries[-1], first)
            more = await write_until_enough_is_seen(writers[0], watchings, listers, followers)
            ended = await first.store.revision()
            await recorder.wait_for(ended)
            log = Log(recorder)
            await until_all_events_arrived(log, watchings, followers, ended)
        finally:
            for task in followers:
                task.cancel()
            await asyncio.gather(*followers, return_exceptions=True)
            await recorder.stop()
    await check_counts(first, writers, WRITERS * updates + more)
    check_watches(log, watchings)
    check_lists(log, listers)


async def expire_a_list(registry: Registry, first: Registry) -> None:
    """Compact during a paged list and while watches lag: both get a 410, and its token continues the list."""
    info = config_maps(registry)
    page = await registry.list(info, NAMESPACE, ListOptions(limit=5))
    late = Watching(registry, "late", page.resource_version, ListOptions())
    while await registry.store.revision() < page.resource_version + 20:  # noqa: ASYNC110  # writers have no event for it
        await asyncio.sleep(0)  # let the writers run
    await first.store.compact(await first.store.revision() - 5)
    await registry.store.revision()
    with pytest.raises(ContinuationExpired, match="too old to display a consistent list") as caught:
        await registry.list(info, NAMESPACE, ListOptions(limit=5, continue_token=page.continue_token))
    fresh = caught.value.to_status()["metadata"]["continue"]
    rest = await registry.list(info, NAMESPACE, ListOptions(continue_token=fresh))
    assert rest.resource_version > page.resource_version
    names = [value.split(b'"name":"', 1)[1].split(b'"', 1)[0].decode() for value in rest.items]
    assert names == sorted(names)
    assert set(names) <= {*STABLE, *VOLATILE} - set(STABLE[:5])
    assert set(STABLE[5:]) <= set(names)
    with pytest.raises(Expired, match="too old resource version"):
        await late.follow(1)


async def until_all_events_arrived(
    log: Log, watchings: list[Watching], followers: list[asyncio.Task[None]], ended: int
) -> None:
    """Wait until every watch has reached its last expected change."""
    for watching in watchings:
        due = log.expected(watching.options, 0, ended)[-1][2]
        while watching.chains[-1].reached < due:
            for task in followers:
                if task.done():
                    task.result()  # raises the watcher's error
            await asyncio.sleep(0.001)


async def write_until_enough_is_seen(
    writer: Writer, watchings: list[Watching], listers: list[Lister], followers: list[asyncio.Task[None]]
) -> int:
    """Write on while watches have rarely been resumed or few lists were made, and return the number of updates."""
    updates = 0
    while (
        sum(watching.resumed for watching in watchings) <= RESUMED or sum(len(each.lists) for each in listers) <= LISTS
    ):
        for task in followers:
            if task.done():
                task.result()  # raises its error
        await writer.run(1)
        updates += 1
    return updates


async def check_counts(registry: Registry, writers: list[Writer], updates: int) -> None:
    assert sum(writer.counted.total() + len(writer.applied) for writer in writers) <= updates
    for name in (*STABLE, *VOLATILE):
        data = orjson.loads(await registry.get(config_maps(registry), NAMESPACE, name))["data"]
        assert int(data["count"]) == sum(writer.counted[name] for writer in writers), f"updates of {name} were lost"
        for writer in writers:
            if name in writer.applied:
                assert data[writer._field] == writer.applied[name], f"an apply to {name} was lost"


def check_watches(log: Log, watchings: list[Watching]) -> None:
    for watching in watchings:
        for chain in watching.chains:
            where = f"{watching.name}, from {chain.start} to {chain.reached}"
            if chain.state is not None:
                assert chain.state == log.state_at(chain.start, watching.options), where
            assert chain.events == log.expected(watching.options, chain.start, chain.reached), where
        assert any(chain.events for chain in watching.chains), watching.name
    assert sum(watching.resumed for watching in watchings) > RESUMED


def check_lists(log: Log, listers: list[Lister]) -> None:
    assert sum(len(lister.lists) for lister in listers) > LISTS
    for lister in listers:
        for revision, shown in lister.lists:
            assert shown == log.state_at(revision), f"the list at {revision} is no snapshot"


@pytest.mark.slow("twelve hundred updates on real databases")
@pytest.mark.parametrize(("kind", "registries"), PLACES)
async def test_no_update_is_lost_and_every_watch_is_ordered(backend: StoreBackend, registries: int) -> None:
    await contend(backend, await registries_of(backend, registries), updates=UPDATES)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sqlite"])
async def test_nothing_is_lost_in_two_thousand_updates_of_each_writer(backend: StoreBackend) -> None:
    await contend(backend, await registries_of(backend, 1), updates=2000)
