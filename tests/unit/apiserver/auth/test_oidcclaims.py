"""Mapping of ID token claims to users."""

from typing import Any

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.identity import User
from federation.apiserver.auth.oidcclaims import ClaimsRefused, OIDCOptions, check_validity, to_required_claims, to_user

ISSUER = "https://issuer.example/realm"
CLAIMS: dict[str, Any] = {"iss": ISSUER, "aud": "kubernetes", "sub": "jane", "exp": 2000}


def options(**changes: Any) -> OIDCOptions:
    return OIDCOptions(ISSUER, "kubernetes", **changes)


@pytest.mark.parametrize(
    ("changes", "claims", "name", "groups"),
    [
        ({}, {}, f"{ISSUER}#jane", ()),
        ({"username_prefix": "-"}, {}, "jane", ()),
        ({"username_prefix": "oidc:"}, {}, "oidc:jane", ()),
        ({"username_claim": "email"}, {"email": "jane@example.com"}, "jane@example.com", ()),
        ({"username_claim": "email"}, {"email": "j@e", "email_verified": True}, "j@e", ()),
        ({"username_prefix": "-", "groups_claim": "groups"}, {"groups": ["a", "b"]}, "jane", ("a", "b")),
        ({"username_prefix": "-", "groups_claim": "role"}, {"role": "dev"}, "jane", ("dev",)),
        ({"username_prefix": "-", "groups_claim": "g", "groups_prefix": "x:"}, {"g": ["a"]}, "jane", ("x:a",)),
        (
            {"username_prefix": "-", "groups_claim": "g", "groups_prefix": "oidc:"},
            {"g": ["system:masters"]},
            "jane",
            ("oidc:system:masters",),
        ),
        ({"username_prefix": "-"}, {"groups": ["not", "asked", "for"]}, "jane", ()),
        ({"username_prefix": "-", "required_claims": {"hd": "example.com"}}, {"hd": "example.com"}, "jane", ()),
        ({"username_prefix": "system:oidc:"}, {}, "system:oidc:jane", ()),
    ],
)
def test_claims_map_to_a_user(
    changes: dict[str, Any], claims: dict[str, Any], name: str, groups: tuple[str, ...]
) -> None:
    assert to_user(CLAIMS | claims, options(**changes)) == User(name, (*groups, "system:authenticated"))


def test_the_token_id_is_the_credential_id() -> None:
    assert to_user(CLAIMS | {"jti": "42"}, options()).extra == {
        "authentication.kubernetes.io/credential-id": ("JTI=42",)
    }


@pytest.mark.parametrize(
    ("changes", "claims", "why"),
    [
        ({"username_prefix": "-"}, {"sub": "system:admin"}, "reserved"),
        ({"groups_claim": "groups"}, {"groups": ["dev", "system:masters"]}, "reserved"),
        ({"groups_claim": "groups", "groups_prefix": "sys"}, {"groups": ["tem:masters"]}, "reserved"),
        ({"groups_claim": "groups"}, {"groups": [1]}, "groups claim groups"),
        ({"username_claim": "name"}, {}, "username claim name"),
        ({"username_claim": "name"}, {"name": ""}, "username claim name"),
        ({"username_claim": "email"}, {"email": "j@e", "email_verified": False}, "not verified"),
        ({"username_claim": "email"}, {"email": "j@e", "email_verified": "true"}, "not verified"),
        ({"required_claims": {"hd": "example.com"}}, {"hd": "example.org"}, "required claim hd"),
        ({"required_claims": {"hd": "example.com"}}, {}, "required claim hd"),
    ],
)
def test_refused_claims_name_the_reason(changes: dict[str, Any], claims: dict[str, Any], why: str) -> None:
    with pytest.raises(ClaimsRefused, match=why):
        to_user(CLAIMS | claims, options(**changes))


@pytest.mark.parametrize("audience", ["kubernetes", ["other", "kubernetes"]])
def test_a_token_for_this_client_is_valid_until_it_expires(audience: Any) -> None:
    check_validity(CLAIMS | {"aud": audience, "nbf": 2299}, options(), now_s=1999)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": 1999}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": True}, "exp"),
        ({"nbf": 2300}, "not valid yet"),
        ({"aud": "other"}, "audience"),
        ({"aud": None}, "audience"),
        ({"iss": ISSUER + "/"}, "another issuer"),
    ],
)
def test_a_token_for_another_client_or_time_is_refused(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(ClaimsRefused, match=why):
        check_validity(CLAIMS | claims, options(), now_s=1999)


@pytest.mark.parametrize(
    ("issuer", "client", "changes", "what"),
    [
        ("http://issuer", "k", {}, "oidc-issuer-url"),
        ("https://issuer?x=1", "k", {}, "oidc-issuer-url"),
        ("https://", "k", {}, "oidc-issuer-url"),
        (ISSUER, "", {}, "oidc-client-id"),
        (ISSUER, "k", {"username_claim": ""}, "oidc-username-claim"),
        (ISSUER, "k", {"signing_algs": ("HS256",)}, "oidc-signing-algs"),
        (ISSUER, "k", {"signing_algs": ()}, "oidc-signing-algs"),
    ],
)
def test_invalid_options_name_the_flag(issuer: str, client: str, changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        OIDCOptions(issuer, client, **changes)


def test_required_claims_are_key_value_entries() -> None:
    assert to_required_claims(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    with pytest.raises(ConfigurationError, match="oidc-required-claim 'a'"):
        to_required_claims(["a"])
    with pytest.raises(ConfigurationError, match="give key=value"):
        to_required_claims(["=b"])
