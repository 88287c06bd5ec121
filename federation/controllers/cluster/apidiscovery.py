"""Discover the kinds that a member serves: nothing is placed where it cannot exist (docs/reference/clusters.md).

If a group version fails to answer (a broken aggregated API is common), its kinds stay as they were last discovered.
Otherwise the workloads of these kinds would be removed from the cluster.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from federation.apimachinery import conditions
from federation.apimachinery.errors import ClusterError, ClusterLimitExceeded, ClusterUnreachable
from federation.apimachinery.resources import Object
from federation.client.client import Client

ServedType: TypeAlias = tuple[str, str, str]
"""Group, version and kind."""

_PARALLEL = 6
_TIMEOUT_S = 10.0
_TYPES_MAX = 5_000
"""Types that a member may serve; they are published in its status. Large clusters serve about 1,000."""
_GROUP_VERSIONS_MAX = 1_000
_NAME_MAX = 253
_ANSWER_BYTES_MAX = 4 * 1024 * 1024
"""The longest answer that is parsed; the longest of a real cluster have some 100 kB."""
_UNANSWERED_MAX = 2 * _PARALLEL
"""Requests without an answer after which the others are not sent: the health check waits for the discovery."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """The served types. `failed` names the group versions without a usable answer; `version` is Kubernetes' own."""

    types: list[dict[str, str]]
    failed: tuple[str, ...] = ()
    kubernetes_version: str = ""
    """As in `kubectl version`, "" if the member does not say it."""


def to_served(types: Iterable[Mapping[str, str]]) -> frozenset[ServedType]:
    """Return the group, version and kind of published types."""
    return frozenset((type_.get("group", ""), type_["version"], type_["kind"]) for type_ in types)


def served_by(definition: Object | None) -> frozenset[ServedType]:
    """Return the types of an established CustomResourceDefinition of a member; none for a malformed one."""
    try:
        if definition is None or not conditions.is_true(definition["status"]["conditions"], "Established"):
            return frozenset()
        spec = definition["spec"]
        kind = _name(spec["names"]["kind"])
        versions = [version for version in spec["versions"] if version.get("served")]
        return frozenset((_name(spec["group"]), _name(version["name"]), kind) for version in versions)
    except (AttributeError, KeyError, TypeError, ValueError):
        return frozenset()


async def discover(client: Client, known: list[dict[str, Any]]) -> Discovered:
    """Request every served kind; ClusterError if the list of groups cannot be read.

    `known` are the published types: those of group versions that fail now are kept.
    """
    group_versions = await _group_versions(client)
    slots = asyncio.Semaphore(_PARALLEL)
    count = unanswered = 0

    async def ask(group: str, version: str) -> list[dict[str, str]] | None:
        nonlocal count, unanswered
        async with slots:
            if unanswered >= _UNANSWERED_MAX or count > _TYPES_MAX:
                return None
            try:
                found = await _types_of(client, group, version)
            except ClusterError:
                unanswered += 1
                return None
        count += len(found or ())
        return found if count <= _TYPES_MAX else None

    answers = await asyncio.gather(*(ask(*group_version) for group_version in group_versions))
    types: list[dict[str, str]] = []
    failed = []
    for (group, version), answer in zip(group_versions, answers, strict=True):
        if answer is None:
            failed.append(f"{group}/{version}" if group else version)
            types += [t for t in known if (t.get("group", ""), t.get("version")) == (group, version)]
        else:
            types += answer
    if max(count, len(types)) > _TYPES_MAX:
        raise ClusterLimitExceeded(f"the member serves more than {_TYPES_MAX} types")
    types.sort(key=lambda type_: (type_.get("group", ""), type_["version"], type_["kind"]))
    return Discovered(types, tuple(failed), await _kubernetes_version(client))


async def _kubernetes_version(client: Client) -> str:
    """Return the version that the member reports, "" without a usable answer."""
    try:
        return _name((await _get(client, "/version") or {}).get("gitVersion"))
    except (ClusterError, ValueError):
        return ""


async def _group_versions(client: Client) -> list[tuple[str, str]]:
    core, groups = await asyncio.gather(_get(client, "/api"), _get(client, "/apis"))
    if core is None or groups is None:
        raise ClusterUnreachable("the API groups cannot be listed")
    try:
        found = [("", _name(version)) for version in core.get("versions") or ()]
        for group in groups.get("groups") or ():
            found += [(_name(group["name"]), _name(version["version"])) for version in group.get("versions") or ()]
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ClusterError("the list of API groups is malformed") from problem
    if len(found) > _GROUP_VERSIONS_MAX:
        raise ClusterLimitExceeded(f"the member serves more than {_GROUP_VERSIONS_MAX} API group versions")
    return found


async def _types_of(client: Client, group: str, version: str) -> list[dict[str, str]] | None:
    """Return the types of a group version, None without a usable answer; ClusterError without any."""
    answer = await _get(client, f"/apis/{group}/{version}" if group else f"/api/{version}")
    if answer is None:
        return None
    try:
        return [
            _to_type(group, version, resource)
            for resource in answer.get("resources") or ()
            if "/" not in resource.get("name", "/")
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _to_type(group: str, version: str, resource: dict[str, Any]) -> dict[str, str]:
    type_ = {"group": group} if group else {}
    return type_ | {
        "version": version,
        "kind": _name(resource.get("kind", "")),
        "pluralName": _name(resource["name"]),
        "scope": "Namespaced" if resource.get("namespaced") else "Cluster",
    }


def _name(value: Any) -> str:
    """Return a name from a member's answer; ValueError for anything else."""
    if not isinstance(value, str) or len(value) > _NAME_MAX:
        raise ValueError("not a name")
    return value


async def _get(client: Client, path: str) -> dict[str, Any] | None:
    """Return the JSON object at the path, None for any other answer."""
    code, body = await client.raw("GET", path, timeout_s=_TIMEOUT_S)
    if code != 200 or len(body) > _ANSWER_BYTES_MAX:
        return None
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None
