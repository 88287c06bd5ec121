"""Attacks on terminals in the web UI: pages of other sites, other users, rights that were taken away, floods, hoarding."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import httpx
import orjson
import pytest
from tests.attacks.test_ui import ADMIN, OWN, logged_in, token_of
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import eventually
from tests.unit.apiserver.rbacobjects import RBAC, grant, rule, user, wait_allowed

from federation.apimachinery.clock import ManualClock, SystemClock
from federation.apimachinery.errors import BadRequest
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.websockets import with_websockets
from federation.simulator.podconnections import PodExec
from federation.web.ui import login
from federation.web.ui.credentials import Credentials, Sealer
from federation.web.ui.terminal import PreparedTerminal, TerminalOptions, Terminals
from federation.web.ui.terminalscreen import to_query, why_not_any_more
from federation.web.ui.userapi import UserAPI

BOB = Peer("bob", ())
OPEN = "/ui/pods/default/web/exec"
PROTOCOLS = ["v5.channel.k8s.io"]
_STATUS = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": "nginx",
            "ready": True,
            "restartCount": 0,
            "image": "nginx",
            "imageID": "nginx",
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
    ],
}
EXEC = Attributes("create", "", resource="pods", subresource="exec", namespace="default", name="web")


@pytest.fixture
async def pod(parts: Parts, admin: httpx.AsyncClient) -> None:
    """A running pod whose containers are simulated."""
    parts.connectors["", "v1", "pods", "exec"] = PodExec(parts.registry, SystemClock())
    body = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}}
    assert (await admin.post("/api/v1/namespaces/default/pods", json=body)).status_code == 201
    patch = {"headers": {"content-type": "application/merge-patch+json"}, "content": orjson.dumps({"status": _STATUS})}
    assert (await admin.patch("/api/v1/namespaces/default/pods/web/status", **patch)).status_code == 200


class Handshake:
    """A WebSocket of a browser on raw ASGI."""

    def __init__(self, parts: Parts, cookie: str, headers: dict[str, str], path: str, protocols: Sequence[str]) -> None:
        self._app = with_websockets(parts.app)
        self._outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()
        self._outgoing.put_nowait({"type": "websocket.connect"})
        path, _, query = path.partition("?")
        sent = {"host": "api", **headers, **({"cookie": f"{login.COOKIE}={cookie}"} if cookie else {})}
        self._scope = {
            "type": "websocket",
            "scheme": "wss",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "subprotocols": list(protocols),
            "state": {"peer": None},
            "client": ("127.0.0.1", 1),
            "extensions": {"websocket.http.response": {}},
        }

    async def run(self) -> None:
        await self._app(self._scope, self._outgoing.get, self.incoming.put)

    def type(self, data: bytes) -> None:
        self._outgoing.put_nowait({"type": "websocket.receive", "bytes": data})

    async def answer(self) -> Any:
        async with asyncio.timeout(30):
            return await self.incoming.get()

    async def end(self) -> str:
        """Return the message of the error channel; the connection is closed after it."""
        while True:
            message = await self.answer()
            if message["type"] == "websocket.send" and message["bytes"][0] == 3:
                assert (await self.answer())["type"] == "websocket.close"
                return str(orjson.loads(message["bytes"][1:])["message"])
            assert message["type"] != "websocket.close", "it ended without a reason"


@asynccontextmanager
async def opened(
    parts: Parts,
    credentials: Credentials | None,
    command: str = "sh",
    headers: dict[str, str] = OWN,
    protocols: Sequence[str] = PROTOCOLS,
) -> AsyncIterator[Handshake]:
    sealer = Sealer(parts.pki.token_key.read_bytes, ManualClock(start=datetime.now(UTC)))
    cookie = sealer.seal("somebody", credentials) if credentials is not None else ""
    made = Handshake(parts, cookie, headers, f"{OPEN}?{urlencode({'command': command})}", protocols)
    running = asyncio.ensure_future(made.run())
    try:
        yield made
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@pytest.mark.usefixtures("pod")
async def test_the_owner_of_a_session_gets_a_shell(parts: Parts) -> None:
    async with opened(parts, Credentials(peer=ADMIN)) as terminal:
        assert await terminal.answer() == {"type": "websocket.accept", "subprotocol": "v5.channel.k8s.io"}
        terminal.type(b"\x00hostname\r")
        shown = b""
        while b"web\r\n" not in shown:
            shown += (await terminal.answer())["bytes"][1:]


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    ("headers", "has_session", "protocols"),
    [
        ({"origin": "https://evil.example"}, True, PROTOCOLS),
        ({"origin": "null"}, True, PROTOCOLS),
        ({"origin": "http://api"}, True, PROTOCOLS),
        ({"origin": "https://127.0.0.1:8001"}, True, PROTOCOLS),
        ({"sec-fetch-site": "same-origin"}, True, PROTOCOLS),
        ({}, True, PROTOCOLS),
        (OWN, False, PROTOCOLS),
        (OWN, True, ["graphql-ws"]),
        (OWN, True, []),
    ],
    ids=["site", "sandbox", "no TLS", "this machine", "no origin", "no browser", "no session", "protocol", "none"],
)
async def test_no_terminal_is_opened_for(
    parts: Parts, headers: dict[str, str], has_session: bool, protocols: list[str]
) -> None:
    """A browser sends the cookie with a handshake of any page of the same site, and no preflight."""
    credentials = Credentials(peer=ADMIN) if has_session else None
    async with opened(parts, credentials, headers=headers, protocols=protocols) as terminal:
        answer = await terminal.answer()
        assert answer["type"] == "websocket.http.response.start", "the handshake is refused"
        assert answer["status"] in (303, 400, 401, 403)


@pytest.mark.usefixtures("pod")
async def test_a_page_neither_starts_a_command_nor_takes_one_from_its_address(parts: Parts) -> None:
    async with logged_in(parts, Credentials(peer=ADMIN)) as browser:
        page = await browser.get("/ui/pods/default/web/terminal?command=rm+-rf+/&container=x")
        assert page.status_code == 200, page.text
        assert "rm -rf" not in page.text.partition('<form class="filters" id="terminal"')[2]
        policy = page.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert policy.count("unsafe") == 1, "styles only"
        other = await browser.get("/ui/pods/default/web")
        assert "unsafe" not in other.headers["content-security-policy"]


@pytest.mark.usefixtures("pod")
async def test_a_user_without_the_right_sees_why_and_gets_nothing(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(admin, rule("get", "pods,pods/exec"), to=user("bob"))
    await wait_allowed(parts, User("bob"), Attributes("get", "", resource="pods", namespace="default", name="web"))
    async with opened(parts, Credentials(peer=BOB)) as terminal:
        assert (await terminal.answer())["type"] == "websocket.accept"
        reason = await terminal.end()
        assert 'cannot create resource "pods/exec"' in reason, "reading is not running commands"
    async with logged_in(parts, Credentials(peer=BOB)) as browser:
        assert 'id="terminal"' not in (await browser.get("/ui/pods/default/web/terminal")).text


@pytest.mark.usefixtures("pod")
async def test_a_revoked_token_ends_the_session_of_the_next_handshake(parts: Parts, admin: httpx.AsyncClient) -> None:
    token = await token_of(admin)
    assert (await admin.delete("/api/v1/namespaces/default/serviceaccounts/robot")).status_code == 200
    async with opened(parts, Credentials(token=token)) as terminal:
        answer = await terminal.answer()
        assert answer["type"] == "websocket.http.response.start"


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    "message", [b"", b"\x01out", b"\x03{}", b"\x00" + b"x" * 70_000], ids=["empty", "stdout", "error", "large"]
)
async def test_what_no_page_of_ours_sends_ends_the_terminal(parts: Parts, message: bytes) -> None:
    async with opened(parts, Credentials(peer=ADMIN)) as terminal:
        assert (await terminal.answer())["type"] == "websocket.accept"
        terminal.type(message)
        codes = []
        while not codes:
            answer = await terminal.answer()
            codes += [answer["code"]] if answer["type"] == "websocket.close" else []
        assert codes[0] in (1008, 1009)


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    "command", ["", "   ", "echo 'x", "a\nb", "x" * 1001], ids=["none", "blank", "quote", "lines", "long"]
)
async def test_a_command_that_is_none_is_refused_with_the_remedy(parts: Parts, command: str) -> None:
    with pytest.raises(BadRequest, match="Command: "):
        to_query(command, "")
    async with opened(parts, Credentials(peer=ADMIN), command) as terminal:
        assert (await terminal.answer())["type"] == "websocket.accept"
        assert (await terminal.end()).startswith("Command: ")


def test_a_command_is_split_as_a_shell_does_and_none_is_run() -> None:
    query = to_query("sh -c 'echo $HOME; id' &&", "nginx")
    assert [value for name, value in query if name == "command"] == ["sh", "-c", "echo $HOME; id", "&&"]
    assert ("container", "nginx") in query


# Sessions that last: with a clock of their own


class PageEnd:
    """The page's side of a terminal, in memory."""

    subprotocols: Sequence[str] = PROTOCOLS

    def __init__(self) -> None:
        self.typed: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self.shown: list[str | bytes] = []
        self.accepted, self.closed = asyncio.Event(), asyncio.Event()

    async def accept(self, subprotocol: str) -> None:
        assert subprotocol in PROTOCOLS
        self.accepted.set()

    def carry_body(self) -> None:
        raise AssertionError("a terminal has no body")

    async def receive(self) -> str | bytes | None:
        return await self.typed.get()

    async def send(self, message: str | bytes) -> None:
        self.shown.append(message)

    async def close(self, code: int) -> None:
        assert code == 1000
        self.closed.set()

    @property
    def reason(self) -> str:
        assert isinstance(self.shown[-1], bytes)
        return str(orjson.loads(self.shown[-1][1:])["message"])


