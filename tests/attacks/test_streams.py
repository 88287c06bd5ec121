"""Attacks on stored links and on streams: unlimited links, streams that are not counted or outlive their token."""

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.attacks.test_ui import ADMIN, logged_in, token_of
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect, running

from federation.apimachinery.errors import ApiError, Unauthorized
from federation.apiserver.auth.identity import User
from federation.apiserver.http.app import AppOptions
from federation.apiserver.http.flowcontrol import FlowControl, FlowControlOptions
from federation.apiserver.http.streams import Streams
from federation.web.ui import login
from federation.web.ui.credentials import Credentials
from federation.web.ui.userapi import UserAPI

WATCH = {"watch": "true", "resourceVersion": "0"}
OUTER = {"headers": [], "path": "/ui/fleet", "scheme": "https", "http_version": "1.1"}


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    flow_control = FlowControlOptions(user_watches_max=2)
    async with running(tmp_path, AppOptions(token_check_s=0.01, flow_control=flow_control)) as parts:
        yield parts


@pytest.fixture
async def admin(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(parts.app, ADMIN) as client:
        yield client


async def test_links_store_nothing(parts: Parts, admin: httpx.AsyncClient) -> None:
    before = (await admin.get("/api/v1/secrets")).json()["metadata"]["resourceVersion"]
    for _ in range(20):
        assert (await admin.post("/ui/links")).status_code == 201
    assert (await admin.get("/api/v1/secrets")).json()["metadata"]["resourceVersion"] == before


async def test_a_session_is_no_link_and_a_link_is_no_session(parts: Parts, admin: httpx.AsyncClient) -> None:
    code = str((await admin.post("/ui/links")).json()["path"].partition("#")[2])
    async with logged_in(parts, Credentials(peer=ADMIN), origin="https://api") as browser:
        session = browser.cookies[login.COOKIE]
        assert (await browser.post("/ui/link", data={"code": session})).status_code == 403
        browser.cookies.set(login.COOKIE, code, domain="api.local")
        assert (await browser.get("/ui/fleet")).headers["location"].startswith("/ui/login")


async def test_a_watch_ends_with_its_token(parts: Parts, admin: httpx.AsyncClient) -> None:
    token = await token_of(admin)
    await allow_everybody_to_watch(admin)
    stream = UserAPI(parts.app, Credentials(token=token), OUTER).stream("/api/v1/namespaces", WATCH)
    async with asyncio.timeout(60):
        await anext(stream)
        assert (await admin.delete("/api/v1/namespaces/default/serviceaccounts/robot")).status_code == 200
        parts.authenticator._cache.clear()  # otherwise the token stays valid for ten seconds
        async for _ in stream:
            pass


async def test_a_live_page_counts_as_a_watch_and_ends_with_its_token(parts: Parts, admin: httpx.AsyncClient) -> None:
    """Also one of a user who may watch nothing of what the page shows."""
    token = await token_of(admin)
    async with logged_in(parts, Credentials(token=token)) as browser:
        cookie = f"{login.COOKIE}={browser.cookies[login.COOKIE]}".encode()
    pages = [LivePage(parts, cookie) for _ in range(3)]
    async with asyncio.timeout(60):
        for page in pages[:2]:
            assert b"event: changed" in await page.messages.get()
        assert await pages[2].messages.get() == b"retry: 60000\n\n", "a third stream exceeds the limit of the user"
        await pages[2].serving
        assert (await admin.delete("/api/v1/namespaces/default/serviceaccounts/robot")).status_code == 200
        parts.authenticator._cache.clear()
        await asyncio.gather(*(page.serving for page in pages))


async def test_no_certificate_is_checked_again_and_an_outage_ends_nothing() -> None:
    checked, answers = asyncio.Event(), iter([ApiError("down", code=503, reason="ServiceUnavailable"), None])
    flow_control = FlowControl(FlowControlOptions())

    async def authenticate(_: object, authorization: bytes) -> User:
        assert authorization == b"Bearer x"
        if (answer := next(answers, None)) is not None:
            raise answer
        checked.set()
        if next(answers, 0) == 0:
            raise Unauthorized("Unauthorized")
        return User("a")

    streams = Streams(flow_control, authenticate, 0.001)
    with pytest.raises(Unauthorized):
        await streams.serve(User("a"), None, None, b"Bearer x", asyncio.Event().wait)  # type: ignore[arg-type]
    assert checked.is_set()
    assert flow_control.watches == 0
    held = streams.hold(User("a"), None, ADMIN, b"Bearer y", pytest.fail)
    assert flow_control.watches == 1
    held.close()
    assert flow_control.watches == 0


class LivePage:
    """The event stream of a page, as a browser reads it."""

    def __init__(self, parts: Parts, cookie: bytes) -> None:
        self.messages: asyncio.Queue[bytes] = asyncio.Queue()
        self._parts = parts
        self._request = iter([{"type": "http.request", "body": b"", "more_body": False}])
        headers = [(b"host", b"api"), (b"accept", b"text/event-stream"), (b"cookie", cookie)]
        scope = {**OUTER, "type": "http", "method": "GET", "raw_path": b"/ui/fleet", "root_path": "", "state": {}}
        self.serving = asyncio.ensure_future(
            parts.app({**scope, "query_string": b"", "headers": headers}, self._receive, self._send)
        )

    async def _receive(self) -> MutableMapping[str, Any]:
        for message in self._request:
            return message
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message.get("body"):
            self.messages.put_nowait(message["body"])


async def allow_everybody_to_watch(admin: httpx.AsyncClient) -> None:
    """Let every authenticated user read namespaces."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}
    role = {"metadata": {"name": "watchers"}, "rules": [rule]}
    subject = {"kind": "Group", "name": "system:authenticated", "apiGroup": group}
    reference = {"kind": "ClusterRole", "name": "watchers", "apiGroup": group}
    binding = {"metadata": {"name": "watchers"}, "subjects": [subject], "roleRef": reference}
    for plural, obj in (("clusterroles", role), ("clusterrolebindings", binding)):
        assert (await admin.post(f"/apis/{group}/v1/{plural}", json=obj)).status_code == 201
