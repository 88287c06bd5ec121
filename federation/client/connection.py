"""How to reach one API server and who to be there: the facts, without files or sockets.

A `Connection` comes from a kubeconfig (`kubeconfig.py`) or from a member's Secret (`connection_from_secret`, spec
§15.1), and `http.py` makes a client of it. Two equal connections give equivalent clients, which is how the pool notices
that credentials changed. Secrets are kept out of `repr`.
"""

import base64
import binascii
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from federation.api import names
from federation.api.resources import Object
from federation.base.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class CredentialPlugin:
    """Credentials that a program or an identity provider gives out: the kubeconfig's user, to be asked when needed."""

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
    """Read again every minute, as service account tokens are replaced on disk."""
    username: str = ""
    password: str = field(default="", repr=False)
    insecure: bool = False
    """Do not verify the server's certificate."""
    tls_server_name: str = ""
    """The name to verify instead of the host in `server`."""
    proxy_url: str = field(default="", repr=False)
    namespace: str = ""
    impersonate_user: str = ""
    impersonate_groups: tuple[str, ...] = ()
    plugin: CredentialPlugin | None = None

    def at(self, server: str) -> "Connection":
        """Return the same identity at another address, where the server still shows this one's certificate."""
        host = urlsplit(self.server).hostname or ""
        name = self.tls_server_name or ("" if host == urlsplit(server).hostname else host)
        return replace(self, server=server, tls_server_name=name)

    def to_tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, None for plain HTTP; ConfigurationError names what in the credentials is unusable."""
        if not self.server.startswith("https://"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.ca_data.decode("ascii") if self.ca_data else None)
        except (ssl.SSLError, UnicodeDecodeError) as problem:
            raise ConfigurationError(
                f"certificate-authority-data for {self.server}: not a PEM certificate ({_text(problem)})"
            ) from problem
        # Go does not ask for RFC 5280's optional extensions, and many clusters' CAs lack them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert_data:
            _load_client_certificate(context, self)
        return context


def _load_client_certificate(context: ssl.SSLContext, connection: Connection) -> None:
    # Python loads key pairs from files only: they exist, readable by nobody else, for the length of this call.
    with tempfile.TemporaryDirectory(prefix="federation-") as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        for path, data in ((certificate, connection.client_cert_data), (key, connection.client_key_data)):
            path.touch(mode=0o600)
            path.write_bytes(data)
        try:
            context.load_cert_chain(certificate, key, password=_refuse_password)
        except (ssl.SSLError, ValueError) as problem:
            raise ConfigurationError(
                f"client-certificate-data and client-key-data for {connection.server}: not a PEM certificate and its"
                f" unencrypted key ({_text(problem)})"
            ) from problem


def _refuse_password() -> str:
    """Stand in for OpenSSL's question on the terminal, which would stop the process."""
    raise ValueError("the key is encrypted")


def _text(problem: Exception) -> str:
    return problem.reason if isinstance(problem, ssl.SSLError) and problem.reason else str(problem)


def connection_from_secret(cluster: Object, secret: Object, *, bootstrap: bool | None = None) -> Connection:
    """Return how to reach the member of a FederatedCluster with the data of its Secret (spec §15.1).

    `bootstrap` says which credentials: those that the user gave (True) or the service account's token (False); by
    default the token's once a join with `useServiceAccount` was performed. ConfigurationError names the missing key.
    """
    spec = cluster.get("spec") or {}
    server = str(spec.get("apiEndpoint") or "")
    if not server:
        raise ConfigurationError(f"{_title(cluster)}: spec.apiEndpoint: Required value")
    if "://" not in server:
        server = f"https://{server}"
    if bootstrap is None:
        bootstrap = not (spec.get("useServiceAccount") and (cluster.get("status") or {}).get("joinPerformed"))
    insecure = bool(spec.get("insecure"))
    ca = b"" if insecure else _secret_value(secret, names.SECRET_CA)
    if not insecure and not ca:
        raise _missing(secret, names.SECRET_CA, "give it, or set spec.insecure of the FederatedCluster")
    if not bootstrap:
        token = _secret_value(secret, names.SECRET_SERVICE_ACCOUNT_TOKEN)
        if not token:
            raise _missing(secret, names.SECRET_SERVICE_ACCOUNT_TOKEN, "join the cluster again")
        return Connection(server=server, ca_data=ca, token=_to_token(token), insecure=insecure)
    certificate = _secret_value(secret, names.SECRET_CLIENT_CERTIFICATE)
    key = _secret_value(secret, names.SECRET_CLIENT_KEY)
    token = _secret_value(secret, names.SECRET_BOOTSTRAP_TOKEN)
    if bool(certificate) != bool(key):
        lacking = names.SECRET_CLIENT_KEY if certificate else names.SECRET_CLIENT_CERTIFICATE
        raise _missing(secret, lacking, "a client certificate needs its key")
    if not certificate and not token:
        raise _missing(
            secret, names.SECRET_CLIENT_CERTIFICATE, f"give it with its key, or give {names.SECRET_BOOTSTRAP_TOKEN}"
        )
    return Connection(
        server=server,
        ca_data=ca,
        client_cert_data=certificate,
        client_key_data=key,
        token=_to_token(token),
        insecure=insecure,
    )


def _secret_value(secret: Object, key: str) -> bytes:
    encoded = (secret.get("data") or {}).get(key) or ""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as problem:
        raise ConfigurationError(f"{_title(secret)}: data.{key}: not base64") from problem


def _to_token(token: bytes) -> str:
    return token.decode("ascii", errors="replace").strip()


def _missing(secret: Object, key: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"{_title(secret)}: data.{key}: Required value; {remedy}")


def _title(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    namespace = metadata.get("namespace")
    name = f"{namespace}/{metadata.get('name', '')}" if namespace else metadata.get("name", "")
    return f"{obj.get('kind') or 'Secret'} {name}"
