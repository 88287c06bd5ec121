"""Attack: somebody without an account takes the connections of everybody, with bodies that never end or with nothing."""

import asyncio
import resource
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.apiserver.http.test_serving import client, echo, serving

from federation.apimachinery.filelimit import file_limit_problem, raise_file_limit
from federation.apiserver.auth.pki import PKI, ensure_pki
from federation.apiserver.http.asgi import Disconnected, Request
from federation.apiserver.http.connectionshares import ConnectionShares
from federation.apiserver.http.serving import ServingOptions

POST = b"POST /ui/login HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nx"


@pytest.fixture
def pki(tmp_path: Path) -> PKI:
    return ensure_pki(tmp_path / "pki", now=datetime.now(UTC))


async def test_a_body_that_does_not_come_ends_its_connection_on_every_route() -> None:
    ended = asyncio.Event()

    async def read(scope: Any, receive: Any, send: Any) -> None:
        try:
            await Request(scope, receive, send).body(1_000_000)
        except Disconnected:
            ended.set()

    async with serving(None, read, options=ServingOptions(request_body_s=0.05)) as (port, _), asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST)
        assert await reader.read() == b""
        await ended.wait()
        writer.close()


async def test_a_body_that_comes_is_read_to_its_end(pki: PKI) -> None:
    async def read(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive, send)
        await request.respond(200, b"%d" % len(await request.body(1_000_000)))

    async with serving(None, read, options=ServingOptions(request_body_s=0.3)) as (port, _), asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 1000000\r\n\r\n")
        for _ in range(10):
            writer.write(b"x" * 100_000)
            await writer.drain()
            await asyncio.sleep(0.05)
        assert (await reader.read()).endswith(b"1000000")
        writer.close()


@pytest.mark.real_time
async def test_one_address_without_certificate_gets_its_share_and_administrators_the_rest(pki: PKI) -> None:
    async with serving(pki.serving, echo, options=ServingOptions(connections_max=8)) as (port, _):
        url = f"https://127.0.0.1:{port}/"
        async with AsyncExitStack() as held:
            for _ in range(2):
                one = await held.enter_async_context(client(pki, has_certificate=False))
                assert (await one.get(url)).status_code == 200
            async with client(pki, has_certificate=False) as third:
                assert (await third.get(url)).status_code == 503
            async with client(pki, has_certificate=True) as administrator:
                assert (await administrator.get(url)).status_code == 200
        async with asyncio.timeout(30):
            while True:  # the server sees the end of the connections a moment later
                async with client(pki, has_certificate=False) as later:
                    if (await later.get(url)).status_code == 200:
                        break


def test_many_addresses_leave_a_reserve() -> None:
    shares = ConnectionShares(total_max=6, source_max=2)
    admitted = [source for source in "aaabbbcccddd" if shares.admit(source)]
    assert admitted == list("aabbcc")
    shares.release("a")
    assert shares.admit("d")
    for source in "abbccd":
        shares.release(source)
    assert (shares.total, shares.by_source) == (0, {})


def test_the_limit_of_open_files_is_raised_and_a_low_one_is_reported() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert raise_file_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "may open 1024 files" in file_limit_problem(1024, 10_000)
    assert file_limit_problem(10_000, 10_000) == file_limit_problem(resource.RLIM_INFINITY, 10_000) == ""
