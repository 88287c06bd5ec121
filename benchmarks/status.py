"""Measure the time from a change of a Deployment's status in a member until the host's object shows it.

Starts `fedctl serve` and, in another process, simulated members; joins them; creates N Deployments with one replica in
every member; and waits until they are ready. Then it changes the members' objects: a replica is lost, or ready again.
Watches of the benchmark record when a member reports the change and when the host does. For comparison, the same run
measures a client that watches a member and patches the host's object itself. The last line on standard output is one
JSON object.

    python benchmarks/status.py                        60 changes at 1 per second, then a burst
    python benchmarks/status.py --changes 0            only the burst: every member object once, at 325 per second
"""

import argparse
import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bareclient import in_parallel
from processes import add_server_options, check_server_options
from propagation import (
    NAMESPACE,
    Federation,
    add_member_options,
    conduct,
    join_members,
    percentile,
    revision,
    running_federation,
    to_deployment,
    to_policy,
    wait_for_namespace,
    wait_for_status,
)

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.client.client import WatchEventType
from federation.client.http import HTTPClient

BARE = "bare"
BARE_CHANGES = 20


class ReadyCounts:
    """Records when a watch of one namespace shows another number of ready replicas of a Deployment."""

    def __init__(self, client: HTTPClient, namespace: str, on_change: Callable[[str, int], None] | None = None) -> None:
        self._client = client
        self._namespace = namespace
        self._on_change = on_change
        self._changed = asyncio.Event()
        self._latest: dict[str, int] = {}
        self._seen: dict[str, list[tuple[float, int]]] = {}

    async def start(self, group: asyncio.TaskGroup) -> asyncio.Task[None]:
        """Watch from now on, in a task of the group."""
        version = (await self._client.list(DEPLOYMENTS, self._namespace, limit=1)).resource_version
        return group.create_task(self._watch(version))

    async def _watch(self, version: str) -> None:
        while True:
            async for batch in self._client.watch(DEPLOYMENTS, self._namespace, resource_version=version):
                now = time.monotonic()
                for event in batch:
                    version = event.object["metadata"]["resourceVersion"]
                    if event.type is not WatchEventType.BOOKMARK:
                        self._record(event.object, now)
                self._changed.set()

    def _record(self, deployment: Object, now: float) -> None:
        name, ready = deployment["metadata"]["name"], int((deployment.get("status") or {}).get("readyReplicas") or 0)
        if self._latest.get(name) == ready:
            return
        self._latest[name] = ready
        self._seen.setdefault(name, []).append((now, ready))
        if self._on_change is not None:
            self._on_change(name, ready)

    def clear(self) -> None:
        self._seen.clear()

    def time_of(self, name: str, is_shown: Callable[[int], bool]) -> float | None:
        """Return when the watch first showed such a number since `clear`."""
        return next((at for at, ready in self._seen.get(name, ()) if is_shown(ready)), None)

    async def wait_for(self, name: str, is_shown: Callable[[int], bool]) -> float:
        while (at := self.time_of(name, is_shown)) is None:
            self._changed.clear()
            await self._changed.wait()
        return at


@dataclass(frozen=True, slots=True)
class Change:
    """One replica that a member loses, or has again."""

    member: str
    name: str
    is_lost: bool
    total: int
    """Ready replicas of the Deployment over all members, after this change and all earlier ones."""

    @property
    def ready(self) -> int:
        return 0 if self.is_lost else 1

    def is_shown_by_host(self, ready: int) -> bool:
        return ready <= self.total if self.is_lost else ready >= self.total


@dataclass(frozen=True, slots=True)
class Watches:
    """The watches of the host and of each member."""

    host: ReadyCounts
    members: dict[str, ReadyCounts]

    async def latencies_ms(
        self, clients: dict[str, HTTPClient], changes: Sequence[Change], rate: float, timeout_s: float
    ) -> list[float]:
        """Make the changes at the rate; return the times from their reports to the host's."""
        for each in (self.host, *self.members.values()):
            each.clear()
        began = time.monotonic()

        async def change(index: int, each: Change) -> None:
            await asyncio.sleep(max(0.0, began + index / rate - time.monotonic()))
            await set_ready(clients[each.member], each.name, each.ready)

        async with asyncio.timeout(timeout_s):
            await asyncio.gather(*(change(index, each) for index, each in enumerate(changes)))
            return [
                (
                    await self.host.wait_for(each.name, each.is_shown_by_host)
                    - await self.members[each.member].wait_for(each.name, each.ready.__eq__)
                )
                * 1000
                for each in changes
            ]


async def set_ready(client: HTTPClient, name: str, ready: int, namespace: str = NAMESPACE) -> None:
    status = {"replicas": 1, "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": 1 - ready}
    await client.patch(DEPLOYMENTS, name, {"status": status}, namespace=namespace, subresource="status")


@contextlib.asynccontextmanager
async def running(*watches: ReadyCounts) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [await each.start(group) for each in watches]
        yield
        for task in tasks:
            task.cancel()


