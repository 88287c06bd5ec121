"""Controllers of a registry that act late, because another process was faster or their own was stopped.

Both registries use one store. The clock of `late` stands still while `fast` works.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from tests.conformance.registry.conftest import Api, Object, a_config_map, a_definition, a_widget

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore

HELD = ["example.com/hold"]


def a_held_widget() -> Object:
    return {**a_widget(), "metadata": {"name": "held", "finalizers": HELD}}


class Pair:
    """Two running registries on one store."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.fast, self.late = (
            Api(Registry(self.store, clock=clock, entropy=SeededEntropy(seed)), clock)
            for seed, clock in ((1, ManualClock()), (2, ManualClock()))
        )

    async def absent(self, plural: str, name: str) -> None:
        """Let `fast` work until the object is gone."""

        async def is_absent() -> bool:
            return not await self.fast.exists(plural, name)

        await self.fast.eventually(is_absent)

    async def catch_up(self) -> None:
        """Let `late` do all that it intends to do."""
        for _ in range(200):
            await self.late.clock.advance(0.05)


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    tasks = [asyncio.create_task(api.registry.run()) for api in (pair.fast, pair.late)]
    for api in (pair.fast, pair.late):
        await api.clock.advance(0)
    yield pair
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await pair.store.close()


async def test_the_content_of_a_new_namespace_survives_the_deletion_of_the_old_one(pair: Pair) -> None:
    await pair.fast.create("namespaces", {"metadata": {"name": "team"}})
    await pair.fast.create("configmaps", a_config_map("old", finalizers=HELD), "team")
    await pair.fast.delete("namespaces", "team")
    await pair.late.clock.advance(0.01)  # it waits for the finalizer, too
    await pair.fast.patch("configmaps", "old", {"metadata": {"finalizers": None}}, "team")
    await pair.absent("namespaces", "team")

    await pair.fast.create("namespaces", {"metadata": {"name": "team"}})
    await pair.fast.create("configmaps", a_config_map("new"), "team")
    await pair.catch_up()
    assert await pair.fast.exists("configmaps", "new", "team")
    namespace = await pair.fast.get("namespaces", "team")
    assert namespace["spec"]["finalizers"] == ["kubernetes"]
    assert not namespace["status"].get("conditions")


async def test_objects_of_a_new_definition_survive_the_removal_of_the_old_one(pair: Pair) -> None:
    await pair.fast.create("customresourcedefinitions", a_definition())
    await pair.fast.create("widgets", a_held_widget())
    name = a_definition()["metadata"]["name"]
    await pair.fast.delete("customresourcedefinitions", name)
    await pair.late.clock.advance(0.01)
    await pair.fast.patch("widgets", "held", {"metadata": {"finalizers": None}})
    await pair.absent("customresourcedefinitions", name)

    await pair.fast.create("customresourcedefinitions", a_definition())
    await pair.fast.create("widgets", a_widget("new"))
    await pair.catch_up()
    assert await pair.fast.exists("widgets", "new")


async def test_a_definition_that_waits_for_its_instances_delays_no_other(pair: Pair) -> None:
    await pair.fast.create("customresourcedefinitions", a_definition())
    await pair.fast.create("widgets", a_held_widget())
    await pair.fast.delete("customresourcedefinitions", a_definition()["metadata"]["name"])
    other = a_definition(plural="gadgets", kind="Gadget")
    await pair.fast.create("customresourcedefinitions", other)
    await pair.late.clock.advance(0.01)
    assert pair.late.registry.kinds.find("example.com", "gadgets") is not None
