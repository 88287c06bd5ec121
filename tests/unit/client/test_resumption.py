"""TLS sessions over real sockets: which connections resume one, counted by the server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ClusterUnreachable
from federation.apiserver.auth.pki import PKI
from federation.client.http import HTTPClient

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(pki: PKI, resumed: list[bool], port: int = 0) -> AsyncIterator[int]:
    """Serve with tickets of its own; `resumed` gets True for each connection that resumes a session."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        resumed.append(bool(writer.get_extra_info("ssl_object").session_reused))
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(_ANSWER)
                await writer.drain()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki.ca_certificate))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(pki.serving.certificate, pki.serving.key)
    server = await asyncio.start_server(handle, "127.0.0.1", port, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def ask(connection: Connection) -> None:
    """Send a request on a connection of its own."""
    client = HTTPClient(connection)
    try:
        assert await client.raw("GET", "/readyz") == (200, b"ok")
    finally:
        await client.close()


async def test_the_second_connection_to_a_server_resumes_the_session(pki: PKI) -> None:
    resumed: list[bool] = []
    ca = pki.ca_certificate.read_bytes()
    async with serving(pki, resumed) as port:
        connection = Connection(f"https://127.0.0.1:{port}", ca_data=ca, token="one")
        await ask(connection)
        # Another member behind the same port: it has the same CA, and a client of its own.
        await ask(Connection(f"https://127.0.0.1:{port}/other", ca_data=ca, token="two"))
        assert resumed == [False, True]
        other = Connection(f"https://localhost:{port}", ca_data=ca, token="one")
        await ask(other)
        assert resumed == [False, True, False], "a session is for the name that was verified"


async def test_a_client_certificate_is_shown_in_every_handshake(pki: PKI) -> None:
    resumed: list[bool] = []
    certificate, key = pki.admin_certificate.read_bytes(), pki.admin_key.read_bytes()
    async with serving(pki, resumed) as port:
        connection = Connection(
            f"https://127.0.0.1:{port}",
            ca_data=pki.ca_certificate.read_bytes(),
            client_cert_data=certificate,
            client_key_data=key,
        )
        await ask(connection)
        await ask(connection)
    assert resumed == [False, False]


async def test_a_server_that_does_not_know_the_session_is_verified_again(pki: PKI) -> None:
    before: list[bool] = []
    after: list[bool] = []
    ca = pki.ca_certificate.read_bytes()
    async with serving(pki, before) as port:
        connection = Connection(f"https://127.0.0.1:{port}", ca_data=ca, token="one")
        await ask(connection)
    async with serving(pki, after, port):
        await ask(connection)
        await ask(connection)
    assert (before, after) == ([False], [False, True])


async def test_a_session_is_discarded_by_a_connection_that_fails(pki: PKI) -> None:
    resumed: list[bool] = []
    async with serving(pki, resumed) as port:
        connection = Connection(f"https://127.0.0.1:{port}", ca_data=pki.ca_certificate.read_bytes(), token="one")
        await ask(connection)
        closed = Connection("https://127.0.0.1:1", ca_data=connection.ca_data, token="one")
        with pytest.raises(ClusterUnreachable):
            await ask(closed)
        await ask(connection)
    assert resumed == [False, False]


def test_connections_with_equal_certificates_share_a_context(pki: PKI) -> None:
    ca = pki.ca_certificate.read_bytes()
    one, two = (Connection(f"https://m{number}", ca_data=ca, token="t") for number in (1, 2))
    assert one.to_tls() is two.to_tls()
    insecure = Connection("https://m1", ca_data=ca, insecure=True)
    assert insecure.to_tls() is not one.to_tls()
