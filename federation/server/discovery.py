"""Discovery: which groups, versions and resources are served, in both forms that clients ask for.

The classic documents (`/api`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`) and the aggregated one
(apidiscovery.k8s.io/v2) are made from the registry's kinds and kept as bytes until `Kinds.generation` changes. Reviews
are not stored and so not in the registry; their resources are listed in `VIRTUAL`.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from federation.base.errors import NotFound
from federation.registry.kinds import KindInfo, Kinds
from federation.server.asgi import JSON_TYPE, Header, Request, serialize
from federation.server.negotiation import Shape, negotiate

_READ_WRITE = ("get", "patch", "update")


class Served(NamedTuple):
    """One resource, or subresource when `subresource` is set, as discovery shows it."""

    plural: str
    subresource: str
    singular: str
    is_namespaced: bool
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


def _review(kind: str, *, is_namespaced: bool = False) -> Served:
    return Served(f"{kind.lower()}s", "", kind.lower(), is_namespaced, "", "", kind, ("create",))


VIRTUAL: dict[tuple[str, str], list[Served]] = {
    ("authentication.k8s.io", "v1"): [_review("SelfSubjectReview"), _review("TokenReview")],
    ("authorization.k8s.io", "v1"): [
        _review("LocalSubjectAccessReview", is_namespaced=True),
        _review("SelfSubjectAccessReview"),
        _review("SelfSubjectRulesReview"),
        _review("SubjectAccessReview"),
    ],
}

# subresource → (group, version, kind) of its own object ("" kind: that of the resource), verbs
_SUBRESOURCES: dict[str, tuple[tuple[str, str, str], tuple[str, ...]]] = {
    "status": (("", "", ""), _READ_WRITE),
    "scale": (("autoscaling", "v1", "Scale"), _READ_WRITE),
    "binding": (("", "v1", "Binding"), ("create",)),
    "eviction": (("policy", "v1", "Eviction"), ("create",)),
    "token": (("authentication.k8s.io", "v1", "TokenRequest"), ("create",)),
    "finalize": (("", "", ""), ("update",)),
    "ephemeralcontainers": (("", "", ""), _READ_WRITE),
    "resize": (("", "", ""), _READ_WRITE),
    "approval": (("", "", ""), _READ_WRITE),
}
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
GroupVersion = tuple[str, str]


class Discovery:
    """Answers discovery requests for one registry."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._generation = -1
        self._documents: dict[tuple[str, str], tuple[Any, bytes, bytes]] = {}

    def group_versions(self) -> dict[str, list[str]]:
        """Return the served groups in their order and each one's versions, the preferred one first."""
        found: dict[str, dict[str, None]] = {}
        for info in self._kinds.all():
            found.setdefault(info.resource.group, {})[info.resource.version] = None
        for group, version in VIRTUAL:
            found.setdefault(group, {})[version] = None
        return {group: sorted(versions, key=version_order) for group, versions in found.items()}

    def resources(self) -> dict[GroupVersion, list[Served]]:
        """Return what every group version serves, in alphabetical order, subresources after their resource."""
        found: dict[GroupVersion, list[Served]] = {key: list(served) for key, served in VIRTUAL.items()}
        for info in self._kinds.all():
            found.setdefault((info.resource.group, info.resource.version), []).extend(_served(info))
        for served in found.values():
            served.sort(key=lambda entry: (entry.plural, entry.subresource))
        return found

    async def respond(self, request: Request) -> None:
        """Answer a discovery path; NotFound for a group or version that is not served."""
        path = request.path.rstrip("/")
        is_root = path in {"/api", "/apis"}
        answer = negotiate(request.headers.get(b"accept", b""), is_discovery=True)
        shape = answer.version if answer.shape is Shape.DISCOVERY and is_root else ""
        value, body, etag = self._document(path, shape)
        headers: list[Header] = [(b"vary", b"Accept")]
        if shape:
            headers.append((b"etag", etag))
            if request.headers.get(b"if-none-match") == etag:
                await request.respond(304, b"", content_type=answer.content_type, headers=headers)
                return
        content_type = answer.content_type if shape or answer.is_yaml else JSON_TYPE
        if answer.is_yaml:
            body = serialize(value, content_type)
        await request.respond(200, body, content_type=content_type, headers=headers)

    def _document(self, path: str, aggregated_version: str) -> tuple[Any, bytes, bytes]:
        if self._generation != self._kinds.generation:
            self._documents.clear()
            self._generation = self._kinds.generation
        key = (path, aggregated_version)
        found = self._documents.get(key)
        if found is None:
            value = self._aggregated(path, aggregated_version) if aggregated_version else self._classic(path)
            body = orjson.dumps(value)
            etag = b'"' + hashlib.sha256(body).hexdigest().upper().encode() + b'"'
            found = self._documents[key] = (value, body, etag)
        return found

    def _classic(self, path: str) -> dict[str, Any]:
        parts = path.split("/")[1:]
        groups = self.group_versions()
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": groups[""], "serverAddressByClientCIDRs": []}
        if parts == ["apis"]:
            listed = [_to_group(group, versions) for group, versions in groups.items() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in groups and parts[1]:
            return {"kind": "APIGroup", "apiVersion": "v1", **_to_group(parts[1], groups[parts[1]])}
        group, version = ("", parts[1]) if parts[0] == "api" and len(parts) == 2 else ("", "")
        if parts[0] == "apis" and len(parts) == 3 and parts[1]:
            group, version = parts[1], parts[2]
        served = self.resources().get((group, version))
        if served is None:
            raise NotFound("the server could not find the requested resource")
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [_to_resource(entry) for entry in served],
        }

    def _aggregated(self, path: str, version: str) -> dict[str, Any]:
        resources = self.resources()
        items = []
        for group, versions in self.group_versions().items():
            if bool(group) != (path == "/apis"):
                continue
            shown = [
                {
                    "version": entry,
                    "resources": _to_discovery(group, entry, resources[group, entry]),
                    "freshness": "Current",
                }
                for entry in versions
            ]
            items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": shown})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), "")


