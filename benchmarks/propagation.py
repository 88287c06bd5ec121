"""Measure the propagation of Deployments from a user's create request to the last member, and its cost.

Starts `fedctl serve` and, in another process, simulated members; joins them; applies one policy and one override;
creates N Deployments; and watches every member. For comparison, the same run makes the same member writes with a client
and no control plane. The last line on standard output is one JSON object.

    python benchmarks/propagation.py --deployments 1000 --members 3      throughput: makespan, fan-out, status lag, cost
    python benchmarks/propagation.py --deployments 30 --rate 1           unloaded latency
    python benchmarks/propagation.py --deployments 300 --hang 1          latency of the others with an unresponsive member
    python benchmarks/propagation.py --deployments 300 --real-members    real Kubernetes clusters (`make kubernetes`)
    python benchmarks/propagation.py --latency 20                        20 ms from and to each member and back
    python benchmarks/propagation.py --store postgresql --processes 3    two API servers and one process for the controllers
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from bareclient import BareClient, in_parallel, to_image
from countedwork import CountedWork, read_counted_work
from hangingproxy import HangingProxy
from perfectrollout import DEFAULT_LIMIT, PerfectRollout, is_rolled_out
from processes import (
    ControlPlane,
    Database,
    Sampler,
    add_server_options,
    check_server_options,
    control_planes,
    database,
    process,
    read_until,
)
from realclusters import real_members, server_processes
from report import print_report
from stages import per_object, read_stages

from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.cli import joining
from federation.client.client import PatchType, WatchEventType
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig

NAMESPACE = "bench"
LABEL = "bench-override"


def to_deployment(index: int, replicas: int, limit: str = "") -> Object:
    """Return a Deployment. `limit` is its maxSurge and maxUnavailable, "" for Kubernetes' default of 25%."""
    limits = {"maxSurge": limit, "maxUnavailable": limit}
    labels = {"app": f"app-{index}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{index:05d}", "namespace": NAMESPACE, "labels": {"bench": "true", **labels}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            **({"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}} if limit else {}),
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "registry.example/app:1.0",
                            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                            "ports": [{"containerPort": 8080}],
                            "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
                        }
                    ]
                },
            },
        },
    }


def to_policy(mode: str, members: list[str]) -> Object:
    spec: dict[str, Any] = {
        "schedulingMode": mode,
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
    }
    if mode == "Divide":
        spec["placement"] = [{"cluster": name, "preferences": {"weight": 1}} for name in members]
    return {
        "apiVersion": PROPAGATION_POLICIES.api_version,
        "kind": "PropagationPolicy",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": spec,
    }


def to_override(image_tag: str, label: str = "1") -> Object:
    """Return the override of all Deployments: the tag of their image, and a label that restarts no pod."""
    image = [{"operations": [{"imageComponent": "Tag", "operator": "overwrite", "value": image_tag}]}]
    labels = [{"operator": "addIfAbsent", "value": {LABEL: label}}]
    return {
        "apiVersion": OVERRIDE_POLICIES.api_version,
        "kind": "OverridePolicy",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "overrideRules": [{"overriders": {"image": image, "labels": labels}}],
        },
    }


