"""Are the defaults that a schema gives valid by that schema? Pure.

A default must have the type of its node, obey its constraints and rules, and hold no field that would be pruned, or
every object that takes it would be refused. Where defaults may stand at all is `keywords.py`'s question.
"""

import copy

from federation.registry.cel.rules import compile_rules
from federation.registry.schema.defaulting import apply_defaults, prune
from federation.registry.schema.model import NO_DEFAULT, Schema
from federation.registry.schema.validation import validate
from federation.registry.validation.fields import Causes, invalid_go, show_go


def default_problems(schema: Schema, path: str) -> Causes:
    """Return what is wrong with the defaults in a compiled schema that stands at `path` of its definition."""
    if not schema.has_defaults:
        return []
    causes: Causes = []
    _check(schema, path, causes)
    return causes


def _check(schema: Schema, path: str, causes: Causes) -> None:
    if schema.native:
        return
    if schema.default is not NO_DEFAULT:
        causes += _problems(schema, f"{path}.default")
    if schema.items is not None:
        _check(schema.items, f"{path}.items", causes)
    for name, field in schema.properties.items():
        if field.has_defaults:
            _check(field, f"{path}.properties[{name}]", causes)


def _problems(schema: Schema, path: str) -> Causes:
    value = copy.deepcopy(schema.default)
    if prune(schema, value):
        return [invalid_go(path, show_go(schema.default), "must not have unknown fields")]
    # Texts speak of the default as a thing of its own, fields of its place in the definition.
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
