"""Informers of one client, shared by all users of the same collection.

`for_resource` counts users; the informer starts with the first one (once `run()` runs) and stops when the last one
calls `release`. Controllers never start informers themselves. Lives as long as the client.
"""

import asyncio
from collections.abc import Hashable

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.resources import Resource
from federation.apimachinery.tasks import Supervisor
from federation.client.client import Client
from federation.runtime.admittance import CacheBudget, Transform
from federation.runtime.informer import Informer, InformerOptions
from federation.runtime.lineage import Lineage


class _Shared:
    """An informer, its users and its task."""

    __slots__ = ("informer", "task", "users")

    def __init__(self, informer: Informer) -> None:
        self.informer = informer
        self.users = 0
        self.task: asyncio.Task[None] | None = None


class Informers:
    """The shared informers of one client; `cluster` names it in metrics and logs ("" is the host).

    `transform` and `parsed_max` are the defaults for users without their own.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        cluster: str = "",
        options: InformerOptions | None = None,
        transform: Transform | None = None,
        budget: CacheBudget | None = None,
        parsed_max: int = 0,
    ) -> None:
        self.client = client
        self._transform = transform
        self.cluster = cluster
        self._lineage = Lineage()
        self._clock = clock or SystemClock()
        self._options = options
        self._budget = budget
        self._parsed_max = parsed_max
        self._shared: dict[Hashable, _Shared] = {}
        self._group: asyncio.TaskGroup | None = None

    def for_resource(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        transform: Transform | None = None,
        parsed_max: int = 0,
    ) -> Informer:
        """Return the informer of the collection and count one more user.

        The first user's `transform` and `parsed_max` (see `Cache`) hold; users with different transforms (compared by
        identity) get different informers.
        """
        transform = transform or self._transform
        key = (resource, namespace, label_selector, field_selector, transform)
        shared = self._shared.get(key)
        if shared is None:
            informer = Informer(
                self.client,
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                transform=transform,
                clock=self._clock,
                cluster=self.cluster,
                options=self._options,
                budget=self._budget,
                parsed_max=parsed_max or self._parsed_max,
                lineage=self._lineage,
            )
            shared = self._shared[key] = _Shared(informer)
            self._start(shared)
        shared.users += 1
        return shared.informer

    def add(self, informer: Informer) -> None:
        """Run an informer that is not shared."""
        shared = self._shared[informer] = _Shared(informer)
        shared.users = 1
        self._start(shared)

    def release(self, informer: Informer) -> None:
        """Count one user less; without users the informer stops and discards its cache."""
        for key, shared in self._shared.items():
            if shared.informer is informer:
                shared.users -= 1
                if shared.users <= 0:
                    del self._shared[key]
                    if shared.task is not None:
                        shared.task.cancel()
                    informer.release()
                return

    def all(self) -> list[Informer]:
        """Return the informers in use."""
        return [shared.informer for shared in self._shared.values()]

    @property
    def have_malformed(self) -> bool:
        """Whether any informer got items that are not Kubernetes objects; asked with every probe."""
        return any(shared.informer.has_malformed for shared in self._shared.values())

    async def wait_synced(self) -> None:
        """Wait until every informer in use has its first complete list."""
        for informer in self.all():
            await informer.wait_synced()

    def invalidate(self) -> None:
        """Make every informer list again."""
        for informer in self.all():
            informer.invalidate()

    def retry(self) -> None:
        """End every informer's pause after a failure."""
        for informer in self.all():
            informer.retry()

    async def run(self) -> None:
        """Run the informers, also later ones, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for shared in self._shared.values():
                    self._start(shared)
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None
                for shared in self._shared.values():
                    shared.task = None

    def _start(self, shared: _Shared) -> None:
        if self._group is None:
            return
        informer = shared.informer
        supervisor = Supervisor(self._clock)
        supervisor.add(f"informer {self.cluster} {informer.resource.group_resource}".replace("  ", " "), informer.run)
        shared.task = self._group.create_task(supervisor.run())
