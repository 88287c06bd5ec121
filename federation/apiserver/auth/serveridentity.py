"""A server's identity towards its clients: the names of its certificate, the URL in kubeconfigs, a given certificate.

`pki.py` issues the serving certificate for these names, unless one is given. `kubeconfigfile.py` writes what clients
need to know of it. Given certificate files are only read here. Another program, such as cert-manager, renews them.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.pki import PKI, TLSFiles, load_certificate, names_of

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"(\*\.)?{_DNS_LABEL}(\.{_DNS_LABEL})*\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """How clients reach a server, and which certificate it presents."""

    names: tuple[str, ...] = ()
    """Further DNS names and IP addresses in the certificate that the server issues to itself."""
    url: str = ""
    """https://HOST[:PORT] in the administrator's kubeconfig; "" for the address that the server listens on."""
    certificate: Path | None = None
    """PEM file of a certificate and its chain, instead of one that the server issues to itself."""
    key: Path | None = None
    ca: Path | None = None
    """PEM file of the CA that issued it, for kubeconfigs and ConfigMaps; None for the CAs that clients trust anyway."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names that the server's own certificate must have, the URL's host among them."""
        host = urlsplit(self.url).hostname
        return (*self.names, host) if host else self.names

    def present(self, pki: PKI) -> TLSFiles:
        """Return the files of the certificate that the server presents."""
        if self.certificate is None or self.key is None:
            return pki.serving
        return TLSFiles(self.certificate, self.key, pki.serving.client_ca)

    def trust(self, pki: PKI) -> Path | None:
        """Return the file of the CA that clients need; None if they trust it anyway."""
        return pki.ca_certificate if self.certificate is None else self.ca

    def trust_in_objects(self, pki: PKI) -> Path:
        """Return the file of the CA for objects that must name one, such as the ConfigMap `kube-root-ca.crt`."""
        return self.trust(pki) or pki.ca_certificate

    def certificates(self, pki: PKI) -> dict[str, Path]:
        """Return the files of the certificates that must not expire, by what they are for."""
        files = {
            "serving": self.present(pki).certificate,
            "admin": pki.admin_certificate,
            "ca": pki.ca_certificate,
            "front-proxy": pki.front_proxy.certificate,
            "front-proxy-ca": pki.front_proxy.ca_certificate,
        }
        return files | ({"serving-ca": self.ca} if self.ca is not None else {})

    def server_name(self, url: str) -> str:
        """Return the name by which a client must verify the certificate at `url`; "" for the URL's host.

        The addresses that a server listens on are rarely names of a given certificate.
        """
        host = urlsplit(url).hostname or ""
        if self.certificate is None:
            return ""
        names = names_of(load_certificate(self.certificate))
        if not names or any(_covers(name, host) for name in names):
            return ""
        return names[0].replace("*", "federation", 1)


SELF_ISSUED = ServerIdentity()
"""A server with a certificate of its own CA, known by the address that it listens on."""


def to_server_identity(names: Sequence[str], url: str, certificate: str, key: str, ca: str) -> ServerIdentity:
    """Return the identity; ConfigurationError names the setting that is wrong."""
    for name in names:
        if not _is_ip(name) and not _DNS_NAME.fullmatch(name):
            raise ConfigurationError(f"tls-san: {name!r} is neither a DNS name nor an IP address")
    if bool(certificate) != bool(key):
        raise ConfigurationError("tls-cert-file and tls-key-file belong together; give both or neither")
    if ca and not certificate:
        raise ConfigurationError("tls-ca-file is set without tls-cert-file; it names the CA of that certificate")
    if names and certificate:
        raise ConfigurationError("tls-san is set with tls-cert-file, whose names cannot be changed; remove one of them")
    paths = [Path(text).expanduser().absolute() if text else None for text in (certificate, key, ca)]
    for path in (paths[0], paths[2]):
        if path is not None:
            load_certificate(path)
    return ServerIdentity(tuple(names), _checked_url(url), *paths)


def _checked_url(url: str) -> str:
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"advertise-url: {url!r} is not a URL ({error})") from error
    rest = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme != "https" or not host or rest:
        raise ConfigurationError(f"advertise-url: {url!r} is not of the form https://HOST or https://HOST:PORT")
    if not _is_ip(host) and not _DNS_NAME.fullmatch(host):
        raise ConfigurationError(f"advertise-url: {host!r} is neither a DNS name nor an IP address")
    return url.rstrip("/")


def _covers(name: str, host: str) -> bool:
    """Return whether a name of a certificate covers a host; `*` stands for one label."""
    name, host = name.lower().rstrip("."), host.lower().rstrip(".")
    if name.startswith("*."):
        return not _is_ip(host) and host.partition(".")[2] == name[2:]
    return name == host


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
