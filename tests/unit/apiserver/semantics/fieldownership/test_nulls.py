"""Nulls of custom resources: a value where the schema allows it, absent elsewhere."""

from datetime import UTC, datetime

import pytest

from federation.apimachinery.errors import Conflict
from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.fieldownership.apply import apply
from federation.apiserver.semantics.fieldownership.managedfields import track_update
from federation.apiserver.semantics.schema.builtin import builtin_schema

NOW = datetime(2024, 5, 1, tzinfo=UTC)
TEXT = {"type": "string"}
NULLABLE = TEXT | {"nullable": True}
FIELDS = {
    "n": NULLABLE,
    "s": TEXT,
    "m": {"type": "object", "additionalProperties": NULLABLE},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "l": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": NULLABLE, "w": TEXT}},
    },
}
SCHEMA = from_openapi({"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}})


def applied(spec, live=None, manager="m", schema=SCHEMA):
    config = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}
    return apply(schema, live, config, manager=manager, force=False, api_version="x/v1", subresource="", now=NOW)


@pytest.mark.parametrize(
    ("spec", "stored"),
    [
        ({"n": None}, {"n": None}),
        ({"m": {"a": None, "b": "c"}}, {"m": {"a": None, "b": "c"}}),
        ({"open": {"a": None, "b": [None, {"c": None}]}}, {"open": {"a": None, "b": [None, {"c": None}]}}),
        ({"l": [{"k": "a", "v": None, "w": None}]}, {"l": [{"k": "a", "v": None}]}),
        ({"s": None, "n": "1"}, {"n": "1"}),
    ],
)
def test_nulls_stay_where_the_schema_allows_them(spec, stored):
    made = applied(spec)
    assert made["spec"] == stored
    assert applied(spec, made) == made


def test_a_null_replaces_a_value_and_is_replaced():
    live = applied({"n": "1"})
    after = applied({"n": None}, live)
    assert after["spec"] == {"n": None}
    assert applied({"n": "1"}, after)["spec"] == {"n": "1"}
    assert "spec" not in applied({}, after) or applied({}, after)["spec"] == {}


def test_a_null_has_an_owner():
    made = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"n": None, "s": "1"}}
    tracked = track_update(SCHEMA, None, made, manager="e", api_version="x/v1", subresource="", now=NOW)
    assert tracked["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {".": {}, "f:n": {}, "f:s": {}}}
    with pytest.raises(Conflict, match=r"\.spec\.n"):
        applied({"n": "1"}, tracked)
    later = {**tracked, "spec": {**tracked["spec"], "m": {"a": None}}}
    again = track_update(SCHEMA, tracked, later, manager="f", api_version="x/v1", subresource="", now=NOW)
    assert again["metadata"]["managedFields"][1]["fieldsV1"] == {"f:spec": {"f:m": {".": {}, "f:a": {}}}}


def test_a_null_added_by_an_update_is_owned_and_one_in_place_of_a_value_too():
    base = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"m": {"b": "1"}}}
    live = track_update(SCHEMA, None, base, manager="e", api_version="x/v1", subresource="", now=NOW)
    new = {**live, "spec": {"m": {"a": None, "b": None}}}
    after = track_update(SCHEMA, live, new, manager="f", api_version="x/v1", subresource="", now=NOW)
    assert after["metadata"]["managedFields"][1]["fieldsV1"] == {"f:spec": {"f:m": {"f:a": {}, "f:b": {}}}}


def test_null_means_absent_in_built_in_kinds():
    schema = builtin_schema("", "v1", "ConfigMap")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": None, "b": "c"}}
    made = apply(schema, None, config, manager="m", force=False, api_version="v1", subresource="", now=NOW)
    assert made["data"] == {"b": "c"}
