"""The body of an answer: its limit, and what an error about it keeps in memory."""

import gzip

import pytest

from federation.apimachinery.errors import ClusterError, ClusterLimitExceeded
from federation.client.body import Body

LIMIT = 1 << 20


def read(body: Body, data: bytes, pieces: int = 1) -> bytes:
    size = len(data) // pieces
    for number in range(pieces + 1):
        body.feed(data[number * size : (number + 1) * size])
    return body.finish()


def test_a_body_is_decompressed_up_to_its_limit() -> None:
    body = Body("m1", "gzip", None, LIMIT)
    assert read(body, gzip.compress(bytes(LIMIT)), 3) == bytes(LIMIT)


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("encoding", ["gzip", ""])
def test_an_error_about_a_body_that_is_too_large_keeps_nothing_of_it(encoding: str, pieces: int) -> None:
    plain = bytes(64 * LIMIT)
    data = gzip.compress(plain) if encoding else plain[: 2 * LIMIT]
    body = Body("m1", encoding, None, LIMIT)
    with pytest.raises(ClusterLimitExceeded, match="more than 1048576 bytes") as caught:
        read(body, data, pieces)
    (frame,) = (each.frame for each in caught.traceback if each.frame.code.name == "feed")
    assert frame.f_locals["data"] == b""
    assert sum(map(len, body._parts)) == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"no gzip", "invalid", id="no gzip"),
        # The time in the bytes must not be in the name: every worker has to collect the same tests.
        pytest.param(gzip.compress(b"abc")[:-4], "truncated", id="truncated"),
    ],
)
def test_broken_data_are_an_error(data: bytes, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        read(Body("m1", "gzip", None, LIMIT), data)