class Session:
    """One open terminal of a user."""

    def __init__(self, parts: Parts, terminals: Terminals, peer: Peer) -> None:
        self.page = PageEnd()
        api = UserAPI(parts.app, Credentials(peer=peer), {"headers": [(b"host", b"api")]})

        async def prepare() -> PreparedTerminal:
            path = "/api/v1/namespaces/default/pods/web/exec"
            return PreparedTerminal(
                path, to_query("sh", ""), lambda: why_not_any_more(api, "default", "web", "", "web")
            )

        self.running = asyncio.ensure_future(terminals.run(api, peer.user, self.page, prepare))

    async def until_open(self) -> None:
        async with asyncio.timeout(30):
            await self.page.accepted.wait()

    async def until_closed(self, clock: ManualClock, step_s: float, typed: bytes = b"") -> float:
        """Let time pass in steps, and return how much."""
        passed_s = 0.0
        async with asyncio.timeout(60):
            while not self.running.done():
                if typed:
                    self.page.typed.put_nowait(typed)
                await clock.advance(step_s)
                passed_s += step_s
                # Its requests are answered by tasks of this loop.
                await asyncio.wait([self.running], timeout=0.02)
        await self.running
        return passed_s


@pytest.mark.usefixtures("pod")
async def test_a_user_who_loses_his_right_loses_his_terminal(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(admin, rule("get", "pods"), rule("get,create", "pods/exec"), to=user("bob"))
    await wait_allowed(parts, User("bob"), EXEC)
    clock = ManualClock()
    session = Session(parts, Terminals(clock), BOB)
    await session.until_open()
    await admin.delete(f"{RBAC}/namespaces/default/rolebindings/r")

    async def is_revoked() -> bool:
        return not parts.authorizer.authorize(User("bob"), EXEC).is_allowed

    await eventually(is_revoked)
    await session.until_closed(clock, 10.0, b"\x00a")
    assert session.page.reason == "you may no longer run commands in this pod"


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    ("typed", "seconds", "says"),
    [(b"", 900, "nobody typed"), (b"\x00a", 3600, "ends after 1 hours")],
    ids=["idle", "long"],
)
async def test_a_terminal_ends_in_time(parts: Parts, typed: bytes, seconds: float, says: str) -> None:
    clock = ManualClock()
    options = TerminalOptions(check_s=300.0, length_s_max=3600.0)
    session = Session(parts, Terminals(clock, options), ADMIN)
    await session.until_open()
    assert await session.until_closed(clock, 300.0, typed) >= seconds
    assert says in session.page.reason


@pytest.mark.usefixtures("pod")
async def test_a_user_has_a_limited_number_of_terminals_and_gets_them_back(parts: Parts) -> None:
    terminals = Terminals(ManualClock(), TerminalOptions(per_user_max=2))
    kept = [Session(parts, terminals, ADMIN) for _ in range(2)]
    for session in kept:
        await session.until_open()
    refused = Session(parts, terminals, ADMIN)
    async with asyncio.timeout(30):
        await refused.running
    assert "2 terminals of yours are open" in refused.page.reason
    kept[0].page.typed.put_nowait(None)
    async with asyncio.timeout(30):
        await kept[0].running
    again = Session(parts, terminals, ADMIN)
    await again.until_open()
    for session in (kept[1], again):
        session.page.typed.put_nowait(None)
        async with asyncio.timeout(30):
            await session.running
