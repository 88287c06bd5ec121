"""Optional values never reach a list, a map or a function: converting them aborts the process."""

import pytest

from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError, compile_expression

DATA = {"object": {"items": [1, {"y": 2}], "empty": None}}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": optional.none()}',
        'dyn({"a": optional.of(1)})',
        "[optional.none()]",
        '{"a": object.items[?0]}',
        '{"a": object.items[?1].y}',
        "[object].map(o, o.?items)",
        '{"a": object.?none.orValue(optional.of(1))}',
        '{"a": object.empty == null ? object.none : object.items[?1]}',
        'cel.bind(x, object.items[?0], {"a": x})',
        '{"a": true ? cel.bind(q, 1, object.items[?0]) : 1}',
        "optional.of(optional.of(1))",
        'object.?items.optMap(x, {"a": optional.of(x)})',
        "dyn(optional.none())",
        "sets.contains(object.items[?0], [1])",
        '"%s".format([object.?items])',
    ],
)
def test_a_misplaced_optional_value_does_not_compile(text: str) -> None:
    with pytest.raises(CompileError, match="an optional value cannot be stored"):
        compile_expression(text, ("object",))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{?"a": object.?none, ?"b": object.?items}', {"b": [1, {"y": 2}]}),
        ("[?optional.none()]", []),
        ("object.?items[0].orValue(2)", 1),
        ("object.?items.optFlatMap(x, x[?0]).hasValue()", True),
        ('{"a": object.items[?1].?y.optMap(v, v + 1).orValue(0)}', {"a": 3}),
        ("cel.bind(x, object.items[?0], x.hasValue() ? x.value() : 7)", 1),
        ("[object].map(o, o.?none.orValue(3))", [3]),
        ("object.?none.or(object.?items).orValue([]).size()", 2),
    ],
)
def test_unwrapped_and_omitted_optional_values_are_data(text: str, value: object) -> None:
    assert compile_expression(text, ("object",)).evaluate(DATA) == value


def test_an_optional_result_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="no JSON form"):
        compile_expression("object.?items", ("object",)).evaluate(DATA)


@pytest.mark.parametrize("text", ['{b"a": 1}', "{1.0: 1}"])
def test_maps_with_keys_that_json_cannot_hold_do_not_compile(text: str) -> None:
    with pytest.raises(CompileError, match="Unsupported map key type"):
        compile_expression(text, ())
