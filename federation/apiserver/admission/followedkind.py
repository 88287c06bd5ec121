"""Objects of one kind that admission reads with each write, such as PriorityClasses, parsed and in memory.

As the kind's `Hook` it applies a write of this process before its response, and writes of other processes through a
watch. `defaultplugins.py` uses it.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from federation.apimachinery.resources import Object
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.verbs.context import VerbContext, run_hook

_Parsed = TypeVar("_Parsed")


class FollowedKind(Generic[_Parsed]):
    """The objects under a prefix of the store. `parse` returns what is kept of one, None for nothing."""

    def __init__(self, context: VerbContext, prefix: str, parse: Callable[[Object], _Parsed | None]) -> None:
        self._store = context.store
        self._prefix = prefix
        self._parse = parse
        self._known: dict[tuple[str, str], tuple[str, int, _Parsed]] = {}
        context.hooks[prefix] = self

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str, namespace: str = "") -> _Parsed | None:
        """Return what is kept of an object, None if there is none."""
        known = self._known.get((namespace, name))
        return None if known is None else known[2]

    def items(self) -> Iterator[tuple[str, _Parsed]]:
        """Yield name and content of each object."""
        for (_, name), (_, _, parsed) in self._known.items():
            yield name, parsed

    async def load(self) -> int:
        """Load the stored objects and return the revision of that list."""
        page = await self._store.list(self._prefix)
        self._known.clear()
        for entry in page.entries:
            self.written(encoding.decode(entry.value))
        return page.revision

    async def run(self) -> None:
        """Watch the stored objects until cancelled."""
        await run_hook(self._store, self._prefix, await self.load(), self)

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    def written(self, obj: Object) -> None:
        """Keep the object, unless a newer revision is known."""
        metadata = obj["metadata"]
        key, revision = (metadata.get("namespace", ""), metadata["name"]), int(metadata["resourceVersion"])
        known = self._known.get(key)
        if known is not None and known[1] >= revision:
            return
        parsed = self._parse(obj)
        if parsed is not None:
            self._known[key] = (metadata["uid"], revision, parsed)
        else:
            self._known.pop(key, None)

    def removed(self, obj: Object) -> None:
        """Forget the object."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        known = self._known.get(key)
        if known is not None and known[0] == metadata["uid"]:
            del self._known[key]
