"""A member that refuses a WebSocket says why, and what it says is short, readable and cannot be awaited for ever."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ApiError, ClusterError
from federation.client.delegated import DelegatedRequests

STATUS = {"kind": "Status", "status": "Failure", "reason": "BadRequest", "message": "container x is not valid"}


@asynccontextmanager
async def a_server(
    answer: bytes, *, is_endless: bool = False, refusal_s: float = 5.0
) -> AsyncIterator[DelegatedRequests]:
    """Run a server with one answer; yield the requests to it."""
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if is_endless:
            await gone.wait()
        writer.close()

    async def check() -> None:
        return

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    unused: Any = None
    requests = DelegatedRequests(Connection(address), None, unused, check, 1.0, 65536, refusal_s)
    try:
        yield requests
    finally:
        gone.set()
        await requests.close()
        server.close()
        await server.wait_closed()


def refusal(body: bytes, code: str = "400 Bad Request", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {code}\r\nContent-Length: {size}\r\n\r\n".encode() + body


async def refused(requests: DelegatedRequests) -> ApiError:
    with pytest.raises(ApiError) as caught:
        async with requests.websocket("/exec", (), ("v4.channel.k8s.io",)):
            pass
    return caught.value


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (orjson.dumps(STATUS), 400, lambda text: text == "container x is not valid"),
        (b"pod web is not running\n", 400, lambda text: text == "pod web is not running"),
        (b"", 400, lambda text: text.endswith("answered the WebSocket handshake with 400")),
        (b"x" * 1024 * 1024, 400, lambda text: text.endswith("answered the WebSocket handshake with 400")),
        (b'{"message": 7}', 400, lambda text: text.endswith("answered the WebSocket handshake with 400")),
        ("red \x1b[31m \u202e".encode(), 400, lambda text: text.isprintable() and text.startswith("red ")),
        (b"\xff\xfe", 400, lambda text: len(text) < 100),
    ],
    ids=["a Status", "text", "nothing", "long", "a wrong type", "control characters", "no text"],
)
async def test_a_refusal_has_the_words_of_the_member(body: bytes, code: int, says: Callable[[str], bool]) -> None:
    async with a_server(refusal(body)) as requests:
        error = await refused(requests)
    assert error.code == code
    assert says(error.message), error.message


async def test_a_refusal_that_does_not_end_is_not_awaited() -> None:
    async with a_server(refusal(b"slow", length=100), is_endless=True, refusal_s=0.05) as requests:
        error = await refused(requests)
    assert error.message.endswith("answered the WebSocket handshake with 400")


async def test_an_answer_that_is_no_websocket_is_an_error_of_the_cluster() -> None:
    async with a_server(refusal(b"{}", "200 OK")) as requests:
        with pytest.raises(ClusterError, match="200"):
            async with requests.websocket("/exec", (), ()):
                pass
