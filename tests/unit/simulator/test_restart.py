"""A simulated member that restarts finds its objects and writes nothing."""

import asyncio

from tests.support.simulatedmember import LABELS, a_workload, an_object

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, PODS, SERVICES, STATEFUL_SETS
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR
from federation.simulator.options import MemberOptions, NodeShape
from federation.simulator.workloads import Workloads

OPTIONS = MemberOptions("east", (NodeShape("node-1"), NodeShape("node-2")))


async def pass_time(clock: ManualClock, seconds: int) -> None:
    for _ in range(seconds * 2):
        await clock.advance(0.5)


async def test_a_restart_writes_nothing_and_running_jobs_still_end() -> None:
    clock = ManualClock()
    store = MemoryStore(clock=clock)
    registry = Registry(store, clock=clock, entropy=SeededEntropy(1))
    await registry.start()
    client = LocalClient(registry)
    background = asyncio.create_task(registry.run())
    workloads = Workloads(registry, OPTIONS, clock)
    await workloads.ensure_nodes()
    first = asyncio.create_task(workloads.run())
    await client.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=3))
    await client.create(STATEFUL_SETS, a_workload(STATEFUL_SETS, "db", replicas=2, serviceName="db"))
    await client.create(DAEMON_SETS, a_workload(DAEMON_SETS, "agent"))
    service = {"type": "LoadBalancer", "selector": LABELS, "ports": [{"port": 80}]}
    await client.create(SERVICES, an_object(SERVICES, "web", spec=service))
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    template = {"metadata": {"annotations": {SIMULATOR_RUN_FOR: "5m"}}, "spec": pod_spec}
    await client.create(JOBS, an_object(JOBS, "import", spec={"template": template}))
    await pass_time(clock, 30)
    pods = {pod["metadata"]["uid"] for pod in (await client.list(PODS)).items}
    assert len(pods) == 3 + 2 + 2 + 1
    revision = await store.revision()

    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(Workloads(registry, OPTIONS, clock).run())
    await pass_time(clock, 60)
    assert await store.revision() == revision
    await pass_time(clock, 250)
    assert (await client.get(JOBS, "import", "default"))["status"]["succeeded"] == 1
    assert {pod["metadata"]["uid"] for pod in (await client.list(PODS)).items} == pods
    for task in (second, background):
        task.cancel()
    await asyncio.gather(second, background, return_exceptions=True)