class Arrivals:
    """Records the first time at which each object satisfied a condition in each member, by one watch per member."""

    def __init__(self, clients: dict[str, HTTPClient]) -> None:
        self._clients = clients
        self._condition: Callable[[Object], bool] = lambda _: True
        self._type: WatchEventType | None = None
        self.seen: dict[str, dict[str, float]] = {name: {} for name in clients}
        self._changed = asyncio.Event()

    def expect(self, condition: Callable[[Object], bool], type_: WatchEventType | None = None) -> None:
        """Start over with another condition, for events of one type or of any."""
        self._condition, self._type = condition, type_
        for seen in self.seen.values():
            seen.clear()

    async def run(self, name: str) -> None:
        client = self._clients[name]
        version = (await client.list(DEPLOYMENTS, NAMESPACE, limit=1)).resource_version
        while True:
            async for batch in client.watch(DEPLOYMENTS, NAMESPACE, resource_version=version):
                now = time.monotonic()
                for event in batch:
                    meta = event.object["metadata"]
                    version = meta["resourceVersion"]
                    if event.type is WatchEventType.BOOKMARK or self._type not in (None, event.type):
                        continue
                    if not self._condition(event.object):
                        continue
                    self.seen[name].setdefault(meta["name"], now)
                self._changed.set()

    async def wait(self, count: int, members: list[str], timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s):
            while any(len(self.seen[m]) < count for m in members):
                self._changed.clear()
                await self._changed.wait()

    def last(self, name: str, members: list[str]) -> float:
        return max(self.seen[m][name] for m in members)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def add_member_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `running_members`."""
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument(
        "--real-members", action="store_true", help="real Kubernetes clusters instead of simulated ones"
    )
    parser.add_argument("--light", action="store_true", help="simulated members in one process, in memory")
    parser.add_argument(
        "--latency", type=float, default=0, help="milliseconds that each round trip to a member lasts longer"
    )
    parser.add_argument("--pod-start", type=float, default=0.3, help="seconds until a simulated pod runs")


@contextlib.asynccontextmanager
async def running_members(
    options: argparse.Namespace, directory: Path, *simulator: str
) -> AsyncIterator[tuple[dict[str, Path], list[psutil.Process]]]:
    """Run the members; yield their kubeconfigs by name, and their processes. `simulator` are further arguments."""
    if options.real_members:
        with contextlib.ExitStack() as stack:
            clusters = real_members(directory / "clusters", options.members)
            yield await asyncio.to_thread(stack.enter_context, clusters), server_processes()
        return
    arguments = ["--members", str(options.members), "--pod-start", str(options.pod_start)]
    arguments += [*(["--light"] if options.light else []), *simulator]
    async with process("federation.simulator", "--dir", str(directory / "fleet"), *arguments) as fleet:
        lines = [json.loads(line) for line in await read_until(fleet, b"ready") if line.startswith(b"{")]
        running = psutil.Process(fleet.pid)
        processes = [running, *running.children(recursive=True)]
        yield {line["name"]: Path(line["kubeconfig"]) for line in lines}, processes


async def run(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    async with running_federation(options, directory) as federation:
        return await measure(options, federation)


@contextlib.asynccontextmanager
async def running_federation(options: argparse.Namespace, directory: Path) -> AsyncIterator["Federation"]:
    """Run members and control planes, not yet joined."""
    with database(options.store) as store:
        async with (
            running_members(options, directory) as (kubeconfigs, processes),
            control_planes(directory, store, options.processes, options.profile) as planes,
            contextlib.AsyncExitStack() as stack,
        ):
            hosts = [HTTPClient(load_kubeconfig(each.kubeconfig, "")) for each in planes if each.serves_clients]
            near = {name: load_kubeconfig(path, "") for name, path in kubeconfigs.items()}
            connections = await stack.enter_async_context(at_distance(near, options.latency))
            clients = {name: HTTPClient(connection) for name, connection in connections.items()}
            # This process is the bare client, and with real members it runs their kubelets, too.
            sampler = Sampler({**to_groups(planes), "members": processes, "client": [psutil.Process()]})
            try:
                yield Federation(hosts, clients, connections, sampler, store)
            finally:
                for client in (*hosts, *clients.values()):
                    await client.close()


@contextlib.asynccontextmanager
async def at_distance(connections: dict[str, Connection], latency_ms: float) -> AsyncIterator[dict[str, Connection]]:
    """Yield connections to the same members over proxies that let each round trip last so much longer."""
    if not latency_ms:
        yield connections
        return
    targets = [urlsplit(each.server).netloc for each in connections.values()]
    arguments = [str(Path(__file__).parent / "distance.py"), "--delay-ms", str(latency_ms / 2), *targets]
    async with process(*arguments, is_module=False) as proxies:
        ports = json.loads((await read_until(proxies, b"ready"))[-2])["ports"]
        yield {
            name: each.at(f"https://127.0.0.1:{port}{urlsplit(each.server).path}")
            for (name, each), port in zip(connections.items(), ports, strict=True)
        }


def to_groups(planes: list[ControlPlane]) -> dict[str, list[psutil.Process]]:
    """Return the processes of the control plane: all of them, and by number."""
    groups = {"control": [each.process for each in planes]}
    if len(planes) > 1:
        groups |= {f"{each.role}_{number}": [each.process] for number, each in enumerate(planes, 1)}
    return groups


@dataclass(frozen=True, slots=True)
class Federation:
    """What a run measures."""

    hosts: list[HTTPClient]
    """A client for each process that serves the API."""
    clients: dict[str, HTTPClient]
    connections: dict[str, Connection]
    sampler: Sampler
    store: Database

    @property
    def host(self) -> HTTPClient:
        return self.hosts[0]

    def host_of(self, index: int) -> HTTPClient:
        """Return the process that gets the requests about one Deployment."""
        return self.hosts[index % len(self.hosts)]

    async def work(self) -> CountedWork:
        """Return the work so far of the processes that serve the API."""
        return sum([await read_counted_work(host) for host in self.hosts], start=CountedWork())

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far of every group of processes, and of the database's server if it has one."""
        used = {name: self.sampler.cpu_s(name) for name in self.sampler.rss_peak_mb}
        return used if self.store.server is None else {**used, "database": self.store.cpu_s()}

    def cpu_s_since(self, before: dict[str, float]) -> dict[str, float]:
        """Return the CPU seconds of every group since an earlier answer of `cpu_s`."""
        return {name: round(used - before[name], 2) for name, used in self.cpu_s().items()}


