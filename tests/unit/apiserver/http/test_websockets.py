"""Watches and logs over WebSocket: how the pieces of a response become frames."""

from collections.abc import MutableMapping, Sequence
from typing import Any

import pytest

from federation.apiserver.http import websockets
from federation.apiserver.http.websockets import WEBSOCKET, with_websockets

Message = MutableMapping[str, Any]


async def frames(*pieces: bytes, ends: bool = True) -> list[Message]:
    """Return what a client gets when a watch sends these pieces."""
    sent: list[Message] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if ends:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "query_string": b"watch=1", "headers": [], "subprotocols": []}
    await with_websockets(app)(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    "pieces",
    [
        (b'{"a":1}\n{"b":2}\n',),
        (b'{"a":1}\n', b'{"b":2}\n'),
        (b'{"a"', b":1}", b'\n{"b":2}\n'),
        (b'{"a":1}\n{"b":2}',),
        (b"\n", b'{"a":1}\n\n{"b', b'":2}\n'),
    ],
)
async def test_every_line_is_one_frame(pieces: Sequence[bytes]) -> None:
    accepted, *texts, closed = await frames(*pieces)
    assert accepted["type"] == "websocket.accept"
    assert [message["text"] for message in texts] == ['{"a":1}', '{"b":2}']
    assert (closed["type"], closed["code"]) == ("websocket.close", 1000)


async def test_a_message_after_the_clients_close_is_a_lost_connection() -> None:
    failures: list[BaseException] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        socket = scope["extensions"][WEBSOCKET]
        await socket.accept("")
        try:
            await socket.send(b"late")
        except OSError as error:
            failures.append(error)

    received = iter(["websocket.connect", "websocket.disconnect"])

    async def receive() -> Message:
        return {"type": next(received)}

    async def send(message: Message) -> None:
        if message["type"] == "websocket.send":
            raise RuntimeError("Unexpected ASGI message")  # as uvicorn, once it has answered the close

    scope = {"type": "websocket", "path": "/", "query_string": b"", "headers": [], "subprotocols": []}
    await with_websockets(app)(scope, receive, send)
    assert [type(failure) for failure in failures] == [ConnectionResetError]


async def log(*subprotocols: str, status: int = 200) -> list[Message]:
    """Return what a client gets for a log of two pieces."""
    sent: list[Message] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["extensions"][WEBSOCKET].carry_body()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"one\n", "more_body": True})
        await send({"type": "http.response.body", "body": b"\xfftwo", "more_body": False})

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "query_string": b"", "headers": [], "subprotocols": subprotocols}
    await with_websockets(app)(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    ("offered", "chosen", "frame"),
    [
        ((), None, {"bytes": b"\xfftwo"}),
        (("other", "binary.k8s.io"), "binary.k8s.io", {"bytes": b"\xfftwo"}),
        (("base64.binary.k8s.io",), "base64.binary.k8s.io", {"text": "/3R3bw=="}),
    ],
)
async def test_every_piece_of_a_log_is_one_frame(offered: Sequence[str], chosen: str | None, frame: Message) -> None:
    accepted, first, second, closed = await log(*offered)
    assert accepted == {"type": "websocket.accept", "subprotocol": chosen}
    assert first.keys() == second.keys()
    assert second == {"type": "websocket.send", **frame}
    assert (closed["type"], closed["code"]) == ("websocket.close", 1000)


async def test_an_error_instead_of_a_log_is_an_ordinary_response() -> None:
    start, *bodies = await log("base64.binary.k8s.io", status=400)
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 400)
    assert [body["body"] for body in bodies] == [b"one\n", b"\xfftwo"]


async def test_a_line_without_end_closes_the_connection() -> None:
    piece = b"x" * (websockets._LINE_BYTES_MAX // 2)
    sent = await frames(piece, piece, piece, piece, ends=False)
    assert [(message["type"], message.get("code")) for message in sent] == [
        ("websocket.accept", None),
        ("websocket.close", 1009),
    ]
