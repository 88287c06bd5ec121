"""Streams of users: watches, followed logs, sessions in members, live pages.

Each counts against its user, whatever route serves it, and ends soon after the server no longer accepts its bearer
token. A client certificate cannot be revoked, so a stream with one ends with its connection. Nothing runs for an idle
stream but a timer.
"""

import asyncio
from collections.abc import Awaitable, Callable

from federation.apimachinery.errors import ApiError, Unauthorized
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import User
from federation.apiserver.http.flowcontrol import Flow, FlowControl

Authenticate = Callable[[Peer | None, bytes], Awaitable[User]]
End = Callable[[], None]
Serve = Callable[[], Awaitable[None]]


class HeldStream:
    """One counted stream. `close` uncounts it."""

    def __init__(
        self,
        flow_control: FlowControl,
        authenticate: Authenticate,
        user: User,
        authorization: bytes,
        end: End,
        check_s: float,
    ) -> None:
        """Check the token each `check_s` seconds."""
        self._flow_control = flow_control
        self._authenticate = authenticate
        self._user = user
        self._authorization = authorization
        self._end = end
        self._check_s = check_s
        self._timer: asyncio.TimerHandle | None = None
        self._checking: asyncio.Future[None] | None = None
        if authorization:
            self._wait()

    def close(self) -> None:
        """Uncount the stream and check its token no longer."""
        self._flow_control.close_watch(self._user)
        if self._timer is not None:
            self._timer.cancel()
        if self._checking is not None:
            self._checking.cancel()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._check_s, self._begin)

    def _begin(self) -> None:
        self._checking = asyncio.ensure_future(self._check())

    async def _check(self) -> None:
        try:
            await self._authenticate(None, self._authorization)
        except Unauthorized:
            self._end()
            return
        except ApiError:
            pass  # an authenticator that does not answer says nothing about the token
        finally:
            self._checking = None
        self._wait()


class Streams:
    """Counts the streams of one server."""

    def __init__(self, flow_control: FlowControl, authenticate: Authenticate, check_s: float) -> None:
        self._flow_control = flow_control
        self._authenticate = authenticate
        self._check_s = check_s

    def hold(self, user: User, flow: Flow | None, peer: Peer | None, authorization: bytes, end: End) -> HeldStream:
        """Count a stream; TooManyRequests beyond the limits. `end` is called when its token is no longer accepted."""
        self._flow_control.open_watch(user, flow)
        # A certificate of the connection comes before a token.
        checked = b"" if peer is not None else authorization
        return HeldStream(self._flow_control, self._authenticate, user, checked, end, self._check_s)

    async def serve(self, user: User, flow: Flow | None, peer: Peer | None, authorization: bytes, serve: Serve) -> None:
        """Await `serve()` as a stream; Unauthorized when its token is no longer accepted."""
        task, is_over = asyncio.current_task(), False

        def end() -> None:
            nonlocal is_over
            assert task is not None
            is_over = True
            task.cancel()

        held = self.hold(user, flow, peer, authorization, end)
        try:
            await serve()
        except asyncio.CancelledError:
            if task is None or not is_over or task.uncancel():
                raise
            raise Unauthorized("Unauthorized") from None
        finally:
            held.close()
