"""`fedctl certs`: which certificates expire when: that of the server, those in a kubeconfig, and those in DIR/pki.

The server's certificate is read from the connection, so that the one in use is shown, wherever its file is. The command
fails when a certificate has expired or does so soon, for use in scripts.
"""

import asyncio
import ssl
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from cryptography import x509

from federation.apimachinery.clock import SystemClock, to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.pki import names_of
from federation.client.kubeconfig import load_kubeconfig
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import to_age
from federation.terminal.printing import print_rows

_CONNECT_S = 10.0
_HEADINGS = "CERTIFICATE, EXPIRES, IN, STATE, FROM"


def certs_command(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", parser=flags.to_directory, help="Also the files of this state directory."),
    ] = None,
    within_days: Annotated[
        int, typer.Option("--within-days", metavar="DAYS", min=0, help="Fail if one expires within this time.")
    ] = 14,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List certificates and when they expire.

    Shows the certificate that the server presents, and the CA and client certificate in the kubeconfig. Exit code 1
    when one of them has expired or expires soon.

    A control plane renews what it issued, in DIR. Copies of its kubeconfig have to be copied again.
    """
    if directory is not None and kubeconfig is None:
        kubeconfig = directory / "kubeconfig"
    path = KubeconfigContext(kubeconfig, context).path
    execute(show(path, context, directory, timedelta(days=within_days), output))


@dataclass(frozen=True, slots=True)
class Found:
    """A certificate, and where it is."""

    name: str
    source: str
    certificate: x509.Certificate


async def show(kubeconfig: Path, context: str, directory: Path | None, within: timedelta, output: str) -> int:
    """Print the certificates; return 1 if one of them has expired or expires `within` this time, else 0."""
    connection = load_kubeconfig(kubeconfig, context)
    found = [Found("serving", connection.server, await asyncio.to_thread(_presented, connection))]
    for name, data in (("serving CA", connection.ca_data), ("client", connection.client_cert_data)):
        found += _in_pem(name, str(kubeconfig), data)
    if directory is not None:
        found += _in_files(directory)
    now = SystemClock().now()
    states = [state_of(each.certificate.not_valid_after_utc, now, within) for each in found]
    items = [to_item(each, state) for each, state in zip(found, states, strict=True)]
    print_rows(items, output, "", _rows(found, states, now), _HEADINGS, "NAMES")
    return 0 if set(states) <= {"ok"} else 1


def state_of(expires: datetime, now: datetime, within: timedelta) -> str:
    """Return ok, "expires soon" (in at most `within`) or expired."""
    if expires <= now:
        return "expired"
    return "expires soon" if expires - now <= within else "ok"


def to_item(found: Found, state: str) -> dict[str, object]:
    """Return what the JSON output tells about a certificate."""
    certificate = found.certificate
    return {
        "name": found.name,
        "from": found.source,
        "state": state,
        "notBefore": to_rfc3339(certificate.not_valid_before_utc),
        "notAfter": to_rfc3339(certificate.not_valid_after_utc),
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "names": names_of(certificate),
    }


def _rows(found: Sequence[Found], states: Iterable[str], now: datetime) -> Iterator[list[str]]:
    for each, state in zip(found, states, strict=True):
        expires = each.certificate.not_valid_after_utc
        left = to_age(expires, now) if expires > now else "-"
        names = ", ".join(names_of(each.certificate)) or each.certificate.subject.rfc4514_string()
        yield [each.name, to_rfc3339(expires), left, state, each.source, names]


def _presented(connection: Connection) -> x509.Certificate:
    """Return the certificate of the server without verifying it; it blocks."""
    parts = urlsplit(connection.server)
    if parts.scheme != "https" or parts.hostname is None:
        raise ConfigurationError(f"{connection.server} is not an https:// address, so that it has no certificate")
    try:
        text = ssl.get_server_certificate((parts.hostname, parts.port or 443), timeout=_CONNECT_S)
    except OSError as error:
        detail = error.strerror or str(error)
        raise ConfigurationError(f"{connection.server} does not answer ({detail}); start the control plane") from error
    return x509.load_pem_x509_certificate(text.encode())


def _in_files(directory: Path) -> list[Found]:
    folder = directory.expanduser().absolute() / "pki"
    files = sorted(folder.rglob("*.crt"))
    if not files:
        raise ConfigurationError(f"--dir {directory}: there are no certificates in {folder}; name another directory")
    return [
        found
        for file in files
        for found in _in_pem(str(file.relative_to(folder.parent).with_suffix("")), str(file), file.read_bytes())
    ]


def _in_pem(name: str, source: str, data: bytes) -> list[Found]:
    """Return the certificates of a text, none of an empty one."""
    try:
        return [Found(name, source, each) for each in x509.load_pem_x509_certificates(data)] if data else []
    except ValueError as error:
        raise ConfigurationError(f"{source}: {name} is not a PEM certificate; restore it from a backup") from error
