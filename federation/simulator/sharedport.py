"""One HTTPS port in front of many simulated members: member NAME is at https://HOST:PORT/clusters/NAME.

The prefix is part of the server's URL in a kubeconfig, so every client sends it with each request. It is removed before
the member sees the path. TLS, certificate and limits are those of any API server of ours.

Decision: docs/decisions/0068-light-members-behind-one-port.md
"""

import asyncio
from collections.abc import Callable

from federation.apimachinery.errors import NotFound
from federation.apiserver.auth.pki import TLSFiles
from federation.apiserver.http.asgi import ASGIApp, Receive, Request, Scope, Send
from federation.apiserver.http.serving import ServingOptions, serve

_PREFIX = "/clusters/"
_CONNECTIONS_MAX = 100_000
"""Each watch is a connection, and a control plane has some watches in every member."""


class SharedPort:
    """A port and the members behind it. `listen` is a `Listen` of one member."""

    def __init__(self, tls: TLSFiles, *, host: str = "127.0.0.1") -> None:
        self._tls = tls
        self._host = host
        self._address = host, 0
        self._members: dict[str, ASGIApp] = {}

    async def run(self, on_started: Callable[[], None]) -> None:
        """Serve until cancelled."""

        def started(host: str, port: int) -> None:
            self._address = host, port
            on_started()

        await serve(
            self._dispatch,
            host=self._host,
            port=0,
            tls=self._tls,
            on_started=started,
            options=ServingOptions(connections_max=_CONNECTIONS_MAX, unknown_percent_max=100, source_percent_max=100),
        )

    def url(self, member: str) -> str:
        """Return the address of a member, while the port serves."""
        host, port = self._address
        return f"https://{host}:{port}{_PREFIX}{member}"

    async def listen(
        self,
        member: str,
        app: ASGIApp,
        *,
        on_started: Callable[[str, int], None] | None = None,
        on_stopping: Callable[[], None] | None = None,
        **_: object,
    ) -> None:
        """Serve a member until cancelled; port and certificate are the shared ones."""
        self._members[member] = app
        try:
            if on_started is not None:
                on_started(*self._address)
            await asyncio.get_running_loop().create_future()
        finally:
            del self._members[member]
            if on_stopping is not None:
                on_stopping()

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        name, slash, rest = path.removeprefix(_PREFIX).partition("/")
        app = self._members.get(name) if path.startswith(_PREFIX) else None
        if app is None:
            known = "a member's path is /clusters/NAME" if self._members else "no member runs"
            await Request(scope, receive, send).respond_error(NotFound(f"{path} is no member; {known}"))
            return
        raw: bytes = scope["raw_path"]
        inner = {**scope, "path": slash + rest or "/", "raw_path": raw[len(_PREFIX) + len(name) :] or b"/"}
        await app(inner, receive, send)
