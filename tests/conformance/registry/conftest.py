"""A registry in memory on a virtual clock, and `api` with short forms of its verbs.

Tests marked `every_store` also run on SQLite, the others only with the nightly tests.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio
from tests.support.stores import StoreBackend, stores_for

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, RegistryOptions, WriteOptions

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_ROUNDS = 3000
_PATIENCE_S = 20.0


class Api:
    """A registry's verbs with plural names and parsed objects."""

    def __init__(self, registry: Registry, clock: ManualClock) -> None:
        self.registry = registry
        self.clock = clock

    def info(self, plural: str) -> KindInfo:
        return next(info for info in self.registry.kinds.all() if info.resource.plural == plural)

    async def create(
        self,
        plural: str,
        obj: Object,
        namespace: str = "default",
        *,
        name: str = "",
        subresource: str = "",
        **options: Any,
    ) -> Object:
        info = self.info(plural)
        value = await self.registry.create(
            info, self._scope(info, namespace), copied(obj), WriteOptions(**options), name=name, subresource=subresource
        )
        return orjson.loads(value)

    async def get(self, plural: str, name: str, namespace: str = "default", *, subresource: str = "") -> Object:
        info = self.info(plural)
        value = await self.registry.get(info, self._scope(info, namespace), name, subresource=subresource)
        return orjson.loads(value)

    async def exists(self, plural: str, name: str, namespace: str = "default") -> bool:
        info = self.info(plural)
        return await self.registry.store.get(info.key(self._scope(info, namespace), name)) is not None

    async def update(
        self, plural: str, obj: Object, namespace: str = "default", *, subresource: str = "", **options: Any
    ) -> Object:
        value, _ = await self.put(plural, obj, namespace, subresource=subresource, **options)
        return value

    async def put(
        self, plural: str, obj: Object, namespace: str = "default", *, subresource: str = "", **options: Any
    ) -> tuple[Object, bool]:
        info = self.info(plural)
        value, created = await self.registry.update(
            info,
            self._scope(info, namespace),
            obj["metadata"]["name"],
            copied(obj),
            WriteOptions(**options),
            subresource=subresource,
        )
        return orjson.loads(value), created

    async def patch(
        self,
        plural: str,
        name: str,
        patch: Any,
        namespace: str = "default",
        *,
        type_: str = MERGE,
        subresource: str = "",
        **options: Any,
    ) -> Object:
        info = self.info(plural)
        body = patch if isinstance(patch, bytes) else orjson.dumps(patch)
        value, _ = await self.registry.patch(
            info, self._scope(info, namespace), name, type_, body, WriteOptions(**options), subresource=subresource
        )
        return orjson.loads(value)

    async def delete(self, plural: str, name: str, namespace: str = "default", **options: Any) -> tuple[Object, bool]:
        info = self.info(plural)
        value, gone = await self.registry.delete(info, self._scope(info, namespace), name, DeleteOptions(**options))
        return orjson.loads(value), gone

    async def names(self, plural: str, namespace: str = "default", **options: Any) -> list[str]:
        info = self.info(plural)
        found = await self.registry.list(info, self._scope(info, namespace), ListOptions(**options))
        return [orjson.loads(value)["metadata"]["name"] for value in found.items]

    @asynccontextmanager
    async def watching(self, plural: str, namespace: str = "default", **options: Any) -> AsyncIterator["Watching"]:
        info = self.info(plural)
        stream = self.registry.watch(info, self._scope(info, namespace), ListOptions(**options))
        try:
            yield Watching(stream)
        finally:
            await stream.aclose()

    async def eventually(self, check: Callable[[], Awaitable[Any]]) -> None:
        """Run the background loops and advance the clock until `check` is true.

        A loop may wait for a thread of the store, whose time is no virtual one, so the rounds have real time, too.
        """
        began_s, rounds = time.monotonic(), 0
        while rounds < _ROUNDS or time.monotonic() - began_s < _PATIENCE_S:
            if await check():
                return
            await self.clock.advance(0.05)
            rounds += 1
        raise AssertionError("the condition never became true")

    def _scope(self, info: KindInfo, namespace: str) -> str:
        return namespace if info.resource.namespaced else ""


class Watching:
    """The events of a watch, one at a time."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        self._stream = stream
        self._events: list[tuple[str, Object]] = []

    async def next(self) -> tuple[str, Object]:
        while not self._events:
            async with asyncio.timeout(10):
                batch = await anext(self._stream)
            self._events += [(kind, orjson.loads(value)) for kind, value in batch]
        return self._events.pop(0)

    async def said(self, count: int) -> list[tuple[str, str]]:
        events = [await self.next() for _ in range(count)]
        return [(kind, obj["metadata"].get("name", "")) for kind, obj in events]


def copied(obj: Object) -> Object:
    return orjson.loads(orjson.dumps(obj))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", stores_for(metafunc, "sqlite"), indirect=True)


@pytest_asyncio.fixture
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreBackend]:
    url = f"sqlite:///{tmp_path}/state.db" if request.param == "sqlite" else ""
    backend = StoreBackend(request.param, url) if url else StoreBackend(request.param)
    yield backend
    await backend.close()


@pytest_asyncio.fixture
async def api(backend: StoreBackend) -> Api:
    """A registry that serves, without its background loops."""
    clock = ManualClock()
    registry = Registry(await backend.open(), clock=clock, options=RegistryOptions(), entropy=SeededEntropy(1))
    await registry.start()
    return Api(registry, clock)


@pytest_asyncio.fixture
async def running(api: Api) -> AsyncIterator[Api]:
    """The same with its background loops: garbage collection, namespaces, definitions, expiry."""
    task = asyncio.create_task(api.registry.run())
    await asyncio.sleep(0)
    yield api
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def a_deployment(name: str = "web", **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
            **spec,
        },
    }


def a_pod(name: str = "p", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}], **spec},
    }


def a_config_map(name: str = "cm", labels: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **({"labels": labels} if labels else {}), **metadata},
        "data": {"k": "v"},
    }


def a_service(name: str = "svc", **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}], **spec},
    }


def a_definition(
    plural: str = "widgets",
    group: str = "example.com",
    *,
    kind: str = "Widget",
    scope: str = "Namespaced",
    **version: Any,
) -> Object:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                    "replicas": {"type": "integer"},
                },
            },
            "status": {
                "type": "object",
                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
            },
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, "shortNames": [plural[:2]], "categories": ["all"]},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


def a_widget(name: str = "w", **spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3, **spec},
    }
