"""Measure a control plane in front of many members: idle, with one object for many of them, or with many objects.

Starts `fedctl serve` on SQLite and light simulated members in two other processes (real HTTPS and credentials, one port
each), and joins all of them with service accounts. Then it measures the control plane at rest (CPU, memory, and how late
the members are probed, the heartbeat lag), and single Deployments for `--targets` members: the time from the create
request until the object is in all of them and ready, and until the status of the user's object counts all of them.

With `--workloads` it measures only the cost of a further Deployment beside so many existing ones, each in one member:
CPU, host writes and memory of the control plane. They have no replicas, so that the members' pods do not fill the machine.

The last line on standard output is one JSON object.

    python benchmarks/fleet.py --members 1000                                  idle, and one object for 100 of 1,000
    python benchmarks/fleet.py --members 100 --workloads 10000 100000          cost per object at both sizes
"""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from bareclient import in_parallel
from processes import Sampler, process, read_until
from propagation import NAMESPACE, conduct, percentile, revision, to_deployment

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import FederationError
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.cli import joining
from federation.client.client import WatchEventType
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig

_JOINS = 8
"""Members that join at the same time; they share one core, and each step of a join has a deadline."""
_ATTEMPTS = 3
_REST_S = 2.0
"""Until the work after the last object has ended, so that its CPU is counted."""
_POLICY_LABEL = "kubeadmiral.io/propagation-policy-name"
_LAG = "federation_runtime_cluster_probe_lag_seconds_bucket"
_RECONCILES = "federation_runtime_reconciles_total"
_LOSSES = "federation_runtime_cluster_health_changes_total"


@contextlib.asynccontextmanager
async def light_members(
    count: int, directory: Path, *, processes: int = 1
) -> AsyncIterator[tuple[dict[str, Connection], list[psutil.Process]]]:
    """Run the members in so many processes; yield their connections by name, and the processes.

    In the order of their names the members take turns between the processes.
    """
    connections: dict[str, Connection] = {}
    running = []
    async with contextlib.AsyncExitStack() as stack:
        for index in range(processes):
            share = len(range(index, count, processes))
            arguments = ("--dir", str(directory / f"fleet-{index}"), "--members", str(share), "--pod-start", "0.1")
            fleet = await stack.enter_async_context(process("federation.simulator", "--light", *arguments))
            for line in await read_until(fleet, b"ready"):
                if line.startswith(b"{"):
                    member = json.loads(line)
                    connections[f"{member['name']}-{index}"] = load_kubeconfig(Path(member["kubeconfig"]), "")
            running.append(psutil.Process(fleet.pid))
        yield connections, running


async def join_all(host: HTTPClient, connections: dict[str, Connection]) -> None:
    names = sorted(connections)

    async def join(index: int) -> None:
        request = joining.JoinRequest(names[index], connections[names[index]])
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                await joining.ensure_joined(host, request)
                await joining.wait_ready(host, request.name, SystemClock(), 120)
            except FederationError as error:  # on a busy machine the members' process can miss a deadline
                print(f"{request.name} did not join, {attempts_left} attempts left: {error}")
                if not attempts_left:
                    raise
            else:
                return

    await in_parallel(len(names), join, writers=_JOINS)


async def metrics_of(host: HTTPClient, name: str) -> list[str]:
    _, text = await host.raw("GET", "/metrics", timeout_s=60)
    return [line for line in text.decode().splitlines() if line.startswith(name)]


async def losses(host: HTTPClient) -> int:
    """Return how often a member was published as not ready; all members of this benchmark are always well."""
    lines = await metrics_of(host, _LOSSES)
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if 'ready="True"' not in line))


async def lags(host: HTTPClient) -> dict[float, float]:
    """Return how many probes were at most so many seconds late, since the start of the control plane."""
    found: dict[float, float] = {}
    for line in await metrics_of(host, _LAG):
        bound, _, value = line.partition('le="')[2].partition('"} ')
        found[float(bound)] = float(value)
    return found


def quantile(before: dict[float, float], after: dict[float, float], share: float) -> float:
    """Return the upper bound of the bucket that holds the quantile of the observations in between."""
    counts = {bound: after[bound] - before.get(bound, 0.0) for bound in sorted(after)}
    total = counts[max(counts)]
    return next(bound for bound, count in counts.items() if count >= share * total)


async def wait_swept(host: HTTPClient, members: int, timeout_s: float) -> None:
    """Wait until the objects of every member were compared with the host's, which happens once after it joined."""
    async with asyncio.timeout(timeout_s):
        while True:
            lines = [line for line in await metrics_of(host, _RECONCILES) if 'controller="sweep"' in line]
            if sum(float(line.rpartition(" ")[2]) for line in lines) >= members:
                return
            await asyncio.sleep(5)


