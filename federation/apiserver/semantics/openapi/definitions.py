"""The definitions of OpenAPI documents: built-in ones unchanged, custom kinds rendered, all references included. Pure.

Version 3 differs from version 2 in three ways: references have another prefix, a reference with other keywords is
wrapped in allOf, and values of several types use oneOf.
"""

from collections.abc import Iterable
from typing import Any, Final

from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema import builtin
from federation.apiserver.semantics.schema.model import ANYTHING, NO_DEFAULT, Schema

Definition = dict[str, Any]

REF_V3: Final = "#/components/schemas/"
GVK: Final = "x-kubernetes-group-version-kind"
_ALWAYS: Final = (f"{builtin.META}.Status", f"{builtin.META}.DeleteOptions")
_SUBRESOURCE_KINDS: Final = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
_SEVERAL_TYPES: Final[dict[str, Definition]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}
_LIMITS: Final = {
    "format": "format",
    "minimum": "minimum",
    "maximum": "maximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern_text": "pattern",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "list_type": "x-kubernetes-list-type",
    "map_type": "x-kubernetes-map-type",
}
_FLAGS: Final = {
    "nullable": "nullable",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "unique_items": "uniqueItems",
    "int_or_string": "x-kubernetes-int-or-string",
    "preserve_unknown": "x-kubernetes-preserve-unknown-fields",
    "embedded_resource": "x-kubernetes-embedded-resource",
}
# Keywords that Swagger 2.0 does not have; Kubernetes omits them from that document too.
_ONLY_V3: Final = frozenset({"nullable", "oneOf", "anyOf", "not", "allOf"})


def name_of(info: KindInfo) -> str:
    """Return the definition name of a kind: Kubernetes' name, or the reversed group for a custom kind."""
    resource = info.resource
    if not info.is_custom:
        found = builtin.definition_name(resource.group, resource.version, resource.kind)
        if found is not None:
            return found
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def subresource_kind(info: KindInfo, subresource: str) -> tuple[str, str, str]:
    """Return (group, version, kind) of the objects at the URL of a subresource."""
    resource = info.resource
    return _SUBRESOURCE_KINDS.get(subresource, (resource.group, resource.version, resource.kind))


def definitions_v2(kinds: Iterable[KindInfo]) -> dict[str, Definition]:
    """Return the definitions of these kinds, of their lists and of all types they refer to."""
    found = _collect(kinds, is_v2=True)
    return {name: _without(found[name], _ONLY_V3) for name in sorted(found)}


def definitions_v3(kinds: Iterable[KindInfo], others: Iterable[str] = ()) -> dict[str, Definition]:
    """Return the definitions of these kinds and of the built-in names `others` for an OpenAPI 3 document."""
    found = _collect(kinds, others)
    return {
        name: {**_SEVERAL_TYPES[name], "description": found[name].get("description", "")}
        if name in _SEVERAL_TYPES
        else _to_v3(found[name])
        for name in sorted(found)
    }


def _collect(kinds: Iterable[KindInfo], others: Iterable[str] = (), *, is_v2: bool = False) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    wanted: list[str] = [*_ALWAYS, *others]
    for info in kinds:
        name = name_of(info)
        resource = info.resource
        if info.is_custom:
            _add_custom(info, name, found, wanted, is_v2=is_v2)
        else:
            wanted.append(name)
            list_name = builtin.definition_name(resource.group, resource.version, info.list_kind)
            wanted += [list_name] if list_name else []
        for subresource in info.subresources & _SUBRESOURCE_KINDS.keys():
            kind_name = builtin.definition_name(*_SUBRESOURCE_KINDS[subresource])
            wanted += [kind_name] if kind_name else []
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = builtin.definition(name)
            wanted += _references(found[name])
    return found


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        names = [inner for part in value.values() if isinstance(part, dict | list) for inner in _references(part)]
        reference = value.get("$ref")
        return [*names, reference[len(builtin.REF) :]] if isinstance(reference, str) else names
    if isinstance(value, list):
        return [name for part in value if isinstance(part, dict | list) for name in _references(part)]
    return []


def _add_custom(info: KindInfo, name: str, found: dict[str, Definition], wanted: list[str], *, is_v2: bool) -> None:
    resource = info.resource
    definition = _custom_v2(info.schema) if is_v2 else _with_envelope(render(info.schema))
    found[name] = {**definition, GVK: [_gvk(resource.group, resource.version, resource.kind)]}
    found[f"{name}List"] = {
        "description": f"{resource.kind}List is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_envelope("ListMeta"),
            "items": {
                "description": f"List of {resource.plural}.",
                "type": "array",
                "items": {"$ref": builtin.REF + name},
            },
        },
        GVK: [_gvk(resource.group, resource.version, info.list_kind)],
    }
    wanted += [f"{builtin.META}.ObjectMeta", f"{builtin.META}.ListMeta"]


def _custom_v2(schema: Schema) -> Definition:
    """Return a custom kind's schema for version 2.

    If it preserves unknown fields it has no properties at all: kubectl would refuse all others.
    """
    return {"type": "object"} if schema.preserve_unknown else _with_envelope(_to_v2(render(schema)))


