"""The registry for the API server's own controllers: parsed objects in place of bytes.

The RBAC index, role aggregation and the token controller use it. Controllers of the federation use `client` instead.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Expired
from federation.apimachinery.resources import Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.patching import MERGE
from federation.apiserver.verbs.requestoptions import ListOptions, WriteOptions

_RELIST_DELAY_S = 0.1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changes(Generic[T]):
    """A complete list (`is_list`), or later changes; `objects` are in order, each with True if it was deleted."""

    objects: list[tuple[T, bool]]
    is_list: bool = False


async def list_and_watch(
    registry: Registry,
    info: KindInfo,
    clock: Clock,
    *,
    parse: Callable[[bytes], T],
    field_selector: str = "",
) -> AsyncGenerator[Changes[T]]:
    """Yield all objects of a kind, then their changes; list again when the watch has expired. Other errors end it."""
    while True:
        found = await registry.list(info, "", ListOptions(field_selector=field_selector))
        options = ListOptions(field_selector=field_selector, resource_version=str(found.resource_version))
        changes = Changes([(parse(value), False) for value in found.items], is_list=True)
        del found  # a watch lives for hours; neither these bytes nor the objects may stay in memory as long
        yield changes
        changes.objects.clear()
        try:
            async for batch in registry.watch(info, "", options):
                yield Changes([(parse(value), type_ == "DELETED") for type_, value in batch if type_ != "BOOKMARK"])
        except Expired:
            # An overloaded store must not be listed in a tight loop.
            await clock.sleep(_RELIST_DELAY_S)


async def patch_version(
    registry: Registry, info: KindInfo, obj: Object, changes: Object, options: WriteOptions
) -> Object:
    """Merge-patch exactly this version of the object and return the new one; Conflict if it has changed, NotFound."""
    metadata = obj["metadata"]
    pinned = {**changes.get("metadata", {}), "resourceVersion": metadata["resourceVersion"]}
    patch = orjson.dumps({**changes, "metadata": pinned})
    value, _ = await registry.patch(info, metadata.get("namespace", ""), metadata["name"], MERGE, patch, options)
    patched: Object = orjson.loads(value)
    return patched
