"""Measure what a user and an administrator notice while thousands of hostile connections are open.

Starts `fedctl serve` and opens connections of one kind after the other, from one address and from a thousand. Beside
them a user with a token sends GETs over a connection that he keeps, and an administrator opens a connection for each
GET. Connections that the server closes are opened again. The last line on standard output is one JSON object.

    python benchmarks/hostile.py                                all kinds, about six minutes
    python benchmarks/hostile.py --kinds slow-body --sources 1  one kind from one address

    no-tls       a TCP connection that sends nothing
    no-header    a TLS connection that sends nothing
    slow-header  a byte of a header every five seconds
    slow-body    a byte of the body of `POST /ui/login` every five seconds
    idle-stream  a watch with the token of an account that may watch one empty collection
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import psutil
import uvloop
from loadclient import Client, Target
from processes import control_planes, database
from report import print_report

from apiserver import expect, percentile
from federation.apimachinery.connection import Connection
from federation.apimachinery.filelimit import raise_file_limit
from federation.client.kubeconfig import load_kubeconfig

KINDS = ("no-tls", "no-header", "slow-header", "slow-body", "idle-stream")
NAMESPACE = "default"
PATH = b"/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
ADMINISTRATOR_S = 10.0
"""An administrator who has no response by then counts as refused."""
BYTE_S = 5.0
OPENING_MAX = 200
"""Connections that the attacker opens at the same time."""
GOALS: dict[str, tuple[str, float]] = {"p99_ratio_max": ("<=", 3), "administrators_refused": ("<=", 0)}
Results = dict[str, Any]


@dataclass(slots=True)
class Watched:
    """What one client noticed."""

    latencies_ms: list[float]
    refused: int = 0

    def summary(self, name: str) -> Results:
        ordered = sorted(self.latencies_ms)
        times = {f"{name}_p50_ms": percentile(ordered, 0.5), f"{name}_p99_ms": percentile(ordered, 0.99)}
        return times | {f"{name}_gets": len(ordered), f"{name}_refused": self.refused}


async def use(target: Target, every_s: float, watched: Watched) -> None:
    """Send a GET each `every_s` over a connection that is kept, and opened again when the server closes it."""
    client: Client | None = None
    try:
        while True:
            started = time.perf_counter()
            try:
                async with asyncio.timeout(ADMINISTRATOR_S):
                    client = client or await Client.open(target)
                    await expect_or_raise(client)
            except (OSError, TimeoutError):
                watched.refused += 1
                client = None
            watched.latencies_ms.append((time.perf_counter() - started) * 1_000)
            await asyncio.sleep(max(0.0, started + every_s - time.perf_counter()))
    finally:
        if client is not None:
            client.close()


async def administer(target: Target, every_s: float, watched: Watched) -> None:
    """Open a connection for each GET, as `kubectl` does."""
    while True:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(ADMINISTRATOR_S):
                client = await Client.open(target)
                try:
                    await expect_or_raise(client)
                finally:
                    client.close()
        except (OSError, TimeoutError):
            watched.refused += 1
        watched.latencies_ms.append((time.perf_counter() - started) * 1_000)
        await asyncio.sleep(max(0.0, started + every_s - time.perf_counter()))


async def expect_or_raise(client: Client) -> None:
    status, _ = await client.request(b"GET", PATH)
    if status != 200:
        raise ConnectionError(f"status {status}")


class Hostile(asyncio.Protocol):
    """One connection of the attacker."""

    def __init__(self, first: bytes, is_slow: bool) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self._first, self._is_slow = first, is_slow
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._first:
            transport.write(self._first)
        if self._is_slow:
            self._wait()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BYTE_S, self._drip)

    def _drip(self) -> None:
        self._transport.write(b"x")
        self._wait()

    def connection_lost(self, _: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.ended.done():
            self.ended.set_result(None)


class Attack:
    """Keeps `count` connections of a kind open, as far as the server lets it."""

    def __init__(self, target: Target, kind: str, count: int, sources: int, opens_per_s: float) -> None:
        self._target, self._kind, self._count, self._sources = target, kind, count, sources
        self._opens_per_s = opens_per_s
        self._running: set[asyncio.Task[None]] = set()
        self.open = self.opened = self.failed = 0

    async def run(self) -> None:
        opening, began, begun = asyncio.Semaphore(OPENING_MAX), time.perf_counter(), 0
        while True:
            due = (time.perf_counter() - began) * self._opens_per_s
            while begun < due:
                if len(self._running) >= self._count:
                    began, begun = time.perf_counter(), 0
                    break
                begun += 1
                task = asyncio.create_task(self._hold(self.opened + self.failed, opening))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
            await asyncio.sleep(0.01)

    async def _hold(self, number: int, opening: asyncio.Semaphore) -> None:
        source = "127.0.0.1" if self._sources == 1 else f"127.0.{1 + number % self._sources // 250}.{1 + number % 250}"
        target, first = self._target, self._first()
        tls, tls_name = (None, None) if self._kind == "no-tls" else (target.tls, target.tls_name)
        try:
            async with opening, asyncio.timeout(30):
                transport, hostile = await asyncio.get_running_loop().create_connection(
                    lambda: Hostile(first, self._kind.startswith("slow")),
                    *(target.host, target.port),
                    ssl=tls,
                    server_hostname=tls_name,
                    local_addr=(source, 0),
                )
        except (OSError, TimeoutError):
            self.failed += 1
            return
        self.opened += 1
        self.open += 1
        try:
            await hostile.ended
        finally:
            self.open -= 1
            transport.abort()

    def _first(self) -> bytes:
        match self._kind:
            case "slow-header":
                return b"GET /ui/login HTTP/1.1\r\nhost: a\r\nx-"
            case "slow-body":
                return b"POST /ui/login HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n"
            case "idle-stream":
                return b"GET /api/v1/namespaces/hostile/secrets?watch=true HTTP/1.1\r\n" + self._target.head + b"\r\n"
            case _:
                return b""


async def attack(options: argparse.Namespace) -> None:
    """Be the attacker, in a process of its own: print a line of counts each second."""
    raise_file_limit()
    os.nice(10)  # a real attacker takes none of this machine's CPU
    connection = load_kubeconfig(options.kubeconfig, "")
    connection = replace(connection, client_cert_data=b"", client_key_data=b"", token=sys.stdin.readline().strip())
    running = Attack(Target(connection), options.attack, options.count, int(options.sources), options.opens_per_s)
    task = asyncio.create_task(running.run())
    while not task.done():
        print(running.open, running.opened, running.failed, flush=True)
        await asyncio.sleep(1)
    task.result()


@contextlib.asynccontextmanager
async def attacked(kubeconfig: Path, token: str, kind: str, sources: str, options: argparse.Namespace) -> Any:
    """Run the attacker; yield his latest counts: open, opened, failed."""
    arguments = ["--attack", kind, "--sources", sources, "--count", str(options.count)]
    arguments += ["--opens-per-s", str(options.opens_per_s), "--kubeconfig", str(kubeconfig)]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, *arguments), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    counts: deque[tuple[int, ...]] = deque(maxlen=1)

    async def read() -> None:
        assert child.stdout is not None
        while line := await child.stdout.readline():
            counts.append(tuple(map(int, line.split())))

    assert child.stdin is not None
    child.stdin.write(token.encode() + b"\n")
    reading = asyncio.create_task(read())
    try:
        yield counts
    finally:
        child.kill()
        await child.wait()
        await reading


async def account(admin: Client, name: str, namespace: str, role: str, connection: Connection) -> Connection:
    """Return the connection of a new ServiceAccount with a role in a namespace."""
    base = f"/api/v1/namespaces/{namespace}/serviceaccounts".encode()
    await expect(admin.request(b"POST", base, orjson.dumps({"metadata": {"name": name}})))
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    binding = orjson.dumps({"metadata": {"name": name}, "subjects": [subject], "roleRef": reference})
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings".encode()
    await expect(admin.request(b"POST", path, binding))
    asked = await expect(admin.request(b"POST", b"%b/%b/token" % (base, name.encode()), b'{"spec":{}}'))
    token = str(orjson.loads(asked)["status"]["token"])
    return replace(connection, client_cert_data=b"", client_key_data=b"", token=token)


async def measure(user: Target, admin: Target, server: psutil.Process, seconds: float) -> Results:
    """Return what both noticed, and CPU and memory of the server."""
    noticed, refused = Watched([]), Watched([])
    before = server.cpu_times()
    tasks = [asyncio.create_task(use(user, 0.02, noticed)), asyncio.create_task(administer(admin, 0.25, refused))]
    await asyncio.sleep(seconds)
    after = server.cpu_times()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    used_s = after.user + after.system - before.user - before.system
    usage = {"server_cpu_percent": used_s / seconds * 100, "server_rss_mb": server.memory_info().rss / 1e6}
    return noticed.summary("user") | refused.summary("administrator") | usage


def show(what: str, found: Results, counts: tuple[int, ...] = (0, 0, 0)) -> None:
    print(
        f"{what:24}{counts[0]:8,} open {counts[1]:8,} opened   user P50 {found['user_p50_ms']:7.2f} ms"
        f"   P99 {found['user_p99_ms']:8.2f} ms   refused {found['user_refused']:3}"
        f"   administrator P99 {found['administrator_p99_ms']:8.1f} ms   refused {found['administrator_refused']:3}"
        f"   CPU {found['server_cpu_percent']:4.0f} %   {found['server_rss_mb']:5,.0f} MB",
        flush=True,
    )


async def run(options: argparse.Namespace) -> Results:
    raise_file_limit()
    results: Results = {"p99_ratio_max": 0.0, "administrators_refused": 0}
    with tempfile.TemporaryDirectory(prefix="federation-bench-") as folder, database("sqlite") as store:
        async with control_planes(Path(folder), store, 1) as [plane]:
            connection = load_kubeconfig(plane.kubeconfig, "")
            admin = Target(connection)
            client = await Client.open(admin)
            await expect(client.request(b"POST", b"/api/v1/namespaces", b'{"metadata":{"name":"hostile"}}'))
            user = Target(await account(client, "user", NAMESPACE, "view", connection))
            tenant = await account(client, "tenant", "hostile", "edit", connection)
            client.close()
            for kind in options.kinds.split(","):
                for sources in options.sources.split(","):
                    alone = await measure(user, admin, plane.process, options.seconds)
                    show("alone", alone)
                    async with attacked(plane.kubeconfig, tenant.token, kind, sources, options) as counts:
                        opening = await measure(user, admin, plane.process, options.opening_s)
                        show(f"{kind}/{sources} opening", opening, counts[0])
                        found = await measure(user, admin, plane.process, options.seconds)
                        show(f"{kind}/{sources}", found, counts[0])
                    found["open"] = counts[0][0]
                    found["p99_ratio"] = found["user_p99_ms"] / alone["user_p99_ms"]
                    found["opening_user_p99_ms"] = opening["user_p99_ms"]
                    found |= {f"alone_{key}": alone[key] for key in ("user_p50_ms", "user_p99_ms")}
                    prefix = f"{kind}_{sources}".replace("-", "_")
                    results |= {f"{prefix}_{key}": value for key, value in found.items()}
                    results["p99_ratio_max"] = max(results["p99_ratio_max"], found["p99_ratio"])
                    results["administrators_refused"] += opening["administrator_refused"]
                    results["administrators_refused"] += found["administrator_refused"]
                    await asyncio.sleep(options.pause_s)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of connections, with commas")
    parser.add_argument("--sources", default="1,1000", help="numbers of source addresses, with commas")
    parser.add_argument("--count", type=int, default=10_000, help="connections of each kind")
    parser.add_argument("--opens-per-s", type=float, default=500, help="how many the attacker opens, at most")
    parser.add_argument("--opening-s", type=float, default=25.0, help="time to open them, which is measured apart")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each measurement lasts")
    parser.add_argument("--pause-s", type=float, default=3.0, help="between two kinds")
    parser.add_argument("--attack", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.kinds.split(",")) - set(KINDS):
        parser.error(f"--kinds: {', '.join(sorted(unknown))}: choose from {', '.join(KINDS)}")
    if options.attack:
        uvloop.run(attack(options))
        return
    results = uvloop.run(run(options))
    shape = {"count": options.count, "opens_per_s": options.opens_per_s, "seconds": options.seconds}
    print_report("hostile", shape, results, GOALS)


if __name__ == "__main__":
    main()
