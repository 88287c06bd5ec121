"""ServiceAccount tokens: claims, expiry, and tokens of other issuers."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from federation.apiserver.auth.pki import ensure_pki
from federation.apiserver.auth.serviceaccounttokens import ISSUER, ServiceAccountTokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)
_EARLIER_KEY = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgb1CMryz1mQ35rCGN
XolCXyBwX7hWmQY3EdO/fv3mijKhRANCAARZGjr+e2XIpbIZN+gGtdv036zDRm8V
NxmrN7dX/DaPi4f0ZLKrx0b+U4zQcgjPvLpzXnEJpHi0i/p3hjn30YOi
-----END PRIVATE KEY-----
"""
_EARLIER_TOKEN = (
    "eyJhbGciOiJFUzI1NiIsImtpZCI6IkV0amVtVlVyOTYzVWxnbzhudnpoOExJbVN6eWNmWXlyd3ZmNDl6c2Q2M28ifQ.eyJpc3MiO"
    "iJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMuY2x1c3Rlci5sb2NhbCIsInN1YiI6InN5c3RlbTpzZXJ2aWNlYWNjb3Vud"
    "DphOmIiLCJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3ZjLmNsdXN0ZXIubG9jYWwiXSwiaWF0IjoxNzY3MjI1N"
    "jAwLCJuYmYiOjE3NjcyMjU2MDAsImV4cCI6MTc2NzIyOTIwMCwianRpIjoiOGNjNTA4NDI2MzFhZThkY2MyYWI3MmJjOWE5NzY2N"
    "WEiLCJrdWJlcm5ldGVzLmlvIjp7Im5hbWVzcGFjZSI6ImEiLCJzZXJ2aWNlYWNjb3VudCI6eyJuYW1lIjoiYiIsInVpZCI6InUif"
    "Swibm9kZSI6eyJuYW1lIjoibjEiLCJ1aWQiOiJudSJ9fX0.1uWGfh4dgX7U1tEIIz2KeYRXya0X0pjpJR5GJ8gBe1JnmZ8qgHx4q"
    "4T8VB9FfZl9Mzoi_0LdDzr1vsWqqyYc1A"
)


@pytest.fixture
def tokens(tmp_path: Path) -> ServiceAccountTokens:
    return ServiceAccountTokens(ensure_pki(tmp_path, now=NOW).token_key)


def test_a_token_names_its_service_account_until_it_expires(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(namespace="a", name="b", uid="u", now=NOW, expires_s=600)
    claims = tokens.verify(token, now=NOW + timedelta(seconds=599))
    assert claims is not None
    assert (claims.namespace, claims.name, claims.uid, claims.audiences) == ("a", "b", "u", (ISSUER,))
    assert tokens.verify(token, now=NOW + timedelta(seconds=611)) is None
    assert tokens.verify(token, now=NOW - timedelta(seconds=60)) is None


def test_a_token_may_be_bound_and_have_other_audiences(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(namespace="a", name="b", uid="u", audiences=["vault"], now=NOW, bound=("Pod", "p", "pu"))
    claims = tokens.verify(token, now=NOW)
    assert claims is not None
    assert (claims.audiences, claims.bound_kind, claims.bound_name, claims.bound_uid) == (("vault",), "Pod", "p", "pu")


def test_the_token_of_a_secret_does_not_expire(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue_for_secret(namespace="a", name="b", uid="u", secret_name="s")
    claims = tokens.verify(token, now=NOW + timedelta(days=9999))
    assert claims is not None
    assert (claims.bound_kind, claims.bound_name) == ("Secret", "s")


def test_tokens_that_this_server_did_not_sign_are_refused(tokens: ServiceAccountTokens, tmp_path: Path) -> None:
    other = ServiceAccountTokens(ensure_pki(tmp_path / "other", now=NOW).token_key)
    good = tokens.issue(namespace="a", name="b", uid="u", now=NOW)
    head, payload, signature = good.split(".")
    bad = [
        other.issue(namespace="a", name="b", uid="u", now=NOW),
        ServiceAccountTokens(tmp_path / "service-account.key", issuer="https://else").issue(
            namespace="a", name="b", uid="u", now=NOW
        ),
        f"{head}.{payload}.{signature[:-4]}AAAA",
        f"{head}.{payload[:-2]}xx.{signature}",
        f"{head}.{payload}.",
        f"eyJhbGciOiJub25lIn0.{payload}.",
        "a.b.c",
        "..",
        "",
        "ünï.cödé.x",
        "bnVsbA.bnVsbA.bnVsbA",
    ]
    for token in bad:
        assert tokens.verify(token, now=NOW) is None, token


def test_the_key_set_holds_the_public_key_only(tokens: ServiceAccountTokens) -> None:
    (key,) = tokens.jwks()["keys"]
    assert set(key) == {"use", "kty", "kid", "crv", "alg", "x", "y"}


def test_a_token_of_an_earlier_release_is_accepted(tmp_path: Path) -> None:
    """Signed with the same key before this module used PyJWT."""
    (tmp_path / "key.pem").write_text(_EARLIER_KEY)
    claims = ServiceAccountTokens(tmp_path / "key.pem").verify(_EARLIER_TOKEN, now=NOW)
    assert claims is not None
    assert (claims.namespace, claims.name, claims.uid, claims.bound_kind) == ("a", "b", "u", "Node")
    assert (claims.bound_name, claims.bound_uid, claims.audiences) == ("n1", "nu", (ISSUER,))
