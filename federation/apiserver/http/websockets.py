"""WebSocket connections: a handshake becomes the GET request that it is, so authentication and audit are the same.

A watch sends each event as one text frame, a log each piece as one binary frame; both ignore frames from the client.
Dashboards in browsers read this way, and since browsers set no headers they send a bearer token as a subprotocol. A
handler that exchanges messages (`kubectl exec` in a member) finds the connection in the scope's extension `WEBSOCKET`.
All other requests get their ordinary response instead of an upgrade. `connection.py` upgrades connections.
"""

import base64
import binascii
from collections.abc import Awaitable, MutableMapping, Sequence
from typing import Any, Final, Protocol

from federation.apiserver.http.asgi import ASGIApp, Header, Receive, Scope, Send, is_asked, parse_query

_TOKEN: Final = "base64url.bearer.authorization.k8s.io."  # noqa: S105  # the prefix of a subprotocol, not a secret
_LINE_BYTES_MAX: Final = 8 * 1024 * 1024
"""The longest event; an object is smaller."""
_TOO_BIG: Final = 1009
_BASE64: Final = "base64.binary.k8s.io"
_BYTE_STREAMS: Final = (_BASE64, "binary.k8s.io")
"""Subprotocols of a log: text frames of base64, or binary frames, which are the default."""
_Message = MutableMapping[str, Any]
WEBSOCKET: Final = "federation.websocket"
"""Key in the ASGI extensions of a request that is a WebSocket handshake: the client's `WebSocket`."""


class WebSocket(Protocol):
    """A connection that exchanges messages: text as str, binary as bytes."""

    async def receive(self) -> str | bytes | None:
        """Return the next message, None at the end of the connection."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Send a message; wait while the other side does not read."""
        ...

    async def close(self, code: int) -> None:
        """Close the connection."""
        ...


class ClientSocket(WebSocket, Protocol):
    """The connection of a client, which waits for an answer to its handshake."""

    subprotocols: Sequence[str]
    """The subprotocols that the client offers, without its token."""

    async def accept(self, subprotocol: str) -> None:
        """Answer the handshake; "" for no subprotocol."""
        ...

    def carry_body(self) -> None:
        """Send the body of a response 200 as messages, a log for example, instead of refusing the handshake."""
        ...


def with_websockets(app: ASGIApp) -> ASGIApp:
    """Return an app that serves WebSocket handshakes through the HTTP app."""

    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return app(scope, receive, send) if scope["type"] != "websocket" else _Bridge(scope, receive, send).run(app)

    return serve


class _Bridge:
    """One WebSocket connection, presented as an HTTP request. Lives as long as the connection."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._has_connected = False
        self._is_accepted = False
        self._is_closed = False
        self._partial = bytearray()
        """The start of a line whose end has not arrived: other servers' watches are forwarded in any pieces."""
        self._token, self._subprotocol = _split(scope.get("subprotocols") or ())
        self._messages = _Messages(scope, receive, send)

    async def run(self, app: ASGIApp) -> None:
        """Run the app for the request of the handshake."""
        headers: list[Header] = list(self._scope["headers"])
        if self._token:
            headers = [*(entry for entry in headers if entry[0] != b"authorization"), (b"authorization", self._token)]
        extensions = {WEBSOCKET: self._messages}
        request = {**self._scope, "type": "http", "method": "GET", "headers": headers, "extensions": extensions}
        await app(request, self.receive, self.send)

    async def receive(self) -> _Message:
        """Return an empty body, then wait for the end of the connection."""
        message = await self._receive()
        if not self._has_connected:
            self._has_connected = True
            return {"type": "http.request", "body": b"", "more_body": False}
        while message["type"] != "websocket.disconnect":
            message = await self._receive()
        return {"type": "http.disconnect"}

    async def send(self, message: _Message) -> None:
        """Send a part of the response: frames of an accepted watch, otherwise the response to the handshake."""
        if not self._has_connected:
            await self._receive()
            self._has_connected = True
        if message["type"] == "http.response.start":
            self._is_accepted = message["status"] == 200 and (self._messages.carries_body or self._is_watch())
            if self._is_accepted:
                if not self._is_watch():
                    self._subprotocol = next(
                        (name for name in self._messages.subprotocols if name in _BYTE_STREAMS), ""
                    )
                await self._send({"type": "websocket.accept", "subprotocol": self._subprotocol or None})
            else:
                await self._send({**message, "type": "websocket.http.response.start"})
        elif self._is_closed:
            return
        elif not self._is_accepted:
            await self._send({**message, "type": "websocket.http.response.body"})
        elif self._is_watch():
            await self._send_lines(message)
        else:
            await self._send_piece(message)

    async def _send_piece(self, message: _Message) -> None:
        if piece := bytes(message.get("body", b"")):
            in_base64 = self._subprotocol == _BASE64
            frame = {"text": base64.b64encode(piece).decode()} if in_base64 else {"bytes": piece}
            await self._send({"type": "websocket.send", **frame})
        if not message.get("more_body"):
            await self._send({"type": "websocket.close", "code": 1000})

    async def _send_lines(self, message: _Message) -> None:
        body = bytes(message.get("body", b""))
        self._partial += body
        lines: list[bytearray] = []
        if b"\n" in body:
            *lines, self._partial = self._partial.split(b"\n")
        if not message.get("more_body"):
            lines.append(self._partial)
        for line in lines:
            if line:
                await self._send({"type": "websocket.send", "text": line.decode(errors="replace")})
        if not message.get("more_body"):
            await self._send({"type": "websocket.close", "code": 1000})
        elif len(self._partial) > _LINE_BYTES_MAX:
            self._is_closed = True  # the app learns of it by the end of the connection
            await self._send({"type": "websocket.close", "code": _TOO_BIG})

    def _is_watch(self) -> bool:
        return is_asked(parse_query(self._scope["query_string"]), "watch")


class _Messages:
    """A `ClientSocket`. Until `accept` the handshake can get an ordinary response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._is_closed = False
        self.carries_body = False
        self.subprotocols = [name for name in scope.get("subprotocols") or () if not name.startswith(_TOKEN)]

    async def accept(self, subprotocol: str) -> None:
        await self._receive()  # the handshake
        await self._send({"type": "websocket.accept", "subprotocol": subprotocol or None})

    def carry_body(self) -> None:
        self.carries_body = True

    async def receive(self) -> str | bytes | None:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._is_closed = True
            return None
        text: str | None = message.get("text")
        return text if text is not None else bytes(message["bytes"])

    async def send(self, message: str | bytes) -> None:
        kind = "text" if isinstance(message, str) else "bytes"
        try:
            await self._send({"type": "websocket.send", kind: message})
        except RuntimeError as error:  # uvicorn's, once it has answered the client's close
            raise ConnectionResetError("the client has closed the connection") from error

    async def close(self, code: int) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._send({"type": "websocket.close", "code": code})


def _split(subprotocols: Sequence[str]) -> tuple[bytes, str]:
    """Return the Authorization header of the subprotocol that carries a token, and the first other subprotocol.

    As in kube-apiserver, a token counts only beside another subprotocol, because the response must name one and must
    not repeat the token.
    """
    others = [name for name in subprotocols if not name.startswith(_TOKEN)]
    tokens = [name.removeprefix(_TOKEN) for name in subprotocols if name.startswith(_TOKEN)]
    if not others or len(tokens) != 1:
        return b"", others[0] if others else ""
    try:
        token = base64.urlsafe_b64decode(tokens[0] + "=" * (-len(tokens[0]) % 4)).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return b"", others[0]
    return f"Bearer {token}".encode("ascii") if token.isprintable() else b"", others[0]
