"""The layout of stored bytes."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import BadRequest
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.verbs.paging import Continuation, decode_token, encode_token

HEAD = encoding.encode_head("apps/v1", "Deployment")
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
def test_encoded_object_decodes_to_itself_with_its_revision(obj: dict, revision: int) -> None:
    value = encoding.to_bytes(encoding.encode(HEAD, obj), revision)
    expected = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
    assert orjson.loads(value) == expected
    assert encoding.read_revision_and_uid(value) == (str(revision).encode(), obj["metadata"]["uid"])


@given(obj=OBJECTS)
def test_revision_can_be_replaced_and_omitted(obj: dict) -> None:
    body = encoding.encode(HEAD, obj)
    value = encoding.to_bytes(body, 7)
    assert encoding.replace_revision(value, 99) == encoding.to_bytes(body, 99)
    assert encoding.to_bytes(encoding.to_body(value), 7) == value
    assert orjson.loads(encoding.to_bytes_without_revision(body)) == obj


@given(obj=OBJECTS)
def test_another_version_changes_only_the_head(obj: dict) -> None:
    value = encoding.to_bytes(encoding.encode(HEAD, obj), 7)
    other = encoding.replace_head(value, encoding.encode_head("apps/v2", "Deployment"))
    assert orjson.loads(other) == {**orjson.loads(value), "apiVersion": "apps/v2"}
    assert encoding.replace_head(value, HEAD) is value


def test_value_outside_json_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="cannot be written as JSON"):
        encoding.encode(HEAD, {"metadata": {"uid": "u"}, "spec": {"n": 2**70}})


@given(revision=st.integers(-1, 2**40), key=st.text(min_size=1))
def test_continue_token_decodes_to_itself(revision: int, key: str) -> None:
    continuation = Continuation(revision, "/a/" + key)
    assert decode_token(encode_token(continuation), "/a/") == continuation
