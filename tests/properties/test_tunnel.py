"""The tunnel of an agent: no byte is lost, windows hold, and a stream that is not read does not stop the others."""

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tunnels import linked

from federation.tunnel.flow import Flow
from federation.tunnel.frames import (
    DATA_BYTES_MAX,
    FRAME_BYTES_MAX,
    Frame,
    FrameType,
    TunnelError,
    credit,
    credit_of,
    decode,
    encode,
)
from federation.tunnel.tunnel import TunnelOptions


@given(st.integers(0, 2**32 - 1), st.binary(max_size=DATA_BYTES_MAX))
def test_a_frame_is_decoded_as_it_was_encoded(stream: int, payload: bytes) -> None:
    assert decode(encode(Frame(FrameType.DATA, stream, payload))) == Frame(FrameType.DATA, stream, payload)


@given(st.binary(max_size=64) | st.binary(min_size=FRAME_BYTES_MAX + 1, max_size=FRAME_BYTES_MAX + 8))
def test_any_message_is_a_frame_or_a_tunnel_error(message: bytes) -> None:
    try:
        frame = decode(message)
    except TunnelError:
        return
    assert encode(frame) == message


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_credit_keeps_its_number(stream: int, count: int) -> None:
    assert credit_of(decode(encode(credit(stream, count)))) == count


@given(st.integers(1, 1000), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=60))
def test_two_sides_never_exceed_the_window_and_never_stop(window: int, steps: list[tuple[int, int]]) -> None:
    sender, receiver = Flow(window), Flow(window)
    unread = 0
    for wish, reads in steps:
        count = min(wish, sender.sendable)
        sender.send(count)
        receiver.receive(count)
        unread += count
        assert unread <= window
        taken = min(reads, unread)
        unread -= taken
        if given_back := receiver.process(taken):
            sender.permit(given_back)
    # After a reader took everything, the sender may send again.
    if given_back := receiver.process(unread):
        sender.permit(given_back)
    assert sender.sendable > 0


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_bytes_beyond_the_window_are_an_error(window: int, more: int) -> None:
    with pytest.raises(TunnelError):
        Flow(window).receive(window + more)
    with pytest.raises(TunnelError):
        Flow(window).permit(more)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(5000):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


async def _exchange(sock: socket.socket, payload: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    writer.write(payload)
    received = await reader.readexactly(len(payload))
    await _close(writer)
    return received


async def test_many_streams_carry_their_own_bytes_at_once() -> None:
    async with linked(_echo) as tunnel:
        payloads = [bytes([number]) * (number * 40_000) for number in range(1, 13)]
        received = await asyncio.gather(*[_exchange(await tunnel.open(), payload) for payload in payloads])
        assert list(received) == payloads


async def test_a_stream_that_nobody_reads_delays_no_other_and_holds_no_more_than_its_window() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send without end if asked for, else echo."""
        nonlocal sent
        if await reader.readexactly(1) == b"e":
            await _echo(reader, writer)
            return
        while True:
            writer.write(bytes(10_000))
            await writer.drain()
            sent += 10_000

    options = TunnelOptions(window_bytes=64 * 1024)
    async with linked(flood, options) as tunnel:
        slow_reader, slow = await asyncio.open_unix_connection(sock=await tunnel.open(), limit=1024)
        slow.write(b"f")
        # Each round trip gives the flood time to fill every buffer on the way.
        seen = []
        for _ in range(60):
            reader, writer = await asyncio.open_unix_connection(sock=await tunnel.open())
            writer.write(b"e" + b"hello")
            assert await reader.readexactly(5) == b"hello"
            await _close(writer)
            seen.append(sent)
        assert seen[-1] == seen[-20], "the flood goes on although the stream is not read"
        assert await slow_reader.readexactly(100_000) == bytes(100_000)
        await _close(slow)


async def test_the_end_of_the_carrier_ends_every_stream() -> None:
    async with linked(_echo) as tunnel:
        reader, writer = await asyncio.open_unix_connection(sock=await tunnel.open())
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        tunnel.close()
        assert await reader.read() == b""
        await _close(writer)


async def test_what_the_server_sent_before_it_closed_arrives() -> None:
    async def answer_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(bytes(700_000))
        writer.close()

    async with linked(answer_and_close) as tunnel:
        reader, writer = await asyncio.open_unix_connection(sock=await tunnel.open())
        writer.write(b"x")
        assert len(await reader.read(-1)) == 700_000
        await _close(writer)
