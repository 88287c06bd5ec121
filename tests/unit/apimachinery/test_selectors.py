"""Label and field selectors as text and as objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import BadRequest
from federation.apimachinery.selectors import (
    FieldTerm,
    SelectorError,
    compile_label_map,
    compile_label_selector,
    format_label_selector,
    parse_field_selector,
    parse_label_selector,
)
from federation.apiserver.verbs.filters import Filter, LabelCache

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
    assert parse_label_selector(text).matches(LABELS) is expected


def test_an_empty_value_matches_only_an_empty_label() -> None:
    assert parse_label_selector("a=").matches({"a": ""})
    assert not parse_label_selector("a=").matches({})


@pytest.mark.parametrize("text", ["a>x", "-a=b", "a=b c", "a in ()x", "a=-b", ",", "a,,b", "a in b"])
def test_broken_texts(text: str) -> None:
    with pytest.raises(BadRequest, match="unable to parse requirement"):
        parse_label_selector(text)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {"a": "1"}, False),
        ({}, {"a": "1"}, True),
        ({}, None, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [expression("a", "In", "1", "2")]}, {"a": "2"}, True),
        ({"matchExpressions": [expression("a", "In", "1")]}, {}, False),
        ({"matchExpressions": [expression("a", "NotIn", "1")]}, {}, True),
        ({"matchExpressions": [expression("a", "NotIn", "1")]}, {"a": "1"}, False),
        ({"matchExpressions": [expression("a", "Exists")]}, {"a": ""}, True),
        ({"matchExpressions": [expression("a", "DoesNotExist")]}, {"a": ""}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [expression("b", "Exists")]}, {"a": "1"}, False),
    ],
)
def test_label_selectors_match_as_in_kubernetes(selector: Any, labels: Any, expected: bool) -> None:
    assert compile_label_selector(selector).matches(labels) is expected


@pytest.mark.parametrize(
    "selector",
    [
        {"matchExpressions": [expression("a", "In")]},
        {"matchExpressions": [expression("a", "Exists", "1")]},
        {"matchExpressions": [expression("a", "Gt", "1")]},
        {"matchExpressions": [expression("a", "in", "1")]},
        {"matchLabels": {"": "1"}},
        {"matchLabels": {"-a": "1"}},
        {"matchLabels": {"Upper/a": "1"}},
        {"matchLabels": {"a/b/c": "1"}},
        {"matchLabels": {"a": "x" * 64}},
        {"matchLabels": {"a" * 64: "1"}},
        {"matchLabels": {"a": "-"}},
    ],
)
def test_a_malformed_selector_says_what_is_wrong(selector: Any) -> None:
    with pytest.raises(SelectorError, match=r"valid|needs|takes"):
        compile_label_selector(selector)


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
    text = format_label_selector(selector)
    assert text == "app=web,tier in (back,front),x notin (y),app,!gone"
    assert compile_label_selector(selector).matches(LABELS)
    assert parse_label_selector(text).matches(LABELS)


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(BadRequest, match='"Like" is not a valid label selector operator'):
        compile_label_selector({"matchExpressions": [{"key": "a", "operator": "Like"}]})


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
    assert parse_label_selector(format_label_selector(selector)).matches(labels) == compile_label_selector(
        selector
    ).matches(labels)


def test_field_selectors() -> None:
    assert parse_field_selector("a.b=c,d!=e,f==g") == (
        FieldTerm("a.b", True, "c"),
        FieldTerm("d", False, "e"),
        FieldTerm("f", True, "g"),
    )
    assert parse_field_selector(r"a=b\,c\=d\\") == (FieldTerm("a", True, "b,c=d\\"),)
    assert parse_field_selector("") == ()
    with pytest.raises(BadRequest, match="can't understand 'nonsense'"):
        parse_field_selector("nonsense")


def test_labels_are_parsed_once_per_revision() -> None:
    cache = LabelCache(2)
    value = b'{"apiVersion":"v1","kind":"X","metadata":{"resourceVersion":"1","labels":{"a":"b"}}}'
    first = cache.labels("/k", 1, value)
    assert cache.labels("/k", 1, b"never read again") is first
    assert cache.labels("/k", 2, value.replace(b'"b"', b'"c"')) == {"a": "c"}
    cache.labels("/k", 3, value)
    assert cache.labels("/k", 1, value) is not first


def test_a_filter_without_terms_matches_all() -> None:
    from federation.apiserver.semantics.kinds.builtin import builtin_kinds

    info = next(info for info in builtin_kinds() if info.resource.plural == "nodes")
    assert Filter(info, "", "", LabelCache(1)).matches_all
    node = b'{"apiVersion":"v1","kind":"Node","metadata":{"resourceVersion":"1","name":"n"},"spec":{}}'
    assert Filter(info, "", "spec.unschedulable=false", LabelCache(1)).matches("/core/nodes/n", 1, node)


def test_label_maps() -> None:
    assert compile_label_map({"a": "1"}).matches({"a": "1"})
