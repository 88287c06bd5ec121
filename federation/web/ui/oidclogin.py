"""Log-in by redirect to an OIDC provider: authorization code with PKCE, state and nonce.

The provider is the issuer whose ID tokens the API server accepts. A log-in ends with such a token, which becomes the
credential of the session: the server verifies it as it verifies a pasted one. What belongs to one attempt is in an
encrypted cookie of the browser that began it, so an answer that comes to another browser is refused. No refresh token
is kept: when the ID token expires, the session ends, and the provider usually logs in again without a question.

Decision: docs/decisions/0052-log-in-at-a-provider.md
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import jwt
import orjson
import structlog
from fastapi import Request

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ServiceUnavailable, Unauthorized
from federation.apimachinery.webhookclient import WebhookClient
from federation.web.ui.oidcoptions import OIDCLoginOptions

_log = structlog.get_logger(__name__)
CALLBACK = "/ui/oidc/callback"
ATTEMPT_S = 600
"""Time for a log-in at the provider."""
_TIMEOUT_S = 10.0
_TEXT_MAX = 200


@dataclass(frozen=True, slots=True)
class Attempt:
    """One log-in that has begun: its secrets, and the page to go on to."""

    state: str
    nonce: str
    verifier: str
    target: str

    def to_json(self) -> dict[str, str]:
        """Return it as the value of a cookie."""
        return {"state": self.state, "nonce": self.nonce, "verifier": self.verifier, "target": self.target}


class LoginRefused(Unauthorized):
    """The provider or its answer is not accepted; the message is for the user."""


class OIDCLogin:
    """Builds requests to the provider and checks its answers."""

    def __init__(self, options: OIDCLoginOptions, webhook_client: WebhookClient) -> None:
        self._options = options
        self._webhook_client = webhook_client
        self._ca = options.ca_file.read_bytes() if options.ca_file is not None else b""
        self.provider = urlsplit(options.issuer_url).hostname or options.issuer_url

    async def begin(self, request: Request, target: str) -> tuple[Attempt, str]:
        """Return a new attempt and the address at the provider; ServiceUnavailable when the provider is not usable."""
        discovered = await self._discover()
        state, nonce, verifier = (secrets.token_urlsafe(size) for size in (32, 32, 48))
        attempt = Attempt(state, nonce, verifier, target)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._options.client_id,
            "redirect_uri": redirect_uri(request),
            "scope": " ".join(self._options.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = _https(discovered, "authorization_endpoint")
        return attempt, f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    async def finish(self, request: Request, attempt: Attempt) -> str:
        """Return the ID token of an answer to the attempt; LoginRefused when it is another's or the provider's no.

        The caller lets the API server verify the token, then calls `check_nonce`.
        """
        query = request.query_params
        if not hmac.compare_digest(query.get("state", "").encode(), attempt.state.encode()):
            raise LoginRefused("This answer belongs to another log-in. Start again.")
        discovered = await self._discover()
        # An answer that another provider made for the same client must not be taken to this one (RFC 9207).
        must_name = discovered.get("authorization_response_iss_parameter_supported") is True
        if query.get("iss", "" if must_name else self._options.issuer_url) != self._options.issuer_url:
            raise LoginRefused("This answer comes from another identity provider.")
        if error := query.get("error"):
            why = query.get("error_description") or error
            raise LoginRefused(f"The identity provider refused the log-in: {why[:_TEXT_MAX]}")
        if not (code := query.get("code")):
            raise LoginRefused("The identity provider sent no code. Start again.")
        return await self._redeem(discovered, code, redirect_uri(request), attempt.verifier)

    def check_nonce(self, token: str, attempt: Attempt) -> None:
        """Raise LoginRefused unless the verified token was made for this attempt and this client."""
        claims = jwt.decode(token, options={"verify_signature": False})
        nonce, party = claims.get("nonce"), claims.get("azp", self._options.client_id)
        if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), attempt.nonce.encode()):
            raise LoginRefused("The identity provider's token belongs to another log-in. Start again.")
        if party != self._options.client_id:
            raise LoginRefused("The identity provider's token was made for another application.")

    async def _redeem(self, discovered: dict[str, Any], code: str, redirect: str, verifier: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self._options.client_id,
            "code_verifier": verifier,
        }
        headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
        methods = discovered.get("token_endpoint_auth_methods_supported")
        is_basic = not isinstance(methods, list) or not methods or "client_secret_basic" in methods
        if self._options.client_secret and is_basic:
            pair = f"{quote(self._options.client_id, safe='')}:{quote(self._options.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif self._options.client_secret:
            form["client_secret"] = self._options.client_secret
        connection = Connection(_https(discovered, "token_endpoint"), ca_data=self._ca)
        answer = await self._webhook_client.post(connection, urlencode(form).encode(), headers, timeout_s=_TIMEOUT_S)
        found = _parse(answer.body)
        token = found.get("id_token")
        if answer.status == 200 and isinstance(token, str) and token.isascii() and token.isprintable():
            return token
        problem = str(found.get("error_description") or found.get("error") or answer.error or answer.status)
        _log.warning("OIDC log-in failed", issuer=self._options.issuer_url, problem=problem[:_TEXT_MAX])
        raise LoginRefused(f"The identity provider did not accept the log-in: {problem[:_TEXT_MAX]}")

    async def _discover(self) -> dict[str, Any]:
        url = self._options.issuer_url.rstrip("/") + "/.well-known/openid-configuration"
        headers = {"accept": "application/json"}
        answer = await self._webhook_client.get(Connection(url, ca_data=self._ca), headers, timeout_s=_TIMEOUT_S)
        found = _parse(answer.body)
        if answer.status != 200 or found.get("issuer") != self._options.issuer_url:
            problem = answer.error or f"status {answer.status}, issuer {found.get('issuer')!r}"
            _log.warning("OIDC provider cannot be used", issuer=self._options.issuer_url, problem=problem)
            raise ServiceUnavailable(f"{self.provider} does not answer as an identity provider: {problem}")
        return found


def redirect_uri(request: Request) -> str:
    """Return the address that the provider sends the browser back to; it must be registered there."""
    return f"https://{request.headers.get('host', '')}{CALLBACK}"


def _https(discovered: dict[str, Any], field: str) -> str:
    address = discovered.get(field)
    if not isinstance(address, str) or not address.startswith("https://") or not address.isprintable():
        raise ServiceUnavailable(f"the identity provider's {field} {address!r} is not an https URL")
    return address


def _parse(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
