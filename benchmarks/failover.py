"""Measure failover: from the death of a member to the moved replicas ready elsewhere.

Starts `fedctl serve` and simulated members, each in its own process; joins them; divides N Deployments equally; kills
the process of the last member with SIGKILL; and watches host and survivors until every Deployment has all its replicas ready
in the survivors. Times are those at which the benchmark's watches receive the writes. The last line on standard output is one
JSON object.

    python benchmarks/failover.py --deployments 100                      as fast as possible: no toleration, no limits of the rate
    python benchmarks/failover.py --deployments 1000
    python benchmarks/failover.py --deployments 100 --toleration 30 --settle 30 --rate 600      with limits
    python benchmarks/failover.py --deployments 100 --failure hang       a member that accepts connections and never answers
"""

import argparse
import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
from bareclient import in_parallel
from processes import Sampler, process, read_until
from propagation import (
    NAMESPACE,
    conduct,
    join_members,
    percentile,
    revision,
    to_deployment,
    to_policy,
    wait_for_namespace,
    wait_for_status,
)

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.conditions import is_true
from federation.apimachinery.errors import Expired
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object, Resource
from federation.client.client import WatchEventType
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig
from federation.simulator.control import send_command
from federation.simulator.failures import FailureCommand, Verb


@dataclass
class Timeline:
    """When things happened first, in monotonic seconds; by Deployment where there are many."""

    died: float = 0.0
    not_ready: float = 0.0
    """The host published that the member is not ready."""
    tainted: float = 0.0
    """The host published a NoExecute taint of it."""
    decided: dict[str, float] = field(default_factory=dict)
    """The placement does not name the dead member any more."""
    written: dict[str, float] = field(default_factory=dict)
    """The survivors together want all replicas."""
    ready: dict[str, float] = field(default_factory=dict)
    """The survivors together have all replicas ready."""


class Observer:
    """Fills the timeline from watches; it starts before the death."""

    def __init__(self, host: HTTPClient, survivors: dict[str, HTTPClient], victim: str, replicas: int) -> None:
        self.timeline = Timeline()
        self._host = host
        self._survivors = survivors
        self._victim = victim
        self._replicas = replicas
        self._wanted: dict[str, dict[str, int]] = {}
        self._ready: dict[str, dict[str, int]] = {}
        self.changed = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(self._host, FEDERATED_CLUSTERS, "", self._on_cluster))
            group.create_task(self._watch(self._host, FEDERATED_OBJECTS, NAMESPACE, self._on_federated))
            for name, client in self._survivors.items():
                group.create_task(self._watch(client, DEPLOYMENTS, NAMESPACE, partial(self._on_deployment, name)))

    async def _watch(
        self, client: HTTPClient, resource: Resource, namespace: str, react: Callable[[Object], None]
    ) -> None:
        while True:
            page = await client.list(resource, namespace)
            for obj in page.items:
                react(obj)
            version = page.resource_version
            with contextlib.suppress(Expired):
                while True:
                    async for batch in client.watch(resource, namespace, resource_version=version):
                        for event in batch:
                            version = event.object["metadata"]["resourceVersion"]
                            if event.type is not WatchEventType.BOOKMARK:
                                react(event.object)
                        self.changed.set()

    def _on_cluster(self, cluster: Object) -> None:
        timeline = self.timeline
        if cluster["metadata"]["name"] != self._victim or not timeline.died:
            return
        conditions = (cluster.get("status") or {}).get("conditions")
        if not timeline.not_ready and not is_true(conditions, names.CLUSTER_READY):
            timeline.not_ready = time.monotonic()
        taints = cluster["spec"].get("taints") or ()
        if not timeline.tainted and any(taint["effect"] == "NoExecute" for taint in taints):
            timeline.tainted = time.monotonic()

    def _on_federated(self, federated: Object) -> None:
        if not self.timeline.died:
            return
        placements = federated["spec"].get("placements") or ()
        clusters = {each["cluster"] for entry in placements for each in entry.get("placement") or ()}
        if clusters and self._victim not in clusters:
            name = federated["spec"]["template"]["metadata"]["name"]
            self.timeline.decided.setdefault(name, time.monotonic())

    def _on_deployment(self, member: str, deployment: Object) -> None:
        name, now = deployment["metadata"]["name"], time.monotonic()
        wanted, ready = self._wanted.setdefault(name, {}), self._ready.setdefault(name, {})
        wanted[member] = deployment["spec"]["replicas"]
        ready[member] = (deployment.get("status") or {}).get("readyReplicas") or 0
        if not self.timeline.died:
            return
        if sum(wanted.values()) >= self._replicas:
            self.timeline.written.setdefault(name, now)
        if sum(ready.values()) >= self._replicas:
            self.timeline.ready.setdefault(name, now)

    async def wait(self, count: int, timeout_s: float) -> None:
        """Return when all Deployments are ready in the survivors."""
        try:
            async with asyncio.timeout(timeout_s):
                while len(self.timeline.ready) < count:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            seen = self.timeline
            raise SystemExit(
                f"benchmark: no failover in {timeout_s:g} s: not ready {bool(seen.not_ready)}, tainted {bool(seen.tainted)},"
                f" {len(seen.decided)} decided, {len(seen.written)} written, {len(seen.ready)} ready"
            ) from None


