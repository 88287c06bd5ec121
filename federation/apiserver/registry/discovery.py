"""Discovery documents: which groups, versions and resources a registry serves, and the version of the server.

It builds the classic documents (`/api`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`) and the aggregated one
(apidiscovery.k8s.io/v2) from the registry's kinds and, for group versions of other servers, its table of APIServices.
Reviews and Bindings are answered and never stored, so they are not among the kinds: `REVIEWS` lists them.
`http/discovery.py` adds negotiation and caching; `client/localraw.py` serves the documents in process.
"""

import base64
import hashlib
import os
import platform
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from federation.apimachinery.errors import not_served
from federation.apimachinery.resources import API_SERVICES
from federation.apiserver.registry.apipriorities import Priority, default_priority
from federation.apiserver.registry.apiservices import APIServices, RemoteDocuments
from federation.apiserver.semantics.kinds.kinds import KindInfo, Kinds

KUBERNETES_VERSION = "v1.36.0"
_READ_WRITE = ("get", "patch", "update")
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class APIResource(NamedTuple):
    """A resource, or a subresource when `subresource` is set. Group and version "" are those of the parent."""

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
    storage_hash: str = ""
    """Changes with the stored version of the resource; "" for what is not stored."""


def _review(kind: str, *, is_namespaced: bool = False) -> APIResource:
    return APIResource(f"{kind.lower()}s", "", kind.lower(), is_namespaced, "", "", kind, ("create",))


REVIEWS: dict[tuple[str, str], list[APIResource]] = {
    ("", "v1"): [_review("Binding", is_namespaced=True)],
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
    "binding": (("", "", "Binding"), ("create",)),
    "eviction": (("policy", "v1", "Eviction"), ("create",)),
    "token": (("authentication.k8s.io", "v1", "TokenRequest"), ("create",)),
    "finalize": (("", "", ""), ("update",)),
    "ephemeralcontainers": (("", "", ""), _READ_WRITE),
    "resize": (("", "", ""), _READ_WRITE),
    "approval": (("", "", ""), _READ_WRITE),
}


def classic_document(kinds: Kinds, path: str, apis: APIServices | None = None) -> dict[str, Any]:
    """Return the document of a path below /api or /apis; NotFound for a group or version that is not served.

    `apis` adds the groups of other servers. Their own documents, below /apis/GROUP/VERSION, are not known here.
    """
    match path.rstrip("/").split("/")[1:]:
        case ["api"]:
            core = _group_versions(kinds, apis)[""]
            return {"kind": "APIVersions", "versions": core, "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_to_group(group, versions) for group, versions in _group_versions(kinds, apis).items() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["api", version]:
            return _resource_list(kinds, "", version, apis)
        case ["apis", group] if group and (versions := _group_versions(kinds, apis).get(group)):
            return {"kind": "APIGroup", "apiVersion": "v1", **_to_group(group, versions)}
        case ["apis", group, version] if group:
            return _resource_list(kinds, group, version, apis)
        case _:
            raise not_served()


def aggregated_document(kinds: Kinds, path: str, version: str, apis: APIServices | None = None) -> dict[str, Any]:
    """Return the APIGroupDiscoveryList of `/api` (the core group) or `/apis` (all others), in v2 or v2beta1."""
    remote = apis.remote if apis is not None else {}
    served: dict[tuple[str, str], list[KindInfo]] = {}
    for info in kinds.all():
        served.setdefault((info.resource.group, info.resource.version), []).append(info)
    items = []
    for group, versions in _group_versions(kinds, apis, is_by_name=True).items():
        if bool(group) != (path == "/apis"):
            continue
        shown: list[dict[str, Any]] = []
        for entry in versions:
            if apis is not None and (group, entry) in remote:
                shown.append(_to_remote(entry, apis.documents((group, entry))))
                continue
            found = _resources(group, entry, served.get((group, entry), []))
            shown.append({"version": entry, "resources": _to_discovery(group, entry, found), "freshness": "Current"})
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": shown})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def version_info() -> dict[str, str]:
    """Return the document of `/version`."""
    major, minor = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{KUBERNETES_VERSION}+federation",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{os.uname().machine}",
    }


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of Kubernetes' order: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), "")


