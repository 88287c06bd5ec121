"""A hostile member tries to exhaust the host's memory, or to make it log and retry without pause."""

import asyncio
import gzip
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
import structlog
from tests.support.hostile.gzipbomb import a_gzip_bomb
from tests.support.metrics import sample_of

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ApiError, ClusterError, ClusterLimitExceeded
from federation.apimachinery.resources import CONFIGMAPS
from federation.client.client import Client, Request, Watch, WatchBatch, WatchEvent, WatchEventType
from federation.client.http import HTTPClient
from federation.client.session import HTTPOptions
from federation.runtime.admittance import CacheBudget
from federation.runtime.informer import Informer, InformerOptions

Answer = Callable[[str], bytes]
MIB = 1024 * 1024


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[HTTPClient]]]:
    """Start a server that writes `answer(path)` and return a client of it."""
    servers: list[asyncio.Server] = []
    clients: list[HTTPClient] = []

    async def start(answer: Answer, **options: Any) -> HTTPClient:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    writer.write(answer(head.split(" ")[1]))
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        servers.append(server)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        clients.append(HTTPClient(Connection(server=address), HTTPOptions(**options)))
        return clients[-1]

    yield start
    for client in clients:
        await client.close()
    for server in servers:
        server.close()


def answered(body: bytes, encoding: str = "") -> bytes:
    encoding = f"Content-Encoding: {encoding}\r\n" if encoding else ""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{encoding}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def chunked(size: int) -> bytes:
    part = b"x" * 65536
    chunks = (b"%x\r\n%s\r\n" % (len(part), part)) * (size // len(part))
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def rss_bytes_max() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


async def test_a_gzip_bomb_is_stopped_while_it_is_decompressed(serve: Any) -> None:
    payload = a_gzip_bomb(600)
    assert len(payload) < MIB
    client = await serve(lambda path: answered(payload, "gzip"))
    before = rss_bytes_max()
    with pytest.raises(ClusterLimitExceeded, match="response_bytes_max"):
        await client.list(CONFIGMAPS)
    assert rss_bytes_max() - before < 200 * MIB


@pytest.mark.parametrize("answer", [answered(b"x" * 3 * MIB), chunked(3 * MIB)], ids=["length", "chunked"])
async def test_an_answer_above_the_limit_is_not_read(serve: Any, answer: bytes) -> None:
    client = await serve(lambda path: answer, response_bytes_max=MIB)
    with pytest.raises(ClusterLimitExceeded):
        await client.list(CONFIGMAPS)
    with pytest.raises(ClusterLimitExceeded):
        await client.raw("GET", "/healthz")


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_an_answer_of_many_tiny_values_is_not_parsed(serve: Any, encoding: str) -> None:
    body = b'{"metadata":{"resourceVersion":"1"},"items":[' + b"{}," * 100_000 + b"{}]}"
    assert len(body) < MIB
    answer = answered(gzip.compress(body, mtime=0) if encoding else body, encoding)
    client = await serve(lambda path: answer, response_bytes_max=MIB)
    with pytest.raises(ClusterLimitExceeded, match="32768 values"):
        await client.list(CONFIGMAPS)
    with pytest.raises(ClusterLimitExceeded, match="32768 values"):
        await client.get(CONFIGMAPS, "default", "c1")


async def test_a_page_of_many_texts_with_commas_is_requested_again_with_fewer_objects(serve: Any) -> None:
    def answer(path: str) -> bytes:
        count = int(path.rpartition("limit=")[2].partition("&")[0])
        items = [a_configmap(number) | {"data": {"csv": "1," * 10_000}} for number in range(count)]
        return answered(orjson.dumps({"metadata": {"resourceVersion": "1"}, "items": items}))

    client = await serve(answer, response_bytes_max=MIB)
    with pytest.raises(ClusterLimitExceeded, match="32768 values"):
        await client.list(CONFIGMAPS, limit=8)
    assert len((await client.list(CONFIGMAPS, limit=2)).items) == 2


async def test_a_watch_event_of_many_tiny_values_is_not_parsed(serve: Any) -> None:
    line = b'{"type":"ADDED","object":{"a":[' + b"{}," * 100_000 + b"{}]}}\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    client = await serve(lambda path: head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line), watch_line_bytes_max=MIB)
    with pytest.raises(ClusterLimitExceeded, match="32768 values"):
        async for _ in client.watch(CONFIGMAPS, resource_version="1"):
            pass


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(b"no gzip", "gzip"), (gzip.compress(b"{}" * 99, mtime=0)[:-9], "gzip"), (b"{}", "br")],
    ids=["not gzip", "gzip cut short", "unknown encoding"],
)
async def test_a_broken_encoding_is_a_cluster_error(serve: Any, body: bytes, encoding: str) -> None:
    client = await serve(lambda path: answered(body, encoding))
    with pytest.raises(ClusterError, match=r"gzip"):
        await client.list(CONFIGMAPS)


