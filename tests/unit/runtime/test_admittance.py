"""The estimated memory of cached objects, against what CPython needs for them."""

import sys
from typing import Any

import orjson
import pytest
from tests.support.manifests import a_deployment

from federation.runtime.admittance import estimate_bytes


def memory_of(value: Any) -> int:
    """Return the memory of a parsed value with all that is in it; keys and equal texts are shared."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return sys.getsizeof(value) + sum(memory_of(each) for each in inner if not isinstance(each, int))


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":[' + b",".join([b"[]"] * 5000) + b"]}",
        b'{"a":[' + b",".join([b"{}"] * 5000) + b"]}",
        b'{"a":[' + b",".join([b"1"] * 5000) + b"]}",
        b'{"a":[' + b",".join([b'{"b":[1]}'] * 5000) + b"]}",
        b'{"a":[' + b",".join([b'"%d"' % number for number in range(5000)]) + b"]}",
        b'{"a":{' + b",".join([b'"%d":1' % number for number in range(5000)]) + b"}}",
        orjson.dumps(a_deployment("web", replicas=3)),
    ],
    ids=["empty lists", "empty dicts", "numbers", "small dicts", "short texts", "many keys", "a Deployment"],
)
def test_the_estimate_is_near_what_an_object_needs(text: bytes) -> None:
    needed = memory_of(orjson.loads(text))
    assert 0.6 < estimate_bytes(text) / needed < 14
