"""The verified client certificate of a connection, reduced to what authentication needs.

Made once per connection by `serving.py`, read by `authn.py` for every request on it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple


class Peer(NamedTuple):
    """Subject of a client certificate: common name is the user, organisations are the groups."""

    user: str
    groups: tuple[str, ...]
    fingerprint: str = ""
    """SHA-256 of the certificate, in hexadecimal digits."""


def to_peer(certificate: Mapping[str, Any] | None, encoded: bytes | None = None) -> Peer | None:
    """Return the subject of `SSLObject.getpeercert()`; None when the client sent none or it has no common name.

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
    return Peer(user, tuple(groups), fingerprint) if user else None