async def measure(options: argparse.Namespace, federation: Federation) -> dict[str, float | int]:
    host, clients, sampler = federation.host, federation.clients, federation.sampler
    proxies = await join_members(host, federation.connections, options.hang)
    healthy = [name for name in clients if name not in proxies]
    await host.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await wait_for_namespace(clients)
    mode = "Duplicate" if options.hang else "Divide"
    await host.create(PROPAGATION_POLICIES, to_policy(mode, sorted(clients)))
    await host.create(OVERRIDE_POLICIES, to_override("2.0"))
    results: dict[str, float | int] = {}
    arrivals = Arrivals(clients)
    async with asyncio.TaskGroup() as group:
        background = [group.create_task(sampler.run())]
        background += [group.create_task(arrivals.run(name)) for name in clients]
        if options.hang:
            results.update(await measure_hang(options, federation, arrivals, healthy, proxies))
        else:
            bare = BareClient(clients, to_deployment, options.deployments)
            await bare.start()
            await warm_up(options, federation, arrivals)
            results.update(await measure_create(options, federation, arrivals, bare))
            if not options.rate:
                results.update(await measure_fan_out(options, federation, arrivals, healthy))
                results.update(await measure_delete(options, federation, arrivals, healthy))
                results.update(await measure_bare(bare, federation, options))
        for task in background:
            task.cancel()
    results |= {f"{name}_rss_peak_mb": round(peak, 1) for name, peak in sampler.rss_peak_mb.items()}
    for proxy in proxies.values():
        await proxy.stop()
    return results


async def join_members(
    host: HTTPClient, connections: dict[str, Connection], hang: int, timeout_s: float = 60.0
) -> dict[str, HangingProxy]:
    proxies: dict[str, HangingProxy] = {}
    for position, (name, connection) in enumerate(sorted(connections.items())):
        joined = connection
        if position >= len(connections) - hang:
            address, _, port = connection.server.removeprefix("https://").partition(":")
            proxies[name] = HangingProxy((address, int(port)))
            joined = connection.at(f"https://127.0.0.1:{await proxies[name].start()}")
        await joining.join(host, joining.JoinRequest(name, joined, use_service_account=False))
    for name in connections:
        await joining.wait_ready(host, name, SystemClock(), timeout_s)
    return proxies


async def wait_for_namespace(clients: dict[str, HTTPClient]) -> None:
    for client in clients.values():
        async with asyncio.timeout(30):
            while NAMESPACE not in {n["metadata"]["name"] for n in (await client.list(NAMESPACES)).items}:
                await asyncio.sleep(0.05)


async def revision(client: HTTPClient) -> int:
    """Return the revision of the host or a member. Each write takes one without gaps, so differences count writes."""
    return int((await client.list(NAMESPACES, limit=1)).resource_version)


async def revisions(clients: Mapping[str, HTTPClient]) -> int:
    """Return the sum of the members' revisions, which also counts the writes of their own controllers."""
    return sum([await revision(client) for client in clients.values()])


