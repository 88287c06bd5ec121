"""From our models to structural schemas, the form of OpenAPI v3 that CustomResourceDefinitions accept.

Pydantic writes references, titles and unions with null; a structural schema has none of them. What a field needs beyond
types (list-map keys, formats) the models carry as extras and is passed through.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from federation.api.schema.fielddocs import field_docs

Schema = dict[str, Any]

_DROPPED = frozenset(("title", "$defs", "discriminator"))


class _Described(GenerateJsonSchema):
    """Pydantic's generator, with the docstrings of fields as descriptions."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """As the base's."""
        generated = super().model_schema(schema)
        model, properties = schema["cls"], generated.get("properties", {})
        for name, text in field_docs(model).items():
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
