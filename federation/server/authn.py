"""Authentication: which user a request is, from its client certificate or bearer token.

Order as in kube-apiserver: bearer tokens and certificates are asked in turn, and a token that nobody knows is refused
even on public paths only when no certificate speaks for the caller. Checked tokens are remembered for a few seconds.
ID tokens of an OIDC issuer are checked in `oidc.py`. Who may do what is `authz.py`.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from federation.base.clock import Clock
from federation.base.errors import NotFound, Unauthorized
from federation.registry.registry import Registry
from federation.server.identity import ANONYMOUS, AUTHENTICATED, CREDENTIAL_ID, User, service_account_user
from federation.server.oidc import OIDCAuthenticator
from federation.server.peers import Peer
from federation.server.tokens import TOKEN_BYTES_MAX, Claims, ServiceAccountTokens, TokenFile


@dataclass(frozen=True, slots=True)
class AuthenticatorOptions:
    """How long answers are trusted."""

    cache_s: float = 10.0
    """A deleted ServiceAccount's token may work this much longer, as in kube-apiserver."""
    cache_entries_max: int = 4096


@dataclass(frozen=True, slots=True)
class TokenReviewed:
    """A valid token: whose it is and which of the wanted audiences it is for."""

    user: User
    audiences: tuple[str, ...]


class Authenticator:
    """Asks client certificate, static, OIDC and ServiceAccount tokens; without any of them the user is anonymous."""

    def __init__(
        self,
        registry: Registry,
        *,
        clock: Clock,
        service_account_tokens: ServiceAccountTokens | None = None,
        token_file: TokenFile | None = None,
        oidc: OIDCAuthenticator | None = None,
        options: AuthenticatorOptions | None = None,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._signed = service_account_tokens
        self._static = token_file
        self._oidc = oidc
        self._options = options or AuthenticatorOptions()
        self._cache: dict[bytes, tuple[float, User]] = {}
        self._peers: dict[Peer, User] = {}

    @property
    def tokens(self) -> ServiceAccountTokens | None:
        """The issuer of ServiceAccount tokens, None when this server issues none."""
        return self._signed

    async def authenticate(self, peer: Peer | None, authorization: bytes) -> User:
        """Return who is asking; ANONYMOUS without credentials, Unauthorized with credentials that are not valid."""
        if peer is not None:
            user = self._peers.get(peer)
            if user is None:
                groups = tuple(dict.fromkeys((*peer.groups, AUTHENTICATED)))
                extra = {CREDENTIAL_ID: (f"X509SHA256={peer.fingerprint}",)} if peer.fingerprint else {}
                user = User(peer.user, groups, extra=extra)
                if len(self._peers) < self._options.cache_entries_max:
                    self._peers[peer] = user
            return user
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token or len(token) > TOKEN_BYTES_MAX:
            raise Unauthorized("Unauthorized")
        digest = hashlib.sha256(token).digest()
        now_s = self._clock.monotonic()
        cached = self._cache.get(digest)
        if cached is not None and cached[0] > now_s:
            return cached[1]
        reviewed = await self.review(token.decode("latin-1"), ())
        if reviewed is None:
            raise Unauthorized("Unauthorized")
        if len(self._cache) >= self._options.cache_entries_max:
            self._cache.clear()
        self._cache[digest] = (now_s + self._options.cache_s, reviewed.user)
        return reviewed.user

    async def review(self, token: str, audiences: Sequence[str]) -> TokenReviewed | None:
        """Return whose token this is, when it is valid for one of `audiences` (none: for this API server)."""
        own = () if self._signed is None else (self._signed.issuer,)
        wanted = tuple(audiences) or own
        user = None if self._static is None else self._static.find(token)
        if user is None and self._oidc is not None:
            user = await self._oidc.authenticate(token)
        if user is not None:
            # Such tokens name no audience of ours: they are for this API server, whatever it is called.
            accepted = tuple(audience for audience in wanted if audience in own)
            return TokenReviewed(user, accepted) if accepted or not wanted else None
        claims = None if self._signed is None else self._signed.verify(token, now=self._clock.now())
        if claims is None:
            return None
        accepted = tuple(audience for audience in wanted if audience in claims.audiences)
        if not accepted or not await self._is_alive(claims, token):
            return None
        extra = {CREDENTIAL_ID: (f"JTI={claims.token_id}",)} if claims.token_id else {}
        if claims.bound_kind in ("Pod", "Node"):
            prefix = f"authentication.kubernetes.io/{claims.bound_kind.lower()}"
            extra[f"{prefix}-name"] = (claims.bound_name,)
            extra[f"{prefix}-uid"] = (claims.bound_uid,)
        return TokenReviewed(service_account_user(claims.namespace, claims.name, claims.uid, extra), accepted)

    async def _is_alive(self, claims: Claims, token: str) -> bool:
        """Return whether the ServiceAccount, and what the token is bound to, still are the same objects."""
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
        # A legacy token is valid as long as its Secret holds exactly it.
        held = (bound.get("data") or {}).get("token", "")
        return hmac.compare_digest(held, base64.b64encode(token.encode()).decode())

    async def _find(self, plural: str, namespace: str, name: str) -> dict[str, dict[str, str]] | None:
        info = self._registry.kinds.lookup("", "v1", plural)
        try:
            found: dict[str, dict[str, str]] = orjson.loads(await self._registry.get(info, namespace, name))
        except NotFound:
            return None
        return found
