"""Authentication: the user of a request, from its client certificate or bearer token.

A certificate wins over a token, as in kube-apiserver. Without a certificate an unknown token is refused, even on public
paths. Tokens are tried as static, OIDC and ServiceAccount tokens; verified ones are cached for a few seconds.
`rbac.py` decides what the user may do.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import NotFound, Unauthorized
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import ANONYMOUS, CREDENTIAL_ID, User, service_account_user
from federation.apiserver.auth.oidc import OIDCAuthenticator
from federation.apiserver.auth.serviceaccounttokens import TOKEN_BYTES_MAX, ServiceAccountClaims, ServiceAccountTokens
from federation.apiserver.auth.tokenfile import TokenFile
from federation.apiserver.registry.registry import Registry

_CACHE_S: Final = 10.0
"""Lifetime of a cached token: so long a deleted ServiceAccount's token may still work, as in kube-apiserver."""
_CACHE_ENTRIES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class AuthenticatedToken:
    """The user of a valid token, and the requested audiences that the token is for."""

    user: User
    audiences: tuple[str, ...]


class Authenticator:
    """Authenticates by client certificate or token; without either the user is anonymous."""

    def __init__(
        self,
        registry: Registry,
        *,
        clock: Clock,
        service_account_tokens: ServiceAccountTokens | None = None,
        token_file: TokenFile | None = None,
        oidc: OIDCAuthenticator | None = None,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._signed = service_account_tokens
        self._static = token_file
        self._oidc = oidc
        self._cache: dict[bytes, tuple[float, User]] = {}
        self._peers: dict[Peer, User] = {}

    @property
    def tokens(self) -> ServiceAccountTokens | None:
        """The issuer of ServiceAccount tokens, None when this server issues none."""
        return self._signed

    async def authenticate(self, peer: Peer | None, authorization: bytes) -> User:
        """Return the user; ANONYMOUS without credentials. Raise Unauthorized for invalid credentials."""
        if peer is not None:
            user = self._peers.get(peer)
            if user is None:
                groups = tuple(dict.fromkeys((*peer.groups, AUTHENTICATED)))
                extra = {CREDENTIAL_ID: (f"X509SHA256={peer.fingerprint}",)} if peer.fingerprint else {}
                user = User(peer.user, groups, extra=extra)
                # The limit keeps clients with ever new certificates from growing the cache.
                if len(self._peers) < _CACHE_ENTRIES_MAX:
                    self._peers[peer] = user
            return user
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token or len(token) > TOKEN_BYTES_MAX:
            raise Unauthorized("Unauthorized")
        # The cache holds digests, so that it reveals no tokens.
        digest = hashlib.sha256(token).digest()
        now_s = self._clock.monotonic()
        cached = self._cache.get(digest)
        if cached is not None and cached[0] > now_s:
            return cached[1]
        authenticated = await self.review(token.decode("latin-1"), ())
        if authenticated is None:
            raise Unauthorized("Unauthorized")
        if len(self._cache) >= _CACHE_ENTRIES_MAX:
            # Entries live for seconds, so an eviction order is not worth its cost on every request.
            self._cache.clear()
        self._cache[digest] = (now_s + _CACHE_S, authenticated.user)
        return authenticated.user

    async def review(self, token: str, audiences: Sequence[str]) -> AuthenticatedToken | None:
        """Return the user of a token that is valid for one of `audiences` (default: this API server), else None."""
        own = () if self._signed is None else (self._signed.issuer,)
        requested = tuple(audiences) or own
        user = None if self._static is None else self._static.find(token)
        if user is None and self._oidc is not None:
            user = await self._oidc.authenticate(token)
        if user is not None:
            # Static and OIDC tokens name no audience: they are valid for this API server only.
            accepted = tuple(audience for audience in requested if audience in own)
            return AuthenticatedToken(user, accepted) if accepted or not requested else None
        claims = None if self._signed is None else self._signed.verify(token, now=self._clock.now())
        if claims is None:
            return None
        accepted = tuple(audience for audience in requested if audience in claims.audiences)
        if not accepted or not await self._is_bound_to_existing(claims, token):
            return None
        extra = {CREDENTIAL_ID: (f"JTI={claims.token_id}",)} if claims.token_id else {}
        if claims.bound_kind in ("Pod", "Node"):
            prefix = f"authentication.kubernetes.io/{claims.bound_kind.lower()}"
            extra[f"{prefix}-name"] = (claims.bound_name,)
            extra[f"{prefix}-uid"] = (claims.bound_uid,)
        return AuthenticatedToken(service_account_user(claims.namespace, claims.name, claims.uid, extra), accepted)

    async def _is_bound_to_existing(self, claims: ServiceAccountClaims, token: str) -> bool:
        """Return whether the ServiceAccount and the object that the token is bound to exist with the same uids."""
        account = await self._find("serviceaccounts", claims.namespace, claims.name)
        if account is None or account["metadata"]["uid"] != claims.uid:
            return False
        if not claims.bound_kind:
            return True
        namespace = "" if claims.bound_kind == "Node" else claims.namespace
        bound = await self._find(f"{claims.bound_kind.lower()}s", namespace, claims.bound_name)
        if bound is None:
            return False
        if claims.bound_uid:
            return bool(bound["metadata"]["uid"] == claims.bound_uid)
        # The legacy token of a Secret has no uid; it is valid as long as the Secret holds exactly this token.
        held = (bound.get("data") or {}).get("token", "")
        return hmac.compare_digest(held, base64.b64encode(token.encode()).decode())

    async def _find(self, plural: str, namespace: str, name: str) -> dict[str, dict[str, str]] | None:
        info = self._registry.kinds.lookup("", "v1", plural)
        try:
            found: dict[str, dict[str, str]] = orjson.loads(await self._registry.get(info, namespace, name))
        except NotFound:
            return None
        return found
