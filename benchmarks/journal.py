"""Measure the journal of decisions with many objects: appends, queries, pruning, and the requests of `fedctl why`.

Fills a database with decisions about N objects, the way the schedule controller does. Then it measures queries in this
process, the checks of the journal's limits, and with a `fedctl serve` on that database `GET /federation/v1/decisions` and
`/delivery` over HTTPS, the requests of `fedctl why`. For comparison: a GET of a Deployment on the same connection. The
last line on standard output is one JSON object.

    python benchmarks/journal.py                            100,000 objects on SQLite, explanations of 4 kB
    python benchmarks/journal.py --objects 1000000          more objects
    python benchmarks/journal.py --explanation-bytes 14000  explanations of 100 clusters (1,400 for 3, 116,000 for 1,000)
    python benchmarks/journal.py --store postgresql
"""

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import uvloop
from loadclient import Client, Target
from processes import Database, add_server_options, check_server_options, control_planes, database
from propagation import NAMESPACE, percentile, to_deployment, to_policy
from report import print_report

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.apiserver.store.sql import SQLStore
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig
from federation.journal.decisions import DecisionFilter, DecisionRecord, JournalOptions
from federation.journal.sqljournal import SQLJournal

Results = dict[str, Any]
NAMESPACES_COUNT = 100
QUERIES = 200
FEW = 20
"""Repetitions of what may read the whole journal."""
RARE, COMMON, ABSENT = "no cluster fits", "placed", "never"
START = datetime.now(UTC) - timedelta(hours=1)


def a_record(number: int, explanation: bytes) -> DecisionRecord:
    outcome = RARE if number % 1_000 == 0 else COMMON
    namespace, name = f"team-{number % NAMESPACES_COUNT}", f"app-{number:06d}"
    at = START + timedelta(milliseconds=number)
    return DecisionRecord(at, "apps", "Deployment", namespace, name, outcome, 1.0, explanation)


