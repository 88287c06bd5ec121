"""ID tokens against a real issuer: keys, rotation, outages and slow responses."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.apiserver import Parts
from tests.support.issuer import Issuer, an_issuer
from tests.unit.apiserver.conftest import connect, eventually

from federation.apimachinery.clock import ManualClock, SystemClock
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.webhookclient import WebhookClient
from federation.apiserver.auth.authentication import Authenticator
from federation.apiserver.auth.oidc import KeyOptions, OIDCAuthenticator, SigningKeys, _to_keys
from federation.apiserver.auth.oidcclaims import OIDCOptions
from federation.apiserver.http.app import App


@pytest.fixture(scope="module")
def shared_issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with an_issuer(tmp_path_factory.mktemp("issuer")) as issuer:
        yield issuer


@pytest.fixture
def issuer(shared_issuer: Issuer) -> Iterator[Issuer]:
    shared_issuer.asked.clear()
    yield shared_issuer
    shared_issuer.is_broken = False
    shared_issuer.hold.set()


@pytest.fixture
async def webhook_client() -> AsyncIterator[WebhookClient]:
    calls = WebhookClient()
    yield calls
    await calls.close()


class _Clock(SystemClock):
    """The real time of day, and a manual monotonic time."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def monotonic(self) -> float:
        return self.elapsed_s


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def trusting(issuer: Issuer) -> OIDCOptions:
    return OIDCOptions(
        issuer.url, "federation", username_prefix="-", ca_file=issuer.ca_file, signing_algs=("ES256", "RS256")
    )


@pytest.fixture
def oidc(issuer: Issuer, webhook_client: WebhookClient, clock: _Clock) -> OIDCAuthenticator:
    options = trusting(issuer)
    return OIDCAuthenticator(options, SigningKeys(options, webhook_client, clock, KeyOptions(timeout_s=5)), clock)


async def test_a_token_of_the_issuer_authenticates_and_keys_are_fetched_once(
    oidc: OIDCAuthenticator, issuer: Issuer
) -> None:
    for _ in range(3):
        user = await oidc.authenticate(issuer.token())
        assert user is not None
        assert user.name == "jane"
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


async def test_rsa_keys_and_tokens_without_a_key_id_work_too(oidc: OIDCAuthenticator, issuer: Issuer) -> None:
    issuer.rotate("rsa", is_rsa=True)
    for key_id in (None, ""):
        user = await oidc.authenticate(issuer.token(key_id=key_id))
        assert user is not None
    del issuer.keys["rsa"]


async def test_tokens_of_other_signers_are_refused(oidc: OIDCAuthenticator, issuer: Issuer) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1())
    symmetric = jwt.encode(
        {"iss": issuer.url, "aud": "federation", "sub": "jane", "exp": 1 << 40},
        "AAAA" * 16,
        "HS256",
        {"kid": "symmetric"},
    )
    head, payload, signature = issuer.token().split(".")
    unsigned = jwt.encode({"iss": issuer.url, "aud": "federation", "sub": "jane", "exp": 1 << 40}, "", "none")
    for token in (
        issuer.token(key=stranger),
        issuer.token(exp=1),
        issuer.token(aud="another"),
        issuer.token(sub=None),
        issuer.token(sub="system:admin"),
        symmetric,
        unsigned,
        f"{head}.{payload}.",
        f".{payload}.{signature}",
        f"{head}.{payload}.{signature[:-8]}AAAAAAAA",
    ):
        assert await oidc.authenticate(token) is None, token


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "e30.e30.e30", "e30.W10.e30", "é.é.é"])
async def test_tokens_of_other_issuers_cause_no_fetch(oidc: OIDCAuthenticator, issuer: Issuer, token: str) -> None:
    assert await oidc.authenticate(token) is None
    assert issuer.asked == []


async def test_a_new_key_is_fetched_with_its_first_token_and_unknown_keys_are_rate_limited(
    oidc: OIDCAuthenticator, issuer: Issuer, clock: _Clock
) -> None:
    assert await oidc.authenticate(issuer.token()) is not None
    issuer.rotate("second")
    clock.elapsed_s += 11
    assert await oidc.authenticate(issuer.token()) is not None
    assert len(issuer.asked) == 4
    for number in range(5):
        assert await oidc.authenticate(issuer.token(key_id=f"guess-{number}")) is None
    assert len(issuer.asked) == 4
    del issuer.keys["second"]


