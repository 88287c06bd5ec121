"""Mutations in CEL: literals of Object and JSONPatch become maps, and errors keep the user's text and places."""

import pytest

from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.cel.patchtypes import JSON_PATCH_LIST, OBJECT, rewrite_literals
from federation.apiserver.semantics.cel.programs import CompileError

DATA = {"object": {"a": {"b": 1}}, "oldObject": None, "request": {}, "namespaceObject": None, "authorizer": None}


def evaluated(text: str, returns: str = OBJECT, **variables: str) -> object:
    known = environment()
    for name, expression in variables.items():
        known.add_variable(name, expression)
    return known.compile_patch(text, returns).evaluate(DATA)


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("Object{}", '{true: "Object",}'),
        ("Object . spec {a: 1, ?b: x}", '{true: "Object.spec","a": 1, ?"b": x}'),
        ("Object{a: f(x, y), b: [c, d]}", '{true: "Object","a": f(x, y), "b": [c, d]}'),
        ("'Object{a: 1}'", "'Object{a: 1}'"),
        ("// Object{a: 1}\nObject{}", '// Object{a: 1}\n{true: "Object",}'),
        ("x.Object{a: 1}", "x.Object{a: 1}"),
        ("ObjectMeta{a: 1}", "ObjectMeta{a: 1}"),
        ("{'a': {b: 1}}", "{'a': {b: 1}}"),
    ],
)
def test_literals_of_our_types_become_maps(text: str, rewritten: str) -> None:
    assert rewrite_literals(text)[0] == rewritten


def test_values_carry_the_names_of_their_types() -> None:
    value = evaluated('Object{spec: Object.spec{n: variables.one, ?m: object.?none}, l: {"k": "v"}}', one="1")
    assert value == {True: "Object", "spec": {True: "Object.spec", "n": 1}, "l": {"k": "v"}}


@pytest.mark.parametrize(
    "text",
    [
        '[1, 2].map(n, JSONPatch{op: "add", path: "/" + string(n)})',
        'has(object.none) ? [] : [JSONPatch{op: "add"}, JSONPatch{op: "remove"}]',
        '[JSONPatch{op: "add"}] + [JSONPatch{op: "remove"}]',
        '[JSONPatch{op: "add"}, JSONPatch{op: "no"}, JSONPatch{op: "test"}].filter(p, p.op != "no")',
        'cel.bind(p, JSONPatch{op: "add"}, [p, p])',
    ],
)
def test_the_type_of_a_list_of_patches_is_found(text: str) -> None:
    value = evaluated(text, JSON_PATCH_LIST)
    assert isinstance(value, list)
    assert [entry[True] for entry in value] == ["JSONPatch", "JSONPatch"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("object", "dyn"),
        ("Object.spec{}", "Object.spec"),
        ("[Object{}]", "list(Object)"),
        ('{"a": 1}', "map(string, int)"),
        ("variables.one", "int"),
    ],
)
def test_another_type_does_not_compile(text: str, found: str) -> None:
    with pytest.raises(CompileError) as caught:
        evaluated(text, one="1")
    assert str(caught.value) == f"must evaluate to Object but got {found}"


def test_errors_show_the_users_text_and_place() -> None:
    with pytest.raises(CompileError) as caught:
        evaluated("Object{\n  spec: Object.spec{n: variables.one, m: absent}}", one="1")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("compilation failed: ERROR: <input>:2:42: undeclared reference to 'absent'")
    assert lines[1] == " |   spec: Object.spec{n: variables.one, m: absent}}"
    assert lines[2] == " | " + "." * 41 + "^"


def test_fields_of_a_json_patch_are_known() -> None:
    with pytest.raises(CompileError, match="undefined field 'foo'"):
        evaluated('[JSONPatch{foo: "x"}]', JSON_PATCH_LIST)
    with pytest.raises(CompileError, match="expected type of field 'path' is 'string' but provided type is 'list'"):
        evaluated("[JSONPatch{path: []}]", JSON_PATCH_LIST)


@pytest.mark.parametrize(
    "text",
    [
        "Object{" * 10_000,
        "Object{a: " * 200 + "1" + "}" * 200,
        "Object" + ".a" * 30_000 + "{}",
        "Object{" + '"' * 20_000,
    ],
    ids=["open braces", "deep literals", "a long name", "quotes"],
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(CompileError):
        evaluated(text)
