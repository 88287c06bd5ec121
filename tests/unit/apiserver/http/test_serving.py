"""The listener: TLS, client certificates in the scope, limits of a request's head, and graceful shutdown."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from structlog.testing import capture_logs

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.clientcertificates import Peer, to_peer
from federation.apiserver.auth.pki import PKI, Authority, TLSFiles, ensure_pki
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.serving import ServingOptions, serve


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the peer in the scope."""
    peer = scope["state"]["peer"]
    body = orjson.dumps({"peer": peer and list(peer), "scheme": scope["scheme"]})
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def large(scope: Any, receive: Any, send: Any) -> None:
    """Respond through `Request` with the number of bytes in the path."""
    await Request(scope, receive, send).respond(200, b"x" * int(scope["path"][1:]))


@pytest.fixture
def pki(tmp_path: Path) -> PKI:
    return ensure_pki(tmp_path / "pki", now=datetime.now(UTC))


@asynccontextmanager
async def serving(
    tls: TLSFiles | None, app: Any = echo, **arguments: Any
) -> AsyncIterator[tuple[int, "asyncio.Task[None]"]]:
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(app, host="127.0.0.1", port=0, tls=tls, on_started=lambda _, port: started.set_result(port), **arguments)
    )
    try:
        await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield await started, task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def client(pki: PKI, *, has_certificate: bool) -> httpx.AsyncClient:
    context = ssl.create_default_context(cafile=str(pki.ca_certificate))
    if has_certificate:
        context.load_cert_chain(pki.admin_certificate, pki.admin_key)
    return httpx.AsyncClient(verify=context)


async def test_the_client_certificate_is_in_the_scope(pki: PKI) -> None:
    async with serving(pki.serving) as (port, _), client(pki, has_certificate=True) as http:
        for _ in range(2):
            answer = await http.get(f"https://127.0.0.1:{port}/")
            certificate = x509.load_pem_x509_certificate(pki.admin_certificate.read_bytes())
            fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
            peer = ["federation-admin", ["system:masters"], fingerprint, certificate.not_valid_after_utc.timestamp()]
            assert answer.json() == {"peer": peer, "scheme": "https"}


async def test_a_client_without_certificate_has_no_peer(pki: PKI) -> None:
    async with serving(pki.serving) as (port, _), client(pki, has_certificate=False) as http:
        assert (await http.get(f"https://localhost:{port}/")).json()["peer"] is None


async def test_a_certificate_of_another_ca_is_refused(pki: PKI, tmp_path: Path) -> None:
    stranger = ensure_pki(tmp_path / "stranger", now=datetime.now(UTC))
    context = ssl.create_default_context(cafile=str(pki.ca_certificate))
    context.load_cert_chain(stranger.admin_certificate, stranger.admin_key)
    async with serving(pki.serving) as (port, _), httpx.AsyncClient(verify=context) as http:
        with pytest.raises(httpx.TransportError):
            await http.get(f"https://127.0.0.1:{port}/")


async def test_a_port_in_use_is_a_configuration_error(pki: PKI) -> None:
    async with serving(pki.serving) as (port, _):
        with pytest.raises(ConfigurationError, match=rf"cannot listen on 127\.0\.0\.1:{port}: Address already in use"):
            await serve(echo, host="127.0.0.1", port=port, tls=None)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70000), ("203.0.113.1", 0)])
async def test_an_invalid_address_is_a_configuration_error(host: str, port: int) -> None:
    with pytest.raises(ConfigurationError, match="cannot listen on"):
        await serve(echo, host=host, port=port, tls=None)


async def test_missing_tls_files_are_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot use TLS files"):
        await serve(echo, host="127.0.0.1", port=0, tls=TLSFiles(tmp_path / "a", tmp_path / "b"))