async def measure(options: argparse.Namespace, federation: Federation) -> dict[str, float | int]:
    host, clients = federation.host, federation.clients
    await join_members(host, federation.connections, 0)
    await host.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await wait_for_namespace(clients)
    await host.create(PROPAGATION_POLICIES, to_policy("Divide", sorted(clients)))
    await in_parallel(
        options.deployments, lambda index: host.create(DEPLOYMENTS, to_deployment(index, options.members))
    )
    await wait_for_status(host, options.deployments, options.timeout)
    watches = Watches(
        ReadyCounts(host, NAMESPACE), {name: ReadyCounts(client, NAMESPACE) for name, client in clients.items()}
    )
    results: dict[str, float | int] = {}
    async with running(watches.host, *watches.members.values()):
        if options.changes:
            results |= await measure_single(options, federation, watches)
            results |= await measure_bare(options, federation)
        for phase, is_lost in (("lost", True), ("recovered", False)):
            results |= await measure_burst(options, federation, watches, phase, is_lost=is_lost)
    return results


@dataclass(frozen=True, slots=True)
class Work:
    """The host's writes, and the CPU of the control plane, so far."""

    writes: int
    cpu_s: float

    @classmethod
    async def of(cls, federation: Federation) -> "Work":
        return cls(await revision(federation.host), federation.cpu_s()["control"])

    def per_change(self, before: "Work", changes: int, phase: str) -> dict[str, float]:
        return {
            f"{phase}_host_writes_per_change": round((self.writes - before.writes) / changes, 2),
            f"{phase}_control_cpu_ms_per_change": round((self.cpu_s - before.cpu_s) / changes * 1000, 2),
        }


async def measure_single(
    options: argparse.Namespace, federation: Federation, watches: Watches
) -> dict[str, float | int]:
    """Lose a replica and get it back, one change after the other."""
    latencies: dict[bool, list[float]] = {True: [], False: []}
    began, before = time.monotonic(), await Work.of(federation)
    member = min(federation.clients)
    for index in range(options.changes):
        await asyncio.sleep(max(0.0, began + index / options.rate - time.monotonic()))
        is_lost = index % 2 == 0
        change = Change(
            member, f"app-{index // 2 % options.deployments:05d}", is_lost, options.members - (1 if is_lost else 0)
        )
        latencies[is_lost] += await watches.latencies_ms(federation.clients, [change], options.rate, options.timeout)
    return {
        **to_percentiles("lost", latencies[True]),
        **to_percentiles("recovered", latencies[False]),
        **(await Work.of(federation)).per_change(before, options.changes, "single"),
    }


async def measure_burst(
    options: argparse.Namespace, federation: Federation, watches: Watches, phase: str, *, is_lost: bool
) -> dict[str, float | int]:
    """Change every member object once, in random order."""
    members = sorted(federation.clients)
    objects = [(member, f"app-{index:05d}") for index in range(options.deployments) for member in members]
    random.Random(options.seed).shuffle(objects)
    totals = {name: len(members) if is_lost else 0 for _, name in objects}
    changes = []
    for member, name in objects:
        totals[name] += -1 if is_lost else 1
        changes.append(Change(member, name, is_lost, totals[name]))
    before = await Work.of(federation)
    latencies = await watches.latencies_ms(federation.clients, changes, options.burst_rate, options.timeout)
    name = f"burst_{phase}"
    return {
        **to_percentiles(name, latencies),
        **(await Work.of(federation)).per_change(before, len(changes), name),
    }


async def measure_bare(options: argparse.Namespace, federation: Federation) -> dict[str, float | int]:
    """Measure a client that watches a member and patches the host's object, for a Deployment that no policy selects."""
    host, member = federation.host, federation.clients[min(federation.clients)]
    body = to_deployment(0, 1)
    name, body["metadata"]["namespace"] = body["metadata"]["name"], BARE
    for client in (host, member):
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": BARE}})
    patches: set[asyncio.Task[None]] = set()

    def on_change(name: str, ready: int) -> None:
        patches.add(task := asyncio.create_task(set_ready(host, name, ready, BARE)))
        task.add_done_callback(patches.discard)

    source, target = ReadyCounts(member, BARE, on_change), ReadyCounts(host, BARE)
    latencies = []
    async with running(source, target):
        for client in (host, member):
            await client.create(DEPLOYMENTS, body)
        await target.wait_for(name, bool)
        for index in range(BARE_CHANGES):
            ready = index % 2
            for each in (source, target):
                each.clear()
            await set_ready(member, name, ready, BARE)
            async with asyncio.timeout(options.timeout):
                shown = await target.wait_for(name, ready.__eq__)
            latencies.append((shown - await source.wait_for(name, ready.__eq__)) * 1000)
            await asyncio.sleep(0.1)
    return to_percentiles("bare_client", latencies)


def to_percentiles(name: str, latencies_ms: list[float]) -> dict[str, float]:
    return {
        f"{name}_p50_ms": round(percentile(latencies_ms, 0.50), 1),
        f"{name}_p99_ms": round(percentile(latencies_ms, 0.99), 1),
    }


async def run(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    async with running_federation(options, directory) as federation:
        return await measure(options, federation)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=325)
    parser.add_argument("--changes", type=int, default=60, help="changes one after the other, an even number")
    parser.add_argument("--rate", type=float, default=1, help="of these changes, per second")
    parser.add_argument("--burst-rate", type=float, default=325, help="changes per second of the burst")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the burst")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    add_member_options(parser)
    add_server_options(parser)
    options = parser.parse_args()
    if options.changes % 2:
        parser.error("--changes must be even: each lost replica is recovered before the burst")
    check_server_options(parser, options)
    shape = {
        "rate": options.rate,
        "changes": options.changes,
        "burstRate": options.burst_rate,
        "realMembers": options.real_members,
        "store": options.store,
        "processes": options.processes,
    }
    conduct("status", run, options, shape)


if __name__ == "__main__":
    main()
