"""A start on a database that answers late: reads that do not depend on each other share their wait."""

import asyncio

from federation.api.crds import crd_manifests
from federation.apimachinery.clock import ManualClock
from federation.apiserver.auth.bootstrappolicy import RBACOptions, ensure_default_rbac
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore


class SlowStore(MemoryStore):
    """Each read takes `delay_s`; any number of them take no longer together."""

    delay_s = 0.0

    async def get(self, key):
        await self._clock.sleep(self.delay_s)
        return await super().get(key)

    async def list(self, prefix, **options):
        await self._clock.sleep(self.delay_s)
        return await super().list(prefix, **options)


async def _start(registry: Registry) -> None:
    await registry.start()
    await registry.install_crds(crd_manifests())
    await ensure_default_rbac(registry, RBACOptions(retired=frozenset({("example.com", "widgets")})))


async def test_a_second_start_waits_for_few_answers_of_its_store() -> None:
    clock = ManualClock()
    store = SlowStore(clock=clock)
    running = asyncio.ensure_future(store.run())
    await _start(Registry(store, clock=clock))
    before_s, store.delay_s = clock.monotonic(), 1.0
    starting = asyncio.ensure_future(_start(Registry(store, clock=clock)))
    while not starting.done():
        await clock.advance(1)
    await starting
    assert clock.monotonic() - before_s < 25, "each definition and each role has more than one read"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