async def _raw(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b""
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"x" * 300_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"h%d: %s\r\n" % (i, b"v" * 1000) for i in range(300)) + b"\r\n",
        b"nonsense\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: a\r\n\r\n",
        b"\x16\x03\x01\x00\xa5",
    ],
    ids=["long-url", "many-headers", "nonsense", "bytes-in-url", "tls-on-plain"],
)
async def test_a_bad_head_is_refused_and_closed(data: bytes) -> None:
    async with serving(None) as (port, _):
        answer = await _raw(port, data)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


async def test_a_client_that_never_completes_its_head_is_disconnected() -> None:
    async with serving(None, options=ServingOptions(request_head_s=0.05)) as (port, _):
        assert await _raw(port, b"GET / HTTP/1.1\r\nhost") == b""
        assert await _raw(port, b"") == b""


@pytest.mark.parametrize("size", [0, 5, 100_000, 2_000_000])
async def test_a_response_has_its_declared_length(size: int) -> None:
    async with serving(None, large) as (port, _):
        head, _, body = (await _raw(port, b"GET /%d HTTP/1.1\r\nconnection: close\r\n\r\n" % size)).partition(
            b"\r\n\r\n"
        )
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"content-length: %d\r\n" % size in head + b"\r\n"
        assert head.count(b"connection: close") == 1
        assert body == b"x" * size


async def test_a_head_request_gets_the_length_and_no_body() -> None:
    async with serving(None, large) as (port, _):
        answer = await _raw(port, b"HEAD /5 HTTP/1.1\r\nconnection: close\r\n\r\n")
        assert b"content-length: 5\r\n" in answer
        assert answer.endswith(b"\r\n\r\n")


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving(None, large) as (port, _):
        both = b"GET /3 HTTP/1.1\r\n\r\nGET /4 HTTP/1.1\r\nconnection: close\r\n\r\n"
        _, _, rest = (await _raw(port, both)).partition(b"\r\n\r\n")
        first, _, second = rest.partition(b"HTTP/1.1 200 OK")
        assert first == b"xxx"
        assert second.endswith(b"\r\n\r\nxxxx")


async def test_a_head_in_several_pieces_is_answered() -> None:
    async with serving(None, large) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for piece in (b"GET /3 HT", b"TP/1.1\r\nconnec", b"tion: close\r\n", b"\r\n"):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        assert (await reader.read()).endswith(b"\r\n\r\nxxx")
        writer.close()


async def test_an_idle_connection_is_closed_after_the_keep_alive_time() -> None:
    async with serving(None, large, options=ServingOptions(keep_alive_s=1)) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /3 HTTP/1.1\r\n\r\n")
        answered = (await reader.readuntil(b"xxx")).endswith(b"xxx")
        assert answered
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()