async def create_all(
    options: argparse.Namespace, federation: Federation, start: int, count: int, bare: BareClient | None = None
) -> tuple[dict[str, float], float, list[float]]:
    """Return when each create was acknowledged, when the first was sent, and the bare client's latencies in between."""
    acknowledged: dict[str, float] = {}
    bare_ms: list[float] = []

    async def create(index: int) -> None:
        if options.rate:
            await sleep_until(began + index / options.rate)
        body = to_deployment(start + index, options.replicas, options.rollout_limit)
        await federation.host_of(index).create(DEPLOYMENTS, body)
        acknowledged[body["metadata"]["name"]] = time.monotonic()
        if options.rate and bare is not None:
            await sleep_until(began + (index + 0.5) / options.rate)
            bare_ms.append(await bare.apply_one(index, options.replicas) * 1000)

    began = time.monotonic()
    await in_parallel(count, create)
    return acknowledged, began, bare_ms


async def sleep_until(at: float) -> None:
    await asyncio.sleep(max(0.0, at - time.monotonic()))


async def warm_up(options: argparse.Namespace, federation: Federation, arrivals: Arrivals) -> None:
    """Propagate and delete one Deployment: the first one of all finds caches and connections empty."""
    name = to_deployment(options.deployments, 1)["metadata"]["name"]
    await create_all(options, federation, options.deployments, 1)
    await arrivals.wait(1, list(federation.clients), options.timeout)
    await wait_for_status(federation.host, 1, options.timeout)
    await federation.host.delete(DEPLOYMENTS, name, NAMESPACE)
    await wait_until_empty(federation.host, options.timeout)
    arrivals.expect(lambda _: True)


async def wait_until_empty(host: HTTPClient, timeout_s: float) -> None:
    """Wait until the host has no Deployment. It is asked again and again, since no measured time ends here."""
    async with asyncio.timeout(timeout_s):
        while (await host.list(DEPLOYMENTS, NAMESPACE, limit=1)).items:
            await asyncio.sleep(0.1)


async def measure_create(
    options: argparse.Namespace, federation: Federation, arrivals: Arrivals, bare: BareClient
) -> dict[str, float | int]:
    host, members = federation.host, list(federation.clients)
    work, stages, before = await federation.work(), await read_stages(host), federation.cpu_s()
    count = options.deployments
    acknowledged, began, bare_ms = await create_all(options, federation, 0, count, bare)
    created = time.monotonic()
    await arrivals.wait(count, members, options.timeout)
    makespan_s = max(arrivals.last(name, members) for name in acknowledged) - began
    latencies_ms = [(arrivals.last(name, members) - at) * 1000 for name, at in acknowledged.items()]
    arrived = federation.cpu_s()
    settled_s = await wait_for_status(host, count, options.timeout) - began
    settled = federation.cpu_s()
    counted = (await federation.work()).since(work, count)
    spent = per_object(stages, await read_stages(host), count) if options.rate else {}
    return {
        "create_per_s": round(count / (created - began), 1),
        "makespan_s": round(makespan_s, 3),
        "latency_p50_ms": round(percentile(latencies_ms, 0.50), 1),
        "latency_p95_ms": round(percentile(latencies_ms, 0.95), 1),
        "latency_p99_ms": round(percentile(latencies_ms, 0.99), 1),
        "status_lag_s": round(settled_s - makespan_s, 3),
        **({"bare_latency_p50_ms": round(percentile(bare_ms, 0.50), 1)} if bare_ms else {}),
        **({"bare_latency_p99_ms": round(percentile(bare_ms, 0.99), 1)} if bare_ms else {}),
        **{f"{name}_per_deployment": value for name, value in counted.items()},
        "control_cpu_ms_per_deployment": round((settled["control"] - before["control"]) / count * 1000, 2),
        **{f"{name}_cpu_s": round(used - before[name], 2) for name, used in arrived.items()},
        **{f"{name}_cpu_until_settled_s": round(used - before[name], 2) for name, used in settled.items()},
        "rss_settled_mb": round(federation.sampler.rss_mb("control"), 1),
        **spent,
    }


def is_settled(deployment: Object) -> bool:
    """Return whether the merged status is of the newest version and has all replicas ready."""
    status = deployment.get("status") or {}
    is_newest = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return bool(is_newest and status.get("readyReplicas") == deployment["spec"]["replicas"])