def storage_version_hash(info: KindInfo) -> str:
    """Return the hash by which clients notice that objects of a kind are stored in another version."""
    stored = info.stored_as or info.resource
    version = stored.version if info.stored_as is not None else info.storage_version
    digest = hashlib.sha256(f"{stored.group}/{version or stored.version}/{stored.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _group_versions(kinds: Kinds, apis: APIServices | None, *, is_by_name: bool = False) -> dict[str, list[str]]:
    """Return the served groups with their versions, both by the priorities of their APIServices.

    Groups of the same priority are in the order of their APIServices' names, or of their own with `is_by_name`.
    """
    served = {(info.resource.group, info.resource.version) for info in kinds.all()} | REVIEWS.keys()
    served |= apis.connected if apis is not None else frozenset()
    priorities = {key: default_priority(*key) for key in served}
    for entry in apis.entries.values() if apis is not None else ():
        if entry.group_version in served or entry.service is not None:
            priorities[entry.group_version] = Priority(entry.group_priority, entry.version_priority)
    found: dict[str, list[str]] = {}
    for group, version in priorities:
        found.setdefault(group, []).append(version)

    def group_order(group: str) -> tuple[bool, int, str]:
        is_first = group == API_SERVICES.group
        order = min((-priorities[group, version].group, f"{version}.{group}") for version in found[group])
        return (not is_first, order[0], group if is_by_name else order[1])

    return {
        group: sorted(found[group], key=lambda version: (-priorities[group, version].version, version_order(version)))
        for group in sorted(found, key=group_order)
    }


def _to_remote(version: str, documents: RemoteDocuments) -> dict[str, Any]:
    """Return the APIVersionDiscovery of a group version of another server."""
    freshness = "Current" if documents.is_fresh else "Stale"
    return {"version": version, "resources": list(documents.resources), "freshness": freshness}


def _resources(group: str, version: str, infos: Iterable[KindInfo]) -> list[APIResource]:
    """Return the resources of a group version in alphabetical order, subresources after their resource."""
    found = list(REVIEWS.get((group, version), ()))
    for info in infos:
        found.extend(_api_resources(info))
    return sorted(found, key=lambda entry: entry.plural)


def _api_resources(info: KindInfo) -> Iterable[APIResource]:
    resource = info.resource
    yield APIResource(
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
        storage_version_hash(info),
    )
    # kube-apiserver lists those of built-in kinds in alphabetical order, and those of custom resources as written here.
    for subresource in sorted(info.subresources, reverse=info.is_custom):
        (group, version, kind), verbs = _SUBRESOURCES.get(subresource, (("", "", ""), _READ_WRITE))
        yield APIResource(
            resource.plural, subresource, "", resource.namespaced, group, version, kind or resource.kind, verbs
        )


def _to_group(group: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(kinds: Kinds, group: str, version: str, apis: APIServices | None) -> dict[str, Any]:
    infos = [info for info in kinds.all() if (info.resource.group, info.resource.version) == (group, version)]
    resources = _resources(group, version, infos)
    # Nothing is known of what a connector answers, so its list is empty.
    if not resources and (apis is None or (group, version) not in apis.connected):
        raise not_served()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [_to_resource(entry) for entry in resources],
    }


def _to_resource(entry: APIResource) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": f"{entry.plural}/{entry.subresource}" if entry.subresource else entry.plural,
        "singularName": entry.singular,
        "namespaced": entry.is_namespaced,
    }
    if entry.version:
        shown |= {"group": entry.group, "version": entry.version} if entry.group else {"version": entry.version}
    shown |= {"kind": entry.kind, "verbs": list(entry.verbs)}
    if entry.storage_hash:
        shown["storageVersionHash"] = entry.storage_hash
    return shown | _optional_names(entry)


def _to_discovery(group: str, version: str, resources: list[APIResource]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for entry in resources:
        kind = {
            "group": entry.group if entry.version else group,
            "version": entry.version or version,
            "kind": entry.kind,
        }
        if entry.subresource:
            subresource = {"subresource": entry.subresource, "responseKind": kind, "verbs": list(entry.verbs)}
            shown[-1].setdefault("subresources", []).append(subresource)
            continue
        resource = {
            "resource": entry.plural,
            "responseKind": kind,
            "scope": "Namespaced" if entry.is_namespaced else "Cluster",
            "singularResource": entry.singular,
            "verbs": list(entry.verbs),
        }
        shown.append(resource | _optional_names(entry))
    return shown


def _optional_names(entry: APIResource) -> dict[str, Any]:
    names = {"shortNames": list(entry.short_names), "categories": list(entry.categories)}
    return {key: value for key, value in names.items() if value}
