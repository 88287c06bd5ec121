"""Label and field selectors as texts and as objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.base.errors import BadRequest
from federation.registry.filters import Filter, LabelCache
from federation.registry.selectors import FieldTerm, from_mapping, parse_fields, parse_labels, to_text

LABELS = {"app": "web", "tier": "front", "n": "5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("app=web", True),
        ("app = web , tier=front", True),
        ("app==web,!missing", True),
        ("app!=db", True),
        ("missing!=x", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("example.com/role", False),
        ("n>4,n<6", True),
        ("n>5", False),
        ("app>1", False),
        ("missing=", False),
        ("app in (,web)", True),
    ],
)
def test_terms(text: str, expected: bool) -> None:
    assert parse_labels(text).matches(LABELS) is expected


def test_an_empty_value_matches_only_an_empty_label() -> None:
    assert parse_labels("a=").matches({"a": ""})
    assert not parse_labels("a=").matches({})


@pytest.mark.parametrize("text", ["a>x", "-a=b", "a=b c", "a in ()x", "a=-b", ",", "a,,b", "a in b"])
def test_broken_texts(text: str) -> None:
    with pytest.raises(BadRequest, match="unable to parse requirement"):
        parse_labels(text)


def test_objects_and_texts_mean_the_same() -> None:
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "x", "operator": "NotIn", "values": ["y"]},
            {"key": "app", "operator": "Exists"},
            {"key": "gone", "operator": "DoesNotExist"},
        ],
    }
    text = to_text(selector)
    assert text == "app=web,tier in (back,front),x notin (y),app,!gone"
    assert from_mapping(selector).matches(LABELS)
    assert parse_labels(text).matches(LABELS)


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(BadRequest, match='"Like" is not a valid label selector operator'):
        from_mapping({"matchExpressions": [{"key": "a", "operator": "Like"}]})


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["1", "2", "3"])


@given(
    labels=st.dictionaries(KEYS, VALUES),
    terms=st.lists(
        st.tuples(KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1, max_size=2)), max_size=3
    ),
)
def test_the_text_of_a_selector_selects_the_same(
    labels: dict[str, str], terms: list[tuple[str, str, list[str]]]
) -> None:
    selector = {"matchExpressions": [{"key": k, "operator": o, "values": v} for k, o, v in terms]}
    assert parse_labels(to_text(selector)).matches(labels) == from_mapping(selector).matches(labels)


def test_field_selectors() -> None:
    assert parse_fields("a.b=c,d!=e,f==g") == (
        FieldTerm("a.b", True, "c"),
        FieldTerm("d", False, "e"),
        FieldTerm("f", True, "g"),
    )
    assert parse_fields(r"a=b\,c\=d\\") == (FieldTerm("a", True, "b,c=d\\"),)
    assert parse_fields("") == ()
    with pytest.raises(BadRequest, match="can't understand 'nonsense'"):
        parse_fields("nonsense")


def test_labels_are_parsed_once_per_revision() -> None:
    cache = LabelCache(2)
    value = b'{"apiVersion":"v1","kind":"X","metadata":{"resourceVersion":"1","labels":{"a":"b"}}}'
    first = cache.labels("/k", 1, value)
    assert cache.labels("/k", 1, b"never read again") is first
    assert cache.labels("/k", 2, value.replace(b'"b"', b'"c"')) == {"a": "c"}
    cache.labels("/k", 3, value)
    assert cache.labels("/k", 1, value) is not first


def test_a_filter_without_terms_matches_all() -> None:
    from federation.registry.builtin import builtin_kinds

    info = next(info for info in builtin_kinds() if info.resource.plural == "nodes")
    assert Filter(info, "", "", LabelCache(1)).matches_all
    node = b'{"apiVersion":"v1","kind":"Node","metadata":{"resourceVersion":"1","name":"n"},"spec":{}}'
    assert Filter(info, "", "spec.unschedulable=false", LabelCache(1)).matches("/core/nodes/n", 1, node)
