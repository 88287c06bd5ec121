"""Patches of existing objects go through the version that their server stores.

A server that converts by name alone reads an object in the version of the request, without the fields that this version
lacks, applies the patch, and stores the result: a patch of one finalizer removes what a user wrote in a newer version.
So each patch of ours is sent in the stored version, where an object has all its fields, and the answer is read again in
the version that the caller knows. Webhooks convert without loss, and their kinds are left alone, as `stored_in` says.
A patch names its fields, so it is the same in both; nothing of ours replaces whole objects of users.

Decision: docs/decisions/0210-patches-go-through-the-stored-version.md
"""

from collections.abc import Awaitable, Callable

import orjson

from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Request, Transport, Watch

StoredIn = Callable[[Resource], Awaitable[Resource]]
"""Returns the resource in the version through which a patch removes nothing."""
_VERBS = frozenset(("patch", "apply", "update"))
_OF_OBJECT = frozenset(("", "status"))
"""Subresources whose answer is the object."""


class StoredVersionTransport:
    """A `Transport` to a server whose objects users write. It lives as long as the inner one.

    `applied_in` decides about applied manifests, by default as `stored_in` does.
    """

    def __init__(self, inner: Transport, stored_in: StoredIn, applied_in: StoredIn | None = None) -> None:
        self._inner = inner
        self._stored_in = stored_in
        self._applied_in = applied_in or stored_in

    async def request(self, request: Request) -> Object:
        """Send the request, a patch in the stored version."""
        if request.verb not in _VERBS or request.dry_run:
            return await self._inner.request(request)
        stored = await (self._applied_in if request.verb == "apply" else self._stored_in)(request.resource)
        if stored.version == request.resource.version:
            return await self._inner.request(request)
        body = _in_version(request.body, request.resource, stored)
        written = await self._inner.request(request._replace(resource=stored, body=body))
        if request.subresource not in _OF_OBJECT:
            return written
        try:
            return await self._inner.request(Request("get", request.resource, request.namespace, request.name))
        except NotFound:  # the last finalizer was removed
            return {**written, "apiVersion": request.resource.api_version}

    def stream(self, request: Request) -> Watch:
        """Watch in the version of the request."""
        return self._inner.stream(request)

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        """Send any request as it is."""
        return await self._inner.raw(method, path, body, timeout_s, accept)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()


def _in_version(body: bytes, named: Resource, stored: Resource) -> bytes:
    """Return the body with the stored version as its apiVersion, if it has one."""
    if b'"apiVersion"' not in body:
        return body
    content = orjson.loads(body)
    if isinstance(content, dict) and content.get("apiVersion") == named.api_version:
        return orjson.dumps({**content, "apiVersion": stored.api_version})
    return body
