"""Maps the verified claims of an OIDC ID token to a user; the options are kube-apiserver's flags. Pure.

A name or group that starts with `system:` is refused unless the configured prefix does, so that an identity provider
cannot create members of `system:masters`. `oidc.py` verifies signatures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.identity import CREDENTIAL_ID, User

SIGNING_ALGS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")
_RESERVED = "system:"
_NO_PREFIX = "-"
_NOT_BEFORE_LEEWAY_S = 300
"""As in kube-apiserver's library: the issuer's clock may be fast."""


class ClaimsRefused(FederationError):
    """The token is genuine but not accepted here; the text is the reason."""


@dataclass(frozen=True, slots=True)
class OIDCOptions:
    """The trusted issuer, and the claims that hold user and groups."""

    issuer_url: str
    """https://…, exactly as in the tokens' `iss`."""
    client_id: str
    """Must be among the tokens' `aud`."""
    username_claim: str = "sub"
    username_prefix: str = ""
    """"": `ISSUER#` unless the claim is `email`; "-": none."""
    groups_claim: str = ""
    """"": groups of tokens are ignored."""
    groups_prefix: str = ""
    required_claims: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    """PEM file of the issuer's CA; None: the system's authorities."""
    signing_algs: tuple[str, ...] = ("RS256",)

    def __post_init__(self) -> None:
        address = urlsplit(self.issuer_url)
        if address.scheme != "https" or not address.hostname or address.query or address.fragment:
            raise ConfigurationError(
                f"oidc-issuer-url {self.issuer_url!r}: give a URL like https://issuer.example/path"
            )
        if not self.client_id:
            raise ConfigurationError("oidc-client-id: Required value when oidc-issuer-url is set")
        if not self.username_claim:
            raise ConfigurationError("oidc-username-claim: Required value, for example sub or email")
        unknown = [name for name in self.signing_algs if name not in SIGNING_ALGS]
        if unknown or not self.signing_algs:
            raise ConfigurationError(f"oidc-signing-algs {unknown or ''}: choose among {', '.join(SIGNING_ALGS)}")


def to_required_claims(entries: Sequence[str]) -> dict[str, str]:
    """Return `key=value` entries as a mapping; ConfigurationError names a malformed entry."""
    required: dict[str, str] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not key or not equals:
            raise ConfigurationError(f"oidc-required-claim {entry!r}: give key=value")
        required[key] = value
    return required


def check_validity(claims: Mapping[str, Any], options: OIDCOptions, now_s: float) -> None:
    """Raise ClaimsRefused unless the token is from this issuer, for this client, and valid now."""
    if claims.get("iss") != options.issuer_url:
        raise ClaimsRefused("issued by another issuer")
    audience = claims.get("aud")
    if options.client_id not in (audience if isinstance(audience, list) else [audience]):
        raise ClaimsRefused(f"expected audience {options.client_id!r}, got {audience!r}")
    if _number(claims, "exp", None) <= now_s:
        raise ClaimsRefused("token is expired")
    if _number(claims, "nbf", 0) > now_s + _NOT_BEFORE_LEEWAY_S:
        raise ClaimsRefused("token is not valid yet")


def to_user(claims: Mapping[str, Any], options: OIDCOptions) -> User:
    """Return the user of valid claims; ClaimsRefused names a missing, mistyped or reserved claim."""
    for claim, wanted in options.required_claims.items():
        if claims.get(claim) != wanted:
            raise ClaimsRefused(f"required claim {claim} is not {wanted!r}")
    name = _username_prefix(options) + _username(claims, options.username_claim)
    groups = [options.groups_prefix + group for group in _groups(claims, options.groups_claim)]
    for text, prefix in ((name, options.username_prefix), *((group, options.groups_prefix) for group in groups)):
        if text.startswith(_RESERVED) and not prefix.startswith(_RESERVED):
            raise ClaimsRefused(f"{text!r} is reserved: set a username and a groups prefix")
    token_id = claims.get("jti")
    is_identified = isinstance(token_id, str) and token_id
    extra = {CREDENTIAL_ID: (f"JTI={token_id}",)} if is_identified else {}
    return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))), extra=extra)


def _username(claims: Mapping[str, Any], claim: str) -> str:
    name = claims.get(claim)
    if not isinstance(name, str) or not name:
        raise ClaimsRefused(f"username claim {claim} is missing or not a text")
    # An absent claim is accepted, as in kube-apiserver: not every provider sends it.
    if claim == "email" and claims.get("email_verified", True) is not True:
        raise ClaimsRefused("email not verified")
    return name


def _username_prefix(options: OIDCOptions) -> str:
    if options.username_prefix:
        return "" if options.username_prefix == _NO_PREFIX else options.username_prefix
    return "" if options.username_claim == "email" else f"{options.issuer_url}#"


def _groups(claims: Mapping[str, Any], claim: str) -> list[str]:
    """Return the groups; a single string is a list of one, as in kube-apiserver."""
    groups = claims.get(claim) if claim else None
    if isinstance(groups, str):
        return [groups]
    if groups is None:
        return []
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise ClaimsRefused(f"groups claim {claim} is not a list of texts")
    return groups


def _number(claims: Mapping[str, Any], claim: str, default: float | None) -> float:
    value = claims.get(claim, default)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ClaimsRefused(f"claim {claim} is missing or not a number")
    return value
