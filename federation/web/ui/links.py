"""One-time links: who has credentials on the command line opens the web UI without typing them.

`POST /ui/links` with credentials returns the path of a link, whose code is the encrypted credentials. Opening it once,
within `LINK_S`, starts a session with the same credentials. Nothing is stored, so an account without rights fills no
store. Each process remembers the links that it redeemed; of several replicas, each redeems a link once.

A code is short, because people copy it out of a terminal: nonce, encrypted content and tag of ChaCha20-Poly1305,
without the layers of a cookie. The content is the time, the digest of the certificate, and user and groups, or the
token.
"""

import base64
import binascii
import hashlib
import secrets
import struct
from collections import OrderedDict, deque
from collections.abc import Callable

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from federation.apimachinery.clock import Clock
from federation.apiserver.auth.clientcertificates import Peer
from federation.web.ui.credentials import Credentials

LINK_S = 600
"""Time in which a link must be opened."""
_SKEW_S = 60
"""How far the clock of the replica that made a link may be ahead."""
_USERS_MAX = 10_000
_USED_MAX = 64
"""Redeemed links that are remembered per user; one who redeems more within `LINK_S` can redeem an older one again."""
_NONCE_BYTES, _DIGEST_BYTES = 12, 32
_TIME = struct.Struct(">I")
_CODE_LENGTH_MAX = 16_384


class OneTimeLinks:
    """Creates and redeems links; `read_key` returns the secret that the replicas of a host share."""

    def __init__(self, read_key: Callable[[], bytes], clock: Clock) -> None:
        self._read_key = read_key
        self._clock = clock
        self._cipher: ChaCha20Poly1305 | None = None
        self._used: OrderedDict[str, deque[bytes]] = OrderedDict()
        """Digests of redeemed codes by user, the user of the last one at the end."""

    def create(self, user: str, credentials: Credentials) -> str:
        """Return the code of a new link."""
        peer = credentials.peer
        digest = bytes.fromhex(peer.fingerprint) if peer is not None and peer.fingerprint else bytes(_DIGEST_BYTES)
        who = [user, credentials.token] if peer is None else [user, list(peer.groups), peer.user != user and peer.user]
        content = _TIME.pack(self._now()) + digest + orjson.dumps(who)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return base64.urlsafe_b64encode(nonce + self._key().encrypt(nonce, content, None)).decode().rstrip("=")

    def redeem(self, code: str) -> tuple[str, Credentials] | None:
        """Return user and credentials of a link, once; None for a link that is unknown, used or expired."""
        sealed = _decoded(code)
        try:
            content = self._key().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError):
            return None
        (made,) = _TIME.unpack_from(content)
        if not -_SKEW_S <= self._now() - made <= LINK_S:
            return None
        digest, who = (
            content[_TIME.size : _TIME.size + _DIGEST_BYTES],
            orjson.loads(content[_TIME.size + _DIGEST_BYTES :]),
        )
        if not self._is_first(who[0], hashlib.sha256(sealed).digest()):
            return None
        if isinstance(who[1], str):
            return who[0], Credentials(who[1])
        fingerprint = digest.hex() if any(digest) else ""
        return who[0], Credentials(peer=Peer(who[2] or who[0], tuple(who[1]), fingerprint))

    def _is_first(self, user: str, digest: bytes) -> bool:
        used = self._used.setdefault(user, deque(maxlen=_USED_MAX))
        if digest in used:
            return False
        used.append(digest)
        self._used.move_to_end(user)
        if len(self._used) > _USERS_MAX:
            self._used.popitem(last=False)
        return True

    def _now(self) -> int:
        return int(self._clock.now().timestamp())

    def _key(self) -> ChaCha20Poly1305:
        if self._cipher is None:
            # The key exists only once the server has started, so it is read at the first use.
            derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"federation web UI links")
            self._cipher = ChaCha20Poly1305(derived.derive(self._read_key()))
        return self._cipher


def _decoded(code: str) -> bytes:
    """Return the bytes of a code, b"" for any other text than `create` returns: one link has one code."""
    if len(code) > _CODE_LENGTH_MAX:
        return b""
    try:
        sealed = base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
    return sealed if base64.urlsafe_b64encode(sealed).decode().rstrip("=") == code else b""
