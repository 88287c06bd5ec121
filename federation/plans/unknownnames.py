"""Errors about what a command names and what does not exist, with the nearest name that does."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import orjson

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import ConfigurationError, Forbidden, NotFound, UnknownName
from federation.apimachinery.nearestname import did_you_mean
from federation.apimachinery.resources import NAMESPACES, Resource
from federation.client.client import Client
from federation.plans.kinds import ServedKinds

if TYPE_CHECKING:  # light commands name what does not exist, too
    from federation.plans.documents import Document

_ACCEPT = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_NAMES_MAX = 1000


def unknown_cluster(option: str, name: str, clusters: Collection[str]) -> UnknownName:
    """Return the error for an option that names a cluster which does not exist."""
    known = ", ".join(sorted(clusters)[:10]) or "none"
    return UnknownName(f"{option}: there is no cluster {name!r}{did_you_mean(name, clusters) or f'; known: {known}'}")


async def check_namespace(host: Client, name: str, documents: Iterable["Document"] = ()) -> None:
    """Raise UnknownName for a namespace that does not exist, and that no document creates."""
    created = (each.manifest for each in documents if each.manifest.get("kind") == NAMESPACES.kind)
    if name in ("", "default") or name in {str(each["metadata"]["name"]) for each in created}:
        return
    try:
        await host.get(NAMESPACES, name)
    except Forbidden:
        return  # its objects may be readable all the same
    except NotFound:
        raise await unknown_object(host, f"there is no namespace {name!r}", NAMESPACES, name) from None


async def not_joined(host: Client, name: str) -> UnknownName:
    """Return the error for a command about a cluster that does not exist."""
    return await unknown_object(host, f'cluster "{name}" is not joined', FEDERATED_CLUSTERS, name)


async def unknown_answer(host: Client, error: NotFound) -> UnknownName:
    """Return the error for an answer that an object does not exist."""
    group, plural, name = (str(error.details.get(key) or "") for key in ("group", "kind", "name"))
    try:
        resource = await ServedKinds(host).named(f"{plural}.{group}" if group else plural)
    except ConfigurationError:  # a kind of a member only
        return UnknownName(error.message)
    return await unknown_object(host, error.message, resource, name)


async def unknown_object(host: Client, message: str, resource: Resource, name: str) -> UnknownName:
    """Return the error for an object that does not exist; names that its user may list, in all namespaces, are near."""
    query = {"limit": str(_NAMES_MAX)}
    code, body = await host.raw("GET", resource.path(), query=query, accept=_ACCEPT)
    known = {str(item["metadata"]["name"]) for item in orjson.loads(body)["items"]} if code == 200 else set()
    return UnknownName(f"{message}{did_you_mean(name, known)}")
