"""Questions to an existing API server about its users: whose token is this, and may the user do that?

They are Kubernetes' TokenReview and SubjectAccessReview, with which every extension of an API server delegates
authentication and authorization.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Unauthorized, from_status
from federation.apimachinery.resources import Object
from federation.apiserver.auth.identity import User
from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision
from federation.client.client import Client

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  # a path
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TIMEOUT_S = 5.0
_TOKEN_S = 10.0
"""How long a verified token is not asked for again, as in API servers."""
_TOKENS_MAX = 1_000


class HostAccess:
    """Asks the host. It keeps verified tokens for some seconds, as digests."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._tokens: dict[bytes, tuple[float, User]] = {}

    async def user_of(self, token: str) -> User:
        """Return the user of a bearer token; Unauthorized for a token that the host does not accept."""
        digest, now_s = hashlib.sha256(token.encode()).digest(), self._clock.monotonic()
        known = self._tokens.get(digest)
        if known is not None and known[0] > now_s:
            return known[1]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = await self._ask(_TOKEN_REVIEWS, body)
        if not status.get("authenticated"):
            raise Unauthorized("Unauthorized")
        user = to_user(status.get("user") or {})
        if len(self._tokens) >= _TOKENS_MAX:
            self._tokens.clear()
        self._tokens[digest] = (now_s + _TOKEN_S, user)
        return user

    async def decide(self, user: User, check: AccessCheck) -> AccessDecision:
        """Return whether the user may do what is checked; ApiError or ClusterError when the host does not say."""
        status = await self._ask(_ACCESS_REVIEWS, to_access_review(user, check))
        return AccessDecision(bool(status.get("allowed")), str(status.get("reason") or ""))

    async def _ask(self, path: str, body: Object) -> Mapping[str, Any]:
        code, answer = await self._client.raw("POST", path, body=body, timeout_s=_TIMEOUT_S)
        parsed = orjson.loads(answer) if answer[:1] == b"{" else {}
        if code not in (200, 201):
            raise from_status(parsed, code)
        status = parsed.get("status")
        return status if isinstance(status, dict) else {}


def bearer_token(authorization: str) -> str:
    """Return the token of the header Authorization, "" if it has another scheme or no token."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def to_access_review(user: User, check: AccessCheck) -> Object:
    """Return the SubjectAccessReview of a check."""
    attributes: Object
    if check.path:
        attributes = {"nonResourceAttributes": {"path": check.path, "verb": check.verb}}
    else:
        fields = ("verb", "group", "resource", "subresource", "namespace", "name")
        named = {field: getattr(check, field) for field in fields}
        attributes = {"resourceAttributes": {field: value for field, value in named.items() if value}}
    spec = {
        **attributes,
        "user": user.name,
        "groups": list(user.groups),
        "uid": user.uid,
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def to_user(info: Mapping[str, Any]) -> User:
    """Return the user of Kubernetes' UserInfo."""
    extra = {key: tuple(values) for key, values in (info.get("extra") or {}).items()}
    groups = tuple(info.get("groups") or ())
    return User(str(info.get("username") or ""), groups, str(info.get("uid") or ""), extra)
