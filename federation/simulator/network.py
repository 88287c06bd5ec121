"""The network in front of a simulated member, with its failures: latency, errors, silence, broken connections.

`Network.wrap` puts it around an API server's app. A member in a process of its own has only latency and errors here;
the rest happens to its process (`memberprocess.py`). Light members have all failures here (`lightmember.py`).
"""

import asyncio
import random
from collections.abc import Callable

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ServiceUnavailable
from federation.apiserver.http.asgi import ABORT, ASGIApp, Receive, Request, Scope, Send


class Network:
    """Failures that can change at any time; open watches obey them, too. `seed` decides which requests fail."""

    def __init__(self, clock: Clock, *, seed: str = "") -> None:
        self.latency_s = 0.0
        """Delay of each response and of each batch of watch events."""
        self.error_share = 0.0
        """Share of requests that are answered with 503, from 0 to 1."""
        self._clock = clock
        self._random = random.Random(seed)  # noqa: S311  # simulated failures, not secrets
        self._is_cut = False
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._aborts: set[Callable[[], None]] = set()

    def set_frozen(self, is_frozen: bool) -> None:
        """Answer nothing while frozen; connections stay open."""
        if is_frozen:
            self._is_open.clear()
        else:
            self._is_open.set()

    def cut(self) -> None:
        """Break all connections in use, and each later one at its first request."""
        self._is_cut = True
        self._is_open.set()
        for abort in list(self._aborts):
            abort()

    def restore(self) -> None:
        """End every failure."""
        self._is_cut, self.latency_s, self.error_share = False, 0.0, 0.0
        self._is_open.set()

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return an app that answers as `app` does behind this network."""

        async def behind(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_through(message: Scope) -> None:
                if message.get("more_body"):  # a part of a stream; other responses were delayed before they started
                    await self._pass()
                await send(message)

            abort = scope.get("extensions", {}).get(ABORT, _nothing)
            self._aborts.add(abort)
            try:
                await self._pass()
                if self._is_cut and ABORT in scope.get("extensions", {}):
                    abort()
                    # Until the server knows it: it reports a request that ends without an answer as an error.
                    while (await receive())["type"] != "http.disconnect":
                        continue
                elif self.error_share and self._random.random() < self.error_share:
                    error = ServiceUnavailable("simulated failure; end it with: fedctl sim start MEMBER")
                    await Request(scope, receive, send).respond_error(error)
                else:
                    await app(scope, receive, send_through)
            finally:
                self._aborts.discard(abort)

        return behind

    async def _pass(self) -> None:
        if self.latency_s > 0:
            await self._clock.sleep(self.latency_s)
        await self._is_open.wait()


def _nothing() -> None:
    """Stand for `ABORT` of a connection that has none, such as a WebSocket's."""