async def wait_for_status(host: HTTPClient, count: int, timeout_s: float) -> float:
    """Return the time at which every Deployment's merged status had all replicas ready."""
    async with asyncio.timeout(timeout_s):
        while True:
            ready = 0
            # In pages: ten thousand Deployments are more bytes than the client takes in one response.
            async for each in host.list_all(DEPLOYMENTS, NAMESPACE, limit=500):
                ready += is_settled(each)
            if ready == count:
                return time.monotonic()
            await asyncio.sleep(0.5)


async def measure_fan_out(
    options: argparse.Namespace, federation: Federation, arrivals: Arrivals, members: list[str]
) -> dict[str, float]:
    """Scale every Deployment, then change the override policy; return the seconds until the last member has each."""
    sampler, count, replicas = federation.sampler, options.deployments, options.replicas * 2
    share = -(-replicas // len(members))
    arrivals.expect(lambda d: d["spec"]["replicas"] >= share - 1 and d["spec"]["replicas"] * len(members) >= replicas)
    began, cpu, work = time.monotonic(), sampler.cpu_s("control"), await federation.work()

    async def scale(index: int) -> None:
        body = {"spec": {"replicas": replicas}}
        name = f"app-{index:05d}"
        host = federation.host_of(index)
        await host.patch(DEPLOYMENTS, name, body, patch_type=PatchType.MERGE, namespace=NAMESPACE)

    await in_parallel(count, scale)
    await arrivals.wait(count, members, options.timeout)
    scale_s, scale_cpu_s = time.monotonic() - began, sampler.cpu_s("control") - cpu
    await wait_for_status(federation.host, count, options.timeout)
    scaled = (await federation.work()).since(work, count)
    return {
        "scale_fan_out_s": round(scale_s, 3),
        "scale_cpu_s": round(scale_cpu_s, 2),
        **{f"{name}_per_scaled": value for name, value in scaled.items()},
        **await measure_override(options, federation, arrivals, members),
    }


async def measure_override(
    options: argparse.Namespace, federation: Federation, arrivals: Arrivals, members: list[str]
) -> dict[str, float]:
    """Change the label of the override policy, then its image; return the seconds until the last member has it.

    New images are rolled out within the limits of each Deployment's strategy, over all members together: one waits for
    the new pods of another. That ends when the members have replaced all pods.
    """
    count = options.deployments
    results: dict[str, float] = {}
    changes: dict[str, tuple[Object, Callable[[Object], bool]]] = {
        "override": (to_override("2.0", "2"), lambda d: d["metadata"]["labels"].get(LABEL) == "2"),
        "rollout": (to_override("3.0", "2"), lambda d: is_rolled_out(d, to_image("3.0"))),
    }
    for name, (policy, has_arrived) in changes.items():
        arrivals.expect(has_arrived)
        began, before, work = time.monotonic(), federation.cpu_s(), await federation.work()
        stored = await revisions(federation.clients)
        patch = {"spec": policy["spec"]}
        await federation.host.patch(OVERRIDE_POLICIES, "bench", patch, patch_type=PatchType.MERGE, namespace=NAMESPACE)
        await arrivals.wait(count, members, options.timeout)
        results["rollout_s" if name == "rollout" else f"{name}_fan_out_s"] = round(time.monotonic() - began, 3)
        used = federation.cpu_s_since(before)
        results[f"{name}_cpu_s"] = used["control"]
        if name == "rollout":
            results |= {f"rollout_{group}_cpu_s": cpu_s for group, cpu_s in used.items()}
            results["rollout_members_stored"] = await revisions(federation.clients) - stored
        await wait_for_status(federation.host, count, options.timeout)
        counted = (await federation.work()).since(work, count)
        results |= {f"{each}_per_{name}": value for each, value in counted.items()}
    return results


async def measure_delete(
    options: argparse.Namespace, federation: Federation, arrivals: Arrivals, members: list[str]
) -> dict[str, float]:
    """Delete every Deployment; return the seconds until no member has any."""
    arrivals.expect(lambda _: True, WatchEventType.DELETED)
    began, cpu, work = time.monotonic(), federation.sampler.cpu_s("control"), await federation.work()

    async def delete(index: int) -> None:
        await federation.host_of(index).delete(DEPLOYMENTS, f"app-{index:05d}", NAMESPACE)

    await in_parallel(options.deployments, delete)
    await arrivals.wait(options.deployments, members, options.timeout)
    delete_s = time.monotonic() - began
    await wait_until_empty(federation.host, options.timeout)
    deleted = (await federation.work()).since(work, options.deployments)
    return {
        "delete_s": round(delete_s, 3),
        "delete_cpu_s": round(federation.sampler.cpu_s("control") - cpu, 2),
        **{f"{name}_per_deleted": value for name, value in deleted.items()},
    }


async def measure_bare(bare: BareClient, federation: Federation, options: argparse.Namespace) -> dict[str, float]:
    """Return the seconds that a client without a control plane needs for the same changes of the same members.

    The image is rolled out by a perfect controller, within the same limits over all members.
    """
    clients, replicas = list(federation.clients.values()), options.replicas
    changes = {
        "bare_client_s": (replicas, "1.0", ""),
        "bare_scale_s": (replicas * 2, "1.0", ""),
        "bare_override_s": (replicas * 2, "1.0", "changed"),
    }
    results: dict[str, float] = {}
    for name, change in changes.items():
        results[name] = round(await bare.apply_all(*change), 3)
        await bare.settle()
    perfect = PerfectRollout(bare, clients, replicas * 2, options.rollout_limit or DEFAULT_LIMIT)
    before, stored = federation.cpu_s(), await revisions(federation.clients)
    results["perfect_rollout_s"] = round(await perfect.run("2.0", "changed"), 3)
    results["perfect_rollout_members_stored"] = await revisions(federation.clients) - stored
    results |= {f"perfect_rollout_{group}_cpu_s": used for group, used in federation.cpu_s_since(before).items()}
    await bare.settle()
    return {**results, "bare_delete_s": round(await bare.delete_all(), 3)}


async def measure_hang(
    options: argparse.Namespace,
    federation: Federation,
    arrivals: Arrivals,
    members: list[str],
    proxies: dict[str, HangingProxy],
) -> dict[str, float | int]:
    """Return the P99 of the responsive members without and with unresponsive ones, in one run."""
    latencies: dict[str, list[float]] = {}
    for phase, start in (("without", 0), ("with", options.deployments)):
        if phase == "with":
            for proxy in proxies.values():
                proxy.hang()
        arrivals.expect(lambda _: True)
        acknowledged, _, _ = await create_all(options, federation, start, options.deployments)
        async with asyncio.timeout(options.timeout):
            while any(name not in arrivals.seen[m] for name in acknowledged for m in members):
                await asyncio.sleep(0.02)
        latencies[phase] = [(arrivals.last(n, members) - at) * 1000 for n, at in acknowledged.items()]
    without, beside = percentile(latencies["without"], 0.99), percentile(latencies["with"], 0.99)
    return {
        "latency_p50_ms_without_hang": round(statistics.median(latencies["without"]), 1),
        "latency_p50_ms_with_hang": round(statistics.median(latencies["with"]), 1),
        "latency_p99_ms_without_hang": round(without, 1),
        "latency_p99_ms_with_hang": round(beside, 1),
        "latency_p99_ratio": round(beside / without, 3),
    }


def conduct(name: str, run: Callable[..., Any], options: argparse.Namespace, shape: Mapping[str, Any]) -> None:
    """Run a benchmark in the given or a temporary directory, and print its results; the last line is a JSON object."""
    with tempfile.TemporaryDirectory(prefix="federation-bench-") as folder:
        results = asyncio.run(run(options, options.dir or Path(folder)))
    for key, value in results.items():
        print(f"{key:32} {value}")
    print_report(name, {"deployments": options.deployments, "members": options.members, **shape}, results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=3, help="replicas of each Deployment, over all members")
    parser.add_argument("--rate", type=float, default=0, help="creates per second (0: unlimited)")
    parser.add_argument(
        "--rollout-limit", default="", help="maxSurge and maxUnavailable of each Deployment, such as 100%%"
    )
    parser.add_argument("--hang", type=int, default=0, help="members that stop responding half-way")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    add_member_options(parser)
    add_server_options(parser)
    options = parser.parse_args()
    check_server_options(parser, options)
    shape = {
        "realMembers": options.real_members,
        "latency": options.latency,
        "store": options.store,
        "processes": options.processes,
    }
    conduct("propagation", run, options, shape)


if __name__ == "__main__":
    main()
