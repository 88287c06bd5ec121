"""Claims of service account tokens."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from federation.apiserver.auth.pki import ensure_pki
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.client.accounttoken import parse_account_token

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def tokens(tmp_path: Path) -> ServiceAccountTokens:
    return ServiceAccountTokens(ensure_pki(tmp_path, now=NOW).token_key)


def test_the_claims_of_an_issued_token_are_read(tokens: ServiceAccountTokens) -> None:
    found = parse_account_token(tokens.issue(namespace="ns", name="robot", uid="u", now=NOW, expires_s=3600))
    assert found is not None
    assert (found.namespace, found.account) == ("ns", "robot")
    assert found.expires == NOW + timedelta(hours=1)
    assert found.renewal == NOW + timedelta(minutes=20)


def test_the_token_of_a_secret_does_not_expire(tokens: ServiceAccountTokens) -> None:
    found = parse_account_token(tokens.issue_for_secret(namespace="ns", name="robot", uid="u", secret_name="s"))
    assert found is not None
    assert (found.account, found.expires, found.renewal) == ("robot", None, None)


@pytest.mark.parametrize("token", ["", "opaque", "a.b.c", "e30.e30.e30", "a.W10.c", "a.eyJzdWIiOiJib2IifQ.c"])
def test_other_tokens_have_no_claims(token: str) -> None:
    assert parse_account_token(token) is None