@pytest.mark.parametrize(
    "document",
    [{"items": "x"}, {"items": {"a": 1}}, {"metadata": "x"}, {"metadata": {"continue": 7}}, {"metadata": []}],
)
async def test_an_answer_that_is_no_list_is_a_cluster_error(serve: Any, document: object) -> None:
    client = await serve(lambda path: answered(orjson.dumps(document)))
    with pytest.raises(ClusterError, match="list request"):
        await client.list(CONFIGMAPS)


@pytest.mark.parametrize("cluster", ["hostile", ""], ids=["member", "host"])
async def test_an_object_that_is_nested_too_deeply_does_not_hide_the_others(serve: Any, cluster: str) -> None:
    deep = b'{"metadata":{"name":"deep","resourceVersion":"5"},"spec":{"a":%s1%s}}' % (b"[" * 1100, b"]" * 1100)
    first, second = (orjson.dumps(a_configmap(number)) for number in (1, 2))
    page = b'{"metadata":{"resourceVersion":"9"},"items":[%s,%s]}' % (deep, first)
    lines = b"".join(b'{"type":"ADDED","object":%s}\n' % obj for obj in (deep, second))
    watch = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(lines), lines)
    client = await serve(lambda path: watch if "watch=true" in path else answered(page))
    informer = Informer(client, CONFIGMAPS, cluster=cluster)
    found = asyncio.Event()
    informer.add_handler(lambda _old, new: found.set() if new and new["metadata"]["name"] == "c2" else None)
    running = asyncio.ensure_future(informer.run())
    await found.wait()
    running.cancel()
    assert sorted(obj["metadata"]["name"] for obj in informer.list()) == ["c1", "c2"]


async def test_a_large_page_is_requested_again_with_fewer_objects(serve: Any) -> None:
    def answer(path: str) -> bytes:
        query = parse_qs(urlsplit(path).query)
        if "watch" in query:
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        items = [a_configmap(number, size=300_000) for number in range(start, min(start + limit, 20))]
        token = str(start + limit) if start + limit < 20 else ""
        return answered(orjson.dumps({"metadata": {"resourceVersion": "9", "continue": token}, "items": items}))

    informer = Informer(await serve(answer, response_bytes_max=MIB), CONFIGMAPS)
    running = asyncio.ensure_future(informer.run())
    await asyncio.wait_for(informer.wait_synced(), 60)
    running.cancel()
    assert len(informer) == 20


def a_configmap(number: int, size: int = 0, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"c{number}", "namespace": "default", "resourceVersion": str(number + 1)} | metadata,
        "data": {"text": "x" * size},
    }


class Hostile:
    """A transport whose lists and watches come from two functions."""

    def __init__(self, page: Callable[[int], dict[str, Any]], events: WatchBatch | None = None) -> None:
        self.page = page
        self.events = events
        self.lists = 0

    async def request(self, request: Request) -> dict[str, Any]:
        assert request.verb == "list"
        self.lists += 1
        return self.page(self.lists)

    async def stream(self, request: Request) -> Watch:
        yield []
        if self.events:
            yield self.events
        await asyncio.get_running_loop().create_future()

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        raise AssertionError(path)

    async def close(self) -> None:
        pass


