"""Stored configurations of admission, compiled and at hand: what the hot path asks instead of the store.

One `Configurations` per kind. A write of one takes effect before it is answered (it is the kind's `Hook`), those of
other processes through a watch. `chain.py` and `policychain.py` use it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from federation.api.resources import Object
from federation.registry import encoding
from federation.registry.access import Access
from federation.store.interface import EventType

GROUP = "admissionregistration.k8s.io"
_Compiled = TypeVar("_Compiled")


class Configurations(Generic[_Compiled]):
    """The stored objects of one kind of configuration, compiled, in the order of their names. A `Hook` of that kind."""

    def __init__(
        self, access: Access, plural: str, compiled: Callable[[Object], _Compiled], on_change: Callable[[], None]
    ) -> None:
        self._store = access.store
        self._prefix = f"/{GROUP}/{plural}/"
        self._compile = compiled
        self._on_change = on_change
        self._known: dict[str, tuple[str, int, _Compiled]] = {}
        self.items: tuple[_Compiled, ...] = ()
        access.hooks[self._prefix] = self

    async def load(self) -> int:
        """Take over what is stored and return the revision of that state."""
        page = await self._store.list(self._prefix)
        found = [encoding.decode(entry.value) for entry in page.entries]
        names = {obj["metadata"]["name"] for obj in found}
        self._known = {name: known for name, known in self._known.items() if name in names}
        for obj in found:
            self.written(obj)
        self._publish()
        return page.revision

    async def run(self) -> None:
        """Follow the stored objects until cancelled."""
        revision = await self.load()
        async for batch in self._store.watch(self._prefix, revision):
            for event in batch:
                obj = encoding.decode(event.value)
                if event.type is EventType.DELETED:
                    self.removed(obj)
                else:
                    self.written(obj)

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    def written(self, obj: Object) -> None:
        """Use the configuration from now on, unless a newer one is in use."""
        metadata = obj["metadata"]
        uid, generation = metadata["uid"], metadata.get("generation", 0)
        known = self._known.get(metadata["name"])
        if known is not None and known[0] == uid and known[1] >= generation:
            return
        self._known[metadata["name"]] = (uid, generation, self._compile(obj))
        self._publish()

    def removed(self, obj: Object) -> None:
        """Forget the configuration."""
        known = self._known.get(obj["metadata"]["name"])
        if known is not None and known[0] == obj["metadata"]["uid"]:
            del self._known[obj["metadata"]["name"]]
            self._publish()

    def _publish(self) -> None:
        self.items = tuple(compiled for _, (_, _, compiled) in sorted(self._known.items()))
        self._on_change()
