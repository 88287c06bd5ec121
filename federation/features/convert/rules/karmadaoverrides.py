"""Karmada's OverridePolicy and ClusterOverridePolicy as ours. Pure.

The order of the overriders is the same in both. Where an operator has another meaning, several of ours give the same
result: what Karmada's `add` does to labels is a `delete` and an `addIfAbsent` here.
"""

import re
from collections.abc import Iterable, Iterator

from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader
from federation.features.convert.rules.karmadaselection import to_cluster_choice, to_resource_selectors

_DIGEST = re.compile(r"@?([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,})")
_COMPONENTS = ("Registry", "Repository", "Tag")
_OPERATORS = ("add", "remove", "replace")
_POINTER = "must be a JSON pointer that starts with /; correct the policy"
_LISTS = {"add": "append", "remove": "delete"}


def to_override_spec(spec: FieldReader, namespace: str) -> Object:
    """Return the spec of our override policy; `namespace` is empty for a ClusterOverridePolicy."""
    selectors = to_resource_selectors(spec, namespace)
    rules = spec.children("overrideRules")
    if rules:
        for key in ("targetCluster", "overriders"):
            spec.drop(key, "has no effect beside overrideRules", unless=({},))
    elif spec.has("targetCluster") or spec.has("overriders"):
        rules = [spec]
    converted: Object = {"resourceSelectors": selectors, "overrideRules": [_rule(rule) for rule in rules]}
    return {key: value for key, value in converted.items() if value}


def _rule(rule: FieldReader) -> Object:
    choice = to_cluster_choice(rule.child("targetCluster"))
    targets: Object = {**({"clusters": choice.names} if choice.names else {}), **choice.selection()}
    overriders = rule.child("overriders")
    converted: Object = {
        "image": [_image(each) for each in overriders.children("imageOverrider")],
        "command": [_list(each) for each in overriders.children("commandOverrider")],
        "args": [_list(each) for each in overriders.children("argsOverrider")],
        "labels": list(_maps(overriders.children("labelsOverrider"))),
        "annotations": list(_maps(overriders.children("annotationsOverrider"))),
        "fields": [_field(each) for each in overriders.children("fieldOverrider")],
        "jsonpatch": [_patch(each) for each in overriders.children("plaintext")],
    }
    found = {key: value for key, value in converted.items() if value}
    return {**({"targetClusters": targets} if targets else {}), **({"overriders": found} if found else {})}


def _image(overrider: FieldReader) -> Object:
    component, operator = overrider.one_of("component", _COMPONENTS), overrider.one_of("operator", _OPERATORS)
    value = overrider.text("value")
    path = overrider.child("predicate").text("path")
    converted: Object = {"operations": list(_image_operations(component, operator, value))}
    if operator == "add":
        overrider.note("operator", "add appends to a part that is present; addIfAbsent refuses the object then")
    if operator == "remove" and value:
        overrider.note("value", "has no effect with operator: remove")
    if path:
        converted["imagePath"] = path if path.startswith("/") else f"/{path}"
    return converted


def _image_operations(component: str, operator: str, value: str) -> Iterator[Object]:
    """Yield our operations; Karmada's Tag stands for the tag or the digest, and setting one removes the other."""
    digest = _DIGEST.fullmatch(value) if component == "Tag" else None
    if operator == "remove":
        yield {"imageComponent": component, "operator": "delete"}
        if component == "Tag":
            yield {"imageComponent": "Digest", "operator": "delete"}
        return
    ours = "addIfAbsent" if operator == "add" else "overwrite"
    if digest is not None:
        yield {"imageComponent": "Digest", "operator": ours, "value": digest[1]}
        yield {"imageComponent": "Tag", "operator": "delete"}
        return
    yield {"imageComponent": component, "operator": ours, "value": value}
    if component == "Tag":
        yield {"imageComponent": "Digest", "operator": "delete"}


def _list(overrider: FieldReader) -> Object:
    return {
        "containerName": overrider.text("containerName"),
        "operator": _LISTS[overrider.one_of("operator", tuple(_LISTS))],
        "value": overrider.texts("value"),
    }


def _maps(overriders: Iterable[FieldReader]) -> Iterator[Object]:
    for overrider in overriders:
        value = overrider.text_map("value")
        match overrider.one_of("operator", _OPERATORS):
            case "add":
                yield {"operator": "delete", "value": value}
                yield {"operator": "addIfAbsent", "value": value}
            case "remove":
                yield {"operator": "delete", "value": value}
            case _:
                yield {"operator": "overwrite", "value": value}


def _field(overrider: FieldReader) -> Object:
    path = overrider.text("fieldPath")
    if not path.startswith("/"):
        raise overrider.refuse("fieldPath", _POINTER)
    forms = {form: [_patch(each, "subPath") for each in overrider.children(form)] for form in ("json", "yaml")}
    return {"fieldPath": path, **{form: operations for form, operations in forms.items() if operations}}


def _patch(overrider: FieldReader, key: str = "path") -> Object:
    path = overrider.text(key)
    if not path.startswith("/"):
        raise overrider.refuse(key, _POINTER)
    operator = overrider.one_of("operator", _OPERATORS)
    value = overrider.any("value")
    if operator == "remove":
        if value is not None:
            overrider.note("value", "has no effect with operator: remove")
        return {key: path, "operator": operator}
    return {key: path, "operator": operator, "value": value}
