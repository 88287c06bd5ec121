"""The objects that a command names, such as `deployment web`: their kind, their path, and their pods in a member."""

import sys
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import PODS, Object, Resource
from federation.apimachinery.selectors import format_label_selector
from federation.cli.members.access import JSON, Member
from federation.plans.kinds import ServedKinds

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_PAGE = 500
_SELECTED_BY_MAP = frozenset(("ReplicationController", "Service"))
"""Kinds whose `spec.selector` is a map of labels."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The objects and the members that a command is about."""

    namespace: str
    """"" for all namespaces."""
    clusters: Sequence[str] = ()
    """Names of members; none for all."""
    selector: str = ""
    patience_s: float | None = None
    """How long a member may be silent; None for a time that depends on its readiness."""


def split_words(words: Sequence[str]) -> tuple[str, str]:
    """Return kind and name of `KIND`, `KIND NAME` or `KIND/NAME`; the name is "" for all objects."""
    parts = "/".join(words).split("/")
    if len(parts) > 2 or not all(parts):
        raise ConfigurationError(f"{' '.join(words)!r}: write KIND, KIND NAME or KIND/NAME, such as deployment/nginx")
    return parts[0], parts[1] if len(parts) == 2 else ""


def split_targets(words: Sequence[str]) -> dict[str, list[str]]:
    """Return names by kind, as kubectl reads `KIND,… [NAME …]` or `KIND/NAME …`; no names are all objects of a kind."""
    wanted: dict[str, list[str]] = {}
    is_mixed = any("/" in word for word in words)
    first, *names = words
    pairs = [word.partition("/") for word in words] if is_mixed else [(kind, "/", "") for kind in first.split(",")]
    for kind, separator, name in pairs:
        if not (kind and separator) or (is_mixed and (not name or "/" in name)):
            raise ConfigurationError(
                f"{' '.join(words)!r}: write KIND, KIND,KIND, KIND NAME or KIND/NAME, such as deployment/nginx"
            )
        listed = wanted.setdefault(kind, [])
        listed += [name] if is_mixed else names
    return {kind: list(dict.fromkeys(listed)) for kind, listed in wanted.items()}


async def find_kind(host: "HTTPClient", members: Sequence[Member], text: str) -> Resource:
    """Return the kind with this name on the host, else on the first member that has it."""
    try:
        return await ServedKinds(host).named(text)
    except ConfigurationError as error:
        for member in members:
            try:
                return await ServedKinds(member).named(text)
            except ConfigurationError:
                continue
        raise error from None


def target_of(resource: Resource, namespace: str, name: str = "", subresource: str = "", query: str = "") -> str:
    """Return the encoded path of a collection or an object, with its query."""
    path = resource.path(quote(namespace, safe=""), quote(name, safe=":"), subresource)
    return f"{path}?{query}" if query else path


async def read_pages(member: Member, resource: Resource, scope: Scope, accept: str = JSON) -> AsyncIterator[Object]:
    """Yield the pages of a list or Table of a member."""
    token = ""
    while True:
        given = {"labelSelector": scope.selector, "limit": str(_PAGE), "continue": token}
        query = urlencode({key: value for key, value in given.items() if value})
        page = await member.read(target_of(resource, scope.namespace, query=query), accept)
        yield page
        token = str((page.get("metadata") or {}).get("continue") or "")
        if not token:
            return


async def read_items(member: Member, resource: Resource, scope: Scope) -> list[Object]:
    """Return the objects of a member; lists leave out apiVersion and kind, which are added."""
    type_ = {"apiVersion": resource.api_version, "kind": resource.kind}
    return [{**type_, **item} async for page in read_pages(member, resource, scope) for item in page.get("items") or ()]


async def read_one(member: Member, resource: Resource, namespace: str, name: str, accept: str = JSON) -> Object | None:
    """Return an object of a member, None if the member does not have it."""
    try:
        return await member.read(target_of(resource, namespace, name), accept)
    except NotFound as error:
        if error.details.get("name") == name and error.details.get("kind") != "namespaces":
            return None
        raise


async def read_pods(member: Member, resource: Resource, scope: Scope, name: str) -> list[Object]:
    """Return the pods of a workload or Service of a member, the pod itself, or with "" those of the selector."""
    if not name:
        return await read_items(member, PODS, scope)
    found = await read_one(member, resource, scope.namespace, name)
    if found is None or resource == PODS:
        return [found] if found is not None else []
    selector = (found.get("spec") or {}).get("selector")
    if not selector:
        raise ConfigurationError(f"{resource.kind.lower()}/{name} selects no pods; give a pod or a workload")
    labels = {"matchLabels": selector} if resource.kind in _SELECTED_BY_MAP else selector
    return await read_items(member, PODS, Scope(scope.namespace, selector=format_label_selector(labels)))


def not_found(what: str, name: str, answered: Collection[str]) -> int:
    """Say that no member that answered has the object, and return the exit code; 0 if none answered."""
    if not answered:
        return 0
    where = f"{len(answered)} clusters" if len(answered) > 1 else f"cluster {next(iter(answered))}"
    print(f"fedctl: no {what} {name!r} in {where}" if name else f"fedctl: no {what} in {where}", file=sys.stderr)
    return 1
