"""Write the schemas of the built-in kinds from the official client's models: `python -m tools.generate_schema`.

The result, `federation/registry/schema/builtin.json`, holds one OpenAPI definition per line, `"name": {…}`, sorted by
name, only those that a served kind reaches. It is committed, so that the product needs neither the client nor this
tool at run time; a test generates it again and compares. What the models lose is added from `kubernetes_facts.py`.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubernetes.client import models

from tools import kubernetes_facts as facts

TARGET = Path(__file__).resolve().parents[1] / "federation" / "registry" / "schema" / "builtin.json"
REF = "#/definitions/"

_CLASS = re.compile(r"^(?P<prefix>[A-Z][a-z]+)?V(?P<version>\d+)(?P<name>[A-Z].*)$")
_SCALARS = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "float": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_BY_FIELD = {field: scalar for scalar, fields in facts.FIELD_TYPES.items() for field in fields.split()}


def generate() -> str:
    """Return the whole file's text."""
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
    for package in facts.PACKAGES:
        kinds = facts.LISTED.get(package, "").split()
        kinds += [f"{kind}List" for kind in kinds]
        kinds += facts.SINGLE.get(package, "").split()
        yield package, kinds
    yield ("meta", "v1"), list(facts.META_KINDS)


class _Builder:
    def __init__(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}

    def add_kind(self, group: str, version: str, kind: str) -> None:
        """Add a kind and everything that it reaches; types without a group in their name go to the first package."""
        package = facts.META if group == "meta" else facts.PACKAGES[group, version]
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
            raise SystemExit(f"the client has a model of an unknown form: {class_name}")
        bare = match["name"]
        if bare in facts.META_TYPES:
            package = facts.META
        elif bare in facts.CORE_TYPES:
            package = facts.CORE
        elif match["prefix"]:
            package = facts.PACKAGES[facts.PREFIXES[match["prefix"]], f"v{match['version']}"]
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
        if bare in facts.STRUCTS_ATOMIC or _qualified(name) in facts.STRUCTS_ATOMIC:
            definition["x-kubernetes-map-type"] = "atomic"
        properties: dict[str, Any] = {}
        required = []
        fields = {
            field.serialization_alias or field.alias or attribute: field
            for attribute, field in model.model_fields.items()
        }
        for attribute, python_type in model.openapi_types.items():
            json_name = model.attribute_map[attribute]
            if f"{bare}.{json_name}" in facts.UNRELEASED:
                continue
            field = fields[json_name]
            properties[json_name] = self._property(name, json_name, python_type, field.description, package)
            if field.is_required() and f"{bare}.{json_name}" not in facts.NOT_ENFORCED:
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
            # The client lost the text of fields that refer to a type: what the type is says more than nothing.
            schema["description"] = self.definitions[schema["$ref"].removeprefix(REF)].get("description", "")
        if "$ref" in schema and python_type not in ("object", "datetime", "str"):
            is_value = json_name in facts.BY_VALUE and field not in facts.POINTERS
            if is_value:
                schema["default"] = {}
        if schema.get("type") == "array":
            keys = facts.LISTS.get(field)
            schema["x-kubernetes-list-type"] = "atomic" if keys is None else "map" if keys else "set"
            if keys:
                schema["x-kubernetes-list-map-keys"] = keys.split()
        if field in facts.MAPS_ATOMIC:
            schema["x-kubernetes-map-type"] = "atomic"
        if field in facts.PATCHES:
            strategy, _, key = facts.PATCHES[field].partition(" ")
            schema["x-kubernetes-patch-strategy"] = strategy
            if key:
                schema["x-kubernetes-patch-merge-key"] = key
        if field in facts.DEFAULTS:
            schema["default"] = facts.DEFAULTS[field]
        if field in facts.ENUMS:
            schema["enum"] = facts.ENUMS[field].split()
        return schema

    def _type(self, python_type: str, field: str, qualified: str, package: str) -> dict[str, Any]:
        if field in _BY_FIELD:
            scalar = self._scalar(_BY_FIELD[field])
            return {"type": "array", "items": scalar} if python_type.startswith("List[") else scalar
        if python_type == "int":
            name = field.rsplit(".", 1)[1]
            is_wide = name in facts.WIDE or field in facts.WIDE_FIELDS or qualified in facts.WIDE_FIELDS
            return {"type": "integer", "format": "int64" if is_wide else "int32"}
        if python_type == "datetime":
            return self._scalar("Time")
        if python_type in _SCALARS:
            return dict(_SCALARS[python_type])
        if python_type.startswith("List["):
            return {"type": "array", "items": self._type(python_type[5:-1], field, qualified, package)}
        if python_type.startswith("Dict[str, "):
            if field in facts.QUANTITY_MAPS:
                return {"type": "object", "additionalProperties": self._scalar("Quantity")}
            return {
                "type": "object",
                "additionalProperties": self._type(python_type[10:-1], field, qualified, package),
            }
        if python_type == "object":
            raise SystemExit(f"kubernetes_facts.FIELD_TYPES does not say what {field} is")
        return {"$ref": REF + self._define(python_type, package)}

    def _scalar(self, scalar: str) -> dict[str, Any]:
        name, schema = facts.SCALARS[scalar]
        self.definitions[name] = {**schema, "description": facts.SCALAR_DESCRIPTIONS[scalar]}
        return {"$ref": REF + name}


def _class_of(group: str, version: str, kind: str) -> str:
    bare = f"V{version[1:]}{kind}"
    for prefix, prefixed in facts.PREFIXES.items():
        if prefixed == group and hasattr(models, prefix + bare):
            return prefix + bare
    if not hasattr(models, bare):
        raise SystemExit(f"the client has no model of {kind} in {group or 'core'}/{version}")
    return bare


def _qualified(name: str, parts: int = 3) -> str:
    return ".".join(name.split(".")[-parts:])


def main() -> int:
    """Write the file; `--check` only tells whether it is up to date."""
    text = generate()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.read_text() == text else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
