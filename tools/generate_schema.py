"""Generate the schemas of built-in kinds from the official client's models: `python -m tools.generate_schema`.

The result, `federation/apiserver/semantics/schema/builtin.json`, has one OpenAPI definition per line, sorted by name,
with the definitions that served kinds refer to. It is committed, so that the product needs neither the client nor this
tool at run time; a test compares it with a new one. `kubernetes_markers.py` has the markers that the models lack.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubernetes.client import models

from tools import kubernetes_markers as markers

TARGET = Path(__file__).resolve().parents[1] / "federation" / "apiserver" / "semantics" / "schema" / "builtin.json"
REF = "#/definitions/"

_CLASS = re.compile(r"^(?P<prefix>[A-Z][a-z]+)?V(?P<version>\d+)(?P<name>[A-Z].*)$")
_SCALARS = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "float": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_BY_FIELD = {field: scalar for scalar, fields in markers.FIELD_TYPES.items() for field in fields.split()}


def generate() -> str:
    """Return the text of the file."""
    builder = _Builder()
    for (group, version), kinds in _roots():
        for kind in kinds:
            builder.add_kind(group, version, kind)
    lines = [
        f"{json.dumps(name)}: {json.dumps(definition, sort_keys=True, separators=(',', ':'), ensure_ascii=False)}"
        for name, definition in sorted(builder.definitions.items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _roots() -> Iterator[tuple[tuple[str, str], list[str]]]:
    for package in markers.PACKAGES:
        kinds = markers.LISTED.get(package, "").split()
        kinds += [f"{kind}List" for kind in kinds]
        kinds += markers.SINGLE.get(package, "").split()
        yield package, kinds
    yield ("meta", "v1"), list(markers.META_KINDS)


class _Builder:
    def __init__(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}

    def add_kind(self, group: str, version: str, kind: str) -> None:
        """Add a kind and all types it refers to; a type without a group in its name is in the first package."""
        package = markers.META if group == "meta" else markers.PACKAGES[group, version]
        name = self._define(_class_of(group, version, kind), package)
        kind_group = "" if group == "meta" else group
        self.definitions[name]["x-kubernetes-group-version-kind"] = [
            {"group": kind_group, "kind": kind, "version": version}
        ]

    def _define(self, class_name: str, package: str) -> str:
        if class_name in self._names:
            return self._names[class_name]
        match = _CLASS.match(class_name)
        if match is None:
            raise SystemExit(f"the client has a model with an unexpected name: {class_name}")
        bare = match["name"]
        if bare in markers.META_TYPES:
            package = markers.META
        elif bare in markers.CORE_TYPES:
            package = markers.CORE
        elif match["prefix"]:
            package = markers.PACKAGES[markers.PREFIXES[match["prefix"]], f"v{match['version']}"]
        name = f"{package}.{bare}"
        self._names[class_name] = name
        model = getattr(models, class_name)
        definition: dict[str, Any] = {"type": "object"}
        self.definitions[name] = definition
        self._fill(definition, model, name)
        return name

    def _fill(self, definition: dict[str, Any], model: Any, name: str) -> None:
        definition["description"] = (inspect.getdoc(model) or "").split("\n\nAttributes:")[0].strip()
        package, bare = name.rsplit(".", 1)
        if bare in markers.STRUCTS_ATOMIC or _qualified(name) in markers.STRUCTS_ATOMIC:
            definition["x-kubernetes-map-type"] = "atomic"
        properties: dict[str, Any] = {}
        required = []
        fields = {
            field.serialization_alias or field.alias or attribute: field
            for attribute, field in model.model_fields.items()
        }
        for attribute, python_type in model.openapi_types.items():
            json_name = model.attribute_map[attribute]
            if f"{bare}.{json_name}" in markers.UNRELEASED:
                continue
            field = fields[json_name]
            properties[json_name] = self._property(name, json_name, python_type, field.description, package)
            if field.is_required() and f"{bare}.{json_name}" not in markers.NOT_ENFORCED:
                required.append(json_name)
        definition["properties"] = properties
        if required:
            definition["required"] = sorted(required)

    def _property(self, owner: str, json_name: str, python_type: str, text: str | None, package: str) -> dict[str, Any]:
        bare = owner.rsplit(".", 1)[1]
        field = f"{bare}.{json_name}"
        schema = self._type(python_type, field, _qualified(f"{owner}.{json_name}", 4), package)
        if text:
            schema["description"] = text
        elif "$ref" in schema:
            # The models have no description for fields that refer to a type: use that of the type.
            schema["description"] = self.definitions[schema["$ref"].removeprefix(REF)].get("description", "")
        if "$ref" in schema and python_type not in ("object", "datetime", "str"):
            is_value = json_name in markers.BY_VALUE and field not in markers.POINTERS
            if is_value:
                schema["default"] = {}
        if schema.get("type") == "array":
            keys = markers.LISTS.get(field)
            schema["x-kubernetes-list-type"] = "atomic" if keys is None else "map" if keys else "set"
            if keys:
                schema["x-kubernetes-list-map-keys"] = keys.split()
        if field in markers.MAPS_ATOMIC:
            schema["x-kubernetes-map-type"] = "atomic"
        if field in markers.PATCHES:
            strategy, _, key = markers.PATCHES[field].partition(" ")
            schema["x-kubernetes-patch-strategy"] = strategy
            if key:
                schema["x-kubernetes-patch-merge-key"] = key
        if field in markers.DEFAULTS:
            schema["default"] = markers.DEFAULTS[field]
        if field in markers.ENUMS:
            schema["enum"] = markers.ENUMS[field].split()
        return schema

    def _type(self, python_type: str, field: str, qualified: str, package: str) -> dict[str, Any]:
        if field in _BY_FIELD:
            scalar = self._scalar(_BY_FIELD[field])
            return {"type": "array", "items": scalar} if python_type.startswith("List[") else scalar
        if python_type == "int":
            name = field.rsplit(".", 1)[1]
            is_wide = name in markers.WIDE or field in markers.WIDE_FIELDS or qualified in markers.WIDE_FIELDS
            return {"type": "integer", "format": "int64" if is_wide else "int32"}
        if python_type == "datetime":
            return self._scalar("Time")
        if python_type in _SCALARS:
            return dict(_SCALARS[python_type])
        if python_type.startswith("List["):
            return {"type": "array", "items": self._type(python_type[5:-1], field, qualified, package)}
        if python_type.startswith("Dict[str, "):
            if field in markers.QUANTITY_MAPS:
                return {"type": "object", "additionalProperties": self._scalar("Quantity")}
            return {
                "type": "object",
                "additionalProperties": self._type(python_type[10:-1], field, qualified, package),
            }
        if python_type == "object":
            raise SystemExit(f"kubernetes_markers.FIELD_TYPES has no type for {field}")
        return {"$ref": REF + self._define(python_type, package)}

    def _scalar(self, scalar: str) -> dict[str, Any]:
        name, schema = markers.SCALARS[scalar]
        self.definitions[name] = {**schema, "description": markers.SCALAR_DESCRIPTIONS[scalar]}
        return {"$ref": REF + name}


def _class_of(group: str, version: str, kind: str) -> str:
    bare = f"V{version[1:]}{kind}"
    for prefix, prefixed in markers.PREFIXES.items():
        if prefixed == group and hasattr(models, prefix + bare):
            return prefix + bare
    if not hasattr(models, bare):
        raise SystemExit(f"the client has no model of {kind} in {group or 'core'}/{version}")
    return bare


def _qualified(name: str, parts: int = 3) -> str:
    return ".".join(name.split(".")[-parts:])


def main() -> int:
    """Write the file; with `--check` only return 1 if it is out of date."""
    text = generate()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text() == text else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