def an_informer(hostile: Hostile, clock: ManualClock, bytes_max: int = MIB, **options: int) -> Informer:
    return Informer(
        Client(hostile),
        CONFIGMAPS,
        cluster="hostile",
        clock=clock,
        options=InformerOptions(backoff_s_min=1.0, **options),
        budget=CacheBudget("hostile", bytes_max),
        jitter=lambda: 1.0,
    )


def counted(name: str) -> float:
    return sample_of(name, {"cluster": "hostile", "resource": "configmaps"}) or 0.0


async def run_for(informer: Informer, clock: ManualClock, seconds: float) -> None:
    """Run the informer for this much virtual time; fail when it raises."""
    running = asyncio.ensure_future(informer.run())
    for _ in range(round(seconds * 4)):
        await asyncio.sleep(0)
        await clock.advance(0.25)
    assert not running.done(), running.exception()
    running.cancel()


async def test_continue_tokens_without_end_are_refused_with_backoff() -> None:
    clock = ManualClock()
    hostile = Hostile(lambda number: {"metadata": {"resourceVersion": "1", "continue": f"t{number}"}, "items": []})
    informer = an_informer(hostile, clock, list_pages_max=10)
    before = counted("federation_runtime_informer_limits_total")
    await run_for(informer, clock, 20)
    assert "list_pages_max" in informer.limit_exceeded
    assert not informer.has_synced
    failed = counted("federation_runtime_informer_limits_total") - before
    assert 3 <= failed <= 6, "pauses double: 1, 2, 4, 8 s"
    assert hostile.lists == 10 * failed


async def test_objects_above_the_limit_are_refused_in_lists_and_watches() -> None:
    clock = ManualClock()
    items = [a_configmap(number) for number in range(30)]
    informer = an_informer(Hostile(lambda _: {"items": items}), clock, list_objects_max=20)
    await run_for(informer, clock, 2)
    assert "list_objects_max" in informer.limit_exceeded
    events = [WatchEvent(WatchEventType.ADDED, item) for item in items]
    informer = an_informer(Hostile(lambda _: {"items": []}, events), clock, list_objects_max=20)
    await run_for(informer, clock, 0.25)
    assert "list_objects_max" in informer.limit_exceeded
    assert len(informer) == 20


async def test_the_memory_of_all_caches_of_a_member_is_limited() -> None:
    clock = ManualClock()
    items = [a_configmap(number, size=100_000) for number in range(30)]
    informer = an_informer(Hostile(lambda _: {"items": items}), clock, bytes_max=MIB)
    await run_for(informer, clock, 2)
    assert "member_cache_bytes_max" in informer.limit_exceeded
    assert len(informer) == 10
    informer.release()
    assert sample_of("federation_runtime_member_cache_bytes", {"cluster": "hostile"}) == 0


async def test_a_list_within_the_limits_clears_the_condition() -> None:
    clock = ManualClock()
    sizes = iter([30, 30])
    hostile = Hostile(lambda _: {"items": [a_configmap(number) for number in range(next(sizes, 5))]})
    informer = an_informer(hostile, clock, list_objects_max=20)
    await run_for(informer, clock, 8)
    assert informer.limit_exceeded == ""
    assert len(informer) == 5


MALFORMED: list[Any] = [
    None,
    7,
    "text",
    [],
    {},
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"name": "x"}},
    {"metadata": {"name": 3, "resourceVersion": "1"}},
    {"metadata": {"name": "x", "resourceVersion": 1}},
    {"metadata": {"name": "x", "resourceVersion": "9" * 10_000}},
    a_configmap(0, labels=["a"]),
    a_configmap(0, labels={"a": 1}),
    a_configmap(0, annotations="a"),
    a_configmap(0, ownerReferences=["a"]),
    a_configmap(0, finalizers="a"),
    a_configmap(0, namespace={}),
    {**a_configmap(0), "status": "x"},
    {**a_configmap(0), "spec": [1]},
]


