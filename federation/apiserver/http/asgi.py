"""One HTTP request and its response on raw ASGI: headers, query, body with a limit, compression.

A `Request` lives for one request and carries what several modules need (user, warnings), so that nothing is parsed
twice. `parameters.py` interprets query parameters.
"""

import asyncio
import gzip
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Protocol
from urllib.parse import parse_qsl

import orjson
import yaml

from federation.apimachinery.errors import ApiError, BadRequest, FederationError, RequestEntityTooLarge
from federation.apimachinery.textcache import cache_short
from federation.apimachinery.usedtime import in_thread
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import ANONYMOUS, User
from federation.apiserver.http.connectionshares import SEAT, Seat

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON_TYPE = b"application/json"
GZIP_BYTES_MIN = 128 * 1024
"""Smaller bodies are not compressed, as in kube-apiserver: compression costs more than it saves."""
_GZIP_IN_THREAD_BYTES_MIN = 1024 * 1024
_NO_EXTENSIONS: Mapping[str, Any] = {}
_NO_CACHE: Header = (b"cache-control", b"no-cache, private")
SLICE_BYTES = 64 * 1024
"""Larger bodies are sent in slices: other requests run in between, and slow clients do not fill the write buffer."""
_TURN_BYTES = 8 * SLICE_BYTES
"""Messages that are sent before other requests run."""
_AUDIT_ID_LENGTH_MAX = 64
_WARNINGS_MAX = 100
"""Warning headers of one response; a request can cause one for every field."""
WHOLE_RESPONSE = "federation.whole_response"
"""An ASGI extension: `(status, headers, body) -> bool` sends a complete response in one write, which halves the cost of
a small one. False means that nothing was sent and the caller must use `send` (HEAD, or a client that reads slowly)."""

ABORT = "federation.abort"
"""An ASGI extension: `() -> None` breaks the connection, as a network failure would."""


class Trail(Protocol):
    """The audit trail of one request; `audit/trail.py` is the implementation."""

    failure: ApiError | None
    has_panicked: bool

    async def received(self) -> None:
        """Record that the user is known; ServiceUnavailable when the log is blocking and cannot be written."""
        ...

    def close(self) -> None:
        """Record how the request ended."""
        ...


class Disconnected(FederationError):
    """The client closed the connection before its request was complete."""