async def test_keys_remain_valid_while_the_issuer_is_unreachable_and_end_when_removed(
    issuer: Issuer, webhook_client: WebhookClient
) -> None:
    clock = ManualClock()
    keys = SigningKeys(trusting(issuer), webhook_client, clock)
    issuer.rotate("withdrawn")
    assert await keys.find("withdrawn")
    running = asyncio.create_task(keys.run())
    issuer.is_broken = True
    asked = len(issuer.asked)

    async def has_asked() -> bool:
        return len(issuer.asked) > asked

    await eventually(has_asked)
    assert await keys.find("withdrawn")
    del issuer.keys["withdrawn"]
    issuer.is_broken = False

    async def is_gone() -> bool:
        await clock.advance(10)
        return not await keys.find("withdrawn")

    await eventually(is_gone)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_concurrent_requests_share_a_fetch_and_cancel_alone(
    parts: Parts, issuer: Issuer, oidc: OIDCAuthenticator
) -> None:
    """Three requests with ID tokens share one fetch; requests with other credentials do not wait."""
    issuer.hold.clear()
    authenticator = Authenticator(parts.registry, clock=SystemClock(), token_file=parts.token_file, oidc=oidc)
    app = App(parts.registry, authenticator=authenticator, authorizer=parts.authorizer)
    token = issuer.token()
    static = parts.token_file.add(user="ci", groups=["system:masters"])
    async with (
        connect(app, None, authorization=f"Bearer {token}") as jane,
        connect(app, None, authorization=f"Bearer {static}") as ci,
        connect(app) as admin,
    ):
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        url = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        waiting = [asyncio.create_task(jane.post(url, json=review)) for _ in range(3)]

        async def has_asked() -> bool:
            return bool(issuer.asked)

        await eventually(has_asked)
        assert (await ci.get("/api/v1/namespaces")).status_code == 200
        assert (await admin.get("/api/v1/namespaces")).status_code == 200
        assert not any(task.done() for task in waiting)
        issuer.hold.set()
        answers = await asyncio.gather(*waiting)
        assert [answer.json()["status"]["userInfo"]["username"] for answer in answers] == ["jane"] * 3
        assert len(issuer.asked) == 2
        unknown = await jane.get("/api/v1/pods", headers={"authorization": f"Bearer {issuer.token(aud='x')}"})
        assert unknown.status_code == 401


async def test_token_reviews_answer_for_id_tokens(parts: Parts, issuer: Issuer, oidc: OIDCAuthenticator) -> None:
    authenticator = Authenticator(
        parts.registry, clock=SystemClock(), service_account_tokens=parts.authenticator.tokens, oidc=oidc
    )
    own = "https://kubernetes.default.svc.cluster.local"
    reviewed = await authenticator.review(issuer.token(), ())
    assert reviewed is not None
    assert (reviewed.user.name, reviewed.audiences) == ("jane", (own,))
    assert await authenticator.review(issuer.token(), ("another",)) is None


@pytest.mark.parametrize("document", ["issuer", "jwks_uri", "keys"])
async def test_an_inconsistent_issuer_is_not_trusted(issuer: Issuer, oidc: OIDCAuthenticator, document: str) -> None:
    answers = {
        "issuer": {"issuer": issuer.url + "/other", "jwks_uri": f"{issuer.url}/keys"},
        "jwks_uri": {"issuer": issuer.url, "jwks_uri": "http://127.0.0.1:1/keys"},
        "keys": {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/nothing"},
    }
    token = issuer.token()
    true_answer = issuer.answer
    issuer.answer = lambda path: answers[document]
    assert await oidc.authenticate(token) is None
    issuer.answer = true_answer


def test_an_unusable_ca_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.pem", tmp_path):
        with pytest.raises(ConfigurationError, match="oidc-ca-file"):
            SigningKeys(OIDCOptions("https://i.example", "c", ca_file=path), WebhookClient(), SystemClock())


KEY = {
    "kty": "EC",
    "crv": "P-256",
    "x": "jlM7b6C_e0YluzBmfAH7YH75-LioD-9bMAYocDGHsqM",
    "y": "c-sdveAzGDZtBp-DpvWQAFPHNjPLBBshxV4ahsH0ALQ",
}


@pytest.mark.parametrize(
    ("entry", "is_usable"),
    [
        (KEY, True),
        ({**KEY, "use": "sig"}, True),
        ({**KEY, "use": "enc"}, False),
        ({**KEY, "kty": "oct", "k": "c2VjcmV0"}, False),
        ({**KEY, "x": "short"}, False),
        ("text", False),
    ],
)
def test_only_public_keys_for_signatures_count(entry: Any, is_usable: bool) -> None:
    keys = _to_keys({"keys": [entry, {**KEY, "kid": "last"}]}, 10)
    assert [key_id for key_id, _ in keys] == ([""] if is_usable else []) + ["last"]
    assert len(_to_keys({"keys": [KEY] * 4}, 3)) == 3
