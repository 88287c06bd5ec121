"""Parts of JSON text that are nested too deeply are cut off, and nothing else changes."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.deepjson import is_encodable, parse_cut

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(alphabet='a"\\{}[]é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\{', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def nested(levels: int, core: bytes = b"1") -> bytes:
    return (
        b'{"a":' * (levels // 2)
        + b"[" * (levels - levels // 2)
        + core
        + b"]" * (levels - levels // 2)
        + b"}" * (levels // 2)
    )


@given(_VALUES, _VALUES)
def test_what_surrounds_a_deep_part_is_kept(core: object, other: object) -> None:
    deep = nested(1100, orjson.dumps(core))
    text = (
        b'{"first":'
        + orjson.dumps(other)
        + b',"items":['
        + deep
        + b",7,"
        + deep
        + b'],"last":'
        + orjson.dumps(other)
        + b"}"
    )
    found = parse_cut(text)
    assert (found["first"], found["items"][1], found["last"]) == (other, 7, other)
    assert [is_encodable(item) for item in found["items"]] == [False, True, False]


@given(_VALUES)
def test_other_text_is_parsed_as_usual(value: object) -> None:
    assert parse_cut(orjson.dumps(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>",
        b"[1,",
        b"{]",
        nested(1100)[:-1],
        nested(1100)[:1100],
        b'{"a":' * 1100 + b'"\\"',
        b"[" + b",".join([nested(1100)] * 20) + b"]",
        b"[" * 1100 + b'"' + b"x" * 5_000_000 + b'"' + b"]" * 1100,
    ],
    ids=["empty", "html", "open", "mixed", "unclosed", "never closed", "open string", "many", "large"],
)
def test_malformed_text_and_too_many_or_large_parts_are_refused(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parse_cut(text)


def test_the_limit_of_the_encoder_is_far_below_that_of_the_parser() -> None:
    """No object with a cut part can be written by mistake."""
    assert is_encodable(orjson.loads(nested(200)))
    assert not is_encodable(orjson.loads(nested(300)))
    assert not is_encodable(parse_cut(nested(1100)))
