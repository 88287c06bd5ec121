"""Any Kubernetes API server over HTTP(S): raw JSON bytes on aiohttp, one session per server (D5).

The one seam where aiohttp's errors become ours: no answer is a ClusterError, a `Status` is the ApiError that it stands
for. Each call has a deadline, its wait for a free connection included; nothing is retried here (`pool.py` and the loops
above decide that). `watchlines.py` splits watch streams. Sessions are made at the first call; `close` releases them.
"""

import re
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from federation.api.resources import Object, Resource
from federation.base.clock import Clock
from federation.base.errors import ApiError, ClusterError, ClusterForbidden, ServiceUnavailable, from_status
from federation.client.connection import Connection
from federation.client.protocol import ObjectList, Objects, PatchType, WatchBatch
from federation.client.session import HTTPOptions, Session
from federation.client.watchlines import LineSplitter, to_event

__all__ = ["HTTPClient", "HTTPOptions"]

_JSON = "application/json"
_is_plain = re.compile(r"[A-Za-z0-9._:-]*").fullmatch
"""Names that need no encoding in a path: nearly all."""


class HTTPClient:
    """A `Client` for one API server with one identity."""

    def __init__(
        self, connection: Connection, options: HTTPOptions | None = None, *, clock: Clock | None = None
    ) -> None:
        self.connection = connection
        self._options = options or HTTPOptions()
        self._session = Session(connection, self._options, clock)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Return the object; NotFound when there is none."""
        return await self._object("GET", _path(resource, namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return one page of the collection, its items with apiVersion and kind, which servers leave out."""
        query = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            **{"continue": continue_token},
        )
        answer = await self._object("GET", _path(resource, namespace) + query, compressed=True)
        items: list[Object] = answer.get("items") or []
        api_version, kind = resource.api_version, resource.kind
        for item in items:
            item.setdefault("apiVersion", api_version)
            item.setdefault("kind", kind)
        metadata = answer.get("metadata") or {}
        return ObjectList(items, str(metadata.get("resourceVersion", "")), metadata.get("continue") or "")

    async def create(self, resource: Resource, obj: Object, *, field_manager: str = "") -> Object:
        """Create the object in its metadata.namespace and return it as stored."""
        path = _path(resource, obj["metadata"].get("namespace", "")) + _query(fieldManager=field_manager)
        return await self._object("POST", path, orjson.dumps(obj))

    async def update(
        self, resource: Resource, obj: Object, *, subresource: str = "", field_manager: str = ""
    ) -> Object:
        """Replace the object, or its subresource."""
        metadata = obj["metadata"]
        path = _path(resource, metadata.get("namespace", ""), metadata["name"], subresource)
        return await self._object("PUT", path + _query(fieldManager=field_manager), orjson.dumps(obj))

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: bytes | Object | Objects,
        *,
        patch_type: PatchType,
        namespace: str = "",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Patch the object, or its subresource, and return it."""
        path = _path(resource, namespace, name, subresource)
        query = _query(fieldManager=field_manager, force="true" if force else "", dryRun="All" if dry_run else "")
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return await self._object("PATCH", path + query, data, content_type=patch_type.value)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation_policy: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        """Ask for deletion, with preconditions."""
        preconditions = {key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if preconditions:
            body["preconditions"] = preconditions
        if propagation_policy:
            body["propagationPolicy"] = propagation_policy
        if grace_period_s is not None:
            body["gracePeriodSeconds"] = grace_period_s
        path = _path(resource, namespace, name)
        status, answer = await self._session.request("DELETE", path, orjson.dumps(body), content_type=_JSON)
        if status >= 300:
            raise self._error(status, answer)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int = 0,
    ) -> AsyncIterator[WatchBatch]:
        """Yield an empty batch once the server accepted the watch, then changes; Expired when the start is too old.

        Ends when the server ends it, and when it was silent for `watch_idle_timeout_s`: bookmarks should have come.
        """
        query = _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            timeoutSeconds=str(timeout_s) if timeout_s else "",
        )
        splitter = LineSplitter(self._options.watch_line_bytes_max)
        async with self._session.stream(_path(resource, namespace) + query) as stream:
            if stream.status != 200:
                raise self._error(stream.status, await stream.read())
            yield []
            async for chunk in stream.chunks(self._options.watch_idle_timeout_s):
                batch: WatchBatch = []
                failure: ApiError | None = None
                for line in splitter.feed(chunk):
                    event = to_event(line)
                    if isinstance(event, ApiError):
                        failure = event
                        break
                    batch.append(event)
                if batch:
                    yield batch
                if failure is not None:
                    raise failure

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_s: float = 30.0,
    ) -> tuple[int, bytes]:
        """Send any request and return status code and body."""
        if query:
            path += ("&" if "?" in path else "?") + urlencode(query)
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        return await self._session.request(
            method, path, data, content_type=_JSON if data is not None else "", timeout_s=timeout_s
        )

    async def close(self) -> None:
        """Release connections; calls after it fail."""
        await self._session.close()

    async def _object(
        self, method: str, path: str, body: bytes | None = None, *, content_type: str = _JSON, compressed: bool = False
    ) -> Object:
        status, answer = await self._session.request(
            method, path, body, content_type=content_type if body is not None else "", compressed=compressed
        )
        if status >= 300:
            raise self._error(status, answer)
        try:
            found = orjson.loads(answer)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise ClusterError(f"{self.connection.server} answered {status} without a JSON object")
        return found

    def _error(self, status: int, answer: bytes) -> ApiError | ClusterError:
        """Return the error that an answer which is not success stands for."""
        try:
            found = orjson.loads(answer)
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, dict) and found.get("kind") == "Status":
            return from_status(found, status)
        server = self.connection.server
        # A body that is no Status comes from something before the API server; it may hold anything, and is not told.
        if status in {401, 403}:
            return ClusterForbidden(f"{server} rejects our credentials ({status})")
        if status in {502, 503, 504}:
            return ServiceUnavailable(f"{server} answered {status}", code=status)
        if 300 <= status < 400:
            return ClusterError(f"{server} redirects ({status}); give the API server's own address")
        return from_status({}, status)


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    if not _is_plain(namespace) or not _is_plain(name):
        namespace, name = quote(namespace, safe=""), quote(name, safe=":")
    return resource.path(namespace, name, subresource)


@lru_cache(maxsize=512)
def _query(**parameters: str) -> str:
    """Return the query string of what is not empty; most calls of a control plane repeat a few of them."""
    given = {key: value for key, value in parameters.items() if value}
    return "?" + urlencode(given) if given else ""
