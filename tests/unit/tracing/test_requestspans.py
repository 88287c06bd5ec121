"""Spans of requests, as a collector receives them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from tests.support.otlp import Collector, collector

from federation.apimachinery.clock import SystemClock
from federation.apiserver.http.asgi import WHOLE_RESPONSE, Receive, Scope, Send
from federation.tracing.traces import Traces

PATH = "/apis/apps/v1/namespaces/default/deployments/web"
CLIENT = "0af7651916cd43dd8448eb211c80319c"
OBJECT = orjson.dumps({"metadata": {"name": "web", "uid": "u-1", "generation": 3}})
OTHER_GENERATION = orjson.dumps({"metadata": {"name": "web", "uid": "u-1", "generation": 4}})


@pytest.fixture
def received() -> Iterator[Collector]:
    with collector() as running:
        yield running


@asynccontextmanager
async def opened(received: Collector) -> AsyncIterator[Traces]:
    """Yield traces; their spans are with the collector after the block."""
    traces = Traces(received.url, SystemClock(), "1.0")
    try:
        yield traces
    finally:
        await traces.close()


async def call(
    traces: Traces, body: bytes, *, method: str = "PATCH", path: str = PATH, status: int = 200, client: str = ""
) -> list[Any]:
    """Send a request to an app that answers with `body`, and return what the client gets."""
    sent: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"traceparent", client.encode())] if client else []
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    await traces.wrap(app)(scope, None, send)  # type: ignore[arg-type]  # the app receives nothing
    return sent


async def test_a_write_belongs_to_the_trace_of_what_it_wrote(received: Collector) -> None:
    async with opened(received) as traces:
        sent = await call(traces, OBJECT)
        await call(traces, OBJECT)
        await call(traces, OTHER_GENERATION)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    first, second, third = received.spans
    assert (first.name, first.service) == ("PATCH deployments", "federation")
    assert first.attributes == {
        "http.request.method": "PATCH",
        "http.response.status_code": 200,
        "k8s.namespace.name": "default",
        "url.path": PATH,
    }
    assert first.trace == second.trace != third.trace
    assert first.parent == second.parent != first.id
    assert first.start_ns <= first.end_ns


async def test_the_callers_trace_goes_on_and_refers_to_the_delivery(received: Collector) -> None:
    async with opened(received) as traces:
        await call(traces, OBJECT)
        await call(traces, OBJECT, client=f"00-{CLIENT}-b7ad6b7169203331-01")
        await call(traces, OBJECT, client=f"00-{CLIENT}-b7ad6b7169203331-00")
        await call(traces, OBJECT, client="nonsense")
    delivery, called, ignored = received.spans
    assert (called.trace, called.parent, called.links) == (CLIENT, "b7ad6b7169203331", [delivery.trace])
    assert ignored.trace == delivery.trace


async def test_a_response_in_one_write_is_read_too(received: Collector) -> None:
    written: list[bytes] = []

    def whole(status: int, headers: Any, body: bytes) -> bool:
        written.append(body)
        return True

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["extensions"][WHOLE_RESPONSE](201, [], OBJECT)

    async with opened(received) as traces:
        await call(traces, OBJECT)
        scope = {"type": "http", "method": "POST", "path": PATH, "headers": [], "extensions": {WHOLE_RESPONSE: whole}}
        await traces.wrap(app)(scope, None, None)  # type: ignore[arg-type]  # the app needs neither
    assert written == [OBJECT]
    assert received.spans[0].trace == received.spans[1].trace
    assert received.spans[1].attributes["http.response.status_code"] == 201


@pytest.mark.parametrize(("status", "is_error"), [(404, False), (503, True)])
async def test_a_failed_write_has_a_trace_of_its_own(received: Collector, status: int, is_error: bool) -> None:
    async with opened(received) as traces:
        await call(traces, orjson.dumps({"kind": "Status", "metadata": {}}), status=status)
    (span,) = received.spans
    assert (span.parent, span.is_error) == ("", is_error)


async def test_reads_and_other_paths_have_no_spans(received: Collector) -> None:
    async with opened(received) as traces:
        await call(traces, OBJECT, method="GET")
        await call(traces, b"ok", method="POST", path="/healthz")
        await call(traces, OBJECT)
    assert [span.name for span in received.spans] == ["PATCH deployments"]
