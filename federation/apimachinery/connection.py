"""The address of one API server and the identity to use there, without files or sockets.

A `Connection` comes from a kubeconfig (`client/kubeconfig.py`) or a member's Secret (`client/clustersecret.py`), and
`client/http.py` makes a transport of it. The client pool compares connections to notice changed credentials. Secrets
are excluded from `repr`.
"""

import os
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resumption import ResumingContext

_contexts: WeakValueDictionary[tuple[bytes, bytes, bytes, bool], ssl.SSLContext] = WeakValueDictionary()
"""The contexts in use by CA, certificate, key and whether they verify nothing: 1,000 members may have one CA."""


@dataclass(frozen=True, slots=True)
class CredentialPlugin:
    """A kubeconfig user whose credentials come from a program or an identity provider when they are needed."""

    kind: str
    """`exec` or `auth-provider`."""
    kubeconfig: Mapping[str, Any] = field(repr=False)
    context: str = ""
    directory: str = ""


@dataclass(frozen=True, slots=True)
class Connection:
    """One server and one identity. PEM texts as bytes; "" and b"" mean absent."""

    server: str
    ca_data: bytes = field(default=b"", repr=False)
    client_cert_data: bytes = field(default=b"", repr=False)
    client_key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    """Path of the token; read again every minute, because service account tokens are replaced on disk."""
    username: str = ""
    password: str = field(default="", repr=False)
    insecure: bool = False
    """Do not verify the server's certificate."""
    tls_server_name: str = ""
    """Name in the server certificate, if it is not the host of `server`."""
    proxy_url: str = field(default="", repr=False)
    namespace: str = ""
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    plugin: CredentialPlugin | None = None
    tunnel: str = ""
    """The cluster whose agent carries the connection; "" to connect to the server directly."""
    _tls: ssl.SSLContext | None = field(default=None, init=False, repr=False, compare=False)
    """The TLS context once it was made: making one takes milliseconds, and each join needs it several times."""

    def at(self, server: str) -> "Connection":
        """Return the same identity at another address whose server presents the certificate of this one."""
        host = urlsplit(self.server).hostname or ""
        name = self.tls_server_name or ("" if host == urlsplit(server).hostname else host)
        return replace(self, server=server, tls_server_name=name)

    def to_tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, None for plain HTTP; ConfigurationError names the unusable credential.

        All callers share it and must not change it.
        """
        if not self.server.startswith("https://"):
            return None
        if self._tls is None:
            object.__setattr__(self, "_tls", self._find_tls())
        return self._tls

    def _find_tls(self) -> ssl.SSLContext:
        if not self.ca_data:
            return self._make_tls()  # the system's CAs can change
        key = self.ca_data, self.client_cert_data, self.client_key_data, self.insecure
        context = _contexts.get(key)
        if context is None:
            context = _contexts[key] = self._make_tls()
        return context

    def _make_tls(self) -> ssl.SSLContext:
        # A server must see a client certificate each time: it may have expired since the session began.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self.client_cert_data else ResumingContext()
        try:
            if self.ca_data:
                context.load_verify_locations(cadata=self.ca_data.decode("ascii"))
            elif not self.insecure:  # the system's CAs take 70 ms to load
                context.load_default_certs()
        except (ssl.SSLError, UnicodeDecodeError) as problem:
            raise ConfigurationError(
                f"certificate-authority-data for {self.server}: not a PEM certificate ({_text(problem)})"
            ) from problem
        if sys.version_info >= (3, 13):  # as in contexts that Python makes by itself
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        # Go does not require RFC 5280's optional extensions, and the CAs of many clusters lack them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert_data:
            _load_client_certificate(context, self)
        return context


def _load_client_certificate(context: ssl.SSLContext, connection: Connection) -> None:
    with _as_file(connection.client_cert_data + b"\n" + connection.client_key_data) as path:
        try:
            context.load_cert_chain(path, password=_refuse_password)
        except (ssl.SSLError, ValueError) as problem:
            raise ConfigurationError(
                f"client-certificate-data and client-key-data for {connection.server}: not a PEM certificate and its"
                f" unencrypted key ({_text(problem)})"
            ) from problem


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Yield the path of a file with the data: Python loads key pairs from files only.

    It exists during the block and only this user can read it. On Linux it is never on a disk.
    """
    stored: IO[bytes]
    with ExitStack() as stack:
        if sys.platform == "linux" and Path("/proc/self/fd").is_dir():
            stored = stack.enter_context(os.fdopen(os.memfd_create("federation"), "wb"))
            path = f"/proc/self/fd/{stored.fileno()}"
        else:
            stored = stack.enter_context(NamedTemporaryFile(prefix="federation-"))
            path = stored.name
        stored.write(data)
        stored.flush()
        yield path


def _refuse_password() -> str:
    """Replace OpenSSL's password prompt on the terminal, which would block the process."""
    raise ValueError("the key is encrypted")


def _text(problem: Exception) -> str:
    return problem.reason if isinstance(problem, ssl.SSLError) and problem.reason else str(problem)
