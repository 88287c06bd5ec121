"""OIDC ID tokens as bearer tokens: the issuer's keys, kept fresh, and the check of signature and claims.

Keys are fetched in the background (discovery document, then its `jwks_uri`) and again, at most every few seconds, when
a token names a key that is not known. While the issuer does not answer, the last keys stay good. Only requests whose
token claims to be from this issuer ever wait for it. What the claims mean is in `oidcclaims.py`; `authn.py` asks.
"""

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import Any

import jwt
import orjson
import structlog
from prometheus_client import Counter

from federation.base.clock import Clock
from federation.base.errors import ConfigurationError
from federation.client.connection import Connection
from federation.client.outcalls import Outcalls
from federation.server.identity import User
from federation.server.oidcclaims import ClaimsRefused, OIDCOptions, check_validity, to_user

_log = structlog.get_logger(__name__)
_refreshes = Counter(
    "federation_server_oidc_refreshes_total", "Fetches of the OIDC issuer's keys by outcome", ["outcome"]
)
for _outcome in ("success", "failure"):
    _refreshes.labels(_outcome)


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """How the issuer is asked."""

    refresh_s: float = 600.0
    """Between two fetches when all is well: a key that the issuer withdrew is trusted at most this long."""
    retry_s: float = 10.0
    """Between two fetches when the last failed, and at least between two that unknown keys cause."""
    timeout_s: float = 10.0
    keys_max: int = 64


class _FetchFailed(Exception):
    """The issuer did not give usable keys; the text says why."""


class SigningKeys:
    """The public keys of one issuer."""

    def __init__(self, oidc: OIDCOptions, outcalls: Outcalls, clock: Clock, options: KeyOptions | None = None) -> None:
        self._issuer = oidc.issuer_url
        self._ca = _read_ca(oidc)
        self._outcalls = outcalls
        self._clock = clock
        self._options = options or KeyOptions()
        self._keys: list[tuple[str, Any]] = []
        self._fetching: asyncio.Task[bool] | None = None
        self._fetched_s: float | None = None

    async def run(self) -> None:
        """Keep the keys fresh until cancelled."""
        while True:
            is_fresh = await self._refresh()
            await self._clock.sleep(self._options.refresh_s if is_fresh else self._options.retry_s)

    async def find(self, key_id: str) -> list[Any]:
        """Return the keys of this id (all for ""); an unknown one makes us ask the issuer, unless we just did."""
        found = self._find(key_id)
        if found:
            return found
        is_recent = self._fetched_s is not None and self._clock.monotonic() < self._fetched_s + self._options.retry_s
        if self._fetching is None and is_recent:
            return []
        await self._refresh()
        return self._find(key_id)

    def _find(self, key_id: str) -> list[Any]:
        return [key for known, key in self._keys if not key_id or known == key_id]

    async def _refresh(self) -> bool:
        """Fetch, once for all who wait; a waiter that is cancelled does not take the fetch with it."""
        if self._fetching is None:
            self._fetching = asyncio.ensure_future(self._fetch())
        return await asyncio.shield(self._fetching)

    async def _fetch(self) -> bool:
        try:
            discovered = await self._get(self._issuer.rstrip("/") + "/.well-known/openid-configuration")
            if discovered.get("issuer") != self._issuer:
                raise _FetchFailed(f"the discovery document is of issuer {discovered.get('issuer')!r}")
            address = discovered.get("jwks_uri")
            if not isinstance(address, str) or not address.startswith("https://"):
                raise _FetchFailed(f"jwks_uri {address!r} is not an https URL")
            self._keys = _to_keys(await self._get(address), self._options.keys_max)
        except _FetchFailed as problem:
            _refreshes.labels("failure").inc()
            _log.warning("cannot fetch OIDC keys", issuer=self._issuer, problem=str(problem), keys=len(self._keys))
            return False
        else:
            _refreshes.labels("success").inc()
            return True
        finally:
            self._fetched_s = self._clock.monotonic()
            self._fetching = None

    async def _get(self, url: str) -> dict[str, Any]:
        connection = Connection(url, ca_data=self._ca)
        answer = await self._outcalls.get(connection, {"accept": "application/json"}, timeout_s=self._options.timeout_s)
        if answer.status != 200:
            raise _FetchFailed(f"{url}: {answer.error or f'HTTP status {answer.status}'}")
        try:
            value = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise _FetchFailed(f"{url}: not JSON") from error
        if not isinstance(value, dict):
            raise _FetchFailed(f"{url}: not a JSON object")
        return value


class OIDCAuthenticator:
    """Checks ID tokens of one issuer."""

    def __init__(self, options: OIDCOptions, keys: SigningKeys, clock: Clock) -> None:
        self._options = options
        self._keys = keys
        self._clock = clock
        self.run = keys.run

    async def authenticate(self, token: str) -> User | None:
        """Return the user of a valid ID token; None for every other token, at once when it is not from this issuer."""
        if _untrusted_issuer(token) != self._options.issuer_url:
            return None
        try:
            key_id = jwt.get_unverified_header(token).get("kid", "")
            claims = _verified(token, await self._keys.find(key_id), self._options.signing_algs)
            check_validity(claims, self._options, self._clock.now().timestamp())
            return to_user(claims, self._options)
        except (ClaimsRefused, jwt.PyJWTError) as problem:
            # At info, and without the token: what an administrator looks for when a login does not work.
            _log.info("OIDC token refused", problem=str(problem))
            return None


def _verified(token: str, keys: list[Any], algorithms: tuple[str, ...]) -> dict[str, Any]:
    """Return the claims of a token that one of the keys signed; PyJWTError otherwise."""
    problem: jwt.PyJWTError = jwt.InvalidSignatureError("no key of the issuer fits")
    for key in keys:
        try:
            payload = jwt.PyJWS().decode(token, key, algorithms=list(algorithms))
            claims = orjson.loads(payload)
            if isinstance(claims, dict):
                return claims
            raise jwt.DecodeError("the payload is not an object")
        except (TypeError, ValueError):
            continue  # a key of another type than the token's algorithm
        except jwt.PyJWTError as error:
            problem = error
    raise problem


def _untrusted_issuer(token: str) -> str:
    """Return what an unchecked token says of its issuer, "" when it is no token of this kind."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return ""
    issuer = claims.get("iss") if isinstance(claims, dict) else ""
    return issuer if isinstance(issuer, str) else ""


def _to_keys(document: dict[str, Any], keys_max: int) -> list[tuple[str, Any]]:
    """Return id and public key of every key for signatures; what we cannot use is left out."""
    entries = document.get("keys")
    keys: list[tuple[str, Any]] = []
    for entry in entries[:keys_max] if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or entry.get("kty") not in ("RSA", "EC"):
            continue
        try:
            keys.append((str(entry.get("kid", "")), jwt.PyJWK(entry).key))
        except (jwt.PyJWTError, TypeError, ValueError):
            continue
    if not keys:
        raise _FetchFailed("the key set holds no usable key for signatures")
    return keys


def _read_ca(oidc: OIDCOptions) -> bytes:
    if oidc.ca_file is None:
        return b""
    try:
        data = oidc.ca_file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"oidc-ca-file {oidc.ca_file}: {error.strerror}") from error
    Connection(oidc.issuer_url, ca_data=data).to_tls()
    return data
