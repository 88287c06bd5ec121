"""ServiceAccount tokens: signed JWTs (ES256), bound or legacy, as kube-apiserver issues them.

It signs tokens and verifies signature, issuer and times. `authentication.py` checks that the ServiceAccount and the
object that a token is bound to still exist: deleting one of them is the only way to revoke a token.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives import serialization
from jwt.algorithms import ECAlgorithm
from jwt.utils import base64url_encode

from federation.apiserver.auth.pki import load_private_key

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
TOKEN_BYTES_MAX = 16 * 1024
_ALGORITHM = "ES256"
_LEGACY_CLAIM = "kubernetes.io/serviceaccount/"
_CLOCK_SKEW_S = 10
"""Tolerated difference between the clocks of servers that share a key."""


@dataclass(frozen=True, slots=True)
class ServiceAccountClaims:
    """The claims of a verified token. `bound_kind` "" means that it is bound to the ServiceAccount only."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    token_id: str = ""
    bound_kind: str = ""
    bound_name: str = ""
    bound_uid: str = ""


class ServiceAccountTokens:
    """Issues and verifies ServiceAccount tokens with one P-256 key."""

    def __init__(self, key_file: Path, *, issuer: str = ISSUER) -> None:
        self._key = load_private_key(key_file)
        self._public_key = self._key.public_key()
        self.issuer = issuer
        der = self._public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._key_id = base64url_encode(hashlib.sha256(der).digest()).decode()

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
        """Return the token of a `kubernetes.io/service-account-token` Secret, valid as long as the Secret."""
        return self._sign(
            {
                "iss": LEGACY_ISSUER,
                "sub": f"system:serviceaccount:{namespace}:{name}",
                _LEGACY_CLAIM + "namespace": namespace,
                _LEGACY_CLAIM + "secret.name": secret_name,
                _LEGACY_CLAIM + "service-account.name": name,
                _LEGACY_CLAIM + "service-account.uid": uid,
            }
        )

    def verify(self, token: str, *, now: datetime) -> ServiceAccountClaims | None:
        """Return the claims of a token that this server signed and that is valid at `now`, else None."""
        try:
            # PyJWS, not PyJWT: the latter would compare times with the system's clock instead of `now`.
            payload = orjson.loads(jwt.PyJWS().decode(token, self._public_key, algorithms=[_ALGORITHM]))
            return self._to_claims(payload, int(now.timestamp()))
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def jwks(self) -> dict[str, Any]:
        """Return the JSON Web Key Set with the public key, for `/openid/v1/jwks`."""
        public = ECAlgorithm.to_jwk(self._public_key, as_dict=True)
        return {"keys": [{"use": "sig", "kid": self._key_id, "alg": _ALGORITHM, **public}]}

    def _sign(self, claims: dict[str, Any]) -> str:
        # As in Kubernetes, the header has no `typ`.
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM, headers={"kid": self._key_id, "typ": None})

    def _to_claims(self, payload: Mapping[str, Any], now_s: int) -> ServiceAccountClaims | None:
        if payload["iss"] == LEGACY_ISSUER:
            return ServiceAccountClaims(
                payload[_LEGACY_CLAIM + "namespace"],
                payload[_LEGACY_CLAIM + "service-account.name"],
                payload[_LEGACY_CLAIM + "service-account.uid"],
                (self.issuer,),
                bound_kind="Secret",
                bound_name=payload[_LEGACY_CLAIM + "secret.name"],
            )
        if payload["iss"] != self.issuer:
            return None
        if payload["exp"] + _CLOCK_SKEW_S < now_s or payload["nbf"] - _CLOCK_SKEW_S > now_s:
            return None
        scope = payload["kubernetes.io"]
        account = scope["serviceaccount"]
        kind = next((kind for kind in ("Pod", "Secret", "Node") if scope.get(kind.lower())), "")
        bound = scope[kind.lower()] if kind else {}
        return ServiceAccountClaims(
            scope["namespace"],
            account["name"],
            account["uid"],
            tuple(payload["aud"]),
            payload["jti"],
            kind,
            bound.get("name", ""),
            bound.get("uid", ""),
        )
