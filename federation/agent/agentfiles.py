"""The agent's files: its key and certificate, and the address and CA of the host.

The key never leaves the folder. A registration writes the key first and the certificate last: a folder with a
certificate is a registered agent, and starts without its token.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from federation.api.agents import to_servers
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.pki import load_certificate, load_private_key, renewal_time, write_private

_CERTIFICATE, _KEY, _HOST = "agent.crt", "agent.key", "host.json"


@dataclass(frozen=True, slots=True)
class Host:
    """The federation that the agent belongs to."""

    server: str
    """Its address, or those of its processes with commas between them."""
    ca: str
    cluster: str
    """The name of the agent's cluster."""

    @property
    def servers(self) -> list[str]:
        """The addresses of the host's processes."""
        return to_servers(self.server)

    def connection(self, server: str) -> Connection:
        """Return the connection without an identity, for the registration."""
        return Connection(server, ca_data=self.ca.encode())


class Identity:
    """The files of one agent in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def directory(self) -> Path:
        """The folder."""
        return self._directory

    @property
    def is_registered(self) -> bool:
        """Whether the folder holds a certificate."""
        return (self._directory / _CERTIFICATE).exists()

    def new_request(self) -> str:
        """Return the PEM of a signing request for the key in the folder, which is created if there is none."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigurationError(f"--dir: cannot create {self._directory}: {error.strerror}") from error
        path = self._directory / _KEY
        if not path.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            write_private(path, key.private_bytes(*formats))
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        request = builder.sign(load_private_key(path), hashes.SHA256())
        return request.public_bytes(serialization.Encoding.PEM).decode()

    def store(self, host: Host, certificate: str) -> None:
        """Write a certificate for the key in the folder, and the host that issued it."""
        values = {"server": host.server, "ca": host.ca, "cluster": host.cluster}
        write_private(self._directory / _HOST, json.dumps(values).encode())
        write_private(self._directory / _CERTIFICATE, certificate.encode())

    def host(self) -> Host:
        """Return the host; ConfigurationError if the file is unusable."""
        path = self._directory / _HOST
        try:
            return Host(**json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise ConfigurationError(f"{path} is unusable; remove {path.parent} and register again") from error

    def connection(self, server: str) -> Connection:
        """Return the connection to the host with the agent's identity."""
        try:
            certificate, key = (self._directory / _CERTIFICATE).read_bytes(), (self._directory / _KEY).read_bytes()
        except OSError as error:
            raise ConfigurationError(f"cannot read {error.filename}: {error.strerror}; register again") from error
        return Connection(server, ca_data=self.host().ca.encode(), client_cert_data=certificate, client_key_data=key)

    def renewal_time(self) -> datetime:
        """Return when the certificate must be renewed: after two thirds of its life."""
        return renewal_time(load_certificate(self._directory / _CERTIFICATE))

    def check_valid(self, now: datetime) -> None:
        """Raise ConfigurationError if the certificate has expired."""
        end = load_certificate(self._directory / _CERTIFICATE).not_valid_after_utc
        if now >= end:
            raise ConfigurationError(
                f"this agent's certificate expired at {to_rfc3339(end)}, while the host could not renew it; remove"
                f" {self._directory} and register with a new token: fedctl token create"
            )
