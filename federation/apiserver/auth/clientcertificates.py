"""The subject of a connection's verified client certificate.

`http/connection.py` reads it once per connection; `authentication.py` uses it for every request of the connection.
"""

import hashlib
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple


class Peer(NamedTuple):
    """Subject of a client certificate: the common name is the user, organisations are the groups."""

    user: str
    groups: tuple[str, ...]
    fingerprint: str = ""
    """SHA-256 of the certificate, in hexadecimal digits."""
    expires_s: float | None = None
    """When the certificate expires, in seconds since the epoch."""


def to_peer(certificate: Mapping[str, Any] | None, encoded: bytes | None = None) -> Peer | None:
    """Return the subject of `SSLObject.getpeercert()`; None without a certificate or a common name.

    `encoded` is the same certificate in DER.
    """
    if not certificate:
        return None
    user = ""
    groups: list[str] = []
    for relative_name in certificate.get("subject", ()):
        for key, value in relative_name:
            if key == "commonName":
                user = value
            elif key == "organizationName":
                groups.append(value)
    fingerprint = hashlib.sha256(encoded).hexdigest() if encoded else ""
    expires = certificate.get("notAfter")
    return (
        Peer(user, tuple(groups), fingerprint, ssl.cert_time_to_seconds(expires) if expires else None) if user else None
    )