async def measure_idle(host: HTTPClient, sampler: Sampler, idle_s: float) -> dict[str, float | int]:
    await asyncio.sleep(idle_s / 2)
    before, cpu, members_cpu = await lags(host), sampler.cpu_s("control"), sampler.cpu_s("members")
    writes, began = await revision(host), time.monotonic()
    await asyncio.sleep(idle_s)
    took_s = time.monotonic() - began
    used, members_used = sampler.cpu_s("control") - cpu, sampler.cpu_s("members") - members_cpu
    after = await lags(host)
    return {
        "idle_cpu_percent": round(100 * used / took_s, 2),
        "idle_members_cpu_percent": round(100 * members_used / took_s, 2),
        "idle_host_writes_per_s": round((await revision(host) - writes) / took_s, 3),
        "idle_rss_mb": round(sampler.rss_mb("control"), 1),
        "idle_members_rss_mb": round(sampler.rss_mb("members"), 1),
        "heartbeats_per_s": round((after[float("inf")] - before[float("inf")]) / took_s, 1),
        "heartbeat_lag_p50_s_max": quantile(before, after, 0.5),
        "heartbeat_lag_p90_s_max": quantile(before, after, 0.9),
    }


def to_policy(name: str, mode: str, clusters: list[str]) -> Object:
    return {
        "apiVersion": PROPAGATION_POLICIES.api_version,
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulingMode": mode,
            "placement": [{"cluster": cluster} for cluster in clusters],
            # On a busy machine members answer late: one that counts as lost for a moment stays a target.
            "tolerations": [{"operator": "Exists"}],
        },
    }


def to_workload(index: int, policy: str, replicas: int) -> Object:
    obj = to_deployment(index, replicas)
    obj["metadata"]["labels"][_POLICY_LABEL] = policy
    return obj


class Deployments:
    """The Deployments of the benchmark's namespace in one cluster, over one watch.

    A watch per wait would open a connection each time: a hundred TLS handshakes cost as much as what is measured.
    """

    def __init__(self, client: HTTPClient) -> None:
        self._client = client
        self._ready: dict[str, int] = {}
        self._waiting: dict[tuple[str, int], asyncio.Future[None]] = {}

    async def run(self, on_started: Callable[[], None]) -> None:
        """Watch until cancelled."""
        while True:
            # In pages: ten thousand Deployments are more bytes than the client takes in one response.
            page = await self._client.list(DEPLOYMENTS, NAMESPACE, limit=500)
            revision = page.resource_version
            for obj in page.items:
                self._take(obj)
            while page.continue_token:
                page = await self._client.list(DEPLOYMENTS, NAMESPACE, limit=500, continue_token=page.continue_token)
                for obj in page.items:
                    self._take(obj)
            watch = self._client.watch(DEPLOYMENTS, NAMESPACE, resource_version=revision)
            on_started()
            async for batch in watch:
                for event in batch:
                    if event.type is not WatchEventType.BOOKMARK:
                        self._take(event.object)

    def _take(self, obj: Object) -> None:
        name, ready = obj["metadata"]["name"], (obj.get("status") or {}).get("readyReplicas", 0)
        self._ready[name] = ready
        if (waiting := self._waiting.pop((name, ready), None)) is not None:
            waiting.set_result(None)

    async def wait_ready(self, name: str, count: int, timeout_s: float) -> float:
        """Return the time at which the Deployment has so many ready replicas."""
        async with asyncio.timeout(timeout_s):
            if self._ready.get(name) != count:
                await self._waiting.setdefault((name, count), asyncio.get_running_loop().create_future())
        return time.monotonic()


@contextlib.asynccontextmanager
async def watched(clients: list[HTTPClient]) -> AsyncIterator[list[Deployments]]:
    """Watch the Deployments of all clusters while the block runs."""
    found = [Deployments(client) for client in clients]
    async with asyncio.TaskGroup() as group:
        started = [asyncio.Event() for _ in found]
        tasks = [group.create_task(each.run(event.set)) for each, event in zip(found, started, strict=True)]
        for event in started:
            await event.wait()
        yield found
        for task in tasks:
            task.cancel()


