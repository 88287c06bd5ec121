"""A real host in memory for controller tests: store, registry, client, informers, types; and a count of what is written.

`async with a_host() as host` starts it; controllers run in it with `host.start`. `until` waits by giving way to the event
loop, never by the clock.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from tests.support.wiredhost import wire_host

from federation.api.crds import crd_manifests
from federation.api.federatedtype import default_type_configs, from_config
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import EVENTS, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.runtime.events import EventRecorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers

SHIPPED = {config["spec"]["sourceType"]["kind"]: config for config in default_type_configs()}


class CountingClient(LocalClient):
    """The in-process client, counting writes by kind and verb."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self.writes: Counter[str] = Counter()

    async def create(self, resource: Resource, obj: Object, **options: Any) -> Object:
        self.writes[f"create {resource.kind}"] += 1
        return await super().create(resource, obj, **options)

    async def patch(self, resource: Resource, name: str, body: Any, **options: Any) -> Object:
        subresource = options.get("subresource", "")
        self.writes[f"patch {resource.kind}{'/' + subresource if subresource else ''}"] += 1
        return await super().patch(resource, name, body, **options)

    async def delete(self, resource: Resource, name: str, namespace: str = "", **options: Any) -> None:
        self.writes[f"delete {resource.kind}"] += 1
        await super().delete(resource, name, namespace, **options)


class Host:
    """What a test has: `user` writes as a user would, `client` is the controllers' and counts."""

    def __init__(self, registry: Registry, group: asyncio.TaskGroup) -> None:
        self.user = LocalClient(registry, user_agent="test")
        self.client = CountingClient(registry)
        self.clock = SystemClock()
        self.informers = Informers(self.client, clock=self.clock)
        self.types = FederatedTypes(self.informers, from_config)
        self.recorder = EventRecorder(self.client, clock=self.clock)
        self.wired = wire_host(
            self.client, self.clock, informers=self.informers, types=self.types, recorder=self.recorder
        )
        """The host as controllers get it, without members."""
        self.objects = self.wired.objects
        self.registry = registry
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run a loop until the test ends."""

        async def runs() -> None:
            await run()

        self._tasks.append(self._group.create_task(runs()))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Return the first true result of the condition; it fails the test after five seconds."""
        async with asyncio.timeout(60):
            while not (result := condition()):  # noqa: ASYNC110  # any state may be waited for, not only an event
                await asyncio.sleep(0)
            return result

    async def find(self, resource: Resource, name: str, namespace: str = "", *, where: Any = bool) -> Object:
        """Return the object as soon as it exists and `where` holds."""
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(NotFound):
                    obj = await self.user.get(resource, name, namespace)
                    if where(obj):
                        return obj
                await asyncio.sleep(0)

    async def gone(self, resource: Resource, name: str, namespace: str = "") -> None:
        """Return as soon as the object does not exist."""
        async with asyncio.timeout(60):
            while True:
                try:
                    await self.user.get(resource, name, namespace)
                except NotFound:
                    return
                await asyncio.sleep(0)

    async def merge(self, resource: Resource, name: str, patch: Object, namespace: str = "", **options: Any) -> Object:
        """Patch as a user."""
        return await self.user.patch(resource, name, patch, patch_type=PatchType.MERGE, namespace=namespace, **options)

    async def federate(self, *kinds: str) -> None:
        """Make the kinds federated."""
        for kind in kinds:
            await self.user.create(FEDERATED_TYPE_CONFIGS, SHIPPED[kind])

    async def events(self) -> list[tuple[str, str, str]]:
        """Return kind of the object, reason and message of every Event, as soon as there is one."""
        async with asyncio.timeout(60):
            while not (found := (await self.user.list(EVENTS)).items):  # noqa: ASYNC110  # as above
                await asyncio.sleep(0)
        return [(event["involvedObject"]["kind"], event["reason"], event["message"]) for event in found]

    async def settle(self, *controllers: Any) -> None:
        """Wait until the informers have seen every write and the controllers have nothing to do."""
        async with asyncio.timeout(60):
            quiet = 0
            while quiet < 3:
                await asyncio.sleep(0)
                revision = await self.registry.store.revision()
                for controller in controllers:
                    await controller.controller.wait_idle()
                for _ in range(20):
                    await asyncio.sleep(0)
                is_quiet = revision == await self.registry.store.revision()
                quiet = quiet + 1 if is_quiet else 0


@contextlib.asynccontextmanager
async def a_host() -> AsyncIterator[Host]:
    """Run a host with our kinds installed."""
    store = MemoryStore()
    async with asyncio.TaskGroup() as group:
        serving = [group.create_task(store.run())]
        registry = Registry(store, clock=SystemClock(), options=HOST_REGISTRY)
        await registry.install_crds(crd_manifests())
        serving.append(group.create_task(registry.run()))
        host = Host(registry, group)
        host.start(host.informers.run)
        host.start(host.recorder.run)
        try:
            yield host
        finally:
            host.stop()
            for task in serving:
                task.cancel()
