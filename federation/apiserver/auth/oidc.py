"""OIDC ID tokens as bearer tokens: fetches the issuer's keys and verifies signatures.

Keys are fetched in the background (discovery document, then its `jwks_uri`), and again when a token names an unknown
key, at most every few seconds. While the issuer is unreachable the last keys remain valid. Only requests whose token
names this issuer ever wait for it. `oidcclaims.py` maps claims to a user.

Decision: docs/decisions/0174-where-a-library-would-lose-something.md
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import jwt
import orjson
import structlog
from prometheus_client import Counter

from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.apimachinery.webhookclient import WebhookClient
from federation.apiserver.auth.identity import User
from federation.apiserver.auth.oidcclaims import ClaimsRefused, OIDCOptions, check_validity, to_user

_log = structlog.get_logger(__name__)
_PUBLIC_LENGTHS_MAX = {"kty": 3, "kid": 1024, "use": 3, "alg": 16, "crv": 16, "n": 1366, "e": 6, "x": 88, "y": 88}
"""The members of a public key, and their lengths: 8,192 bits of modulus, 32 of exponent. With the exponent of a private
key the library would search its factors, for minutes; large numbers would make each verification slow."""
_refreshes = Counter(
    "federation_server_oidc_refreshes_total", "Fetches of the OIDC issuer's keys by outcome", ["outcome"]
)
for _outcome in ("success", "failure"):
    _refreshes.labels(_outcome)


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """Intervals and limits of fetching keys."""

    refresh_s: float = 600.0
    """Between two successful fetches: a key that the issuer removed is trusted at most this long."""
    retry_s: float = 10.0
    """After a failed fetch, and the minimum between two fetches caused by unknown keys."""
    timeout_s: float = 10.0
    keys_max: int = 64


class _FetchFailed(FederationError):
    """The issuer returned no usable keys; the text is the reason."""


class SigningKeys:
    """The public keys of one issuer."""

    def __init__(
        self, oidc: OIDCOptions, webhook_client: WebhookClient, clock: Clock, options: KeyOptions | None = None
    ) -> None:
        self._issuer = oidc.issuer_url
        self._ca = _read_ca(oidc)
        self._webhook_client = webhook_client
        self._clock = clock
        self._options = options or KeyOptions()
        self._keys: list[tuple[str, Any]] = []
        self._fetching: asyncio.Task[bool] | None = None
        self._fetched_s: float | None = None

    async def run(self) -> None:
        """Fetch the keys periodically until cancelled."""
        while True:
            is_fresh = await self._refresh()
            await self._clock.sleep(self._options.refresh_s if is_fresh else self._options.retry_s)

    async def find(self, key_id: str) -> list[Any]:
        """Return the keys with this id (all for ""); fetch the keys for an unknown id, unless they are recent."""
        found = self._find(key_id)
        if found:
            return found
        is_recent = self._fetched_s is not None and self._clock.monotonic() < self._fetched_s + self._options.retry_s
        # Otherwise tokens with made-up key ids would flood the issuer with requests.
        if self._fetching is None and is_recent:
            return []
        await self._refresh()
        return self._find(key_id)

    def _find(self, key_id: str) -> list[Any]:
        return [key for known, key in self._keys if not key_id or known == key_id]

    async def _refresh(self) -> bool:
        """Fetch once for all concurrent callers; a cancelled caller does not cancel the fetch."""
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
        answer = await self._webhook_client.get(
            connection, {"accept": "application/json"}, timeout_s=self._options.timeout_s
        )
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
    """Authenticates by ID tokens of one issuer."""

    def __init__(self, options: OIDCOptions, keys: SigningKeys, clock: Clock) -> None:
        self._options = options
        self._keys = keys
        self._clock = clock
        self.run = keys.run

    async def authenticate(self, token: str) -> User | None:
        """Return the user of a valid ID token, else None. A token of another issuer never waits for keys."""
        if _unverified_issuer(token) != self._options.issuer_url:
            return None
        try:
            key_id = jwt.get_unverified_header(token).get("kid", "")
            claims = _verified(token, await self._keys.find(key_id), self._options.signing_algs)
            check_validity(claims, self._options, self._clock.now().timestamp())
            return to_user(claims, self._options)
        except (ClaimsRefused, jwt.PyJWTError) as problem:
            # Logged for administrators who diagnose a failed login; never log the token itself.
            _log.info("OIDC token refused", problem=str(problem))
            return None


def _verified(token: str, keys: list[Any], algorithms: tuple[str, ...]) -> dict[str, Any]:
    """Return the claims of a token that one of the keys signed; raise PyJWTError otherwise."""
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


def _unverified_issuer(token: str) -> Any:
    """Return the issuer claim of a token before verification, None when it is not a JWT."""
    try:
        return jwt.decode(token, options={"verify_signature": False}).get("iss")
    except jwt.PyJWTError:
        return None


def _to_keys(document: dict[str, Any], keys_max: int) -> list[tuple[str, Any]]:
    """Return id and public key of every usable signature key."""
    entries = document.get("keys")
    keys: list[tuple[str, Any]] = []
    for entry in entries[:keys_max] if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or entry.get("kty") not in ("RSA", "EC"):
            continue
        public = {name: entry[name] for name in _PUBLIC_LENGTHS_MAX if name in entry}
        if any(len(str(value)) > _PUBLIC_LENGTHS_MAX[name] for name, value in public.items()):
            continue
        try:
            keys.append((str(entry.get("kid", "")), jwt.PyJWK(public).key))
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
    try:
        Connection(oidc.issuer_url, ca_data=data).to_tls()
    except ConfigurationError as error:
        raise ConfigurationError(f"oidc-ca-file {oidc.ca_file}: {error}") from error
    return data
