"""A resource in another version that its server serves.

A 404 about a resource says that this version of it is not served, not that objects are absent: they may be there in
another version, with the same metadata and uid. Reads and deletions that decide whether an object is gone therefore use
a version that is served.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

from federation.apimachinery.errors import ApiError, NotFound, ServiceUnavailable, from_status, is_kind_missing
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object, Resource

T = TypeVar("T")


class Server(Protocol):
    """A server that can be asked for what it serves, such as a `Client`."""

    async def raw(self, method: str, path: str, /) -> tuple[int, bytes]:
        """Send a request and return status code and body."""
        ...


async def in_served_version(client: Server, resource: Resource, call: Callable[[Resource], Awaitable[T]]) -> T:
    """Return `call(resource)`, or its result for another version if the server does not serve this one.

    NotFound about the resource remains if the server serves no version of it: then it has no objects of it.
    """
    try:
        return await call(resource)
    except NotFound as error:
        if not is_kind_missing(error):
            raise
        other = await find_served_version(client, resource)
        if other is None:
            raise
        return await call(other)


async def find_served_version(client: Server, resource: Resource) -> Resource | None:
    """Return the resource in the version that discovery prefers among the served ones, None without any.

    ApiError or ClusterError if discovery does not answer: then nothing is known.
    """
    async for version, _ in served_resources(client, resource):
        return resource._replace(version=version)
    return None


async def served_resources(client: Server, resource: Resource) -> AsyncIterator[tuple[str, Object]]:
    """Yield the served versions of a resource, the preferred one first, with their entries in discovery.

    ApiError or ClusterError as for `find_served_version`.
    """
    for version in await _versions(client, resource.group):
        if (entry := await find_entry(client, resource._replace(version=version))) is not None:
            yield version, entry


async def find_entry(client: Server, resource: Resource) -> Object | None:
    """Return the entry of a resource in discovery, None if its version is not served; errors as above."""
    group, version = resource.group, resource.version
    listed = await _discover(client, f"/apis/{group}/{version}" if group else f"/api/{version}")
    for entry in (listed or {}).get("resources") or ():
        if (entry.get("name"), entry.get("kind")) == (resource.plural, resource.kind):
            return dict(entry)
    return None


async def _versions(client: Server, group: str) -> list[str]:
    """Return the served versions of a group, the preferred one first."""
    path = "/apis" if group else "/api"
    root = await _discover(client, path)
    if root is None:
        # Every API server has these paths. Whatever answers here is none, so its 404 says nothing about objects.
        raise ServiceUnavailable(f"{path} is not found, so it is not known which kinds are served")
    if not group:
        return [str(version) for version in root.get("versions") or ()]
    found: Object = next((each for each in root.get("groups") or () if each.get("name") == group), {})
    versions = [found.get("preferredVersion") or {}, *(found.get("versions") or ())]
    return list(dict.fromkeys(str(version["version"]) for version in versions if version.get("version")))


async def _discover(client: Server, path: str) -> Object | None:
    """Return a document of discovery, None if there is none."""
    code, body = await client.raw("GET", path)
    document = parse_object(body)
    if code == 404:
        return None
    if code != 200 or document is None:
        raise _failure(document, code, path)
    return document


def _failure(document: Object | None, code: int, path: str) -> ApiError:
    if code == 200:
        return ServiceUnavailable(f"{path} does not answer with a document of discovery")
    return from_status(document or {}, code)
