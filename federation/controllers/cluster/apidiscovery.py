"""Discover the kinds that a member serves: nothing is placed where it cannot exist (docs/reference/clusters.md).

Kubernetes 1.27 and later answer with two aggregated documents, of the core group and of all others. The groups of a
server without them are requested one by one, as its administrator may have disabled the feature.

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
GroupVersion: TypeAlias = tuple[str, str]
_Types: TypeAlias = list[dict[str, str]]

_AGGREGATED = "APIGroupDiscoveryList"
_ACCEPT = ",".join(
    [*(f"application/json;g=apidiscovery.k8s.io;v={v};as={_AGGREGATED}" for v in ("v2", "v2beta1")), "application/json"]
)

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
    documents = await _documents(client)
    answered: dict[GroupVersion, _Types | None] = {}
    for document in documents:
        if document.get("kind") == _AGGREGATED:
            answered |= _aggregated_types(document)
        else:
            answered |= await _ask_each(client, _group_versions(document))
    if len(answered) > _GROUP_VERSIONS_MAX:
        raise ClusterLimitExceeded(f"the member serves more than {_GROUP_VERSIONS_MAX} API group versions")
    types: _Types = []
    failed = []
    for (group, version), answer in answered.items():
        if answer is None:
            failed.append(f"{group}/{version}" if group else version)
            types += [t for t in known if (t.get("group", ""), t.get("version")) == (group, version)]
        else:
            types += answer
    if len(types) > _TYPES_MAX:
        raise ClusterLimitExceeded(f"the member serves more than {_TYPES_MAX} types")
    types.sort(key=lambda type_: (type_.get("group", ""), type_["version"], type_["kind"]))
    return Discovered(types, tuple(failed), await _kubernetes_version(client))


async def _documents(client: Client) -> list[dict[str, Any]]:
    """Return the documents of the core group and of all others, aggregated where the member can."""
    answers = await asyncio.gather(*(_get(client, path, accept=_ACCEPT) for path in ("/api", "/apis")))
    documents = [answer for answer in answers if answer is not None]
    if len(documents) < len(answers):
        raise ClusterUnreachable("the API groups cannot be listed")
    return documents


def _aggregated_types(document: dict[str, Any]) -> dict[GroupVersion, _Types | None]:
    """Return the types of each group version, None for those that the member itself could not discover."""
    found: dict[GroupVersion, _Types | None] = {}
    try:
        for item in document.get("items") or ():
            group = _name(item["metadata"].get("name") or "")
            for entry in item.get("versions") or ():
                version = _name(entry["version"])
                is_stale = entry.get("freshness") == "Stale"
                found[group, version] = None if is_stale else _types_in(group, version, entry.get("resources") or ())
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ClusterError("the list of API groups is malformed") from problem
    return found


def _types_in(group: str, version: str, resources: Iterable[dict[str, Any]]) -> _Types | None:
    """Return the types of an aggregated document's version, None for a malformed one."""
    try:
        return [
            _to_type(group, version, kind, entry["resource"], is_namespaced=entry.get("scope") == "Namespaced")
            for entry in resources
            if (kind := (entry.get("responseKind") or {}).get("kind"))  # without one it has only subresources
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


async def _ask_each(client: Client, group_versions: list[GroupVersion]) -> dict[GroupVersion, _Types | None]:
    """Request the types of each group version."""
    slots = asyncio.Semaphore(_PARALLEL)
    count = unanswered = 0

    async def ask(group: str, version: str) -> _Types | None:
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
    if count > _TYPES_MAX:
        raise ClusterLimitExceeded(f"the member serves more than {_TYPES_MAX} types")
    return dict(zip(group_versions, answers, strict=True))


async def _kubernetes_version(client: Client) -> str:
    """Return the version that the member reports, "" without a usable answer."""
    try:
        return _name((await _get(client, "/version") or {}).get("gitVersion"))
    except (ClusterError, ValueError):
        return ""


def _group_versions(document: dict[str, Any]) -> list[GroupVersion]:
    """Return the group versions of `/api` or `/apis` in their classic form."""
    try:
        found = [("", _name(version)) for version in document.get("versions") or ()]
        for group in document.get("groups") or ():
            found += [(_name(group["name"]), _name(version["version"])) for version in group.get("versions") or ()]
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise ClusterError("the list of API groups is malformed") from problem
    if len(found) > _GROUP_VERSIONS_MAX:
        raise ClusterLimitExceeded(f"the member serves more than {_GROUP_VERSIONS_MAX} API group versions")
    return found


async def _types_of(client: Client, group: str, version: str) -> _Types | None:
    """Return the types of a group version, None without a usable answer; ClusterError without any."""
    answer = await _get(client, f"/apis/{group}/{version}" if group else f"/api/{version}")
    if answer is None:
        return None
    try:
        return [
            _to_type(
                group,
                version,
                resource.get("kind", ""),
                resource["name"],
                is_namespaced=bool(resource.get("namespaced")),
            )
            for resource in answer.get("resources") or ()
            if "/" not in resource.get("name", "/")
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _to_type(group: str, version: str, kind: Any, plural: Any, *, is_namespaced: bool) -> dict[str, str]:
    type_ = {"group": group} if group else {}
    return type_ | {
        "version": version,
        "kind": _name(kind),
        "pluralName": _name(plural),
        "scope": "Namespaced" if is_namespaced else "Cluster",
    }


def _name(value: Any) -> str:
    """Return a name from a member's answer; ValueError for anything else."""
    if not isinstance(value, str) or len(value) > _NAME_MAX:
        raise ValueError("not a name")
    return value


async def _get(client: Client, path: str, *, accept: str = "") -> dict[str, Any] | None:
    """Return the JSON object at the path, None for any other answer."""
    code, body = await client.raw("GET", path, timeout_s=_TIMEOUT_S, accept=accept)
    if code != 200 or len(body) > _ANSWER_BYTES_MAX:
        return None
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None
