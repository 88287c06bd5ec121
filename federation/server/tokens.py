"""Bearer tokens: ServiceAccount tokens (signed JWTs, ES256) and static tokens (random, hashed at rest).

Signing and checking only: whether the ServiceAccount behind a token still exists is asked in `authn.py`. Times are
arguments. A signed token cannot be revoked by itself; deleting its ServiceAccount, or the object it is bound to, does.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from federation.base.errors import ConfigurationError
from federation.server.identity import AUTHENTICATED, User
from federation.server.pki import load_private_key, write_private

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
TOKEN_BYTES_MAX = 16 * 1024
_COORDINATE_BYTES = 32
_CLOCK_SKEW_S = 10


@dataclass(frozen=True, slots=True)
class Claims:
    """What a checked ServiceAccount token says. `bound_kind` "" means that it is bound to the account only."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    expires_s: int = 0
    token_id: str = ""
    bound_kind: str = ""
    bound_name: str = ""
    bound_uid: str = ""


class ServiceAccountTokens:
    """Issues and checks ServiceAccount tokens with one P-256 key."""

    def __init__(self, key_file: Path, *, issuer: str = ISSUER) -> None:
        self._key = load_private_key(key_file)
        self.issuer = issuer
        der = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._key_id = _encode(hashlib.sha256(der).digest())

    def issue(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        audiences: Sequence[str] = (),
        now: datetime,
        expires_s: int = 3600,
        bound: tuple[str, str, str] | None = None,
    ) -> str:
        """Return a token for a ServiceAccount, valid for `expires_s` from `now`; `bound` is (kind, name, uid)."""
        issued = int(now.timestamp())
        scope: dict[str, Any] = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}}
        if bound is not None:
            scope[bound[0].lower()] = {"name": bound[1], "uid": bound[2]}
        return self._sign(
            {
                "iss": self.issuer,
                "sub": f"system:serviceaccount:{namespace}:{name}",
                "aud": list(audiences) or [self.issuer],
                "iat": issued,
                "nbf": issued,
                "exp": issued + expires_s,
                "jti": secrets.token_hex(16),
                "kubernetes.io": scope,
            }
        )

    def issue_for_secret(self, *, namespace: str, name: str, uid: str, secret_name: str) -> str:
        """Return the token of a `kubernetes.io/service-account-token` Secret: no expiry, valid while the Secret is."""
        prefix = "kubernetes.io/serviceaccount/"
        return self._sign(
            {
                "iss": LEGACY_ISSUER,
                "sub": f"system:serviceaccount:{namespace}:{name}",
                prefix + "namespace": namespace,
                prefix + "secret.name": secret_name,
                prefix + "service-account.name": name,
                prefix + "service-account.uid": uid,
            }
        )

    def verify(self, token: str, *, now: datetime) -> Claims | None:
        """Return the claims of a token that we signed and that is valid at `now`, else None."""
        try:
            signed, _, signature = token.rpartition(".")
            header_text, _, payload_text = signed.partition(".")
            header, payload = orjson.loads(_decode(header_text)), orjson.loads(_decode(payload_text))
            raw = _decode(signature)
            if header.get("alg") != "ES256" or len(raw) != 2 * _COORDINATE_BYTES:
                return None
            der = encode_dss_signature(int.from_bytes(raw[:_COORDINATE_BYTES]), int.from_bytes(raw[_COORDINATE_BYTES:]))
            self._key.public_key().verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
            return self._to_claims(payload, int(now.timestamp()))
        except (InvalidSignature, ValueError, TypeError, KeyError, AttributeError, binascii.Error):
            return None

    def jwks(self) -> dict[str, Any]:
        """Return the JSON Web Key Set with the public key, for `/openid/v1/jwks`."""
        numbers = self._key.public_key().public_numbers()
        return {
            "keys": [
                {
                    "use": "sig",
                    "kty": "EC",
                    "kid": self._key_id,
                    "crv": "P-256",
                    "alg": "ES256",
                    "x": _encode(numbers.x.to_bytes(_COORDINATE_BYTES)),
                    "y": _encode(numbers.y.to_bytes(_COORDINATE_BYTES)),
                }
            ]
        }

    def _sign(self, payload: Mapping[str, Any]) -> str:
        header = {"alg": "ES256", "kid": self._key_id}
        signed = f"{_encode(orjson.dumps(header))}.{_encode(orjson.dumps(payload))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encode(r.to_bytes(_COORDINATE_BYTES) + s.to_bytes(_COORDINATE_BYTES))}"

    def _to_claims(self, payload: Mapping[str, Any], now_s: int) -> Claims | None:
        if payload["iss"] == LEGACY_ISSUER:
            prefix = "kubernetes.io/serviceaccount/"
            return Claims(
                payload[prefix + "namespace"],
                payload[prefix + "service-account.name"],
                payload[prefix + "service-account.uid"],
                (self.issuer,),
                bound_kind="Secret",
                bound_name=payload[prefix + "secret.name"],
            )
        if payload["iss"] != self.issuer:
            return None
        if payload["exp"] + _CLOCK_SKEW_S < now_s or payload["nbf"] - _CLOCK_SKEW_S > now_s:
            return None
        scope = payload["kubernetes.io"]
        account = scope["serviceaccount"]
        for kind in ("Pod", "Secret", "Node"):
            if bound := scope.get(kind.lower()):
                break
        else:
            kind, bound = "", {}
        return Claims(
            scope["namespace"],
            account["name"],
            account["uid"],
            tuple(payload["aud"]),
            payload["exp"],
            payload["jti"],
            kind,
            bound.get("name", ""),
            bound.get("uid", ""),
        )


@dataclass(slots=True)
class TokenFile:
    """Static tokens in a JSON file, mode 0600: SHA-256 of the token → user, uid, groups. Tokens are not kept."""

    path: Path
    _users: dict[str, User] = field(default_factory=dict)
    _modified: int = -1

    def add(self, *, user: str, groups: Sequence[str] = (), uid: str = "") -> str:
        """Make a token for a user, store its hash, and return the token; nobody can read it again."""
        self._load()
        token = secrets.token_urlsafe(32)
        self._users[_digest(token)] = User(user, tuple(groups), uid)
        entries = {
            digest: {"user": entry.name, "uid": entry.uid, "groups": list(entry.groups)}
            for digest, entry in self._users.items()
        }
        write_private(self.path, orjson.dumps({"tokens": entries}, option=orjson.OPT_INDENT_2))
        self._modified = self._stamp()
        return token

    def find(self, token: str) -> User | None:
        """Return the user of a token, None when it is unknown; the file is read again when it was replaced."""
        self._load()
        digest = _digest(token)
        for known, user in self._users.items():
            if hmac.compare_digest(known, digest):
                groups = tuple(dict.fromkeys((*user.groups, AUTHENTICATED)))
                return User(user.name, groups, user.uid)
        return None

    def _stamp(self) -> int:
        try:
            return os.stat(self.path).st_mtime_ns  # noqa: PTH116  # hot enough to skip pathlib
        except OSError:
            return 0

    def _load(self) -> None:
        stamp = self._stamp()
        if stamp == self._modified:
            return
        users: dict[str, User] = {}
        if stamp:
            try:
                entries = orjson.loads(self.path.read_bytes())["tokens"]
                users = {d: User(e["user"], tuple(e["groups"]), e.get("uid", "")) for d, e in entries.items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise ConfigurationError(f"{self.path} is not a token file: {error}") from error
        self._users, self._modified = users, stamp


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
