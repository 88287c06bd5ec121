"""The version that a server stores of a kind, for patches of objects that users write there.

For servers whose definitions are not watched: the host of a command or of a page, and members. API servers publish the
hash of the stored version in discovery. Only where it is that of another version, the definition is read, which may be
large, and only its outcome is kept, for a minute. Read next: `storedversion.py`.

Decision: docs/decisions/0226-every-client-writes-in-the-stored-version.md
"""

import base64
import hashlib
from typing import NamedTuple

from federation.api.resources import CORE_GROUP
from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.definitions import has_all_fields, is_served, version_of_patches
from federation.apimachinery.errors import Forbidden, NotFound
from federation.apimachinery.resources import CRDS, Resource
from federation.client.client import Client, Transport
from federation.client.servedversion import find_entry, served_resources

_READ_AGAIN_S = 60.0


class _Stored(NamedTuple):
    """The resource in its stored version, and whether that can say all that the resource's own version can."""

    resource: Resource
    has_all_fields: bool = True


class StoredKinds:
    """The stored versions of one server. It lives as long as its transport, and raises what that raises."""

    def __init__(self, server: Transport, clock: Clock | None = None) -> None:
        self._server = Client(server)
        self._clock = clock or SystemClock()
        self._known: dict[Resource, tuple[float, _Stored]] = {}

    async def stored_in(self, resource: Resource) -> Resource:
        """Return the resource in the version that is stored, if it has a definition that serves both versions."""
        return (await self._find(resource)).resource

    async def applied_in(self, resource: Resource) -> Resource:
        """As `stored_in`, for whole manifests: only if the stored version has all fields of the resource's version."""
        found = await self._find(resource)
        return found.resource if found.has_all_fields else resource

    async def _find(self, resource: Resource) -> _Stored:
        if "." not in resource.group or resource.group == CORE_GROUP:
            return _Stored(resource)
        now_s = self._clock.monotonic()
        until_s, found = self._known.get(resource, (now_s, _Stored(resource)))
        if until_s <= now_s:
            found = await self._read(resource)
            self._known[resource] = now_s + _READ_AGAIN_S, found
        return found

    async def _read(self, resource: Resource) -> _Stored:
        entry = await find_entry(self._server, resource)
        if entry is None or entry.get("storageVersionHash") == _hash_of(resource):
            return _Stored(resource)
        try:
            definition = await self._server.get(CRDS, resource.group_resource)
        except NotFound:
            return _Stored(resource)
        except Forbidden:
            return await self._discover(resource)
        version = version_of_patches(definition)
        if not version or not is_served(definition, resource.version):
            return _Stored(resource)
        stored = resource._replace(version=version)
        return _Stored(stored, has_all_fields(definition, version, resource.version))

    async def _discover(self, resource: Resource) -> _Stored:
        """Find the stored version by its hash; its fields are not known."""
        async for version, entry in served_resources(self._server, resource):
            stored = resource._replace(version=version)
            if entry.get("storageVersionHash") == _hash_of(stored):
                return _Stored(stored, has_all_fields=False)
        return _Stored(resource)


def _hash_of(resource: Resource) -> str:
    """Return what `k8s.io/apiserver` publishes as the hash of a stored version."""
    named = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(named.encode()).digest()[:8]).decode()
