"""A server that runs for longer than its certificates are valid keeps serving."""

import asyncio
import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.metrics import sample_of

from federation.apimachinery.clock import ManualClock
from federation.apiserver.auth.certificaterenewal import CertificateRenewal
from federation.apiserver.auth.pki import PKI, ensure_pki, load_certificate
from federation.apiserver.http.serving import ServingOptions, serve

START = datetime(2026, 1, 1, tzinfo=UTC)


def a_renewal(folder: Path, clock: ManualClock) -> tuple[PKI, CertificateRenewal, list[str]]:
    def ensure(now: datetime) -> PKI:
        return ensure_pki(folder, now=now)

    renewed: list[str] = []
    pki = ensure(clock.now())
    return pki, CertificateRenewal(pki, ensure, lambda: renewed.append("kubeconfig"), clock), renewed


def expiry_s(name: str) -> float:
    return sample_of("federation_certificate_expiry_seconds", {"certificate": name}) or 0.0


async def test_certificates_never_expire_while_the_server_runs(tmp_path: Path) -> None:
    clock = ManualClock(START)
    pki, renewal, renewed = a_renewal(tmp_path, clock)
    for _ in range(40):
        await clock.advance(timedelta(days=100).total_seconds())
        await renewal.renew()
        assert await renewal.check() == ""
        for name, path in (("serving", pki.serving.certificate), ("admin", pki.admin_certificate)):
            assert load_certificate(path).not_valid_after_utc > clock.now() + timedelta(days=20)
            assert expiry_s(name) > timedelta(days=20).total_seconds()
        assert expiry_s("ca") > timedelta(days=1000).total_seconds()
    assert renewed


async def test_nothing_is_written_before_two_thirds_of_the_life(tmp_path: Path) -> None:
    clock = ManualClock(START)
    pki, renewal, renewed = a_renewal(tmp_path, clock)
    before = pki.serving.certificate.read_bytes()
    await clock.advance(timedelta(days=240).total_seconds())
    await renewal.renew()
    assert pki.serving.certificate.read_bytes() == before
    assert renewed == []


async def test_readiness_fails_when_the_serving_certificate_has_expired(tmp_path: Path) -> None:
    clock = ManualClock(START)
    _, renewal, _ = a_renewal(tmp_path, clock)
    await clock.advance(timedelta(days=366).total_seconds())
    assert "expired at 2027-01-01" in await renewal.check()
    await renewal.renew()
    assert await renewal.check() == ""


async def _respond(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def test_the_listener_presents_the_renewed_certificate_and_keeps_connections(tmp_path: Path) -> None:
    clock = ManualClock(datetime.now(UTC) - timedelta(days=250))
    pki, renewal, _ = a_renewal(tmp_path, clock)
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(
        serve(
            _respond,
            host="127.0.0.1",
            port=0,
            tls=pki.serving,
            on_started=lambda _, port: started.set_result(port),
            options=ServingOptions(tls_reload_s=0.01),
        )
    )
    port = await started
    context = ssl.create_default_context(cafile=str(pki.ca_certificate))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    await clock.advance(timedelta(days=250).total_seconds())
    await renewal.renew()
    renewed = load_certificate(pki.serving.certificate).serial_number
    async with asyncio.timeout(60):
        while await _serial(port, context) != renewed:
            pass
    writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    server.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await server


async def _serial(port: int, context: ssl.SSLContext) -> int:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    certificate = writer.get_extra_info("peercert")
    writer.close()
    return int(certificate["serialNumber"], 16)
