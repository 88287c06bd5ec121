"""ServiceAccount tokens and static tokens."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from federation.base.errors import ConfigurationError
from federation.server.pki import ensure_pki
from federation.server.tokens import ISSUER, ServiceAccountTokens, TokenFile

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def tokens(tmp_path: Path) -> ServiceAccountTokens:
    return ServiceAccountTokens(ensure_pki(tmp_path, now=NOW).token_key)


def test_a_token_says_whose_it_is_until_it_expires(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(namespace="a", name="b", uid="u", now=NOW, expires_s=600)
    claims = tokens.verify(token, now=NOW + timedelta(seconds=599))
    assert claims is not None
    assert (claims.namespace, claims.name, claims.uid, claims.audiences) == ("a", "b", "u", (ISSUER,))
    assert tokens.verify(token, now=NOW + timedelta(seconds=611)) is None
    assert tokens.verify(token, now=NOW - timedelta(seconds=60)) is None


def test_a_token_may_be_bound_and_for_other_audiences(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(namespace="a", name="b", uid="u", audiences=["vault"], now=NOW, bound=("Pod", "p", "pu"))
    claims = tokens.verify(token, now=NOW)
    assert claims is not None
    assert (claims.audiences, claims.bound_kind, claims.bound_name, claims.bound_uid) == (("vault",), "Pod", "p", "pu")


def test_a_secrets_token_does_not_expire(tokens: ServiceAccountTokens) -> None:
    token = tokens.issue_for_secret(namespace="a", name="b", uid="u", secret_name="s")
    claims = tokens.verify(token, now=NOW + timedelta(days=9999))
    assert claims is not None
    assert (claims.bound_kind, claims.bound_name) == ("Secret", "s")


def test_whatever_is_not_ours_is_refused(tokens: ServiceAccountTokens, tmp_path: Path) -> None:
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


def test_the_public_key_is_published_without_the_private_one(tokens: ServiceAccountTokens) -> None:
    (key,) = tokens.jwks()["keys"]
    assert set(key) == {"use", "kty", "kid", "crv", "alg", "x", "y"}


def test_static_tokens_are_hashed_at_rest_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = TokenFile(path).add(user="ci", groups=["system:masters"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    user = TokenFile(path).find(token)
    assert user is not None
    assert (user.name, user.groups) == ("ci", ("system:masters", "system:authenticated"))
    assert TokenFile(path).find(token + "x") is None
    assert TokenFile(tmp_path / "none").find(token) is None


def test_a_removed_token_stops_working_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    file = TokenFile(path)
    token = file.add(user="ci")
    assert file.find(token) is not None
    path.unlink()
    assert file.find(token) is None


def test_a_damaged_token_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="is not a token file"):
        TokenFile(tmp_path / "tokens.json").find("x")