def _with_envelope(definition: Definition) -> Definition:
    definition["properties"] = {**definition.get("properties", {}), **_envelope("ObjectMeta")}
    return definition


def _to_v2(value: Definition) -> Definition:
    """Return a custom kind's schema without what kubectl misunderstands in version 2, as kube-apiserver publishes it.

    A nullable value and a list of anything have no type; unknown fields are not preserved beside known ones.
    """
    if "$ref" in value:
        return value
    is_nullable, is_open = value.get("nullable"), value.get("x-kubernetes-preserve-unknown-fields")
    omitted = _ONLY_V3 | {"default"}
    if is_nullable or is_open:
        omitted |= {"items", "properties"}
    kind = value.get("type")
    if is_nullable or (is_open and kind == "object") or (kind == "array" and (is_open or "items" not in value)):
        omitted |= {"type"}
    shown = {key: inner for key, inner in value.items() if key not in omitted}
    if is_open and value.get("x-kubernetes-embedded-resource"):
        shown.pop("required", None)
    properties, additional = shown.get("properties") or {}, shown.get("additionalProperties")
    if "required" in shown:
        shown["required"] = [name for name in shown["required"] if not properties.get(name, {}).get("nullable")]
        if not shown["required"] or (isinstance(additional, dict) and additional.get("nullable")):
            del shown["required"]
    if properties:
        shown["properties"] = {name: _to_v2(field) for name, field in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(shown.get(key), dict):
            shown[key] = _to_v2(shown[key])
    return shown


def _envelope(metadata: str) -> dict[str, Definition]:
    model = builtin.definition("io.k8s.api.core.v1.ConfigMap")["properties"]
    return {
        "apiVersion": model["apiVersion"],
        "kind": model["kind"],
        "metadata": {
            "description": "Standard object's metadata.",
            "$ref": f"{builtin.REF}{builtin.META}.{metadata}",
        },
    }


def _gvk(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "kind": kind, "version": version}


def render(schema: Schema) -> Definition:
    """Return the compiled schema of a custom kind as an OpenAPI schema."""
    if schema.native:
        return {"$ref": f"{builtin.REF}{builtin.META}.{schema.name}"} if schema.name else {"type": "object"}
    rendered: Definition = {}
    if schema.description:
        rendered["description"] = schema.description
    if schema.type:
        rendered["type"] = schema.type
    if schema.default is not NO_DEFAULT:
        rendered["default"] = schema.default
    for attribute, key in _LIMITS.items():
        value = getattr(schema, attribute)
        if value not in (None, ""):
            rendered[key] = value
    for attribute, key in _FLAGS.items():
        if getattr(schema, attribute):
            rendered[key] = True
    required = list(schema.required)
    if schema.embedded_resource:
        required += [name for name in ("kind", "apiVersion") if name not in required]
    for key, listed in (
        ("enum", schema.enum),
        ("required", required),
        ("x-kubernetes-list-map-keys", schema.list_map_keys),
        ("x-kubernetes-validations", schema.validations),
    ):
        if listed:
            rendered[key] = list(listed)
    if schema.properties:
        rendered["properties"] = {name: render(field) for name, field in schema.properties.items()}
    if schema.items is not None:
        rendered["items"] = render(schema.items)
    if schema.additional is not None:
        rendered["additionalProperties"] = True if schema.additional is ANYTHING else render(schema.additional)
    for key, parts in (("allOf", schema.all_of), ("anyOf", schema.any_of), ("oneOf", schema.one_of)):
        if parts:
            rendered[key] = [render(part) for part in parts]
    if schema.int_or_string and not schema.any_of and not schema.all_of:
        rendered["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.negation is not None:
        rendered["not"] = render(schema.negation)
    return rendered


def _to_v3(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_v3(item) if isinstance(item, dict | list) else item for item in value]
    reference = value.get("$ref")
    if isinstance(reference, str):
        pointer = {"$ref": REF_V3 + reference[len(builtin.REF) :]}
        beside = {key: inner for key, inner in value.items() if key != "$ref"}
        return {**beside, "allOf": [pointer]} if beside else pointer
    return {key: _to_v3(inner) if isinstance(inner, dict | list) else inner for key, inner in value.items()}


def _without(value: Any, keys: frozenset[str]) -> Any:
    """Return a schema without these keywords; property names are kept, because a field may have such a name."""
    if isinstance(value, list):
        return [_without(item, keys) if isinstance(item, dict | list) else item for item in value]
    result = {}
    has_reference = "$ref" in value
    for key, inner in value.items():
        if key in keys or (has_reference and key == "default"):
            continue
        if key == "properties" and isinstance(inner, dict):
            result[key] = {name: _without(field, keys) for name, field in inner.items()}
        elif key in ("default", "enum", "x-kubernetes-validations"):
            result[key] = inner
        else:
            result[key] = _without(inner, keys) if isinstance(inner, dict | list) else inner
    return result
