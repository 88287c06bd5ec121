"""The workload kinds of a simulated member that are not built in: their controllers run once the kind is served.

A kind is served when its CustomResourceDefinition is established, whether the federation has delivered the definition
or somebody has installed it in the member. A controller is started once and stays, also if the definition is deleted:
without objects it does nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, MutableMapping

from federation.apimachinery.conditions import is_true
from federation.apimachinery.resources import CRDS, Object, Resource
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers

Run = Callable[[], Coroutine[None, None, None]]


class CustomWorkloads:
    """Starts a controller for each kind of `builders` when it is served.

    None is for a kind whose controller runs elsewhere. The informer of the kind is added to `scalable`, by group and
    kind.
    """

    def __init__(
        self,
        informers: Informers,
        builders: Mapping[Resource, Callable[[], Run] | None],
        scalable: MutableMapping[tuple[str, str], Informer],
    ) -> None:
        self._informers = informers
        self._builders = builders
        self._scalable = scalable
        self._definitions = informers.for_resource(CRDS)
        self._served: asyncio.Queue[Resource] = asyncio.Queue()
        self._definitions.add_handler(self._definition_changed)

    def _definition_changed(self, old: Object | None, new: Object | None) -> None:
        del old
        if new is None:
            return
        for resource in self._builders:
            if resource.group_resource == new["metadata"]["name"] and _serves(new, resource):
                self._served.put_nowait(resource)

    async def run(self) -> None:
        """Run the controllers until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                resource = await self._served.get()
                if (resource.group, resource.kind) not in self._scalable:
                    informer = self._informers.for_resource(resource)
                    self._scalable[resource.group, resource.kind] = informer
                    if (build := self._builders[resource]) is not None:
                        group.create_task(self._run(informer, build))

    async def _run(self, informer: Informer, build: Callable[[], Run]) -> None:
        await informer.wait_synced()
        await build()()


def _serves(definition: Object, resource: Resource) -> bool:
    versions = definition["spec"].get("versions") or ()
    is_established = is_true((definition.get("status") or {}).get("conditions"), "Established")
    return is_established and any(each.get("name") == resource.version and each.get("served") for each in versions)
