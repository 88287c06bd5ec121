"""The layout of stored bytes."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.base.errors import BadRequest
from federation.registry import encoding
from federation.registry.paging import Continuation, decode_token, encode_token

HEAD = encoding.head("apps/v1", "Deployment")
TEXTS = st.text() | st.sampled_from(['"metadata":{"resourceVersion":"9"', '","uid":"x"', "}", '"'])
OBJECTS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("apps/v1"),
        "kind": st.just("Deployment"),
        "metadata": st.fixed_dictionaries(
            {"uid": st.uuids().map(str), "name": TEXTS}, optional={"annotations": st.dictionaries(TEXTS, TEXTS)}
        ),
    },
    optional={"spec": st.dictionaries(TEXTS, TEXTS), "data": st.dictionaries(TEXTS, TEXTS)},
)


@given(obj=OBJECTS, revision=st.integers(1, 2**40))
def test_an_object_survives_and_carries_its_revision(obj: dict, revision: int) -> None:
    value = encoding.join(encoding.encode(HEAD, obj), revision)
    expected = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
    assert orjson.loads(value) == expected
    assert encoding.position(value) == (str(revision).encode(), obj["metadata"]["uid"])


@given(obj=OBJECTS)
def test_a_revision_can_be_replaced_and_left_out(obj: dict) -> None:
    body = encoding.encode(HEAD, obj)
    value = encoding.join(body, 7)
    assert encoding.with_revision(value, 99) == encoding.join(body, 99)
    assert encoding.join(encoding.split(value), 7) == value
    assert orjson.loads(encoding.without_revision(body)) == obj


@given(obj=OBJECTS)
def test_another_version_changes_the_head_only(obj: dict) -> None:
    value = encoding.join(encoding.encode(HEAD, obj), 7)
    other = encoding.with_head(value, encoding.head("apps/v2", "Deployment"))
    assert orjson.loads(other) == {**orjson.loads(value), "apiVersion": "apps/v2"}
    assert encoding.with_head(value, HEAD) is value


def test_what_json_cannot_say_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="cannot be written as JSON"):
        encoding.encode(HEAD, {"metadata": {"uid": "u"}, "spec": {"n": 2**70}})


@given(revision=st.integers(-1, 2**40), key=st.text(min_size=1))
def test_continue_tokens_survive(revision: int, key: str) -> None:
    continuation = Continuation(revision, "/a/" + key)
    assert decode_token(encode_token(continuation), "/a/") == continuation