async def test_malformed_items_cost_one_log_line_per_list_and_keep_the_rest() -> None:
    clock = ManualClock()
    events = [WatchEvent(type_, item) for item in MALFORMED for type_ in WatchEventType]
    events.append(WatchEvent(WatchEventType.ADDED, a_configmap(50)))
    page = {"metadata": {"resourceVersion": "40"}, "items": [*MALFORMED, a_configmap(1)]}
    informer = an_informer(Hostile(lambda _: page, events), clock)
    before = counted("federation_runtime_informer_malformed_total")
    with structlog.testing.capture_logs() as logs:
        await run_for(informer, clock, 20)
    assert informer.has_synced
    assert sorted(obj["metadata"]["name"] for obj in informer.list()) == ["c1", "c50"]
    assert counted("federation_runtime_informer_malformed_total") - before >= 4 * len(MALFORMED)
    assert [line["event"] for line in logs] == ["malformed items are ignored"]


async def test_a_broken_handler_is_logged_once_per_list() -> None:
    clock = ManualClock()
    page = {"metadata": {"resourceVersion": "40"}, "items": [a_configmap(number) for number in range(100)]}
    informer = an_informer(Hostile(lambda _: page), clock)
    informer.add_handler(lambda old, new: new["spec"] if new else None)
    with structlog.testing.capture_logs() as logs:
        await run_for(informer, clock, 2)
    assert [line["event"] for line in logs] == ["handler failed"]


@pytest.mark.real_time
async def test_watch_events_without_sense_are_retried_with_the_normal_backoff(serve: Any) -> None:
    began_s: list[float] = []
    has_five = asyncio.Event()

    def answer(path: str) -> bytes:
        if "watch=true" not in path:
            return answered(orjson.dumps({"metadata": {"resourceVersion": "9"}, "items": []}))
        began_s.append(time.monotonic())
        if len(began_s) == 5:
            has_five.set()
        line = b'{"type":"ERROR","object":{"code":"x"}}\n'
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(line), line)

    options = InformerOptions(backoff_s_min=0.05)
    informer = Informer(await serve(answer), CONFIGMAPS, options=options, jitter=lambda: 1.0)
    running = asyncio.ensure_future(informer.run())
    await has_five.wait()
    assert not running.done()
    running.cancel()
    assert began_s[4] - began_s[0] >= 0.74, "pauses double: 0.05, 0.1, 0.2, 0.4 s"


async def test_a_list_with_malformed_items_deletes_nothing() -> None:
    clock = ManualClock()
    pages = iter([[a_configmap(1), a_configmap(2)], [None, a_configmap(1)]])
    informer = an_informer(Hostile(lambda _: {"metadata": {"resourceVersion": "9"}, "items": next(pages)}), clock)
    await run_for(informer, clock, 2)
    informer.invalidate()
    await run_for(informer, clock, 2)
    assert sorted(obj["metadata"]["name"] for obj in informer.list()) == ["c1", "c2"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_credentials_go_nowhere_else(serve: Any, status: int) -> None:
    seen: list[str] = []

    def elsewhere(path: str) -> bytes:
        seen.append(path)
        return answered(orjson.dumps({"metadata": {"resourceVersion": "1"}, "items": []}))

    target = (await serve(elsewhere)).transport._server
    head = f"HTTP/1.1 {status} Moved\r\nLocation: {target}/latest/meta-data\r\nContent-Length: 0\r\n\r\n".encode()
    client = await serve(lambda path: head)
    with pytest.raises(ClusterError, match="redirects"):
        await client.list(CONFIGMAPS)
    with pytest.raises(ClusterError, match="redirects"):
        await anext(client.watch(CONFIGMAPS, resource_version="1"))
    assert (await client.raw("GET", "/healthz"))[0] == status
    assert seen == []


async def test_the_texts_of_an_error_are_cut(serve: Any) -> None:
    status = {"kind": "Status", "reason": "x" * 1_000_000, "message": "m" * 8_000_000}
    body = orjson.dumps(status)
    head = f"HTTP/1.1 422 Invalid\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    client = await serve(lambda path: head + body)
    with pytest.raises(ApiError) as caught:
        await client.get(CONFIGMAPS, "c", "default")
    assert len(caught.value.message) < 10_000
    assert len(caught.value.reason) < 1_000
