"""Attack: a page of another site acts with the client certificate or the cookie that the browser sends by itself."""

from typing import Any

import httpx
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import Stream, connect

BINDING = {
    "metadata": {"name": "stolen"},
    "subjects": [{"kind": "User", "name": "evil", "apiGroup": "rbac.authorization.k8s.io"}],
    "roleRef": {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"},
}
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
EVIL = {"origin": "https://evil.example"}
NO_CORS = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty"}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    "headers",
    [
        EVIL,
        NO_CORS,
        {"origin": "null"},
        {"origin": "https://api.evil.example"},
        {"origin": "http://api"},  # whoever controls the network answers without TLS for any name
        {"origin": "ftp://api"},
        {"origin": "https://api:444"},
        {"origin": "https://localhost.evil.example"},
        {"origin": "https://["},
        {"sec-fetch-site": "same-site"},
        {**LINK, "sec-fetch-dest": "iframe"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/federation/v1/objects"),
        ("GET", "/metrics"),
        ("GET", "/readyz"),
        ("POST", BINDINGS),
        ("DELETE", "/api/v1/namespaces/default"),
        ("POST", "/ui/login"),
        ("GET", "/ui/fleet"),
    ],
)
async def test_a_foreign_page_gets_nothing_with_a_certificate(
    parts: Parts, method: str, path: str, headers: dict[str, str]
) -> None:
    async with connect(parts.app, **headers) as browser:
        body: Any = {"json": BINDING} if method == "POST" else {}
        answer = await browser.request(method, path, **body)
    assert answer.status_code == 403
    assert "another site" in answer.json()["message"]


async def test_a_body_without_a_type_creates_nothing(admin: httpx.AsyncClient) -> None:
    """A page may send it anywhere without asking first, and JSON is assumed."""
    for headers in ({**NO_CORS, **EVIL}, {"sec-fetch-site": "same-origin"}):
        request = admin.build_request("POST", BINDINGS, json=BINDING, headers=headers)
        del request.headers["content-type"]
        answer = await admin.send(request)
        assert answer.status_code == 415
    assert (await admin.get(f"{BINDINGS}/stolen")).status_code == 404


async def test_a_foreign_page_opens_no_watch(parts: Parts) -> None:
    """A WebSocket's handshake is this request, with the origin of its page."""
    stream = Stream(parts.app, "/api/v1/secrets", "watch=true", headers={"upgrade": "websocket", **EVIL})
    assert (await stream.next())["code"] == 403
    await stream.disconnect()


async def test_a_foreign_page_of_a_sibling_domain_gets_nothing_with_a_cookie(parts: Parts) -> None:
    async with connect(parts.app, None, cookie="__Host-federation-session=x", origin="https://other.api") as browser:
        assert (await browser.get("/ui/fleet")).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "https://api", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {"origin": "http://localhost:8001"},
        {"origin": "http://127.0.0.1:4466", "sec-fetch-site": "cross-site"},
        {"origin": "http://[::1]:4466"},
        {"origin": "file://", "sec-fetch-site": "cross-site"},
    ],
)
async def test_clients_and_own_and_local_pages_keep_working(parts: Parts, headers: dict[str, str]) -> None:
    async with connect(parts.app, **headers) as browser:
        assert (await browser.get("/api/v1/secrets")).status_code == 200
        assert (await browser.post(BINDINGS, json=BINDING)).status_code == 201


async def test_a_dashboard_with_a_token_may_be_anywhere(parts: Parts) -> None:
    async with connect(parts.app, None, **EVIL, **NO_CORS, authorization="Bearer wrong") as browser:
        assert (await browser.get("/api/v1/secrets")).status_code == 401, "only the token decides"


async def test_a_link_from_another_site_opens_the_web_ui_but_no_document_of_the_api(parts: Parts) -> None:
    async with connect(parts.app, **LINK) as browser:
        assert (await browser.get("/ui/login")).status_code == 200
        assert (await browser.get("/api/v1/secrets")).status_code == 403
