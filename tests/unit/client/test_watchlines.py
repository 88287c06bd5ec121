"""Lines come out whole, wherever the transport cut them."""

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.base.errors import ClusterError, Expired
from federation.client.protocol import WatchEvent
from federation.client.watchlines import LineSplitter, to_event


@given(lines=st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"x"))), cuts=st.lists(st.integers(0, 300)))
def test_cuts_do_not_matter(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    points = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    splitter = LineSplitter(1000)
    found = [line for start, end in itertools.pairwise(points) for line in splitter.feed(stream[start:end])]
    assert found == [line for line in lines if line]


def test_a_line_without_end_is_bounded() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"12345") == []
    with pytest.raises(ClusterError, match="longer than 10 bytes"):
        splitter.feed(b"678901")


def test_events_and_errors_are_told_apart() -> None:
    event = to_event(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}')
    assert event == WatchEvent("ADDED", {"metadata": {"name": "a"}})
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    failure = to_event(orjson.dumps(gone))
    assert isinstance(failure, Expired)
    older = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Gone", "message": "too old"}}
    assert isinstance(to_event(orjson.dumps(older)), Expired)


@pytest.mark.parametrize("line", [b"<html>", b"[]", b"1", b'{"type":"ADDED"}', b'{"type":"NEW","object":{}}'])
def test_nonsense_is_an_unusable_answer(line: bytes) -> None:
    with pytest.raises(ClusterError):
        to_event(line)
