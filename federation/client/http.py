"""A transport to any Kubernetes API server over HTTP(S); JSON in and out.

`encoding.py` makes paths, queries and bodies. `session.py` owns the sockets and translates their errors;
`watchdecoder.py` decodes watch streams. A `Status` answer is raised as the ApiError that it stands for. Each call has a
deadline; no answer is retried here, but `wire.py` sends a GET, PUT or DELETE once more when the server closed a kept
connection before it answered. So a write must bear to happen twice: by its resourceVersion, or because it says the same
again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.apimachinery.deepjson import is_encodable, parse_cut
from federation.apimachinery.errors import ApiError, ClusterError, ClusterForbidden, ServiceUnavailable, from_status
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.objectshape import REVISION_LENGTH_MAX, is_storable
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.webhookclient import StreamedResponse
from federation.client.client import Client, Request, Watch, WatchBatch
from federation.client.delegate import Delegate, Headers
from federation.client.dialing import Dial
from federation.client.encoding import encode
from federation.client.listdocument import Text, split_list
from federation.client.session import HTTPOptions, Session
from federation.client.streams import MemberSocket
from federation.client.watchdecoder import LineSplitter, to_event

_JSON = "application/json"
_MERGED_REVISION_LENGTH_MAX = 65_536
"""Of a list that the host merges from 1,000 members."""


class HTTPTransport:
    """One API server, one identity."""

    def __init__(
        self,
        connection: Connection,
        options: HTTPOptions | None = None,
        *,
        clock: Clock | None = None,
        dial: Dial | None = None,
    ) -> None:
        self._server = connection.server
        self._options = options or HTTPOptions()
        self._session = Session(connection, self._options, clock, dial)

    def on_connected(self, listener: Callable[[], Awaitable[None]]) -> None:
        """Await the listener after each new connection, before a request is sent on it; it may raise."""
        self._session.on_connected = listener

    @property
    def clock_skew_s(self) -> float | None:
        """How far the server's clock is ahead of ours; None before its first response."""
        return self._session.clock_skew_s

    async def request(self, request: Request) -> Object:
        """Send the request and return the parsed answer; list items get apiVersion and kind, which servers omit."""
        verb = request.verb
        method, path, query, body = encode(request)
        status, answer = await self._session.request(
            method,
            path + query,
            body,
            content_type=request.content_type if body is not None else "",
            compressed=verb == "list",
            # Permission to act as any author would be permission to act as an administrator.
            impersonate=_reviewer(request),
        )
        if status >= 300:
            raise self._error(status, answer)
        if verb == "delete":
            return {}
        found = self._parse_list(answer, request.resource) if verb == "list" else parse_object(answer)
        if found is None:
            raise ClusterError(f"{self._server} answered {status} without a JSON object")
        # Nothing is stored in a dry run, so its answer has no resourceVersion.
        if request.name and not request.subresource and not request.dry_run and not is_storable(found):
            raise ClusterError(f"{self._server} answered {status} without the object {request.name}")
        return found

    async def stream(self, request: Request) -> Watch:
        """Yield an empty batch when the server accepts the watch, then changes; Expired when the start is too old.

        It ends when the server ends it, or after `watch_idle_timeout_s` without a byte: bookmarks should have come.
        """
        splitter, skips = LineSplitter(self._options.watch_line_bytes_max), request.skips
        _, path, query, _ = encode(request)
        async with self._session.stream(path + query) as stream:
            if stream.status != 200:
                raise self._error(stream.status, await stream.read())
            yield []
            async for chunk in stream.chunks(self._options.watch_idle_timeout_s):
                batch: WatchBatch = []
                failure: ApiError | None = None
                lines = splitter.feed(chunk)
                for line in lines:
                    if skips is not None and skips(line):
                        continue
                    event = to_event(line)
                    if isinstance(event, ApiError):
                        failure = event
                        break
                    batch.append(event)
                if lines:
                    yield batch  # An empty one is a sign of life.
                if failure is not None:
                    raise failure

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        """Send any request and return status code and body."""
        content_type = _JSON if body is not None else ""
        return await self._session.request(
            method, path, body, content_type=content_type, timeout_s=timeout_s, accept=accept
        )

    def exchange(
        self, method: str, target: str, headers: Headers, body: AsyncIterator[bytes] | None
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        """As `Delegate.exchange`."""
        return self._session.exchange(method, target, headers, body)

    def websocket(
        self, target: str, headers: Headers, subprotocols: Sequence[str]
    ) -> AbstractAsyncContextManager[MemberSocket]:
        """As `Delegate.websocket`."""
        return self._session.websocket(target, headers, subprotocols)

    async def close(self) -> None:
        """Release connections; later calls fail."""
        await self._session.close()

    def _parse_list(self, answer: bytes, resource: Resource) -> Object | None:
        """Return the list, which can be anything; None for malformed text, ClusterError when the answer is no list."""

        def parse(text: Text) -> Any:
            return _typed(self._parse_item(text), resource)

        found = split_list(answer, parse)
        if found is None:
            found = parse_object(answer) or _parse_deep_list(answer)
            if found is None:
                return None
            if not isinstance(found.get("items"), list | None) or not isinstance(found.get("metadata"), dict | None):
                raise ClusterError(f"{self._server} answered a list request without a list")
            found["items"] = [_typed(item, resource) for item in found.get("items") or ()]
        metadata = found.get("metadata")
        if metadata and not isinstance(metadata.get("continue"), str | None):
            raise ClusterError(f"{self._server} answered a list request with an invalid continue token")
        if metadata and not _is_revision(str(metadata.get("resourceVersion"))):
            raise ClusterError(f"{self._server} answered a list request with an invalid resourceVersion")
        return found

    def _parse_item(self, text: Text) -> Any:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as problem:
            raise ClusterError(f"{self._server} answered a list request with malformed JSON") from problem

    def _error(self, status: int, answer: bytes) -> ApiError | ClusterError:
        """Return the error that an answer without success stands for."""
        found = parse_object(answer)
        if found is not None and found.get("kind") == "Status":
            return from_status(found, status)
        # A body that is no Status comes from a proxy in front of the API server. It may hold anything and is not shown.
        if status in {401, 403}:
            return ClusterForbidden(f"{self._server} rejects our credentials ({status})")
        if status in {502, 503, 504}:
            return ServiceUnavailable(f"{self._server} answered {status}", code=status)
        if 300 <= status < 400:
            return ClusterError(f"{self._server} redirects ({status}); give the API server's own address")
        return from_status({}, status)


class HTTPClient(Client):
    """A client of any API server over HTTP(S)."""

    def __init__(
        self, connection: Connection, options: HTTPOptions | None = None, *, clock: Clock | None = None
    ) -> None:
        self._http = HTTPTransport(connection, options, clock=clock)
        super().__init__(self._http)
        self.connection = connection
        self.delegate: Delegate = self._http

    @property
    def clock_skew_s(self) -> float | None:
        """How far the server's clock is ahead of ours; None before its first response."""
        return self._http.clock_skew_s


def _reviewer(request: Request) -> str:
    """Return the user to impersonate, "" for nobody."""
    name = str((request.user or {}).get("username", ""))
    return name if name in names.REVIEWERS else ""


def _is_revision(text: str) -> bool:
    """Return whether a list may have this revision: a number, or a text that the host makes of those of all members."""
    return len(text) <= (REVISION_LENGTH_MAX if text.isdecimal() else _MERGED_REVISION_LENGTH_MAX)


def _typed(item: Any, resource: Resource) -> Any:
    """Return the item of a list with its type, which servers omit."""
    if isinstance(item, dict):
        item.setdefault("apiVersion", resource.api_version)
        item.setdefault("kind", resource.kind)
    return item


def _parse_deep_list(answer: bytes) -> Object | None:
    """Return a list with None for each item that is nested too deeply; None for anything else."""
    try:
        found = parse_cut(answer)
    except orjson.JSONDecodeError:
        return None
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(items, list):
        return None
    return {**found, "items": [item if is_encodable(item) else None for item in items]}
