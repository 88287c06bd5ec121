"""Forwarded ports of simulated pods: frames of SPDY/3.1 in, echoes out."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import BadRequest
from federation.simulator.portechoes import ChannelEchoes, PortEchoes
from federation.simulator.spdyframes import DICTIONARY, SYN_REPLY, Frame, FrameReader, FrameWriter


class Client:
    """The frames that kubectl sends."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream: int, **headers: str) -> bytes:
        block = len(headers).to_bytes(4, "big")
        for text in [part for pair in headers.items() for part in pair]:
            block += len(text).to_bytes(4, "big") + text.encode()
        body = stream.to_bytes(4, "big") + bytes(6) + self._headers.compress(block)
        body += self._headers.flush(zlib.Z_SYNC_FLUSH)
        return b"\x80\x03\x00\x01\x00" + len(body).to_bytes(3, "big") + body

    def connect(self, error: int, data: int, port: str = "80") -> bytes:
        """Open the two streams of a forwarded connection."""
        headers = {"port": port, "requestid": str(error)}
        return self.open(error, streamtype="error", **headers) + self.open(data, streamtype="data", **headers)


def frames(data: bytes) -> list[Frame]:
    return FrameReader().feed(data)


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(st.binary(max_size=300).filter(lambda data: not data[:1].isupper()), st.integers(1, 50))
def test_bytes_come_back_in_whatever_pieces_they_arrive(data: bytes, size: int) -> None:
    echoes, client = PortEchoes("web"), Client()
    sent = client.connect(1, 3) + FrameWriter().data(3, data, is_last=True)
    answer = b"".join(echoes.feed(sent[at : at + size]) for at in range(0, len(sent), size))
    replies = frames(answer)
    assert [(frame.type, frame.stream) for frame in replies] == [(SYN_REPLY, 1), (SYN_REPLY, 3), (0, 3), (0, 1)]
    assert (replies[2].data, replies[2].is_last, replies[3].is_last) == (data, True, True)


def test_an_http_request_gets_a_response_that_names_pod_and_port() -> None:
    echoes, client = PortEchoes("web"), Client()
    echoes.feed(client.connect(1, 3, "8080"))
    assert frames(echoes.feed(FrameWriter().data(3, b"GET /a HTTP/1.1\r\nHost: x")))[0].data == b""
    [answer, end] = frames(echoes.feed(FrameWriter().data(3, b"\r\n\r\n")))
    assert answer.data.endswith(b"\r\n\r\npod web, port 8080\nGET /a HTTP/1.1\n")
    assert (answer.is_last, end.stream, end.is_last) == (True, 1, True)


def test_connections_do_not_mix() -> None:
    echoes, client = PortEchoes("web"), Client()
    echoes.feed(client.connect(1, 3) + client.connect(5, 7))
    sent = FrameWriter().data(7, b"b") + FrameWriter().data(3, b"a") + FrameWriter().data(9, b"of no connection")
    assert [(frame.stream, frame.data) for frame in frames(echoes.feed(sent))] == [(7, b"b"), (3, b"a")]


def test_a_ping_is_answered() -> None:
    assert [(frame.type, frame.stream) for frame in frames(PortEchoes("web").feed(FrameWriter().pong(7)))] == [(6, 7)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x01\x00\xff\xff\xff",
        b"\x80\x03\x00\x01\x00\x00\x00\x10" + bytes(10) + b"no zlib",
        Client().open(1, x="y" * 100_000),
    ],
    ids=["a frame that is too long", "headers that are not compressed", "headers that are too long"],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadRequest):
        PortEchoes("web").feed(data)


def test_each_port_has_two_channels_that_begin_with_its_number() -> None:
    echoes = ChannelEchoes("web", [80, 8443])
    assert echoes.start() == [b"\x00\x50\x00", b"\x01\x50\x00", b"\x02\xfb\x20", b"\x03\xfb\x20"]
    assert echoes.feed(b"\x02hello") == (b"\x02hello", False)
    answer, is_last = echoes.feed(b"\x00GET / HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"\x00HTTP/1.1 200 OK")
    assert answer.endswith(b"pod web, port 80\nGET / HTTP/1.1\n")
    assert is_last
    assert echoes.feed(b"\x01not for us") == echoes.feed(b"\x09") == echoes.feed(b"") == (b"", False)
