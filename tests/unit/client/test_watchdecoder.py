"""Watch lines are decoded whatever the chunk boundaries."""

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import ClusterError, Expired
from federation.client.client import WatchEvent
from federation.client.watchdecoder import LineSplitter, to_event


@given(lines=st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"x"))), cuts=st.lists(st.integers(0, 300)))
def test_lines_do_not_depend_on_chunk_boundaries(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    points = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    splitter = LineSplitter(1000)
    found = [line for start, end in itertools.pairwise(points) for line in splitter.feed(stream[start:end])]
    assert found == [line for line in lines if line]


def test_a_line_above_the_limit_is_a_cluster_error() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"12345") == []
    with pytest.raises(ClusterError, match="longer than 10 bytes"):
        splitter.feed(b"678901")


def test_events_and_errors_are_distinguished() -> None:
    event = to_event(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}')
    assert event == WatchEvent("ADDED", {"metadata": {"name": "a"}})
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    failure = to_event(orjson.dumps(gone))
    assert isinstance(failure, Expired)
    older = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Gone", "message": "too old"}}
    assert isinstance(to_event(orjson.dumps(older)), Expired)


def test_an_object_that_is_nested_too_deeply_is_empty() -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":%s1%s}}' % (b"[" * 1100, b"]" * 1100)
    assert to_event(line) == WatchEvent("ADDED", {})


@pytest.mark.parametrize(
    "line", [b"[" * 1100 + b"]" * 1100, b"<html>", b"[]", b"1", b'{"type":"ADDED"}', b'{"type":"NEW","object":{}}']
)
def test_a_malformed_line_is_a_cluster_error(line: bytes) -> None:
    with pytest.raises(ClusterError):
        to_event(line)