async def measure_fan_out(
    host: HTTPClient, members: dict[str, HTTPClient], sampler: Sampler, options: argparse.Namespace
) -> dict[str, float | int]:
    """Create Deployments one after the other, each with a replica in every target; return times and costs."""
    await host.create(PROPAGATION_POLICIES, to_policy("wide", "Duplicate", sorted(members)))
    ready, counted = [], []
    results: dict[str, float | int] = {}
    async with watched([host, *members.values()]) as (on_host, *in_members):
        for index in range(options.objects + 1):
            obj = to_workload(900_000 + index, "wide", 1)
            name = obj["metadata"]["name"]
            began = time.monotonic()
            await host.create(DEPLOYMENTS, obj)
            at_ready = await asyncio.gather(*(each.wait_ready(name, 1, options.timeout) for each in in_members))
            at_counted = await on_host.wait_ready(name, len(members), options.timeout)
            await asyncio.sleep(options.pause)
            if index:
                ready.append(max(at_ready) - began)
                counted.append(at_counted - began)
                continue
            # The first one starts the watches of Deployments in all members.
            results["first_counted_s"] = round(at_counted - began, 3)
            await asyncio.sleep(_REST_S)
            cpu = {group: sampler.cpu_s(group) for group in ("control", "members")}
            writes = await revision(host)
        await asyncio.sleep(_REST_S)
    for group, before in cpu.items():
        results[f"{group}_cpu_s_per_object"] = round((sampler.cpu_s(group) - before) / options.objects, 3)
    results["host_writes_per_object"] = round((await revision(host) - writes) / options.objects, 1)
    for label, values in (("ready", ready), ("counted", counted)):
        results[f"{label}_p50_s"] = round(percentile(values, 0.5), 3)
        results[f"{label}_p90_s"] = round(percentile(values, 0.9), 3)
    return results


