"""Measure the memory of a control plane by the number of pods that run in its members.

For each number, by turns: simulated members in one process start with so many running pods, a new `fedctl serve` joins
them and counts the pods, which the clusters' published free CPU shows. Its memory and CPU are read when it is at rest.
The last line on standard output is one JSON object.

    python benchmarks/pods.py --pods 1000 10000 100000 --turns 3
    python benchmarks/pods.py --pods 1000 10000 --cached
        for comparison, also cache the pods in this process, as a control plane without counts would: an informer for
        each member, with what capacity needs of each pod
"""

import argparse
import asyncio
import contextlib
import gc
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

from propagation import add_member_options, join_members, running_members
from report import print_report
from restart import at_rest, free_port, serving

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import PODS, Object
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig
from federation.runtime.informer import Informer
from federation.runtime.podstream import ON_NODES
from federation.runtime.transforms import slim_pod
from federation.simulator.runningpods import REQUEST


async def measure(options: argparse.Namespace, directory: Path, count: int) -> dict[str, float]:
    """Return what a control plane needs that has just counted so many pods."""
    share = count // options.members
    async with contextlib.AsyncExitStack() as stack:
        fleet = running_members(options, directory, "--running-pods", str(share), "--pods-per-node", str(share + 1))
        kubeconfigs, _ = await stack.enter_async_context(fleet)
        connections = {name: load_kubeconfig(path, "") for name, path in kubeconfigs.items()}
        host = await stack.enter_async_context(serving(directory / "host", free_port()))
        peak = asyncio.create_task(host.sampler.run())
        try:
            began = time.monotonic()
            await join_members(host.client, connections, 0, options.timeout)  # ready when its pods are counted
            await wait_until_counted(host.client, share, options.timeout)
            counted_s, cpu_s = time.monotonic() - began, host.sampler.cpu_s("control")
            idle_percent, rss_mb = await at_rest(host, options.idle)
        finally:
            peak.cancel()
        measured = {
            "rss_mb": rss_mb,
            "rss_peak_mb": round(host.sampler.rss_peak_mb["control"], 1),
            "counted_s": round(counted_s, 2),
            "cpu_s": round(cpu_s, 2),
            "idle_cpu_percent": idle_percent,
        }
        if options.cached:
            clients = [HTTPClient(connection) for connection in connections.values()]
            measured["cached_mb"] = await cached_mb(clients, share)
            await asyncio.gather(*(client.close() for client in clients))
        return measured


async def wait_until_counted(host: HTTPClient, share: int, timeout_s: float) -> None:
    """Wait until each cluster's free CPU lacks what so many pods request.

    It is asked again and again: the CPU that this costs is the same for all numbers of pods.
    """
    wanted = to_milli(REQUEST["cpu"]) * share
    async with asyncio.timeout(timeout_s):
        while {used_milli_cpu(each) for each in (await host.list(FEDERATED_CLUSTERS)).items} != {wanted}:
            await asyncio.sleep(0.2)


def used_milli_cpu(cluster: Object) -> int | None:
    """Return the thousandths of a CPU that the pods of a cluster request, None before it is published."""
    resources = (cluster.get("status") or {}).get("resources") or {}
    allocatable, available = ((resources.get(each) or {}).get("cpu") for each in ("allocatable", "available"))
    return None if allocatable is None or available is None else to_milli(allocatable) - to_milli(available)


async def cached_mb(clients: list[HTTPClient], share: int) -> float:
    """Return the memory, in megabytes, of informers that cache the pods."""
    gc.collect()
    tracemalloc.start()
    informers = [
        Informer(client, PODS, field_selector=ON_NODES, transform=slim_pod, clock=SystemClock()) for client in clients
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informer.run()) for informer in informers]
        await asyncio.gather(*(informer.wait_synced() for informer in informers))
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
        for task in tasks:
            task.cancel()
    tracemalloc.stop()
    if {len(informer) for informer in informers} != {share}:
        raise SystemExit("pods: the informers have not cached all pods")
    return round(used / 1e6, 1)


async def run(options: argparse.Namespace) -> dict[str, float]:
    """Return the median and the least of each value over the turns, by number of pods."""
    found: dict[str, list[float]] = {}
    for turn in range(options.turns):
        for count in options.pods:
            with tempfile.TemporaryDirectory(prefix="federation-bench-") as folder:
                measured = await measure(options, Path(folder), count)
            print(f"turn {turn + 1}, {count} pods: {measured}", flush=True)
            for name, value in measured.items():
                found.setdefault(f"{name}_{count}", []).append(value)
    results: dict[str, float] = {}
    for name, values in found.items():
        results |= {name: statistics.median(values), f"{name}_min": min(values)}
    first, last = (results[f"rss_mb_{options.pods[at]}"] for at in (0, -1))
    return results | {"rss_ratio": last / first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of pods, rising")
    parser.add_argument("--turns", type=int, default=1, help="how often each number is measured")
    parser.add_argument("--cached", action="store_true", help="also measure the memory of caches of the pods")
    parser.add_argument("--idle", type=float, default=10, help="seconds to settle, and to measure")
    parser.add_argument("--timeout", type=float, default=600)
    add_member_options(parser)
    parser.set_defaults(real_members=False, light=True)
    options = parser.parse_args()
    if options.real_members:
        parser.error("--real-members: only light members start with running pods")
    if options.turns < 1 or min(options.pods) < options.members:
        parser.error("--turns: at least 1; --pods: at least one for each member")
    results = asyncio.run(run(options))
    print_report("pods", {"pods": options.pods, "turns": options.turns, "members": options.members}, results)


if __name__ == "__main__":
    main()
