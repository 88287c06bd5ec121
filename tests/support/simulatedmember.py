"""A simulated member on a registry in memory and a virtual clock, with builders for what tests run in it."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.conditions import is_true
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import PODS, Object, Resource
from federation.apimachinery.webhooks import ServiceNetwork
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.features.uniteddeployment.admission import UnitedDeploymentAdmission
from federation.features.uniteddeployment.unitedservice import UnitedDeploymentService
from federation.features.workloadspread.incluster.configurations import definitions
from federation.simulator.options import MemberOptions, NodeShape
from federation.simulator.workloads import Workloads
from federation.simulator.workloadspreads import SERVICE, WorkloadSpreads

T = TypeVar("T")
LABELS = {"app": "web"}


def a_template(cpu: str = "100m", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    container = {"name": "web", "image": "nginx:1", "resources": {"requests": {"cpu": cpu}}}
    meta: Object = {"labels": dict(LABELS)}
    if annotations:
        meta["annotations"] = annotations
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def an_object(resource: Resource, name: str, **fields: Any) -> Object:
    meta = {"name": name, **({"namespace": "default"} if resource.namespaced else {}), **fields.pop("metadata", {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}


def a_workload(resource: Resource, name: str = "web", template: Object | None = None, **spec: Any) -> Object:
    selector = {"matchLabels": dict(LABELS)}
    return an_object(resource, name, spec={"selector": selector, "template": template or a_template(), **spec})


class Member:
    """One running member."""

    def __init__(self, registry: Registry, clock: ManualClock) -> None:
        self.client = LocalClient(registry, user_agent="test")
        self.clock = clock
        self.registry = registry

    async def create(self, resource: Resource, obj: Object) -> Object:
        return await self.client.create(resource, obj)

    async def get(self, resource: Resource, name: str) -> Object:
        return await self.client.get(resource, name, "default" if resource.namespaced else "")

    async def status(self, resource: Resource, name: str) -> Object:
        return (await self.get(resource, name)).get("status") or {}

    async def merge(self, resource: Resource, name: str, patch: Object) -> Object:
        namespace = "default" if resource.namespaced else ""
        return await self.client.patch(resource, name, patch, patch_type=PatchType.MERGE, namespace=namespace)

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        await self.client.delete(resource, name, "default" if resource.namespaced else "", **options)

    async def exists(self, resource: Resource, name: str) -> bool:
        with contextlib.suppress(NotFound):
            await self.get(resource, name)
            return True
        return False

    async def all(self, resource: Resource) -> list[Object]:
        """Return the objects of the default namespace, or of the cluster, by name."""
        page = await self.client.list(resource, "default" if resource.namespaced else "")
        return sorted(page.items, key=lambda obj: str(obj["metadata"]["name"]))

    async def names(self, resource: Resource) -> list[str]:
        return [obj["metadata"]["name"] for obj in await self.all(resource)]

    async def ready_pods(self) -> list[str]:
        """Return the names of pods that are ready and not terminating."""
        return [
            pod["metadata"]["name"]
            for pod in await self.all(PODS)
            if is_true((pod.get("status") or {}).get("conditions"), "Ready")
            and "deletionTimestamp" not in pod["metadata"]
        ]

    async def revision(self) -> str:
        """Return the newest revision of the store."""
        return (await self.client.list(PODS)).resource_version

    async def until(self, look: Callable[[], Awaitable[T]], patience_s: float = 60.0, step_s: float = 0.05) -> T:
        """Advance the clock until the coroutine function returns a true value, and return it."""
        deadline_s = self.clock.monotonic() + patience_s
        while not (seen := await look()):
            assert self.clock.monotonic() < deadline_s, f"it did not happen in {patience_s} s; last seen: {seen!r}"
            await self.clock.advance(step_s)
        return seen

    async def until_equal(self, look: Callable[[], Awaitable[T]], expected: T, patience_s: float = 60.0) -> None:
        """Advance the clock until the coroutine function returns the expected value."""
        deadline_s = self.clock.monotonic() + patience_s
        while (seen := await look()) != expected:
            assert self.clock.monotonic() < deadline_s, f"expected {expected!r}, last seen {seen!r}"
            await self.clock.advance(0.05)

    async def pass_time(self, seconds: float, step_s: float = 0.1) -> None:
        for _ in range(round(seconds / step_s)):
            await self.clock.advance(step_s)


@contextlib.asynccontextmanager
async def a_member(
    nodes: Sequence[NodeShape] = (NodeShape("node-1"),),
    seed: int = 1,
    spread_services: int = 0,
    *,
    united_deployments: bool = False,
) -> AsyncIterator[Member]:
    """Run a member for the block. With several WorkloadSpread services, they answer reviews in turn."""
    clock = ManualClock()
    network = ServiceNetwork()
    registry = Registry(MemoryStore(clock=clock), clock=clock, entropy=SeededEntropy(seed), webhooks=network)
    await registry.install_crds(definitions() if spread_services or united_deployments else ())
    member = Member(registry, clock)
    workloads = Workloads(registry, MemberOptions("east", tuple(nodes)), clock)
    await workloads.ensure_nodes()
    tasks = [asyncio.create_task(registry.run())]
    if spread_services:
        spreads = [WorkloadSpreads(registry, clock, cluster=f"east-{n}") for n in range(spread_services)]
        answers = itertools.cycle(spreads)
        network.add(*SERVICE, lambda path, review: next(answers).answer(path, review))
        tasks += [asyncio.create_task(each.run()) for each in spreads]
        for each in spreads:
            await each.wait_synced()
        await spreads[0].prepare()
    tasks.append(asyncio.create_task(workloads.run()))
    if united_deployments:
        registry.add_admission_plugin(UnitedDeploymentAdmission())
        service = UnitedDeploymentService(member.client, patch_pod=patch_pod, clock=clock, cluster="east")
        tasks.append(asyncio.create_task(service.run()))
    try:
        yield member
        for task in tasks:
            assert not task.done(), task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
