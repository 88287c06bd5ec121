"""Measure a control plane with many settled objects: its restart, what it writes then, and its memory and CPU when idle.

Starts `fedctl serve` and, in another process, simulated members; fills them with N Deployments and waits until every
status is complete. Then it stops the control plane, starts it again, creates one more Deployment as soon as the API
answers, and waits until that is in every member. Writes are counted by revisions, which have no gaps: by kind in the
host's log, and in each member as a total. The host's writes of the new object are reported on their own. From those of
other objects, such as its policy, as many are subtracted as another Deployment needed, which was created before the
stop. The last line on standard output is one JSON object.

    python benchmarks/restart.py --deployments 300 1000 3000 10000      in steps, each with a restart
"""

import argparse
import asyncio
import contextlib
import math
import signal
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from bareclient import in_parallel
from processes import Sampler, process, read_until
from propagation import (
    NAMESPACE,
    add_member_options,
    conduct,
    join_members,
    revision,
    revisions,
    running_members,
    to_deployment,
    to_policy,
    wait_for_namespace,
    wait_for_status,
)
from scraped import scrape

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.client.client import WatchEventType
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig

REGULAR = ("leases", "federatedclusters")
"""Resources that an idle control plane writes too: elections and heartbeats."""


@dataclass(frozen=True, slots=True)
class Host:
    """A running `fedctl serve`."""

    client: HTTPClient
    sampler: Sampler
    started: float
    """When the process was started, and when it answered."""
    ready: float