class Request:
    """One request. Authentication sets `user`, and `respond` sets `status`."""

    __slots__ = (
        "_audit_id", "_query", "audit_annotations", "flow_headers", "headers", "method", "path", "receive", "scope",
        "send", "status", "trail", "user", "warnings",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        path: str = scope["path"]
        # A path that cannot be encoded as UTF-8 would fail in every response that quotes it.
        self.path = path if path.isascii() else path.encode("utf-8", "replace").decode()
        # The last of repeated headers wins. Of the headers read here only Impersonate-* may be repeated, and
        # impersonation reads them from the scope.
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self._query: Mapping[str, str] | None = None
        self._audit_id = ""
        self.user: User = ANONYMOUS
        self.warnings: list[str] = []
        self.audit_annotations: dict[str, str] = {}
        """Annotations of the audit event, from authorization and admission."""
        self.flow_headers: Sequence[Header] = ()
        """Response headers that name the FlowSchema and the priority level of the request."""
        self.status = 0
        self.trail: Trail | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters, read-only; the first of a repeated name wins."""
        if self._query is None:
            self._query = parse_query(self.scope["query_string"])
        return self._query

    def replace_query(self, raw: bytes) -> None:
        """Go on with another query string."""
        self.scope["query_string"], self._query = raw, None

    @property
    def audit_id(self) -> str:
        """The id in the response's Audit-Id header, which the client may choose."""
        if not self._audit_id:
            given = self.header(b"audit-id")
            # An unprintable one could corrupt the audit log.
            is_usable = 0 < len(given) <= _AUDIT_ID_LENGTH_MAX and given.isascii() and given.isprintable()
            self._audit_id = given if is_usable else str(uuid.uuid4())
        return self._audit_id

    @property
    def common_headers(self) -> Sequence[Header]:
        """Response headers that identify the request and its priority level."""
        return ((b"audit-id", self.audit_id.encode()), *self.flow_headers)

    @property
    def peer(self) -> Peer | None:
        """The subject of the verified client certificate."""
        state = self.scope.get("state")
        return state.get("peer") if state else None

    def recognize(self) -> None:
        """Count the connection against the user, who has been authenticated."""
        if (seat := self._seat()) is not None:
            seat.recognize(self.user)

    def _seat(self) -> Seat | None:
        state = self.scope.get("state")
        return state.get(SEAT) if state else None

    def header(self, name: bytes) -> str:
        """Return a header's text, "" when it is missing."""
        return self.headers.get(name, b"").decode("latin-1")

    async def body(self, bytes_max: int) -> bytes:
        """Return the whole body; RequestEntityTooLarge beyond `bytes_max`, Disconnected when the client disconnects."""
        declared = self.headers.get(b"content-length", b"")
        # Refuse by the declared length before reading anything.
        if declared and (not declared.isdigit() or int(declared) > bytes_max):
            raise too_large(bytes_max)
        message = await self.receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            # Appending to bytes would copy the body with every piece; a bytearray grows in place.
            gathered = bytearray(body)
            while message.get("more_body") and len(gathered) <= bytes_max:
                message = await self.receive()
                gathered += message.get("body", b"")
            body = bytes(gathered)
        if len(body) > bytes_max:
            raise too_large(bytes_max)
        if message["type"] == "http.disconnect":
            raise Disconnected
        return body

    async def respond(
        self,
        status: int,
        body: bytes,
        *,
        content_type: bytes = JSON_TYPE,
        headers: Sequence[Header] = (),
        cache: Header = _NO_CACHE,
    ) -> None:
        """Send one complete response with warnings, compressed when it is large and the client accepts gzip."""
        self.status = status
        out: list[Header] = [(b"content-type", content_type), cache, *self.common_headers, *headers]
        if len(body) > GZIP_BYTES_MIN and b"gzip" in self.headers.get(b"accept-encoding", b""):
            if len(body) > _GZIP_IN_THREAD_BYTES_MIN:
                body = await in_thread(partial(gzip.compress, body, 1))
            else:
                body = gzip.compress(body, 1)
            out += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        out.append((b"content-length", b"%d" % len(body)))
        out.extend((b"warning", _to_warning(text)) for text in islice(dict.fromkeys(self.warnings), _WARNINGS_MAX))
        if len(body) > SLICE_BYTES:
            await self.send_counted(body, {"type": "http.response.start", "status": status, "headers": out})
            return
        send_whole = self.scope.get("extensions", _NO_EXTENSIONS).get(WHOLE_RESPONSE)
        if send_whole is None or not send_whole(status, out, body):
            await self.send({"type": "http.response.start", "status": status, "headers": out})
            await self.send({"type": "http.response.body", "body": body})

    async def send_counted(self, body: bytes, start: MutableMapping[str, Any] | None = None) -> None:
        """Send a whole body after its start, or a piece of a body that has begun, in slices.

        It counts against the user until the client has taken it, and the client may be disconnected for it.
        """
        # Our own pages make requests within the process: what they answer is not the response of the connection.
        seat = self._seat() if "extensions" in self.scope else None
        if seat is not None and not seat.owe(len(body)):
            await self._wait_gone()
            return
        try:
            if start is not None:
                await self.send(start)
            await self.send_slices(body, has_more=start is None)
        finally:
            if seat is not None:
                seat.owe(-len(body))

    async def send_slices(self, body: bytes, *, has_more: bool) -> None:
        """Send a piece of a body, waiting for the client: the connection holds no copy of it."""
        view = memoryview(body)
        for begin in range(0, len(view), SLICE_BYTES):
            end = begin + SLICE_BYTES
            await self.send(
                {"type": "http.response.body", "body": view[begin:end], "more_body": has_more or end < len(view)}
            )
            if end % _TURN_BYTES == 0:
                await asyncio.sleep(0)

    async def _wait_gone(self) -> None:
        """Return when the server knows that the connection has been closed; it would log a missing response."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def respond_json(
        self, status: int, value: Any, *, content_type: bytes = JSON_TYPE, headers: Sequence[Header] = ()
    ) -> None:
        """Send a value as JSON, indented with the query parameter `pretty`, or as YAML when that was negotiated."""
        await self.respond(
            status,
            serialize(value, content_type, is_pretty=is_asked(self.query, "pretty")),
            content_type=content_type,
            headers=headers,
        )

    async def respond_error(self, error: ApiError) -> None:
        """Send an error as a Status, with Retry-After when its details hold it."""
        headers: list[Header] = []
        if (after := error.details.get("retryAfterSeconds")) is not None:
            headers.append((b"retry-after", b"%d" % int(after)))
        if error.code == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.respond(error.code, orjson.dumps(error.to_status()), headers=headers)


def serialize(value: Any, content_type: bytes, *, is_pretty: bool = False) -> bytes:
    """Return a value in the negotiated format."""
    if b"yaml" in content_type:
        text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        return text.encode()
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n" if is_pretty else orjson.dumps(value)


def is_asked(query: Mapping[str, str], name: str) -> bool:
    """Return whether a boolean query parameter is there and true: as in Kubernetes, all values are but 0 and false."""
    return name in query and query[name].lower() not in {"0", "false"}


def too_large(bytes_max: int) -> RequestEntityTooLarge:
    """Return the 413 of a body beyond the limit."""
    return RequestEntityTooLarge(f"Request entity too large: limit is {bytes_max}")


@cache_short(1024)
def parse_query(raw: bytes) -> Mapping[str, str]:
    """Return the parameters of a query string; the first of a repeated name wins. BadRequest when malformed."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=256, errors="strict")
    except (ValueError, UnicodeDecodeError) as error:
        raise BadRequest(f"invalid query string: {error}") from error
    query: dict[str, str] = {}
    for name, value in pairs:
        query.setdefault(name, value)
    return query


def _to_warning(text: str) -> bytes:
    """Return the value of a Warning header (RFC 7234): code 299, no agent, quoted text without control characters."""
    cleaned = "".join(c if c >= " " and c != "\x7f" else " " for c in text[:1024])
    quoted = cleaned.replace("\\", "\\\\").replace('"', '\\"')
    return b'299 - "' + quoted.encode("utf-8") + b'"'
