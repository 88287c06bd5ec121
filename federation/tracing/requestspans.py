"""Spans of the requests that write objects, as ASGI middleware around the API server.

The response names the object, and so the trace of its delivery: the span belongs there. A caller that sends a
`traceparent` gets the span in its own trace, with a link to that of the delivery.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.paths import ResourcePath, parse
from federation.apiserver.http.asgi import WHOLE_RESPONSE, ASGIApp, Header, Receive, Scope, Send
from federation.tracing.tracer import Times, Tracer

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HEADERS = (b"traceparent", b"tracestate")


class _Response:
    """The app's answer; the first part of the body is enough for objects."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status = 0
        self.headers: Sequence[Header] = ()
        self.body = b""
        self._send = send
        extensions = dict(scope.get("extensions") or {})
        if (whole := extensions.get(WHOLE_RESPONSE)) is not None:
            extensions[WHOLE_RESPONSE] = self._seen(whole)
        self.scope: Scope = {**scope, "extensions": extensions}

    def _seen(self, whole: Callable[[int, Sequence[Header], bytes], bool]) -> Callable[..., bool]:
        def send_whole(status: int, headers: Sequence[Header], body: bytes) -> bool:
            self.status, self.headers, self.body = status, headers, body
            return whole(status, headers, body)

        return send_whole

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message["headers"]
        elif not self.body:
            self.body = message.get("body", b"")
        await self._send(message)

    def written(self) -> tuple[str, int] | None:
        """Return uid and generation of the object in the response, None for another response."""
        if (
            not 200 <= self.status < 300
            or not self.body.startswith(b"{")
            or (b"content-encoding", b"gzip") in self.headers
        ):
            return None
        try:
            metadata = orjson.loads(self.body)["metadata"]
            return str(metadata["uid"]), int(metadata.get("generation", 0))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            return None


def traced(app: ASGIApp, tracer: Tracer, clock: Clock) -> ASGIApp:
    """Return the app with a span for each request that writes a resource."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        path = parse(scope["path"]) if scope["type"] == "http" and scope["method"] in _WRITES else None
        if path is None:
            await app(scope, receive, send)
            return
        start, response = clock.now(), _Response(scope, send)
        try:
            await app(response.scope, receive, response.send)
        finally:
            _record(tracer, scope, path, response, Times(start, clock.now()))

    return serve


def _record(tracer: Tracer, scope: Scope, path: ResourcePath, response: _Response, times: Times) -> None:
    found = response.written()
    delivery = tracer.delivery(*found) if found is not None else None
    headers = {key.decode(): value.decode("latin-1") for key, value in scope["headers"] if key in _HEADERS}
    client = tracer.client(headers) if headers else None
    tracer.record(
        f"{scope['method']} {path.plural}",
        times,
        client or delivery,
        {
            "http.request.method": scope["method"],
            "url.path": scope["path"],
            "http.response.status_code": response.status,
            "k8s.namespace.name": path.namespace,
        },
        links=[delivery] if client is not None and delivery is not None else (),
        is_request=True,
        error=f"status {response.status}" if response.status >= 500 else "",
    )
