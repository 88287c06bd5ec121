"""Attack: a server that the host calls answers without end or sense: identity providers, scheduler plugins, webhooks."""

import asyncio
import base64
import secrets
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from tests.support.cputime import cpu_s

from federation.apimachinery.connection import Connection
from federation.apimachinery.webhookclient import WebhookClient
from federation.apiserver.auth.oidc import _FetchFailed, _to_keys
from federation.client.body import Body

OK = b"HTTP/1.1 200 OK\r\n"
MIB = b"\0" * (1 << 20)
_packer = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMB = b"".join([*(_packer.compress(MIB) for _ in range(100)), _packer.flush()])


@asynccontextmanager
async def answering(*pieces: bytes, last: bytes = b"") -> AsyncIterator[str]:
    """Serve these pieces, and `last` again and again."""

    serving: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        with suppress(OSError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
            while last:
                writer.write(last)
                await writer.drain()
            await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0)


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("pieces", "last", "error"),
    [
        ([], b"", "no answer within"),
        ([OK + b"content-length: 1000000000\r\n\r\n"], MIB, "larger than"),
        ([OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(BOMB), BOMB], b"", "compressed"),
        ([OK + b"transfer-encoding: chunked\r\n\r\n1;"], b"a" * 10_000, ""),
        ([OK], b"a: b\r\n" * 100, ""),
        ([OK + b"content-length: 10\r\n\r\nx"], b"", "no answer within"),
    ],
    ids=["never", "endless", "bomb", "chunk", "headers", "unfinished"],
)
async def test_an_answer_without_end_is_a_failure_within_the_time(pieces: list[bytes], last: bytes, error: str) -> None:
    client = WebhookClient()
    async with answering(*pieces, last=last) as url, asyncio.timeout(60):
        timeout_s = 30.0 if error in ("larger than", "compressed") else 0.3
        answer = await client.get(Connection(url), {}, timeout_s=timeout_s)
    assert answer.status in (0, 400)
    assert error in answer.error
    assert len(answer.body) <= 1 << 20
    await client.close()


def to_text(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).rstrip(b"=").decode()


def a_key(bits: int, **fields: Any) -> dict[str, Any]:
    odd = secrets.randbits(bits) | 1 | (1 << (bits - 1))
    return {"kty": "RSA", "kid": "k", "n": to_text(odd), "e": "AQAB", **fields}


def test_a_private_key_of_an_identity_provider_is_read_as_a_public_one() -> None:
    """Otherwise the library searches the factors of the modulus: 3 s for 8,192 bits, and 23 s for twice as many."""
    keys = {"keys": [a_key(4_096, d=to_text(secrets.randbits(4_096) | 1))] * 4}
    found, taken_s = cpu_s(lambda: _to_keys(keys, 64), 0.5)
    assert taken_s < 0.5
    assert len(found) == 4
    assert all(isinstance(key, RSAPublicKey) for _, key in found)


@pytest.mark.parametrize(
    "fields",
    [{"n": to_text(1 << 16_384 | 1)}, {"e": to_text(1 << 2_000 | 1)}, {"kid": "k" * 5_000}, {"n": ["x"] * 5_000}],
    ids=["modulus", "exponent", "kid", "list"],
)
def test_keys_with_long_numbers_do_not_count(fields: dict[str, Any]) -> None:
    with pytest.raises(_FetchFailed):
        _to_keys({"keys": [a_key(2_048, **fields)]}, 64)
    assert len(_to_keys({"keys": [a_key(8_192)]}, 64)) == 1


INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" * 1000


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("pieces", "last", "error"),
    [
        ([OK + b"transfer-encoding: chunked\r\n\r\n"], b"1\r\n \r\n" * 1000, "too many small chunks"),
        ([], INTERIM, "a head longer than"),
        ([], INTERIM.replace(b"100 Continue", b"103 Early Hints\r\nlink: x"), "a head longer than"),
    ],
    ids=["chunks", "continue", "hints"],
)
async def test_small_parts_without_end_take_little_time_of_others(pieces: list[bytes], last: bytes, error: str) -> None:
    client = WebhookClient()
    async with answering(*pieces, last=last) as url:
        answers = await asyncio.gather(*[client.get(Connection(url), {}, timeout_s=20.0) for _ in range(8)])
        await client.close()
    assert [error in answer.error for answer in answers] == [True] * 8, answers[0].error


@pytest.mark.real_time
async def test_an_answer_in_a_thousand_chunks_and_one_after_interim_responses_are_read() -> None:
    client = WebhookClient()
    chunked = OK + b"transfer-encoding: chunked\r\n\r\n" + b"2\r\nab\r\n" * 1000 + b"0\r\n\r\n"
    async with answering(chunked) as url:
        assert (await client.get(Connection(url), {}, timeout_s=20.0)).body == b"ab" * 1000
    async with answering(INTERIM[:2500] + OK + b"content-length: 2\r\n\r\nab") as url:
        assert (await client.get(Connection(url), {}, timeout_s=20.0)).body == b"ab"
    await client.close()


def test_an_answer_of_a_member_in_pieces_of_two_bytes_takes_little_more_memory_than_its_length() -> None:
    body = Body("member", "identity", None, 1 << 25)
    tracemalloc.start()
    try:
        for _ in range(20_000):
            body.feed(bytes((32, 32)))
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
    assert body.finish() == b" " * 40_000
