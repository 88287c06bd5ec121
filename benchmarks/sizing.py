"""Measure what a member and an object cost a control plane that is otherwise idle: memory, CPU, database.

Starts `fedctl serve` on SQLite and simulated members, joins the members in steps, then creates Deployments of three
replicas in steps. After each step it waits until everything has converged and `--idle` seconds more, and measures over as
many seconds. The costs of one member and of one Deployment are differences between the last and the first step. The last
line on standard output is one JSON object.

    python benchmarks/sizing.py                                              1 to 20 members, 500 to 2,000 Deployments
    python benchmarks/sizing.py --members 1 50 --deployments 1000 5000       other steps
"""

import argparse
import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from bareclient import in_parallel
from processes import Sampler, process, read_until
from propagation import (
    NAMESPACE,
    conduct,
    join_members,
    running_members,
    to_deployment,
    to_policy,
    wait_for_namespace,
    wait_for_status,
)

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig


@dataclass(frozen=True)
class Point:
    """The control plane at rest."""

    rss_mb: float
    idle_cpu_ms_per_s: float
    database_mb: float


async def at_rest(sampler: Sampler, database: Path, idle_s: float) -> Point:
    await asyncio.sleep(idle_s)
    cpu_s, began = sampler.cpu_s("control"), time.monotonic()
    await asyncio.sleep(idle_s)
    share = (sampler.cpu_s("control") - cpu_s) / (time.monotonic() - began)
    stored = sum(file.stat().st_size for file in database.parent.glob(f"{database.name}*"))
    return Point(sampler.rss_mb("control"), share * 1000, stored / 1e6)


async def run(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    most = max(options.members)
    fleet = argparse.Namespace(real_members=False, light=False, members=most, pod_start=0.3)
    serve = ("serve", "--dir", str(directory / "host"), "--port", "0", "--log-level", "warning")
    async with (
        running_members(fleet, directory) as (kubeconfigs, _),
        process("federation.cli.entry", *serve) as control,
    ):
        await read_until(control, b"ready")
        host = HTTPClient(load_kubeconfig(directory / "host" / "kubeconfig", ""))
        connections = {name: load_kubeconfig(path, "") for name, path in kubeconfigs.items()}
        clients = {name: HTTPClient(connection) for name, connection in connections.items()}
        sampler = Sampler({"control": [psutil.Process(control.pid)]})
        database = directory / "host" / "state.db"
        results: dict[str, float | int] = {}
        try:
            points = {0: await at_rest(sampler, database, options.idle)}
            joined: list[str] = []
            for count in options.members:
                new = sorted(connections)[len(joined) : count]
                await join_members(host, {name: connections[name] for name in new}, 0)
                joined += new
                points[count] = await at_rest(sampler, database, options.idle)
            _report(results, "member", points, first=options.members[0])
            await host.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            await wait_for_namespace(clients)
            await host.create(PROPAGATION_POLICIES, to_policy("Divide", joined[:3]))
            loaded = {0: points[most]}
            for before, count in zip([0, *options.deployments], options.deployments, strict=False):
                await _create(host, range(before, count))
                await wait_for_status(host, count, options.timeout)
                loaded[count] = await at_rest(sampler, database, options.idle)
            _report(results, "deployment", loaded, first=options.deployments[0])
        finally:
            for client in (host, *clients.values()):
                await client.close()
    return results


async def _create(host: HTTPClient, numbers: range) -> None:
    await in_parallel(len(numbers), lambda index: host.create(DEPLOYMENTS, to_deployment(numbers[index], 3)))


def _report(results: dict[str, float | int], unit: str, points: dict[int, Point], *, first: int) -> None:
    for count, point in points.items():
        results[f"rss_mb_{count}_{unit}s"] = round(point.rss_mb, 1)
        results[f"idle_cpu_ms_per_s_{count}_{unit}s"] = round(point.idle_cpu_ms_per_s, 2)
        results[f"database_mb_{count}_{unit}s"] = round(point.database_mb, 2)
    low, high = points[first], points[max(points)]
    steps = max(points) - first or 1
    results[f"rss_kb_per_{unit}"] = round((high.rss_mb - low.rss_mb) * 1000 / steps, 1)
    results[f"idle_cpu_us_per_s_per_{unit}"] = round((high.idle_cpu_ms_per_s - low.idle_cpu_ms_per_s) * 1000 / steps, 2)
    results[f"database_kb_per_{unit}"] = round((high.database_mb - low.database_mb) * 1000 / steps, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 10, 20], help="numbers of members, rising")
    parser.add_argument("--deployments", type=int, nargs="+", default=[500, 2000], help="numbers of objects, rising")
    parser.add_argument("--idle", type=float, default=20, help="seconds to settle, and to measure, after each step")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    options = parser.parse_args()
    conduct("sizing", run, options, {})


if __name__ == "__main__":
    main()
