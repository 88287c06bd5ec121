"""Validate the defaults of a schema against that schema. Pure.

A default must be valid for its node, pass its rules and have no field that would be pruned; otherwise every object
with the default would be refused. `keywordvalidation.py` checks where defaults are allowed.
"""

import copy

from federation.apimachinery.fielderrors import Causes, invalid_go, show_go
from federation.apiserver.semantics.cel.rules import compile_rules
from federation.apiserver.semantics.schema.defaulting import apply_defaults, prune
from federation.apiserver.semantics.schema.model import NO_DEFAULT, Schema
from federation.apiserver.semantics.schema.validation import validate


def validate_defaults(schema: Schema, path: str) -> Causes:
    """Return the causes of invalid defaults in a compiled schema at `path` of its CRD."""
    if not schema.has_defaults:
        return []
    causes: Causes = []
    _check(schema, path, causes)
    return causes


def _check(schema: Schema, path: str, causes: Causes) -> None:
    if schema.native:
        return
    if schema.default is not NO_DEFAULT:
        causes += _validate_default(schema, f"{path}.default")
    if schema.items is not None:
        _check(schema.items, f"{path}.items", causes)
    for name, field in schema.properties.items():
        if field.has_defaults:
            _check(field, f"{path}.properties[{name}]", causes)


def _validate_default(schema: Schema, path: str) -> Causes:
    value = copy.deepcopy(schema.default)
    if prune(schema, value):
        return [invalid_go(path, show_go(schema.default), "must not have unknown fields")]
    # As in Kubernetes, the text has the path inside the default and the field has the path inside the CRD.
    found = [
        {
            **cause,
            "field": f"{path}.{cause['field']}".rstrip("."),
            "message": cause["message"].replace("<nil> in", " in"),
        }
        for cause in validate(schema, value)
    ]
    if found or (rules := compile_rules(schema)) is None:
        return found
    apply_defaults(schema, value)
    return rules.check(value, None, [], path)
