"""Log-in at an identity provider: it works, and answers that were forged, replayed, mixed up or redirected do not."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest
from tests.attacks.test_ui import ELSEWHERE
from tests.support.apiserver import Parts, build
from tests.support.issuer import Issuer, an_issuer
from tests.unit.apiserver.conftest import connect

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac
from federation.apiserver.auth.oidcclaims import OIDCOptions
from federation.apiserver.store.memory import MemoryStore
from federation.hosting.roles import HOST_RBAC
from federation.settings import Settings
from federation.web.ui import login
from federation.web.ui.credentials import Credentials, Sealer
from federation.web.ui.oidclogin import ATTEMPT_S

SECRET = "the client's secret"  # of a provider in this test


@pytest.fixture(scope="module")
def shared_issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with an_issuer(tmp_path_factory.mktemp("issuer")) as issuer:
        yield issuer


@pytest.fixture
def issuer(shared_issuer: Issuer) -> Iterator[Issuer]:
    yield shared_issuer
    shared_issuer.client_secret, shared_issuer.is_broken = "", False
    shared_issuer.claims.clear()


@pytest.fixture
async def parts(issuer: Issuer, tmp_path: Path) -> AsyncIterator[Parts]:
    issuer.client_secret = SECRET
    trusted = OIDCOptions(
        issuer.url, "federation", username_prefix="-", ca_file=issuer.ca_file, signing_algs=("ES256",)
    )
    store = MemoryStore()
    made = build(tmp_path, store, oidc=trusted, client_secret=SECRET)
    await made.registry.start()
    await ensure_default_rbac(made.registry, HOST_RBAC)
    tasks = [asyncio.create_task(made.authorizer.run()), asyncio.create_task(made.registry.run())]
    await made.authorizer.wait_synced()
    yield made
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await made.webhooks.close()
    await store.close()


async def begin(browser: httpx.AsyncClient, target: str = "/ui/fleet") -> dict[str, str]:
    """Start a log-in and return the request that the provider gets."""
    answer = await browser.get("/ui/oidc/login", params={"next": target})
    assert answer.status_code == 303, answer.text
    return dict(parse_qsl(httpx.URL(answer.headers["location"]).query.decode()))


async def agree(browser: httpx.AsyncClient, issuer: Issuer, request: dict[str, str]) -> httpx.Response:
    """Log in at the provider, and bring its answer back."""
    return await browser.get(issuer.authorize(urlencode(request)))


async def test_a_log_in_at_the_provider_becomes_a_session(parts: Parts, issuer: Issuer) -> None:
    async with connect(parts.app, None) as browser:
        assert "Log in with 127.0.0.1" in (await browser.get("/ui/login")).text
        request = await begin(browser, "/ui/fleet?q=a")
        assert request["redirect_uri"] == "https://api/ui/oidc/callback"
        assert (request["response_type"], request["code_challenge_method"]) == ("code", "S256")
        assert request["scope"] == "openid profile email"
        back = await agree(browser, issuer, request)
        assert back.status_code == 200, back.text
        assert 'content="0; url=/ui/fleet?q=a"' in back.text, "a page of this site begins the next navigation"
        assert login.ATTEMPT_COOKIE not in browser.cookies
        shown = await browser.get("/ui/fleet")
        assert (shown.status_code, "jane" in shown.text) == (403, True), "known, without the permission"
        again = await browser.get(back.request.url.raw_path.decode())
        assert again.status_code == 403, "the answer works once"


async def test_answers_to_other_log_ins_are_refused(parts: Parts, issuer: Issuer) -> None:
    async with connect(parts.app, None) as victim, connect(parts.app, None) as attacker:
        stolen = issuer.authorize(urlencode(await begin(attacker)))
        refused = await victim.get(stolen)
        assert (refused.status_code, login.COOKIE in victim.cookies) == (403, False), "no log-in was begun here"
        request = await begin(victim)
        for answer in (
            stolen,  # the attacker's account
            issuer.authorize(urlencode({**request, "state": "guessed"})),
            issuer.authorize(urlencode(request)).replace(urlencode({"iss": issuer.url}), "iss=https://evil.example"),
            "/ui/oidc/callback?" + urlencode({"state": request["state"]}),
            "/ui/oidc/callback?" + urlencode({"state": request["state"], "code": "made up"}),
        ):
            kept = victim.cookies[login.ATTEMPT_COOKIE]
            refused = await victim.get(answer)
            assert refused.status_code == 403, answer
            assert login.COOKIE not in victim.cookies
            victim.cookies.set(login.ATTEMPT_COOKIE, kept, domain="api.local")
        assert (await agree(victim, issuer, request)).status_code == 200, "the right answer still works"


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"nonce": "of another log-in"}, "belongs to another log-in"),
        ({"nonce": None}, "belongs to another log-in"),
        ({"azp": "another", "aud": ["federation", "another"]}, "made for another application"),
        ({"aud": "another"}, "does not accept the identity provider"),
        ({"exp": 1}, "does not accept the identity provider"),
        ({"iss": "https://evil.example"}, "does not accept the identity provider"),
    ],
)
async def test_tokens_for_something_else_are_refused(
    parts: Parts, issuer: Issuer, claims: dict[str, object], words: str
) -> None:
    issuer.claims.update(claims)
    async with connect(parts.app, None) as browser:
        refused = await agree(browser, issuer, await begin(browser))
        assert refused.status_code == 403
        assert words in refused.text
        assert login.COOKIE not in browser.cookies


async def test_an_intercepted_code_is_worth_nothing_without_the_verifier(parts: Parts, issuer: Issuer) -> None:
    async with connect(parts.app, None) as victim, connect(parts.app, None) as attacker:
        stolen = dict(parse_qsl(httpx.URL(issuer.authorize(urlencode(await begin(victim)))).query.decode()))
        own = await begin(attacker)
        query = urlencode({**stolen, "state": own["state"]})
        refused = await attacker.get(f"/ui/oidc/callback?{query}")
        assert refused.status_code == 403
        assert "the code is not valid" in refused.text


async def test_the_way_back_leads_only_to_pages_of_the_ui(parts: Parts, issuer: Issuer) -> None:
    async with connect(parts.app, None) as browser:
        for target in ELSEWHERE:
            back = await agree(browser, issuer, await begin(browser, target))
            assert 'content="0; url=/ui/overview"' in back.text, target


async def test_what_the_provider_says_is_shown_as_text(parts: Parts, issuer: Issuer) -> None:
    async with connect(parts.app, None) as browser:
        state = (await begin(browser))["state"]
        said = {"error": "access_denied", "error_description": "<script>alert(1)</script>" * 50, "state": state}
        refused = await browser.get(f"/ui/oidc/callback?{urlencode(said)}")
        assert refused.status_code == 403
        assert "<script>alert" not in refused.text
        assert refused.text.count("alert(1)") < 10
        issuer.is_broken = True
        broken = await browser.get("/ui/oidc/login")
        assert (broken.status_code, "does not answer as an identity provider" in broken.text) == (503, True)


async def test_cookies_of_log_ins_and_sessions_do_not_replace_each_other() -> None:
    clock = ManualClock(start=datetime.now(UTC))
    sealer = Sealer(lambda: b"key", clock)
    attempt = {"state": "s", "nonce": "n", "verifier": "v", "target": "/ui/fleet"}
    sealed = sealer.seal_value("oidc", attempt)
    assert sealer.open(sealed) is None
    assert sealer.open_value("oidc", sealer.seal("jane", Credentials(token="t")), ATTEMPT_S) is None
    assert sealer.open_value("oidc", sealed, ATTEMPT_S) == attempt
    await clock.advance(ATTEMPT_S + 1)
    assert sealer.open_value("oidc", sealed, ATTEMPT_S) is None


def test_the_settings_of_the_client_are_checked(tmp_path: Path) -> None:
    settings = Settings(tmp_path, oidc_issuer_url="https://issuer.example", oidc_client_id="ui")
    assert settings.oidc_login is not None
    assert (settings.oidc_login.client_secret, settings.oidc_login.scopes[0]) == ("", "openid")
    with pytest.raises(ConfigurationError, match="oidc-scopes: openid must be among them"):
        _ = replace(settings, oidc_scopes=("email",)).oidc_login
    (tmp_path / "secret").write_text("\n")
    with pytest.raises(ConfigurationError, match="it is empty; write the client's secret into it"):
        _ = replace(settings, oidc_client_secret_file=str(tmp_path / "secret")).oidc_login
    with pytest.raises(ConfigurationError, match="oidc-client-secret-file"):
        _ = replace(settings, oidc_client_secret_file=str(tmp_path / "none")).oidc_login
