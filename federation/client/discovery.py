"""What a local client answers to raw requests: health, version, discovery, and reading objects by path.

Small on purpose: the full documents are made by `server/discovery.py`, which a client must not import. Controllers ask
a member for its health, its version and the kinds that it serves, and get the same answers in process as over the
network.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.base.errors import MethodNotAllowed, NotFound
from federation.registry.kinds import KindInfo
from federation.registry.options import ListOptions
from federation.registry.registry import Registry

_HEALTH = frozenset(("healthz", "livez", "readyz"))
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0", "platform": "linux/amd64"}


async def answer_raw(registry: Registry, method: str, path: str, query: Mapping[str, str]) -> bytes:
    """Return the body of a successful GET; NotFound, MethodNotAllowed and what reading an object raises."""
    if method.upper() != "GET":
        raise MethodNotAllowed(f"{method} {path}: only GET is answered in process")
    parts = [part for part in path.split("/") if part]
    if parts and parts[0] in _HEALTH:
        await registry.store.revision()  # unhealthy is a store that does not answer
        return b"ok"
    if parts == ["version"]:
        return orjson.dumps(_VERSION)
    if parts[:1] == ["api"]:
        return await _answer_group(registry, "", parts[1:], query)
    if parts == ["apis"]:
        return orjson.dumps(_groups(registry.kinds.all()))
    if parts[:1] == ["apis"]:
        return await _answer_group(registry, parts[1], parts[2:], query)
    raise _not_found()


async def _answer_group(registry: Registry, group: str, parts: list[str], query: Mapping[str, str]) -> bytes:
    """Answer below /api or /apis/GROUP."""
    infos = [info for info in registry.kinds.all() if info.resource.group == group]
    if not infos:
        raise _not_found()
    if not parts:
        return orjson.dumps({"kind": "APIVersions", "versions": ["v1"]} if not group else _group(group, infos))
    served = [info for info in infos if info.resource.version == parts[0]]
    if not served:
        raise _not_found()
    if len(parts) == 1:
        return orjson.dumps(_resources(group, parts[0], served))
    return await _read(registry, group, parts[0], parts[1:], query)


async def _read(registry: Registry, group: str, version: str, parts: list[str], query: Mapping[str, str]) -> bytes:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) >= 3:
        namespace, parts = parts[1], parts[2:]
    info = registry.kinds.lookup(group, version, parts[0])
    if len(parts) > 1:
        return await registry.get(info, namespace, parts[1], subresource=parts[2] if len(parts) > 2 else "")
    selection = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=int(query.get("limit") or 0),
        continue_token=query.get("continue", ""),
    )
    page = await registry.list(info, namespace, selection)
    metadata = {"resourceVersion": str(page.resource_version), "continue": page.continue_token}
    head = {"kind": info.list_kind, "apiVersion": info.resource.api_version, "metadata": metadata}
    return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(page.items) + b"]}"


def _groups(infos: list[KindInfo]) -> dict[str, Any]:
    by_group: dict[str, list[KindInfo]] = {}
    for info in infos:
        if info.resource.group:
            by_group.setdefault(info.resource.group, []).append(info)
    groups = [_group(name, members) for name, members in by_group.items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group(name: str, infos: list[KindInfo]) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in dict.fromkeys(info.resource.version for info in infos)
    ]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def _resources(group: str, version: str, infos: list[KindInfo]) -> dict[str, Any]:
    listed = []
    for info in infos:
        resource = info.resource
        listed.append(
            {
                "name": resource.plural,
                "singularName": info.singular,
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": list(info.verbs),
            }
        )
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def _not_found() -> NotFound:
    return NotFound("the server could not find the requested resource")
