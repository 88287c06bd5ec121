"""Schemas of Kubernetes' own kinds, from the committed `builtin.json` (made by `tools/generate_schema.py`).

The file is read once, as bytes; a definition is parsed when something needs it, and compiled when a kind is served the
first time. So start-up costs a millisecond, and memory grows with the kinds in use. Descriptions stay in the bytes:
only OpenAPI documents show them (`openapi.py` reads `definition`).
"""

import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

import orjson

from federation.base.errors import Bug
from federation.registry.schema.model import NO_DEFAULT, Schema, anything

REF = "#/definitions/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"

# Go types that are one value, and those that hold anything.
_VALUES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    f"{META}.Time": "date-time",
    f"{META}.MicroTime": "date-time",
}
# A schema or a list or bool in its place: atomic for server-side apply, but decoded like a schema.
_SCHEMAS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_OR_SCHEMAS = frozenset({f"{_SCHEMAS}OrArray", f"{_SCHEMAS}OrBool"})
# Parts that a controller reports: the server takes them as they come, so nothing in them is enforced as required.
_REPORTED = re.compile(r"(Status|Condition|ContainerState\w*|NodeSystemInfo|AttachedVolume|ContainerImage|Series)$")


def _read() -> bytes:
    return resources.files("federation.registry.schema").joinpath("builtin.json").read_bytes()


@cache
def fingerprint() -> str:
    """Return a hash of all built-in definitions."""
    return hashlib.sha256(_read()).hexdigest()


@cache
def _lines() -> dict[str, bytes]:
    lines = {}
    for line in _read().split(b"\n"):
        if line.startswith(b'"'):
            name, _, body = line.partition(b": ")
            lines[name[1:-1].decode()] = body.rstrip(b",")
    return lines


def definition_names() -> list[str]:
    """Return the OpenAPI names of all definitions, sorted."""
    return list(_lines())


def definition(name: str) -> dict[str, Any]:
    """Return a fresh copy of a definition as Kubernetes' OpenAPI v2 document has it; KeyError for an unknown one."""
    parsed: dict[str, Any] = orjson.loads(_lines()[name])
    return parsed


@cache
def _names_by_kind() -> dict[tuple[str, str, str], str]:
    marker = b'"x-kubernetes-group-version-kind":'
    found = {}
    for name, line in _lines().items():
        if marker in line:
            for entry in orjson.loads(line)["x-kubernetes-group-version-kind"]:
                found[entry["group"], entry["version"], entry["kind"]] = name
    return found


def definition_name(group: str, version: str, kind: str) -> str | None:
    """Return the OpenAPI name of a kind, None for one that is not built in."""
    return _names_by_kind().get((group, version, kind))


def builtin_schema(group: str, version: str, kind: str) -> Schema:
    """Return the compiled schema of a built-in kind, made at the first call; Bug for a kind that is not in the file."""
    name = definition_name(group, version, kind)
    if name is None:
        raise Bug(f"no built-in schema of {kind} in {group or 'core'}/{version}; run tools/generate_schema.py")
    return compiled(name)


def object_meta() -> Schema:
    """Return the schema of every object's metadata."""
    return compiled(f"{META}.ObjectMeta")


@cache
def compiled(name: str) -> Schema:
    """Return the compiled definition `name` and all it reaches; shared, read-only."""
    return _Compiler(_compiled).compile(name)


_compiled: dict[str, Schema] = {}


class _Compiler:
    """Compiles definitions into a shared table; a node is in the table before it is filled, so cycles close."""

    def __init__(self, table: dict[str, Schema]) -> None:
        self._table = table

    def compile(self, name: str) -> Schema:
        if name in self._table:
            return self._table[name]
        raw = definition(name)
        if name in _VALUES or not raw.get("properties"):
            schema = self._value(name)
            self._table[name] = schema
            return schema
        schema = Schema("object")
        schema.native = True
        schema.name = name.rsplit(".", 1)[1]
        self._table[name] = schema
        schema.map_type = raw.get("x-kubernetes-map-type", "")
        if not _REPORTED.search(name):
            schema.required = tuple(raw.get("required", ()))
        # Sealed before the fields are compiled: a copy of a node that is still being filled shares its mapping.
        schema.kind = 1
        schema.is_atomic = schema.map_type == "atomic"
        for field, property_ in raw["properties"].items():
            schema.properties[field] = self._field(property_)
        schema.seal()
        return schema

    def _value(self, name: str) -> Schema:
        if name in _OR_SCHEMAS:
            schema = self.compile(_SCHEMAS).copy()
            schema.type, schema.is_atomic = "", True
            return schema
        if name not in _VALUES:
            return anything(atomic=True)
        schema = Schema("string")
        schema.native = True
        schema.format = _VALUES[name]
        schema.int_or_string = schema.format == "int-or-string"
        schema.seal()
        return schema

    def _field(self, raw: dict[str, Any]) -> Schema:
        reference = raw.get("$ref")
        if reference is not None:
            target = self.compile(reference[len(REF) :])
            if not raw.keys() - {"$ref", "description"}:
                return target
            schema = target.copy()
            schema.by_value = raw.get("default") == {}
        else:
            schema = Schema(raw.get("type", ""))
            schema.native = True
            schema.format = raw.get("format", "")
            schema.default = raw.get("default", NO_DEFAULT)
            if "items" in raw:
                schema.items = self._field(raw["items"])
            if "additionalProperties" in raw:
                schema.additional = self._field(raw["additionalProperties"])
            if "enum" in raw:
                schema.enum = tuple(raw["enum"])
            schema.map_type = raw.get("x-kubernetes-map-type", "")
        schema.list_type = raw.get("x-kubernetes-list-type", "")
        schema.list_map_keys = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        schema.patch_strategy = frozenset(filter(None, raw.get("x-kubernetes-patch-strategy", "").split(",")))
        schema.patch_merge_key = raw.get("x-kubernetes-patch-merge-key", "")
        if reference is None:
            schema.seal()
        return schema