def an_explanation(size: int, rng: random.Random) -> bytes:
    """Return a JSON object of about that many bytes, with a score per cluster."""
    scores = {f"cluster-{number:04d}": rng.randrange(100) for number in range(max(1, size // 20))}
    return json.dumps({"result": {"cluster-0001": 3}, "scores": scores}, separators=(",", ":")).encode()


async def fill(journal: SQLJournal, count: int, size: int) -> Results:
    rng = random.Random(1)
    explanations = [an_explanation(size, rng) for _ in range(50)]
    began, cpu_s = time.perf_counter(), own_cpu_s()
    for number in range(count):
        await journal.append(a_record(number, explanations[number % len(explanations)]))
        if number % 1_000 == 999:
            await journal.flush()
    await journal.flush()
    return {
        "appends_per_s": count / (time.perf_counter() - began),
        "append_cpu_ms": (own_cpu_s() - cpu_s) / count * 1_000,
        "explanation_bytes": len(explanations[0]),
    }


def own_cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


async def timed(name: str, count: int, work: Callable[[int], Awaitable[object]]) -> Results:
    await work(0)  # opens the connection and prepares the statement
    latencies = []
    for number in range(count):
        started = time.perf_counter()
        await work(number)
        latencies.append((time.perf_counter() - started) * 1_000)
    found = {f"{name}_p50_ms": percentile(latencies, 0.5), f"{name}_p99_ms": percentile(latencies, 0.99)}
    print(f"{name:24} P50 {found[f'{name}_p50_ms']:9.3f} ms   P99 {found[f'{name}_p99_ms']:9.3f} ms", flush=True)
    return found


async def measure_queries(journal: SQLJournal, count: int) -> Results:
    rng = random.Random(2)

    def by_object(_: int) -> Awaitable[object]:
        record = a_record(rng.randrange(count), b"")
        return journal.query(DecisionFilter("apps", "Deployment", record.namespace, record.name), limit=20)

    def selected(**fields: Any) -> Callable[[int], Awaitable[object]]:
        return lambda _: journal.query(DecisionFilter(**fields), limit=20)

    team = "team-7"
    results: Results = await timed("query_object", QUERIES, by_object)
    results |= await timed("query_newest", QUERIES, selected())
    results |= await timed("query_namespace", FEW, selected(kind="Deployment", namespace=team))
    results |= await timed("query_namespace_only", FEW, selected(namespace=team))
    results |= await timed("query_rare_outcome", FEW, selected(outcome=RARE))
    results |= await timed("query_absent_outcome", FEW, selected(outcome=ABSENT))
    results |= await timed("query_absent_object", FEW, selected(kind="Deployment", namespace=team, name="nothing"))
    results |= await timed("query_name_only", FEW, selected(name=a_record(count // 2, b"").name))
    middle = START + timedelta(milliseconds=count // 2)
    results |= await timed("query_until", FEW, selected(until=middle))
    results |= await timed("query_since_until", FEW, selected(since=middle - timedelta(seconds=1), until=middle))
    return results


async def measure_pruning(name: str, journal: SQLJournal) -> Results:
    """Return the time of a check of the limits, and the CPU that it takes from the event loop; the rest is in threads."""
    cpu_s = time.thread_time()
    results = await timed(name, FEW, lambda _: journal.prune())
    cpu_ms = (time.thread_time() - cpu_s) / (FEW + 1) * 1_000
    print(f"{name:24} {cpu_ms:13.3f} ms of CPU on the event loop", flush=True)
    return {**results, f"{name}_loop_cpu_ms": cpu_ms}


async def measure_requests(directory: Path, store: Database, count: int) -> Results:
    """Return the latencies of the requests of `fedctl why` to a control plane without members."""
    rng = random.Random(3)
    async with control_planes(directory, store, 1) as (plane,):
        connection = load_kubeconfig(plane.kubeconfig, "")
        host = HTTPClient(connection)
        await host.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await host.create(PROPAGATION_POLICIES, to_policy("Divide", []))
        for index in range(FEW):
            await host.create(DEPLOYMENTS, to_deployment(index, 3))
        client = await Client.open(await Target.of(connection))

        async def get(path: str) -> bytes:
            status, body = await client.request(b"GET", path.encode())
            if status != 200:
                raise SystemExit(f"benchmark: GET {path}: {status} {body[:300]!r}")
            return body

        async def why(_: int) -> None:
            record = a_record(rng.randrange(count // 10, count), b"")  # the oldest were pruned
            body = await get(
                "/federation/v1/decisions?limit=20&group=apps&kind=Deployment"
                f"&namespace={record.namespace}&name={record.name}"
            )
            if record.name.encode() not in body:
                raise SystemExit(f"benchmark: no decision about {record.name}")

        def to_path(number: int) -> str:
            return f"group=apps&kind=Deployment&namespace={NAMESPACE}&name=app-{number % FEW:05d}"

        async def delivery(number: int) -> None:
            await get(f"/federation/v1/delivery?{to_path(number)}")

        async def filtered(number: int) -> None:
            await get(
                "/federation/v1/decisions?limit=20&kind=Deployment&group=apps"
                f"&namespace=team-{number % NAMESPACES_COUNT}&outcome={COMMON}"
            )

        async def deployment(number: int) -> None:
            await get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/app-{number % FEW:05d}")

        while b'"Deployment"' not in await get(f"/federation/v1/decisions?{to_path(FEW - 1)}"):
            await asyncio.sleep(0.1)  # until the last object was scheduled
        try:
            results = await timed("why", QUERIES, why)
            results |= await timed("delivery", QUERIES, delivery)
            results |= await timed("filtered", QUERIES, filtered)
            return results | await timed("get_deployment", QUERIES, deployment)
        finally:
            client.close()
            await host.close()


async def run(options: argparse.Namespace, directory: Path) -> Results:
    count = options.objects
    with database(options.store) as store:
        folder = directory / "host-0"  # where `control_planes` looks for it
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        sql = SQLStore(store.url or f"sqlite:///{folder / 'state.db'}")
        running = asyncio.create_task(sql.run())
        await sql.ready()
        journal_options = JournalOptions(rows_max=10 * count, bytes_max=count * 1_000_000)
        journal = SQLJournal(sql.database, journal_options)
        results = await fill(journal, count, options.explanation_bytes)
        print(f"{count:,} decisions, {results['append_cpu_ms']:.3f} ms of CPU each", flush=True)
        results |= await measure_queries(journal, count)
        results |= await measure_pruning("prune", journal)
        later = ManualClock(START + timedelta(days=30))
        results |= await measure_pruning("prune_aged", SQLJournal(sql.database, journal_options, clock=later))
        full = SQLJournal(sql.database, JournalOptions(rows_max=count * 99 // 100, bytes_max=count * 1_000_000))
        results |= await measure_pruning("prune_total", full)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await sql.close()
        if not store.url:
            results["database_mb"] = sum(file.stat().st_size for file in folder.glob("state.db*")) / 1e6
        return results | await measure_requests(directory, store, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=100_000, help="objects, with one decision each")
    parser.add_argument("--explanation-bytes", type=int, default=4_000, help="bytes of each explanation")
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    add_server_options(parser)
    options = parser.parse_args()
    check_server_options(parser, options)
    if options.objects < 1:
        parser.error("--objects: at least 1")
    limits = {"DECISIONS_MAX": 10 * options.objects, "DECISIONS_BYTES_MAX": 1_000_000 * options.objects}
    os.environ.update({f"FEDERATION_{name}": str(limit) for name, limit in limits.items()})
    with tempfile.TemporaryDirectory(prefix="federation-bench-") as name:
        results = uvloop.run(run(options, options.dir or Path(name)))
    shape = {"objects": options.objects, "explanationBytes": options.explanation_bytes, "store": options.store}
    print_report("journal", shape, results)


if __name__ == "__main__":
    main()