def to_results(timeline: Timeline, options: argparse.Namespace) -> dict[str, float | int]:
    """Return the stages, which add up to the total, and the percentiles over Deployments.

    Toleration and settling time run at the same time.
    """
    first, last = min(timeline.decided.values()), max(timeline.decided.values())
    written, ready = max(timeline.written.values()), max(timeline.ready.values())
    delivery_ms = [(at - timeline.decided[name]) * 1000 for name, at in timeline.written.items()]
    starts_ms = [(at - timeline.written[name]) * 1000 for name, at in timeline.ready.items()]
    total_s = ready - timeline.died
    return {
        "detection_s": round(timeline.not_ready - timeline.died, 3),
        "taint_s": round(timeline.tainted - timeline.not_ready, 3),
        "wait_s": round(first - timeline.tainted, 3),
        "decision_s": round(last - first, 3),
        "delivery_s": round(written - last, 3),
        "start_s": round(ready - written, 3),
        "total_s": round(total_s, 3),
        "total_without_waits_s": round(total_s - max(options.toleration, options.settle) - options.pod_start, 3),
        "decision_to_write_p50_ms": round(percentile(delivery_ms, 0.50), 1),
        "decision_to_write_p99_ms": round(percentile(delivery_ms, 0.99), 1),
        "write_to_ready_p50_ms": round(percentile(starts_ms, 0.50), 1),
        "write_to_ready_p99_ms": round(percentile(starts_ms, 0.99), 1),
    }


async def run(options: argparse.Namespace, directory: Path) -> dict[str, float | int]:
    fleet_arguments = ("--members", str(options.members), "--pod-start", str(options.pod_start))
    serve = ("serve", "--dir", str(directory / "host"), "--port", "0", "--log-level", "warning")
    async with (
        process("federation.simulator", "--dir", str(directory / "fleet"), *fleet_arguments) as fleet,
        process("federation.cli.entry", *serve, environment=to_environment(options)) as control,
    ):
        described = [json.loads(line) for line in await read_until(fleet, b"ready") if line.startswith(b"{")]
        await read_until(control, b"ready")
        host = HTTPClient(load_kubeconfig(directory / "host" / "kubeconfig", ""))
        connections = {each["name"]: load_kubeconfig(Path(each["kubeconfig"]), "") for each in described}
        clients = {name: HTTPClient(connection) for name, connection in connections.items()}
        sampler = Sampler({"control": [psutil.Process(control.pid)]})
        try:
            await join_members(host, connections, 0)
            return await measure(options, host, clients, directory / "fleet", sampler)
        finally:
            for client in (host, *clients.values()):
                await client.close()


async def measure(
    options: argparse.Namespace, host: HTTPClient, clients: dict[str, HTTPClient], fleet: Path, sampler: Sampler
) -> dict[str, float | int]:
    count, victim = options.deployments, max(clients)
    survivors = {name: client for name, client in clients.items() if name != victim}
    await host.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await wait_for_namespace(clients)
    await host.create(PROPAGATION_POLICIES, to_policy("Divide", sorted(clients)))

    async def create(index: int) -> None:
        await host.create(DEPLOYMENTS, to_deployment(index, options.replicas))

    await in_parallel(count, create)
    await wait_for_status(host, count, options.timeout)
    placed = (await clients[victim].list(DEPLOYMENTS, NAMESPACE)).items
    moved = sum(deployment["spec"]["replicas"] for deployment in placed)
    observer = Observer(host, survivors, victim, options.replicas)
    async with asyncio.TaskGroup() as group:
        watches = group.create_task(observer.run())
        writes, cpu = await revision(host), sampler.cpu_s("control")
        observer.timeline.died = time.monotonic()
        await send_command(fleet, FailureCommand(Verb.HANG if options.failure == "hang" else Verb.STOP, victim))
        await observer.wait(count, options.timeout)
        watches.cancel()
    return {
        "moved_deployments": len(placed),
        "moved_replicas": moved,
        **to_results(observer.timeline, options),
        "cpu_s": round(sampler.cpu_s("control") - cpu, 2),
        "host_writes_per_deployment": round((await revision(host) - writes) / count, 2),
    }


def to_environment(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the control plane. The limits per namespace do not apply: all Deployments are in one."""
    return {
        **os.environ,
        "FEDERATION_FAILOVER_TOLERATION_S": str(options.toleration),
        "FEDERATION_FAILOVER_SETTLE_S": str(options.settle),
        "FEDERATION_FAILOVER_REPLICAS_PER_MINUTE": str(options.rate),
        "FEDERATION_FAILOVER_NAMESPACE_SHARE": "1",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=6, help="replicas of each Deployment, over all members")
    parser.add_argument("--failure", choices=("kill", "hang"), default="kill")
    parser.add_argument("--toleration", type=int, default=0, help="seconds that placements tolerate the dead member")
    parser.add_argument("--settle", type=float, default=0, help="seconds to wait for the loss of further members")
    parser.add_argument("--rate", type=int, default=1_000_000, help="replicas that leave the member per minute")
    parser.add_argument("--pod-start", type=float, default=0.3, help="seconds until a simulated pod runs")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--dir", type=Path, help="directory in which to keep the state")
    options = parser.parse_args()
    shape = {
        "replicas": options.replicas,
        "failure": options.failure,
        "tolerationS": options.toleration,
        "settleS": options.settle,
        "replicasPerMinute": options.rate,
        "podStartS": options.pod_start,
    }
    conduct("failover", run, options, shape)


if __name__ == "__main__":
    main()
