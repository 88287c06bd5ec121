"""The versions of a CustomResourceDefinition: served and stored ones, and what they can say. Pure.

Only the stored version has all fields of an object. A server without a webhook converts by name alone, so a read in
another version may lack fields, and a write through it removes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_OPEN = "x-kubernetes-preserve-unknown-fields"


def find_version(definition: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """Return a version of a CustomResourceDefinition, {} if it has none of the name."""
    versions: Sequence[Mapping[str, Any]] = (definition.get("spec") or {}).get("versions") or ()
    return next((each for each in versions if each.get("name") == version), {})


def is_served(definition: Mapping[str, Any], version: str) -> bool:
    """Return whether the CustomResourceDefinition serves the version."""
    return bool(find_version(definition, version).get("served"))


def stored_version(definition: Mapping[str, Any]) -> str:
    """Return the version in which objects are read and written: the stored one.

    Only it has all fields of an object. A server that does not serve it is read in the first version that it serves,
    "" without any.
    """
    versions = [each for each in (definition.get("spec") or {}).get("versions") or () if each.get("served")]
    stored = [each for each in versions if each.get("storage")]
    return str((stored or versions)[0]["name"]) if versions else ""


def keeps_content(definition: Mapping[str, Any]) -> bool:
    """Return whether versions differ in their apiVersion only: no webhook converts what an object says."""
    return ((definition.get("spec") or {}).get("conversion") or {}).get("strategy") != "Webhook"


def version_of_patches(definition: Mapping[str, Any]) -> str:
    """Return the version through which a patch removes no field of an object, "" if any does.

    A webhook converts without loss.
    """
    return stored_version(definition) if keeps_content(definition) else ""


def has_all_fields(definition: Mapping[str, Any], version: str, other: str) -> bool:
    """Return whether one version of a CustomResourceDefinition can say all that another one can, by their schemas."""
    wanted = _schema_of(definition, other)
    return wanted is not None and _covers(_schema_of(definition, version), wanted)


def lacking_fields(definition: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return the fields that a served version of the wanted definition has, and the same version of the other lacks.

    A server removes them from what it stores.
    """
    found: dict[str, None] = {}
    for version in (wanted.get("spec") or {}).get("versions") or ():
        name = str(version.get("name"))
        if is_served(definition, name) and version.get("served"):
            found |= dict.fromkeys(_lacking(_schema_of(definition, name), _schema_of(wanted, name), ""))
    return list(found)


def _lacking(schema: Any, wanted: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, Mapping) or not isinstance(wanted, Mapping) or schema.get(_OPEN):
        return
    own = schema.get("properties") or {}
    for name, each in (wanted.get("properties") or {}).items():
        at = f"{path}.{name}" if path else str(name)
        if name in own:
            yield from _lacking(own[name], each, at)
        elif not isinstance(schema.get("additionalProperties"), Mapping):
            yield at
    for part in ("items", "additionalProperties"):
        yield from _lacking(schema.get(part), wanted.get(part), f"{path}[]")


def _schema_of(definition: Mapping[str, Any], version: str) -> Any:
    return (find_version(definition, version).get("schema") or {}).get("openAPIV3Schema")


def _covers(schema: Any, other: Any) -> bool:
    if not isinstance(schema, Mapping) or not isinstance(other, Mapping):
        return bool(schema == other)
    if schema.get(_OPEN):
        return True
    if other.get(_OPEN) or schema.get("type") != other.get("type"):
        return False
    own, properties = schema.get("properties") or {}, other.get("properties") or {}
    if not all(name in own and _covers(own[name], each) for name, each in properties.items()):
        return False
    return all(_covers(schema.get(part), other[part]) for part in ("items", "additionalProperties") if part in other)
