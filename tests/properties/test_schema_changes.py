"""Properties of the validation of changes: what equals the replaced object is skipped, and nothing else."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.schema.validation import conforms, conforms_as_changed

SCHEMA = from_openapi(
    {
        "type": "object",
        "properties": {
            "status": {
                "type": "object",
                "required": ["phase"],
                "properties": {
                    "phase": {"type": "string", "enum": ["A", "B"]},
                    "count": {"type": "integer", "minimum": 0},
                    "ready": {"type": "boolean"},
                    "limits": {"type": "object", "additionalProperties": {"type": "integer", "maximum": 2}},
                    "bounded": {
                        "type": "object",
                        "maxProperties": 1,
                        "additionalProperties": {"type": "integer"},
                    },
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}, "more": {"type": "integer", "nullable": True}},
                        },
                    },
                },
            }
        },
    }
)
_NUMBERS = st.one_of(st.integers(-1, 3), st.booleans(), st.just("x"), st.none())
_MAPS = st.dictionaries(st.sampled_from("ab"), _NUMBERS, max_size=2)
_ITEMS = st.lists(st.fixed_dictionaries({}, optional={"name": st.just("n"), "more": _NUMBERS}), max_size=2)
_STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["A", "B", "C", None]),
        "count": _NUMBERS,
        "ready": _NUMBERS,
        "limits": st.one_of(_MAPS, _NUMBERS),
        "bounded": _MAPS,
        "items": st.one_of(_ITEMS, _NUMBERS),
    },
)
_OBJECTS = st.fixed_dictionaries({}, optional={"status": st.one_of(_STATUSES, _NUMBERS)})


@given(_OBJECTS, _OBJECTS)
def test_a_change_of_a_valid_object_conforms_if_and_only_if_the_result_does(old, new):
    if conforms(SCHEMA, old):
        assert conforms_as_changed(SCHEMA, new, old) is conforms(SCHEMA, new)


@given(_OBJECTS, _OBJECTS)
def test_an_object_that_conforms_does_so_as_a_change_of_any_other(old, new):
    if conforms(SCHEMA, new):
        assert conforms_as_changed(SCHEMA, new, old)


@given(_OBJECTS, st.data())
def test_one_changed_field_is_found_wherever_it_is(old, data):
    if not conforms(SCHEMA, old) or not isinstance(old.get("status"), dict):
        return
    new = copy.deepcopy(old)
    field = data.draw(st.sampled_from(sorted(SCHEMA.properties["status"].properties)))
    new["status"][field] = data.draw(_NUMBERS)
    assert conforms_as_changed(SCHEMA, new, old) is conforms(SCHEMA, new)
