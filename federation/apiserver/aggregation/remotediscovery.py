"""Reads the discovery documents of aggregated API servers into entries of the merged document. Pure.

The documents come from another program and are shown to every client, so only known fields of known types are kept, and
a bounded number of them. Without the aggregated form a server's list of one group version is converted.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

RESOURCES_MAX: Final = 1000
"""Resources of one group version."""
_SUBRESOURCES_MAX: Final = 50
_NAMES_MAX: Final = 20
"""Verbs, short names or categories of one resource."""
_TEXT_MAX: Final = 253

Entry = dict[str, Any]


def read_aggregated(body: bytes, group: str, version: str) -> tuple[Entry, ...] | None:
    """Return the resources of a group version in an APIGroupDiscoveryList; None when the body is something else.

    A list that does not have the group version gives no resources.
    """
    document = _parse(body)
    if document.get("kind") != "APIGroupDiscoveryList":
        return None
    for item in _mappings(document.get("items")):
        if _mapping(item.get("metadata")).get("name") == group:
            for entry in _mappings(item.get("versions")):
                if entry.get("version") == version:
                    return tuple(_to_resource(found, group, version) for found in _resources(entry, "resource"))
    return ()


def read_classic(body: bytes, group: str, version: str) -> tuple[Entry, ...] | None:
    """Return the resources of an APIResourceList in the aggregated form; None when the body is something else."""
    document = _parse(body)
    if document.get("kind") != "APIResourceList":
        return None
    found: dict[str, Entry] = {}
    for entry in _resources(document, "name"):
        plural, _, subresource = entry["name"].partition("/")
        kind = {
            "group": _text(entry.get("group")) or group,
            "version": _text(entry.get("version")) or version,
            "kind": _text(entry.get("kind")),
        }
        if not subresource:
            found[plural] = {**_described(entry, plural, kind), **found.get(plural, {})}
        elif plural in found and len(found[plural].setdefault("subresources", [])) < _SUBRESOURCES_MAX:
            shown = {"subresource": subresource, "responseKind": kind, "verbs": _texts(entry.get("verbs"))}
            found[plural]["subresources"].append(shown)
    return tuple(found.values())


def read_openapi_hash(body: bytes, group: str, version: str) -> str:
    """Return the hash of a group version's document in an index of OpenAPI 3, "" when it is not there."""
    paths = _mapping(_parse(body).get("paths"))
    url = _text(_mapping(paths.get(f"apis/{group}/{version}")).get("serverRelativeURL"), 1024)
    _, _, given = url.partition("?hash=")
    return given if given.isascii() and given.isalnum() else ""


def _described(entry: Mapping[str, Any], plural: str, kind: Entry) -> Entry:
    shown: Entry = {
        "resource": plural,
        "responseKind": kind,
        "scope": "Namespaced" if entry.get("namespaced") is True else "Cluster",
        "singularResource": _text(entry.get("singularName")),
        "verbs": _texts(entry.get("verbs")),
    }
    return shown | _optional_names(entry)


def _to_resource(entry: Mapping[str, Any], group: str, version: str) -> Entry:
    shown: Entry = {
        "resource": entry["resource"],
        "responseKind": _kind(entry, group, version),
        "scope": "Namespaced" if entry.get("scope") == "Namespaced" else "Cluster",
        "singularResource": _text(entry.get("singularResource")),
        "verbs": _texts(entry.get("verbs")),
        **_optional_names(entry),
    }
    subresources = [
        {
            "subresource": _text(part.get("subresource")),
            "responseKind": _kind(part, group, version),
            "verbs": _texts(part.get("verbs")),
        }
        for part in _mappings(entry.get("subresources"))[:_SUBRESOURCES_MAX]
    ]
    return {**shown, "subresources": subresources} if subresources else shown


def _kind(entry: Mapping[str, Any], group: str, version: str) -> Entry:
    kind = _mapping(entry.get("responseKind"))
    return {
        "group": _text(kind.get("group")) or group,
        "version": _text(kind.get("version")) or version,
        "kind": _text(kind.get("kind")),
    }


def _optional_names(entry: Mapping[str, Any]) -> Entry:
    names = {name: _texts(entry.get(name)) for name in ("shortNames", "categories")}
    return {name: values for name, values in names.items() if values}


def _resources(document: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    listed = _mappings(document.get("resources"))[:RESOURCES_MAX]
    return (entry for entry in listed if _text(entry.get(name)))


def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        return _mapping(orjson.loads(body))
    except orjson.JSONDecodeError:
        return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: Any, length_max: int = _TEXT_MAX) -> str:
    return value if isinstance(value, str) and len(value) <= length_max else ""


def _texts(value: Any) -> list[str]:
    return [text for text in map(_text, value[:_NAMES_MAX]) if text] if isinstance(value, list) else []
