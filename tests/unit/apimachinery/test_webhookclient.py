"""Webhook calls over real sockets: trust, deadlines, bounds."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from federation.apimachinery.connection import Connection
from federation.apimachinery.publicaddresses import parse_networks
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions, WebhookResponse
from federation.apiserver.auth.pki import PKI, ensure_pki

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
REDIRECT = b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture
async def calls() -> AsyncIterator[WebhookClient]:
    webhook_client = WebhookClient(WebhookClientOptions(response_bytes_max=10))
    yield webhook_client
    await webhook_client.close()


@asynccontextmanager
async def a_server(
    answer: bytes, context: ssl.SSLContext | None = None, received: asyncio.Future[bytes] | None = None
) -> AsyncIterator[str]:
    """Serve one fixed answer, b"" for silence; yields `host:port`. `received` gets the first request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            if received is not None:
                received.set_result(request)
            if not answer:
                await reader.read()
            writer.write(answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def pki(tmp_path: Path) -> PKI:
    return ensure_pki(tmp_path / "pki", now=datetime.now(UTC), names=["plugin.example"])


async def test_the_configured_name_and_authority_are_verified(calls: WebhookClient, pki: PKI) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki.serving.certificate, pki.serving.key)
    ca = pki.ca_certificate.read_bytes()
    async with a_server(OK, context) as address:
        url = f"https://{address}/filter"
        named = Connection(url, ca_data=ca, tls_server_name="plugin.example")
        assert await calls.post(named, b"", {}, timeout_s=60) == WebhookResponse(200, b"ok")
        for wrong in (
            Connection(url, ca_data=ca, tls_server_name="other.example"),
            Connection(url, tls_server_name="plugin.example"),
            Connection(url, ca_data=b"no certificate"),
        ):
            answer = await calls.post(wrong, b"", {}, timeout_s=60)
            assert answer.status == 0
            assert answer.error
        assert (await calls.post(Connection(url, insecure=True), b"", {}, timeout_s=60)).status == 200


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"", "no answer within 0.05 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + b"x" * 11, "the answer is larger than 10 bytes"),
    ],
)
async def test_timeouts_and_oversized_responses_are_failures(
    calls: WebhookClient, answer: bytes, expected: str
) -> None:
    is_timeout = "within" in expected
    async with a_server(answer) as address:
        response = await calls.post(Connection(f"http://{address}/"), b"", {}, timeout_s=0.05 if is_timeout else 60)
    assert response == WebhookResponse(0, error=expected, is_timeout=is_timeout)


async def test_redirects_are_not_followed(calls: WebhookClient) -> None:
    async with a_server(REDIRECT) as address:
        assert (await calls.post(Connection(f"http://{address}/"), b"", {}, timeout_s=60)).status == 307


async def test_a_refused_connection_is_reported_in_plain_words(calls: WebhookClient) -> None:
    answer = await calls.post(Connection("http://127.0.0.1:1/"), b"", {}, timeout_s=60)
    assert answer == WebhookResponse(0, error="cannot connect to 127.0.0.1:1: Connection refused")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://[/", "ftp://x/"])
async def test_an_unusable_url_is_reported(calls: WebhookClient, url: str) -> None:
    answer = await calls.post(Connection(url), b"", {}, timeout_s=60)
    assert answer.status == 0
    assert answer.error


@pytest.mark.parametrize(
    ("rest", "requested"),
    [
        ("", "/"),
        ("/", "/"),
        ("/a/../b?x=1#part", "/a/../b?x=1"),
        ("?to=/a", "/?to=/a"),
        ("#/part", "/"),
        ("?a=b#/c", "/?a=b"),
    ],
)
async def test_path_and_query_are_sent_as_they_are_without_the_fragment(
    calls: WebhookClient, rest: str, requested: str
) -> None:
    received = asyncio.get_running_loop().create_future()
    async with a_server(OK, received=received) as address:
        answer = await calls.get(Connection(f"http://{address}{rest}"), {}, timeout_s=60)
    assert (answer.status, answer.error) == (200, "")
    assert (await received).split(b" ")[1].decode() == requested


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_client_for_addresses_of_users_does_not_connect_to_the_local_machine(host: str) -> None:
    """The address that is connected to counts, not the text of the URL."""
    client = WebhookClient(WebhookClientOptions(is_public_only=True))
    async with a_server(OK) as address:
        response = await client.get(Connection(f"http://{host}:{address.rpartition(':')[2]}/"), {}, timeout_s=60)
    await client.close()
    assert response.status == 0
    assert "not allowed" in response.error


async def test_a_client_for_addresses_of_users_reaches_listed_networks_and_says_so() -> None:
    networks = parse_networks(["127.0.0.0/8"])
    client = WebhookClient(WebhookClientOptions(is_public_only=True, allowed_networks=networks))
    async with a_server(OK) as address:
        response = await client.get(Connection(f"http://{address}/"), {}, timeout_s=60)
        refused = await client.get(Connection("http://127.0.0.1:1/"), {}, timeout_s=60)
    await client.close()
    assert (response.status, response.is_listed) == (200, True)
    assert (refused.status, refused.is_listed) == (0, True)


async def test_calls_that_time_out_give_their_connections_back() -> None:
    client = WebhookClient(WebhookClientOptions(calls_per_host_max=2))
    released = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            await released.wait()
            writer.write(OK)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    connection = Connection(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    async with server:
        calls = (client.get(connection, {}, timeout_s=0.1) for _ in range(6))
        assert [each.is_timeout for each in await asyncio.gather(*calls)] == [True] * 6
        released.set()
        assert (await client.get(connection, {}, timeout_s=60)).body == b"ok"
        await client.close()


async def test_connections_to_many_servers_are_closed_again() -> None:
    client = WebhookClient(WebhookClientOptions(servers_max=2))
    async with AsyncExitStack() as stack:
        addresses = [await stack.enter_async_context(a_server(OK)) for _ in range(4)]
        for address in (*addresses, *addresses):
            assert (await client.get(Connection(f"http://{address}/"), {}, timeout_s=60)).body == b"ok"
        await client.close()


async def test_no_cookie_of_one_call_travels_with_the_next() -> None:
    heads: list[bytes] = []
    client = WebhookClient()
    async with a_recorder(heads) as address:
        for _ in range(2):
            assert (await client.get(Connection(f"http://{address}/x%2Fy/../z?a=%20b"), {}, timeout_s=60)).status == 200
        await client.close()
    assert all(head.startswith(b"GET /x%2Fy/../z?a=%20b HTTP/1.1\r\n") for head in heads)
    assert not any(b"cookie" in head.lower() for head in heads)


async def test_a_compressed_answer_is_refused_before_it_grows() -> None:
    client = WebhookClient()
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
    async with a_server(answer) as address:
        response = await client.get(Connection(f"http://{address}/"), {}, timeout_s=60)
        await client.close()
    assert response == WebhookResponse(0, error="the answer is compressed, which was not asked for")


@asynccontextmanager
async def a_recorder(heads: list[bytes]) -> AsyncIterator[str]:
    """Answer with a cookie and record what was asked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=b; Path=/\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
