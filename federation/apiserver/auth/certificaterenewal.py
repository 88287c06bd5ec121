"""Renewal of the PKI's certificates while the server runs, and their expiry as metrics and as a readiness check.

Certificates are renewed after two thirds of their life; a given serving certificate is only watched. The listener
loads a renewed serving certificate without dropping connections (`http/serving.py`); `on_renewed` writes the
administrator's kubeconfig again. Copies of the kubeconfig made earlier end with the client certificate in them.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from prometheus_client import Gauge

from federation.apimachinery.clock import Clock
from federation.apiserver.auth.pki import PKI, load_certificate
from federation.apiserver.auth.serveridentity import SELF_ISSUED, ServerIdentity

_expiry = Gauge("federation_certificate_expiry_seconds", "Seconds until the certificate expires", ["certificate"])
CHECK_INTERVAL_S = 3600.0


_Version = tuple[int, int, int]


class CertificateRenewal:
    """Renews the certificates of `pki` by calling `ensure`, which blocks and is called in a thread."""

    def __init__(
        self,
        pki: PKI,
        ensure: Callable[[datetime], object],
        on_renewed: Callable[[], None],
        clock: Clock,
        identity: ServerIdentity = SELF_ISSUED,
    ) -> None:
        self._files = identity.certificates(pki)
        self._ensure = ensure
        self._on_renewed = on_renewed
        self._clock = clock
        self._seen = self._fingerprints()
        self._serving: tuple[_Version, datetime] | None = None
        self._measure()

    async def run(self) -> None:
        """Renew what is due every `CHECK_INTERVAL_S`, until cancelled."""
        while True:
            await self.renew()
            await self._clock.sleep(CHECK_INTERVAL_S)

    async def renew(self) -> None:
        """Renew what is due; ConfigurationError when a file cannot be read or written."""
        await asyncio.to_thread(self._ensure, self._clock.now())
        if (found := self._fingerprints()) != self._seen:
            self._seen = found
            self._on_renewed()
        self._measure()

    async def check(self) -> str:
        """Return "", or the reason why clients cannot trust this server: a readiness check."""
        expired_at = self._serving_expiry()
        if expired_at > self._clock.now():
            return ""
        return f"the serving certificate {self._files['serving']} expired at {expired_at:%Y-%m-%dT%H:%M:%SZ}"

    def _serving_expiry(self) -> datetime:
        """Return when the serving certificate ends. Probes come every few seconds, so only a new file is parsed."""
        path = self._files["serving"]
        version = _version(path)
        if self._serving is None or self._serving[0] != version:
            self._serving = version, load_certificate(path).not_valid_after_utc
        return self._serving[1]

    def _fingerprints(self) -> list[bytes]:
        return [load_certificate(path).fingerprint(SHA256()) for path in self._files.values()]

    def _measure(self) -> None:
        for name, path in self._files.items():
            left = load_certificate(path).not_valid_after_utc - self._clock.now()
            _expiry.labels(name).set(left.total_seconds())


def _version(path: Path) -> _Version:
    """Return what changes when the file is replaced; zeros for a file that cannot be read, which is always parsed."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size