@contextlib.asynccontextmanager
async def serving(directory: Path, port: int, profile: Path | None = None) -> AsyncIterator[Host]:
    """Run `fedctl serve` on the state in the directory; another port would be a change of its Endpoints."""
    arguments = ["serve", "--dir", str(directory), "--port", str(port), "--log-level", "warning"]
    if profile is not None:
        arguments += ["--profile-file", str(profile)]
    started = time.monotonic()
    async with process("federation.cli.entry", *arguments) as child:
        await read_until(child, b"ready")
        client = HTTPClient(load_kubeconfig(directory / "kubeconfig", ""))
        try:
            yield Host(client, Sampler({"control": [psutil.Process(child.pid)]}), started, time.monotonic())
        finally:
            await client.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def host_writes(directory: Path, after: int, until: int, without: str = "") -> Counter[str]:
    """Count the entries of the host's log by resource, without those of one object and of what is derived from it.

    A history that is compacted loses none this young.
    """
    with contextlib.closing(sqlite3.connect(f"file:{directory / 'state.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT key FROM store_log WHERE revision > ? AND revision <= ?", (after, until))
        return Counter(resource_of(key) for (key,) in rows if not without or f"/{without}" not in key)


def resource_of(key: str) -> str:
    return key.strip("/").split("/")[1]


async def first_object(host: Host, clients: dict[str, HTTPClient], index: int, replicas: int) -> float:
    """Create one Deployment and return the time at which the last member has it."""
    body = to_deployment(index, replicas)
    name = body["metadata"]["name"]
    begins = {each: (await clients[each].list(DEPLOYMENTS, NAMESPACE, limit=1)).resource_version for each in clients}
    await host.client.create(DEPLOYMENTS, body)

    async def arrived(cluster: str) -> float:
        version = begins[cluster]
        while True:
            async for batch in clients[cluster].watch(DEPLOYMENTS, NAMESPACE, resource_version=version):
                for event in batch:
                    version = event.object["metadata"]["resourceVersion"]
                    if event.type is not WatchEventType.BOOKMARK and event.object["metadata"]["name"] == name:
                        return time.monotonic()

    return max(await asyncio.gather(*map(arrived, clients)))


async def keep_profile(written: Path) -> None:
    """Rename the profile that the control plane is writing, before its end replaces it.

    Only the file shows that the control plane has finished writing, so it is looked for again and again.
    """
    summary = written.with_name(written.name + ".txt")
    async with asyncio.timeout(60):
        while not summary.exists() or not summary.stat().st_size:
            await asyncio.sleep(0.1)
    for each in (written, summary):
        each.rename(each.with_name(f"first-object-{each.name}"))


async def at_rest(host: Host, idle_s: float) -> tuple[float, float]:
    """Return the percentage of one core and the resident memory in megabytes, over a time without changes or work.

    After a burst, CollectedStatuses are written for up to a minute; after a restart, the queues hold what is checked
    again. Heartbeats are fewer writes than one in 2 s. TimeoutError after ten minutes.
    """
    revisions_before = -math.inf
    async with asyncio.timeout(600):
        while (reached := await revision(host.client)) - revisions_before > idle_s / 2 or await queued(host):
            revisions_before = reached
            await asyncio.sleep(idle_s)
    cpu_s, began = host.sampler.cpu_s("control"), time.monotonic()
    await asyncio.sleep(idle_s)
    share = (host.sampler.cpu_s("control") - cpu_s) / (time.monotonic() - began)
    return round(share * 100, 2), round(host.sampler.rss_mb("control"), 1)


async def queued(host: Host) -> float:
    """Return how many keys wait for a worker."""
    return (await scrape(host.client)).total("federation_runtime_queue_depth")


async def writes_of_one(
    options: argparse.Namespace, host: Host, directory: Path, clients: dict[str, HTTPClient], count: int
) -> tuple[Counter[str], Counter[str]]:
    """Create one Deployment in the settled control plane; return the host's writes until it is at rest again.

    The second result are those of other objects.
    """
    before = await revision(host.client)
    await first_object(host, clients, count, options.replicas)
    await wait_for_status(host.client, count + 1, options.timeout)
    await asyncio.sleep(options.idle)
    until, name = await revision(host.client), to_deployment(count, options.replicas)["metadata"]["name"]
    return irregular(host_writes(directory, before, until)), irregular(host_writes(directory, before, until, name))


def irregular(written: Counter[str]) -> Counter[str]:
    return Counter({resource: number for resource, number in written.items() if resource not in REGULAR})


async def restart(
    options: argparse.Namespace,
    directory: Path,
    port: int,
    clients: dict[str, HTTPClient],
    count: int,
    before: int,
    needed: tuple[Counter[str], Counter[str]],
) -> dict[str, float | int]:
    """Start the stopped control plane, and measure until it is at rest again; a new object has the `needed` writes."""
    member_writes = await revisions(clients)
    profile = options.profile / f"restart-{count - 1}.collapsed" if options.profile else None
    async with serving(directory, port, profile) as host:
        arrived = await first_object(host, clients, count, options.replicas)
        cpu_s = host.sampler.cpu_s("control")
        if profile is not None:
            host.sampler.signal("control", signal.SIGUSR1)
            await keep_profile(profile)
        await wait_for_status(host.client, count + 1, options.timeout)
        idle_percent, rss_mb = await at_rest(host, options.idle)
        until, name = await revision(host.client), to_deployment(count, options.replicas)["metadata"]["name"]
        written = irregular(host_writes(directory, before, until))
        others = irregular(host_writes(directory, before, until, name))
        total_cpu_s = host.sampler.cpu_s("control")
        after = await revisions(clients)
        await asyncio.sleep(options.idle)
        regular = await revisions(clients) - after
    one, shared = needed
    extra = others - shared
    print(
        f"{count} Deployments: host writes after the restart: {dict(written)}, of other objects: {dict(others)};"
        f" needed for one object: {dict(one)}",
        flush=True,
    )
    return {
        "ready_s": round(host.ready - host.started, 3),
        "first_object_s": round(arrived - host.started, 3),
        "first_object_after_ready_s": round(arrived - host.ready, 3),
        "first_object_cpu_s": round(cpu_s, 2),
        "cpu_until_rest_s": round(total_cpu_s, 2),
        "host_writes": sum(extra.values()),
        "host_writes_of_new_object": sum((written - others).values()),
        "host_writes_of_one_object": sum(one.values()),
        "member_writes": after - member_writes,
        "member_writes_at_rest": regular,
        "restarted_idle_cpu_percent": idle_percent,
        "restarted_rss_mb": rss_mb,
    }


async def run(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    results: dict[str, float | int] = {}
    host_directory, port, filled = directory / "host", free_port(), 0
    async with running_members(options, directory) as (kubeconfigs, _):
        connections = {name: load_kubeconfig(path, "") for name, path in kubeconfigs.items()}
        clients = {name: HTTPClient(connection) for name, connection in connections.items()}
        async with serving(host_directory, port) as host:
            await join_members(host.client, connections, 0)
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            await host.client.create(NAMESPACES, namespace)
            await wait_for_namespace(clients)
            await host.client.create(PROPAGATION_POLICIES, to_policy("Divide", sorted(clients)))
        try:
            for step in options.deployments:
                async with serving(host_directory, port) as host:
                    await fill(host, range(filled, step), options.replicas)
                    await wait_for_status(host.client, step, options.timeout)
                    idle_percent, rss_mb = await at_rest(host, options.idle)
                    needed = await writes_of_one(options, host, host_directory, clients, step)
                    before = await revision(host.client)
                found = await restart(options, host_directory, port, clients, step + 1, before, needed)
                filled = step + 2
                found |= {"idle_cpu_percent": idle_percent, "rss_mb": rss_mb}
                results |= {f"deployments_{step}_{name}": value for name, value in found.items()}
        finally:
            for client in clients.values():
                await client.close()
    return results


async def fill(host: Host, numbers: range, replicas: int) -> None:
    async def create(index: int) -> None:
        await host.client.create(DEPLOYMENTS, to_deployment(numbers[index], replicas))

    await in_parallel(len(numbers), create)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, nargs="*", default=[300], help="numbers of Deployments, rising")
    parser.add_argument("--replicas", type=int, default=3, help="replicas of each Deployment, over all members")
    parser.add_argument("--idle", type=float, default=15, help="seconds to settle, and to measure, after each step")
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    parser.add_argument(
        "--profile", type=Path, help="an existing folder for CPU profiles of the restarted control plane"
    )
    add_member_options(parser)
    parser.set_defaults(real_members=False)
    options = parser.parse_args()
    conduct("restart", run, options, {"replicas": options.replicas})


if __name__ == "__main__":
    main()
