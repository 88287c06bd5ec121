"""Measure the store: writes per second and CPU per write with 64 writers, latency and CPU of a single one, reads, fan-out.

`python benchmarks/store.py [--url sqlite:///PATH | postgresql://…] [--writes N]`. Without --url: SQLite in a temporary
directory. The last line is one JSON object. `bare_sync_ms` is the disk's time for one synced write, the lower bound for
a single writer. `busy_…` is a single writer's latency while the event loop always has other work.
"""

import argparse
import asyncio
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import uvloop
from report import print_report

from federation.apiserver.store.interface import Body, Store
from federation.apiserver.store.sql import SQLStore

WRITERS = 64
WATCHERS = 500
BODY = Body(b'{"metadata":{"resourceVersion":"', b'"},"spec":"' + b"x" * 2_000 + b'"}')
Results = dict[str, float]


def cpu_s() -> float:
    """Return the CPU time of this process and its child processes."""
    process = psutil.Process()
    times = (each.cpu_times() for each in (process, *process.children()))
    return sum(float(each.user + each.system) for each in times)


def bare_sync_ms(folder: Path) -> float:
    times = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(200):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1_000


async def timed(count: int, write: Callable[[int], Awaitable[object]], writers: int) -> tuple[float, list[float]]:
    """Do `count` writes with `writers` concurrent writers; return writes per second and sorted latencies in ms."""
    numbers = iter(range(count))
    latencies: list[float] = []

    async def work() -> None:
        for number in numbers:
            started = time.perf_counter()
            await write(number)
            latencies.append((time.perf_counter() - started) * 1_000)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(writers)))
    return count / (time.perf_counter() - started), sorted(latencies)


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def measure_writes(store: Store, count: int) -> Results:
    revisions = {}

    async def create(number: int) -> None:
        revisions[number] = (await store.create(f"/bench/{number:06d}", BODY)).revision

    async def update(number: int) -> None:
        revisions[number] = (await store.update(f"/bench/{number:06d}", BODY, revisions[number])).revision

    before = cpu_s()
    create_per_s, _ = await timed(count, create, WRITERS)
    update_per_s, latencies = await timed(count, update, WRITERS)
    cpu_ms = (cpu_s() - before) / (2 * count) * 1_000
    return {
        "create_per_s": create_per_s,
        "update_per_s": update_per_s,
        "commit_p50_ms": percentile(latencies, 0.5),
        "commit_p99_ms": percentile(latencies, 0.99),
        "cpu_ms_per_write": cpu_ms,
    }


async def measure_single(store: Store, prefix: str) -> list[float]:
    async def create(number: int) -> None:
        await store.create(f"/{prefix}/{number:06d}", BODY)

    return (await timed(1_000, create, 1))[1]


async def measure_busy(store: Store) -> Results:
    is_over = False

    async def burn() -> None:
        while not is_over:
            until = time.perf_counter() + 0.0003
            while time.perf_counter() < until:
                pass
            await asyncio.sleep(0)

    burning = asyncio.create_task(burn())
    latencies = await measure_single(store, "busy")
    is_over = True
    await burning
    return {"busy_single_p50_ms": percentile(latencies, 0.5), "busy_single_p99_ms": percentile(latencies, 0.99)}


async def measure_reads(store: Store) -> Results:
    times = []
    for _ in range(10):
        started = time.perf_counter()
        page = await store.list("/bench/")
        times.append(time.perf_counter() - started)
    return {"list_entries": len(page.entries), "list_ms": statistics.median(times) * 1_000}


async def measure_fan_out(store: Store, watchers: int) -> float:
    """Return writes per second while `watchers` watch one key each and one watches everything."""
    revision = await store.revision()
    target = revision + 2_000

    async def watch(prefix: str) -> None:
        async for batch in store.watch(prefix, revision):
            if batch.revision >= target:
                return

    watching = [asyncio.create_task(watch(f"/fan/{watchers}/{number}/")) for number in range(watchers)]
    everything = asyncio.create_task(watch("/fan/"))
    await asyncio.sleep(0)
    rate, _ = await timed(2_000, lambda n: store.create(f"/fan/{watchers}/{n % (watchers or 1)}/{n}", BODY), WRITERS)
    await everything
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return rate


async def run(url: str, folder: Path, count: int) -> Results:
    store = SQLStore(url)
    running = asyncio.create_task(store.run())
    await store.ready()
    results: Results = {"bare_sync_ms": bare_sync_ms(folder)}
    before = cpu_s()
    single = await measure_single(store, "single")
    results["single_cpu_ms_per_write"] = (cpu_s() - before) / len(single) * 1_000
    results |= {"single_p50_ms": percentile(single, 0.5), "single_p99_ms": percentile(single, 0.99)}
    results |= await measure_writes(store, count)
    results |= await measure_reads(store)
    results |= await measure_busy(store)
    results["no_watcher_create_per_s"] = await measure_fan_out(store, 0)
    results["watchers"] = WATCHERS
    results["watched_create_per_s"] = await measure_fan_out(store, WATCHERS)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await store.close()
    started = time.perf_counter()
    store = SQLStore(url)
    await store.ready()
    results["start_ms"] = (time.perf_counter() - started) * 1_000
    await store.close()
    results["rss_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", default="", help="the database; a temporary SQLite file when it is not given")
    parser.add_argument("--writes", type=int, default=10_000, help="how many creates, and how many updates")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = arguments.url or f"sqlite:///{folder / 'state.db'}"
        results = uvloop.run(run(url, folder, arguments.writes))
    for key, value in results.items():
        print(f"{key:26}{value:12,.3f}")
    print_report("store", {"database": url.partition(":")[0], "writes": arguments.writes}, results)


if __name__ == "__main__":
    main()