def _served(info: KindInfo) -> Iterable[Served]:
    resource = info.resource
    yield Served(
        resource.plural,
        "",
        info.singular,
        resource.namespaced,
        "",
        "",
        resource.kind,
        tuple(info.verbs),
        tuple(info.short_names),
        tuple(info.categories),
    )
    for subresource in info.subresources:
        (group, version, kind), verbs = _SUBRESOURCES.get(subresource, (("", "", ""), _READ_WRITE))
        yield Served(
            resource.plural, subresource, "", resource.namespaced, group, version, kind or resource.kind, verbs
        )


def _to_group(group: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _to_resource(entry: Served) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": f"{entry.plural}/{entry.subresource}" if entry.subresource else entry.plural,
        "singularName": entry.singular,
        "namespaced": entry.is_namespaced,
    }
    if entry.version:
        shown |= {"group": entry.group, "version": entry.version} if entry.group else {"version": entry.version}
    shown |= {"kind": entry.kind, "verbs": list(entry.verbs)}
    if entry.short_names:
        shown["shortNames"] = list(entry.short_names)
    if entry.categories:
        shown["categories"] = list(entry.categories)
    return shown


def _to_discovery(group: str, version: str, served: list[Served]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for entry in served:
        kind = {
            "group": entry.group if entry.version else group,
            "version": entry.version or version,
            "kind": entry.kind,
        }
        if entry.subresource:
            subresource = {"subresource": entry.subresource, "responseKind": kind, "verbs": list(entry.verbs)}
            shown[-1].setdefault("subresources", []).append(subresource)
            continue
        resource: dict[str, Any] = {
            "resource": entry.plural,
            "responseKind": kind,
            "scope": "Namespaced" if entry.is_namespaced else "Cluster",
            "singularResource": entry.singular,
            "verbs": list(entry.verbs),
        }
        if entry.short_names:
            resource["shortNames"] = list(entry.short_names)
        if entry.categories:
            resource["categories"] = list(entry.categories)
        shown.append(resource)
    return shown
