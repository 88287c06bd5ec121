"""Stored admission configurations, compiled in memory, so that a write does not read them from the store.

Those that are data of this server (`apimachinery/effect.py`) are left out.
One `CompiledConfigurations` per kind. As the kind's `Hook` it applies a write of this process before its response, and
writes of other processes through a watch. `chain.py` and `boundpolicies.py` use it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from federation.apimachinery.effect import Effect
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.verbs.context import VerbContext, run_hook

GROUP = "admissionregistration.k8s.io"
_Compiled = TypeVar("_Compiled")


@dataclass(slots=True)
class _Known(Generic[_Compiled]):
    """One stored object: its version, and what of it acts here; None for nothing."""

    uid: str
    generation: int
    revision: int
    effect: Effect
    compiled: _Compiled | None


class CompiledConfigurations(Generic[_Compiled]):
    """The stored objects of one kind, compiled, in the order of their names. A `Hook` of that kind."""

    def __init__(
        self,
        context: VerbContext,
        plural: str,
        compiled: Callable[[Object, Effect], _Compiled],
        on_change: Callable[[], None],
    ) -> None:
        """`compiled` gets an object and its effect, which is not NONE."""
        self._context = context
        self._store = context.store
        self._resource = context.kinds.lookup(GROUP, "v1", plural).resource
        self._prefix = f"/{GROUP}/{plural}/"
        self._compile = compiled
        self._on_change = on_change
        self._known: dict[str, _Known[_Compiled]] = {}
        self.items: tuple[_Compiled, ...] = ()
        context.hooks[self._prefix] = self

    async def load(self) -> int:
        """Load the stored objects and return the revision of that list."""
        page = await self._store.list(self._prefix)
        found = [encoding.decode(entry.value) for entry in page.entries]
        names = {obj["metadata"]["name"] for obj in found}
        self._known = {name: known for name, known in self._known.items() if name in names}
        for obj in found:
            self.written(obj)
        self._publish()
        return page.revision

    async def run(self) -> None:
        """Watch the stored objects until cancelled."""
        await run_hook(self._store, self._prefix, await self.load(), self)

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    def written(self, obj: Object) -> None:
        """Use the configuration, unless a newer one is in use. Its effect may follow from its metadata."""
        metadata, effect = obj["metadata"], self._context.effect_of(self._resource, obj)
        uid, generation = metadata["uid"], metadata.get("generation", 0)
        revision = int(metadata.get("resourceVersion") or 0)
        known = self._known.get(metadata["name"])
        if known is not None and known.uid == uid:
            if known.generation > generation or known.revision > revision:
                return
            if (known.generation, known.effect) == (generation, effect):
                known.revision = revision
                return
        compiled = None if effect is Effect.NONE else self._compile(obj, effect)
        self._known[metadata["name"]] = _Known(uid, generation, revision, effect, compiled)
        self._publish()

    def removed(self, obj: Object) -> None:
        """Remove the configuration."""
        known = self._known.get(obj["metadata"]["name"])
        if known is not None and known.uid == obj["metadata"]["uid"]:
            del self._known[obj["metadata"]["name"]]
            self._publish()

    def _publish(self) -> None:
        acting = (known.compiled for _, known in sorted(self._known.items()))
        self.items = tuple(compiled for compiled in acting if compiled is not None)
        self._on_change()
