"""The credentials behind a session, and their encrypted form in cookies.

A cookie holds a bearer token or the subject of a verified client certificate, encrypted and authenticated with a key
that is derived from the key of ServiceAccount tokens: the replicas of a host share it, and a new key ends all sessions.
A session ends after `SESSION_S`, when its token is refused, or at log-out. Nothing is stored on the server.
"""

import base64
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from federation.apimachinery.clock import Clock
from federation.apiserver.auth.clientcertificates import Peer

_PURPOSE, _SESSION = "for", "session"
SESSION_S = 12 * 3600
"""Lifetime of a session; a working day."""
SEALED_BYTES_MAX = 3_800
"""Browsers keep cookies of up to 4,096 bytes, name and attributes included."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A bearer token, or the subject of a client certificate."""

    token: str = ""
    peer: Peer | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A user who has logged in; `form_key` is in every form of the session's pages, against forged requests."""

    user: str
    credentials: Credentials
    form_key: str


class Sealer:
    """Encrypts sessions and reads them again; `read_key` returns the secret that the replicas of a host share."""

    def __init__(self, read_key: Callable[[], bytes], clock: Clock) -> None:
        self._read_key = read_key
        self._clock = clock
        self._fernet: Fernet | None = None

    def seal(self, user: str, credentials: Credentials) -> str:
        """Return a new session in encrypted form."""
        peer = credentials.peer
        fields = {
            "user": user,
            "token": credentials.token,
            "peer": None if peer is None else [peer.user, peer.groups, peer.fingerprint],
            "form": secrets.token_urlsafe(16),
        }
        return self.seal_value(_SESSION, fields)

    def seal_value(self, purpose: str, fields: Mapping[str, Any]) -> str:
        """Return a value in encrypted form that only `open_value` with the same purpose reads."""
        text = orjson.dumps({**fields, _PURPOSE: purpose})
        return self._cipher().encrypt_at_time(text, self._now()).decode()

    def open_value(self, purpose: str, sealed: str, lifetime_s: int) -> dict[str, Any] | None:
        """Return the value, None if it is not ours, for another purpose, was changed, or is too old."""
        try:
            text = self._cipher().decrypt_at_time(sealed.encode(), lifetime_s, self._now())
        except (InvalidToken, UnicodeEncodeError):
            return None
        fields: dict[str, Any] = orjson.loads(text)
        return fields if fields.pop(_PURPOSE, None) == purpose else None

    def open(self, sealed: str) -> Session | None:
        """Return the session, None if it is not ours, for another purpose, was changed or is too old."""
        fields = self.open_value(_SESSION, sealed, SESSION_S)
        if fields is None:
            return None
        peer = Peer(fields["peer"][0], tuple(fields["peer"][1]), fields["peer"][2]) if fields["peer"] else None
        return Session(fields["user"], Credentials(fields["token"], peer), fields["form"])

    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    def _cipher(self) -> Fernet:
        if self._fernet is None:
            # The key exists only once the server has started, so it is read at the first use.
            derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"federation web UI sessions")
            self._fernet = Fernet(base64.urlsafe_b64encode(derived.derive(self._read_key())))
        return self._fernet
