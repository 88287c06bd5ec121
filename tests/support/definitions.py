"""CustomResourceDefinitions as large and deep as those of well-known operators, built from Kubernetes' pod template.

`a_large_definition` embeds the whole PodTemplateSpec, described field by field, once per component and version, with
everything that such definitions use: int-or-string quantities, list-maps, embedded resources, fields of any shape,
defaults, nullable fields, rules, columns, scale, and several versions.
"""

from typing import Any

from federation.apiserver.semantics.schema import builtin

Schema = dict[str, Any]

_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
_META = f"{builtin.META}.ObjectMeta"
_QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
_VALUES: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    f"{builtin.META}.Time": {"type": "string", "format": "date-time"},
    f"{builtin.META}.FieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    _META: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_KEPT = ("type", "format", "description", "enum", "x-kubernetes-list-type", "x-kubernetes-map-type")
_RULES = [
    {"rule": "self.replicas >= 0", "message": "replicas must not be negative"},
    {
        "rule": "!has(self.paths) || self.paths.all(a, self.paths.exists_one(b, a.name == b.name))",
        "message": "names of paths must be unique",
    },
    {"rule": "self.mode == oldSelf.mode", "message": "mode is immutable", "fieldPath": ".mode"},
]


def a_large_definition(group: str, plural: str = "engines", kind: str = "Engine", *, components: int = 1) -> Schema:
    """Return a definition of about 600 KB per component, in two versions."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": ["eng"], "categories": ["operators"]},
            "versions": [_version("v1", components, storage=True), _version("v1beta1", components, storage=False)],
        },
    }


def an_engine(group: str, name: str = "e", **spec: Any) -> Schema:
    """Return a valid object of that definition."""
    container = {"name": "main", "image": "app:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    template = {"spec": {"containers": [container], "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}]}}
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Engine",
        "metadata": {"name": name},
        "spec": {"mode": "Fast", "components": {"part0": {"template": template}}, **spec},
    }


def _version(name: str, components: int, *, storage: bool) -> Schema:
    template = expanded(_TEMPLATE)
    spec: Schema = {
        "type": "object",
        "required": ["mode"],
        "properties": {
            "mode": {"type": "string", "enum": ["Fast", "Safe"], "maxLength": 8},
            "replicas": {"type": "integer", "format": "int32", "default": 1},
            "maxUnavailable": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "config": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "resource": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "paths": {
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
                        "weight": {"type": "integer", "nullable": True, "minimum": 0, "maximum": 100},
                    },
                },
            },
            "components": {
                "type": "object",
                "properties": {
                    f"part{index}": {"type": "object", "properties": {"template": template}}
                    for index in range(components)
                },
            },
        },
        "x-kubernetes-validations": _RULES,
    }
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {
            "openAPIV3Schema": {
                "description": f"Engine of {name}.",
                "type": "object",
                "required": ["spec"],
                "properties": {"spec": spec, "status": status},
            }
        },
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [
            {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }


def expanded(name: str) -> Schema:
    """Return a built-in definition with all references resolved, as a structural schema."""
    if name in _VALUES:
        return _VALUES[name]
    return _field(builtin.definition(name))


def _field(raw: Schema) -> Schema:
    if reference := raw.get("$ref"):
        target = expanded(reference[len(builtin.REF) :])
        return {**target, **{key: raw[key] for key in ("description",) if key in raw}}
    field: Schema = {key: raw[key] for key in _KEPT if key in raw}
    if "default" in raw and raw["default"] != {}:
        field["default"] = raw["default"]
    if "items" in raw:
        field["items"] = _field(raw["items"])
    if "additionalProperties" in raw:
        field["additionalProperties"] = _field(raw["additionalProperties"])
    if "properties" in raw:
        field["properties"] = {name: _field(inner) for name, inner in raw["properties"].items()}
        if raw.get("required"):
            field["required"] = raw["required"]
    if field.get("x-kubernetes-list-type") == "map":
        _with_keys(field, raw["x-kubernetes-list-map-keys"])
    return field


def _with_keys(field: Schema, keys: list[str]) -> None:
    """Keep the list-map keys if every item has them, as generators of definitions do."""
    items = field["items"]
    needed = items.get("required") or ()
    if all(key in needed or "default" in items["properties"][key] for key in keys):
        field["x-kubernetes-list-map-keys"] = keys
    else:
        field["x-kubernetes-list-type"] = "atomic"