async def measure_workloads(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    """Return what a further Deployment costs beside many existing ones, for each number of them.

    Each number has a control plane and members of its own. They are filled one after the other, and then take turns
    with rounds of further Deployments, so that the load of the machine is the same for all. The results are those of the
    round with the median CPU, and the least CPU.
    """
    results: dict[str, float | int] = {}
    rounds: dict[int, list[dict[str, float]]] = {size: [] for size in options.workloads}
    async with contextlib.AsyncExitStack() as stack:
        fleets = {}
        for size in options.workloads:
            fleet = fleets[size] = await stack.enter_async_context(running_fleet(options, directory / f"of-{size}"))
            await fleet.join(options)
            for cluster in fleet.clusters:
                await fleet.host.create(PROPAGATION_POLICIES, to_policy(f"only-{cluster}", "Duplicate", [cluster]))
            filled = await _create_up_to(fleet, 0, size, options.timeout)
            results |= {f"fill_{name}_{size}": value for name, value in filled.items()}
            results[f"rss_mb_{size}"] = round(fleet.sampler.rss_mb("control"), 1)
            print(f"filled with {size} Deployments", flush=True)
        await asyncio.sleep(options.settle)
        for number in range(options.rounds):
            for size, fleet in fleets.items():
                existing = size + number * options.round_size
                rounds[size].append(
                    await _create_up_to(fleet, existing, existing + options.round_size, options.timeout)
                )
        lost = [await losses(fleet.host) for fleet in fleets.values()]
    for size, measured in rounds.items():
        measured.sort(key=lambda each: each["cpu_ms_per_object"])
        results |= {f"{name}_{size}": value for name, value in measured[len(measured) // 2].items()}
        results[f"cpu_ms_per_object_min_{size}"] = measured[0]["cpu_ms_per_object"]
    for ratio, name in (("cpu_ratio", "cpu_ms_per_object"), ("cpu_ratio_of_min", "cpu_ms_per_object_min")):
        first, last = (results[f"{name}_{size}"] for size in (options.workloads[0], options.workloads[-1]))
        results[ratio] = round(last / first, 3)
    return results | {"false_losses": sum(lost)}


async def _create_up_to(fleet: "Fleet", before: int, count: int, timeout_s: float) -> dict[str, float]:
    """Create the Deployments from number `before` to `count`, each in one member; return the costs of one.

    They end when its status is merged.
    """
    host, clusters, sampler, share = fleet.host, fleet.clusters, fleet.sampler, count - before
    cpu, writes, rss = sampler.cpu_s("control"), await revision(host), sampler.rss_mb("control")
    began = time.monotonic()
    done = asyncio.create_task(_all_reported(host, writes, share, timeout_s))

    async def create(index: int) -> None:
        cluster = clusters[index % len(clusters)]
        await host.create(DEPLOYMENTS, to_workload(before + index, f"only-{cluster}", 0))

    await in_parallel(share, create)
    await done
    return {
        "cpu_ms_per_object": round((sampler.cpu_s("control") - cpu) / share * 1000, 2),
        "host_writes_per_object": round((await revision(host) - writes) / share, 2),
        "rss_kb_per_object": round((sampler.rss_mb("control") - rss) * 1000 / share, 1),
        "objects_per_s": round(share / (time.monotonic() - began), 1),
    }


async def _all_reported(host: HTTPClient, version: int, count: int, timeout_s: float) -> None:
    """Wait until so many Deployments without replicas have got a status of their member since a revision.

    A list at the start would be simpler, but with 100,000 objects its cost shows in the result.
    """
    reported: set[str] = set()
    since = str(version)
    async with asyncio.timeout(timeout_s):
        while len(reported) < count:
            async for batch in host.watch(DEPLOYMENTS, NAMESPACE, resource_version=since):
                for event in batch:
                    since = event.object["metadata"]["resourceVersion"]
                    if event.type is not WatchEventType.BOOKMARK and _is_reported(event.object):
                        reported.add(event.object["metadata"]["name"])
                if len(reported) >= count:
                    return


def _is_reported(obj: Object) -> bool:
    """Return whether the merged status is that of this generation, for a Deployment of `measure_workloads`."""
    status = obj.get("status") or {}
    is_observed: bool = status.get("observedGeneration") == obj["metadata"]["generation"]
    return is_observed and obj["spec"]["replicas"] == 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """A control plane and its members, which are not joined at first."""

    host: HTTPClient
    connections: dict[str, Connection]
    sampler: Sampler
    started_s: float

    @property
    def clusters(self) -> list[str]:
        return sorted(self.connections)

    async def join(self, options: argparse.Namespace) -> dict[str, float | int]:
        """Join all members and wait until they are at rest; return what that took."""
        cpu, began = self.sampler.cpu_s("control"), time.monotonic()
        await join_all(self.host, self.connections)
        results: dict[str, float | int] = {
            "start_s": round(self.started_s, 1),
            "join_s": round(time.monotonic() - began, 1),
            "join_cpu_ms_per_member": round((self.sampler.cpu_s("control") - cpu) / options.members * 1000, 1),
            "joined": len((await self.host.list(FEDERATED_CLUSTERS)).items),
        }
        await wait_swept(self.host, options.members, options.timeout)
        await self.host.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        return results


@contextlib.asynccontextmanager
async def running_fleet(options: argparse.Namespace, directory: Path) -> AsyncIterator[Fleet]:
    """Run a control plane and its members until the block ends."""
    serve = ["serve", "--dir", str(directory / "host"), "--port", "0", "--log-level", "warning"]
    if options.profile is not None:
        serve += ["--profile-file", str(options.profile / f"{directory.name}.collapsed")]
    began = time.monotonic()
    async with (
        light_members(options.members, directory, processes=options.member_processes) as (connections, fleet),
        process("federation.cli.entry", *serve) as control,
    ):
        await read_until(control, b"ready")
        sampler = Sampler({"control": [psutil.Process(control.pid)], "members": fleet})
        host = HTTPClient(load_kubeconfig(directory / "host" / "kubeconfig", ""))
        try:
            yield Fleet(host, connections, sampler, time.monotonic() - began)
        finally:
            await host.close()


async def measure_members(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    """Return what the members cost at rest, and how long single Deployments for many of them take."""
    async with contextlib.AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(running_fleet(options, directory / "members"))
        results = await fleet.join(options)
        results |= await measure_idle(fleet.host, fleet.sampler, options.idle)
        clients = {name: HTTPClient(fleet.connections[name]) for name in fleet.clusters[: options.targets]}
        for client in clients.values():
            stack.push_async_callback(client.close)
        if options.objects:
            results |= await measure_fan_out(fleet.host, clients, fleet.sampler, options)
        return results | {"false_losses": await losses(fleet.host)}


async def run(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    measure = measure_workloads if options.workloads else measure_members
    return await measure(options, directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--member-processes", type=int, default=2, help="processes that share the members")
    parser.add_argument(
        "--idle", type=float, default=30, help="seconds over which the control plane is measured at rest"
    )
    parser.add_argument("--targets", type=int, default=100, help="members that get each single object")
    parser.add_argument("--objects", type=int, default=10, help="single objects; 0 for none")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two single objects")
    parser.add_argument("--workloads", type=int, nargs="+", default=[], help="numbers of Deployments, rising")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of further Deployments at each of these numbers")
    parser.add_argument("--round-size", type=int, default=1000, help="Deployments of a round")
    parser.add_argument(
        "--settle", type=float, default=5, help="seconds between the existing Deployments and the rounds"
    )
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    parser.add_argument("--profile", type=Path, help="an existing folder for CPU profiles of the control plane")
    options = parser.parse_args()
    options.deployments = max(options.workloads, default=options.objects)
    conduct("fleet", run, options, {"targets": options.targets, "idleS": options.idle})


if __name__ == "__main__":
    main()
