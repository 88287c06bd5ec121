"""From our models to structural schemas, the form of OpenAPI v3 that CustomResourceDefinitions accept.

Pydantic writes references, titles and unions with null; a structural schema has none of them. What a field needs beyond
types (list-map keys, formats) the models carry as extras and is passed through. Descriptions are the docstrings of
fields. A docstring of a field is no attribute of its class: it is read from the module's source. Pydantic can do that,
for each class while its module is imported, which took a quarter of the time of all imports.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

Schema = dict[str, Any]

_DROPPED = frozenset(("title", "$defs", "discriminator"))


class _Described(GenerateJsonSchema):
    """Pydantic's generator, with the docstrings of fields as descriptions."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """As the base's."""
        generated = super().model_schema(schema)
        model, properties = schema["cls"], generated.get("properties", {})
        for name, text in _field_docs(model).items():
            properties[model.model_fields[name].alias or name].setdefault("description", text)
        return generated


def to_structural(model: type[BaseModel]) -> Schema:
    """Return the structural schema of the model, as `openAPIV3Schema` of a CRD version."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Described)
    return _convert(schema, schema.get("$defs", {}))


def _convert(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    schema = _without_union(_without_reference(schema, definitions), definitions)
    if schema.get("x-kubernetes-int-or-string"):
        # The extension means the union of integer and string; a structural schema may not spell it out as well.
        schema.pop("anyOf", None)
    result: Schema = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "default" and value is None) or (key == "properties" and not value):
            continue
        match key:
            case "properties":
                result[key] = {name: _convert(part, definitions) for name, part in sorted(value.items())}
            case "items":
                result[key] = _convert(value, definitions)
            case "additionalProperties":
                if isinstance(value, Mapping):
                    result[key] = _convert(value, definitions)
            case "default" if isinstance(value, Mapping):
                # Pydantic writes out the absent fields of a default object.
                result[key] = {name: part for name, part in value.items() if part is not None}
            case "description":
                result[key] = " ".join(value.split())
            case "required":
                result[key] = sorted(value)
            case _:
                result[key] = value
    return _ordered(result)


def _without_reference(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Return the schema with its reference replaced by the target; what stands beside the reference wins."""
    if "$ref" not in schema:
        return dict(schema)
    target = definitions[schema["$ref"].rpartition("/")[2]]
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**_without_reference(target, definitions), **beside}


def _without_union(schema: Schema, definitions: Mapping[str, Any]) -> Schema:
    """Return the schema with `X | None` replaced by X: an absent field is how Kubernetes says null."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**_without_union(_without_reference(options[0], definitions), definitions), **rest}
    return schema


def _ordered(schema: Schema) -> Schema:
    """Return the schema in a fixed order, so that generated files change only where the models do."""
    return {key: schema[key] for key in sorted(schema)}


def _field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of the model's fields by name; the class that declares a field last documents it."""
    documented: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        docs = _docs_of(owner.__module__).get(owner.__qualname__, {}) if issubclass(owner, BaseModel) else {}
        for name in inspect.get_annotations(owner):
            documented.pop(name, None)
            if name in docs:
                documented[name] = docs[name]
    return {name: text for name, text in documented.items() if name in model.model_fields}


@cache
def _docs_of(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of a module's fields, by class and field; each module is parsed once."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_documented(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise(node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match following:
                case ast.Expr(ast.Constant(str(text))):
                    yield statement.target.id, inspect.cleandoc(text)