async def test_a_header_with_a_line_break_is_never_sent() -> None:
    async def split(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive, send).respond(200, b"x", headers=[(b"a", b"b\r\nc: d")])

    async with serving(None, split) as (port, _):
        assert b"c: d" not in await _raw(port, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")


async def test_cancelling_stops_the_server_and_ends_requests_in_flight() -> None:
    stopped: list[bool] = []
    options, arrived = ServingOptions(graceful_stop_s=0), asyncio.Event()
    on_stopping: Callable[[], None] = lambda: stopped.append(True)  # noqa: E731

    async def never(_scope: Any, _receive: Any, _send: Any) -> None:
        arrived.set()
        await asyncio.Event().wait()

    async with serving(None, never, options=options, on_stopping=on_stopping) as (port, task):
        waiting = asyncio.create_task(_raw(port, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"))
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.wait_for(arrived.wait(), 60)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert stopped == [True]
        await waiting
        writer.close()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1)


def _client(pki: PKI) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(pki.ca_certificate))


async def _negotiated(port: int, context: ssl.SSLContext) -> tuple[str, str]:
    """Return the protocol and the cipher of a connection."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    cipher, protocol, _ = writer.get_extra_info("cipher")
    writer.close()
    return protocol, cipher


async def test_connections_have_forward_secrecy_and_authenticated_encryption(pki: PKI) -> None:
    async with serving(pki.serving) as (port, _):
        assert (await _negotiated(port, _client(pki)))[0] == "TLSv1.3"
        older = _client(pki)
        older.maximum_version = ssl.TLSVersion.TLSv1_2
        protocol, cipher = await _negotiated(port, older)
        assert protocol == "TLSv1.2"
        assert cipher.startswith("ECDHE-")
        assert "GCM" in cipher or "CHACHA20" in cipher
        for ciphers in ("ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384"):
            older.set_ciphers(ciphers)
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await _negotiated(port, older)


async def test_tls_1_1_is_refused(pki: PKI) -> None:
    oldest = _client(pki)
    oldest.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        oldest.minimum_version = oldest.maximum_version = ssl.TLSVersion.TLSv1_1
    async with serving(pki.serving) as (port, _):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await _negotiated(port, oldest)


async def test_a_replaced_certificate_is_used_for_new_connections(pki: PKI, tmp_path: Path) -> None:
    async with serving(pki.serving, options=ServingOptions(tls_reload_s=0.02)) as (port, _):
        async with client(pki, has_certificate=False) as http:
            with pytest.raises(httpx.ConnectError):
                await http.get(f"https://127.0.0.1:{port}/", extensions={"sni_hostname": "new.example"})
        ensure_pki(tmp_path / "pki", now=datetime.now(UTC), names=["new.example"])
        async with asyncio.timeout(60):
            while True:
                try:
                    async with client(pki, has_certificate=False) as http:
                        await http.get(f"https://127.0.0.1:{port}/", extensions={"sni_hostname": "new.example"})
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.02)


async def test_a_certificate_that_is_replaced_by_a_symbolic_link_is_used(pki: PKI, tmp_path: Path) -> None:
    """Kubernetes replaces the files of a Secret's volume by changing a link to their folder."""
    for name, host in (("one", "one.example"), ("two", "two.example")):
        (tmp_path / name).mkdir()
        Authority.ensure(tmp_path / "pki", now=datetime.now(UTC), common_name="").issue_server(
            tmp_path / name / "tls.crt", tmp_path / name / "tls.key", names=[host], now=datetime.now(UTC)
        )
    link = tmp_path / "data"
    link.symlink_to("one")
    files = TLSFiles(link / "tls.crt", link / "tls.key")

    async def names(port: int) -> set[str]:
        context = _client(pki)
        context.check_hostname = False
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        found = {value for _, value in writer.get_extra_info("peercert")["subjectAltName"]}
        writer.close()
        return found

    async with serving(files, options=ServingOptions(tls_reload_s=0.02)) as (port, _):
        assert await names(port) == {"one.example"}
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").replace(link)
        async with asyncio.timeout(60):
            while await names(port) != {"two.example"}:
                pass


async def test_a_certificate_that_cannot_be_used_leaves_the_previous_one_in_use(pki: PKI) -> None:
    async with serving(pki.serving, options=ServingOptions(tls_reload_s=0.01)) as (port, _):
        with capture_logs() as logs:
            pki.serving.certificate.write_text("nonsense")
            async with asyncio.timeout(60):
                while not logs:
                    assert (await _negotiated(port, _client(pki)))[0] == "TLSv1.3"
        assert logs[0]["event"] == "the previous certificate stays in use"
        assert str(pki.serving.certificate) in logs[0]["reason"]


def test_a_subject_without_common_name_is_no_peer() -> None:
    assert to_peer(None) is None
    assert to_peer({"subject": ((("organizationName", "a"),),)}) is None
    certificate = {"subject": ((("organizationName", "a"),), (("organizationName", "b"), ("commonName", "u")))}
    assert to_peer(certificate) == Peer("u", ("a", "b"))
    expiring = {**certificate, "notAfter": "Jan  1 00:01:00 1970 GMT"}
    assert to_peer(expiring) == Peer("u", ("a", "b"), expires_s=60.0)
