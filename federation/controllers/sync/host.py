"""Federated objects as sync reads and writes them: which clusters they name, and patches of exactly one state.

`Host` remembers what its own writes returned until the cache has it, so that a reconcile never decides on a state that
its own last write made obsolete. It lives as long as the controller.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, Object, Resource
from federation.base.errors import NotFound
from federation.client.protocol import Client, PatchType
from federation.dispatch.ownwrites import OwnWrites
from federation.dispatch.status import clusters_of
from federation.planning.memberobject import effective_placement
from federation.runtime.controller import Key


def departed_clusters(federated: Mapping[str, Any]) -> set[str]:
    """Return the clusters that left the placement and may still hold the object."""
    text = (federated["metadata"].get("annotations") or {}).get(names.DEPARTED_CLUSTERS)
    if not text:
        return set()
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return set()
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def recorded_clusters(federated: Mapping[str, Any]) -> set[str]:
    """Return the clusters that may hold the object although it is not placed there (any more)."""
    return clusters_of(federated).keys() | departed_clusters(federated)


def clusters_of_interest(federated: Mapping[str, Any]) -> set[str]:
    """Return every cluster whose state matters to the object."""
    return recorded_clusters(federated) | effective_placement(federated)


class Host:
    """What sync writes to federated objects on the host. The newest state is remembered until the cache has it."""

    def __init__(self, client: Client, cached: Callable[[Key], Object | None]) -> None:
        self._client = client
        self._own: OwnWrites[Key] = OwnWrites(cached)

    def federated(self, key: Key) -> Object | None:
        """Return the newest known state of a federated object, with its apiVersion and kind."""
        found = self._own.newest(key)
        if found is None or "kind" in found:
            return found
        resource = _resource(key)
        return {"apiVersion": resource.api_version, "kind": resource.kind, **found}

    async def patch(self, key: Key, federated: Object, body: Object, subresource: str = "") -> Object | None:
        """Merge-patch exactly this state of the object and return the new one, None when it is gone; Conflict."""
        metadata = {**body.get("metadata", {}), "resourceVersion": federated["metadata"]["resourceVersion"]}
        try:
            written = await self._client.patch(
                _resource(key),
                key.name,
                {**body, "metadata": metadata},
                patch_type=PatchType.MERGE,
                namespace=key.namespace,
                subresource=subresource,
                field_manager=names.FIELD_MANAGER,
            )
        except NotFound:
            self._own.forget(key)
            return None
        self._own.note(key, written)
        return written

    def saw(self, key: Key) -> None:
        """Drop what is remembered once the cache has caught up."""
        self._own.saw(key)


def _resource(key: Key) -> Resource:
    return FEDERATED_OBJECTS if key.namespace else CLUSTER_FEDERATED_OBJECTS
