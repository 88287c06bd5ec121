"""One write to the host: sent as a dry run to see what the server would make of it, and again for real.

Both are the same request, so that defaults, validation and admission of a plan are those of the server. A real one
carries the resourceVersion of what the plan was made from.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from federation.api.resources import NAMESPACES, Object, Resource
from federation.base.errors import ApiError, ConfigurationError, NotFound
from federation.cli.plan import threeway
from federation.client.protocol import Client, PatchType
from federation.scheduling.whatif.world import Change

_MANAGER, _KUBECTL = "fedctl", "kubectl"
"""Field managers: ours, and that of `kubectl apply --server-side`, which we continue where it has begun."""
NAMESPACE_DEFAULT = "default"
"""A namespace that every server has."""


class Verb(StrEnum):
    """How an edit is sent."""

    APPLY = "apply"
    """As `kubectl apply`: server-side with conflicts forced, or with a three-way patch where that is how it came."""
    MERGE = "merge"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Edit:
    """One write; `origin` says where it comes from, for messages."""

    origin: str
    verb: Verb
    resource: Resource
    namespace: str
    name: str
    body: Object

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind.lower()}/{self.name}{where}"

    def to_json(self) -> dict[str, Any]:
        """Return it for a plan file."""
        kind = self.resource
        return {
            "origin": self.origin,
            "verb": self.verb,
            "resource": resource_to_json(kind),
            "namespace": self.namespace,
            "name": self.name,
            "body": self.body,
        }


def edit_from_json(value: Mapping[str, Any]) -> Edit:
    """Return an edit of a plan file; KeyError, ValueError or TypeError when it is none."""
    resource = resource_from_json(value["resource"])
    return Edit(value["origin"], Verb(value["verb"]), resource, value["namespace"], value["name"], value["body"])


def resource_to_json(resource: Resource) -> dict[str, Any]:
    """Return a resource for a plan file."""
    return {
        "group": resource.group,
        "version": resource.version,
        "kind": resource.kind,
        "plural": resource.plural,
        "namespaced": resource.namespaced,
    }


def resource_from_json(value: Mapping[str, Any]) -> Resource:
    """Return a resource of a plan file; KeyError or TypeError when it is none."""
    return Resource(value["group"], value["version"], value["kind"], value["plural"], value["namespaced"])


async def find(host: Client, resource: Resource, namespace: str, name: str) -> Object | None:
    """Return an object of the host, None when there is none."""
    try:
        return await host.get(resource, name, namespace)
    except NotFound:
        return None


def namespaces_of(edits: Iterable[Edit]) -> frozenset[str]:
    """Return the namespaces that edits write."""
    return frozenset(edit.name for edit in edits if edit.resource == NAMESPACES and edit.verb is not Verb.DELETE)


async def try_out(host: Client, edit: Edit, made: Collection[str] = ()) -> Change:
    """Return what the edit would make of the object; ConfigurationError naming its origin when it is refused.

    `made` are the namespaces that the plan itself writes: what goes there is tried out elsewhere while there are none.
    """
    before = await find(host, edit.resource, edit.namespace, edit.name)
    if edit.verb is Verb.DELETE:
        if before is None:
            raise ConfigurationError(f"{edit.origin}: {edit} does not exist")
        return Change(edit.resource, edit.namespace, edit.name, before, None)
    try:
        after = await _send(host, edit, _request(edit, before), {}, dry_run=True)
    except NotFound as error:
        if edit.namespace not in made:
            raise ConfigurationError(f"{edit.origin}: {edit}: {error.message}") from error
        after = await _try_elsewhere(host, edit)
    except ApiError as error:
        raise ConfigurationError(f"{edit.origin}: {edit}: {error.message}") from error
    return Change(edit.resource, edit.namespace, edit.name, before, after)


async def _try_elsewhere(host: Client, edit: Edit) -> Object:
    """Return what the server would make of an object whose namespace is still to come, by asking in `default`.

    Defaults and validation are the same everywhere. The object asked about has a name that nothing else has there
    (docs/decisions/0025).
    """
    name = edit.name
    while await find(host, edit.resource, NAMESPACE_DEFAULT, name) is not None:
        name += "-x"
    metadata = {**edit.body["metadata"], "name": name, "namespace": NAMESPACE_DEFAULT}
    stand_in = replace(edit, namespace=NAMESPACE_DEFAULT, name=name, body={**edit.body, "metadata": metadata})
    try:
        after = await _send(host, stand_in, _request(stand_in, None), {}, dry_run=True)
    except ApiError as error:
        raise ConfigurationError(f"{edit.origin}: {edit}: {error.message}") from error
    return {**after, "metadata": {**after["metadata"], "name": edit.name, "namespace": edit.namespace}}


async def carry_out(host: Client, edit: Edit, before: Mapping[str, Any] | None) -> None:
    """Send the edit, which holds only for the version `before` (None: the object did not exist); ApiError."""
    metadata = before["metadata"] if before is not None else {}
    version, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
    if edit.verb is Verb.DELETE:
        await host.delete(
            edit.resource,
            edit.name,
            edit.namespace,
            propagation_policy="Background",
            uid=uid,
            resource_version=version,
        )
        return
    held = {"resourceVersion": version, "uid": uid} if before is not None else {}
    await _send(host, edit, _request(edit, before), held, dry_run=False)


@dataclass(frozen=True, slots=True)
class _Request:
    """How an edit is sent to the object as it is."""

    patch_type: PatchType
    body: Object
    manager: str


def _request(edit: Edit, before: Mapping[str, Any] | None) -> _Request:
    """Return how to send it: a manifest goes the way in which the object has been applied so far."""
    if edit.verb is not Verb.APPLY:
        return _Request(PatchType.MERGE, edit.body, _MANAGER)
    if before is not None and (last := threeway.last_applied(before)) is not None:
        patch_type, body = threeway.three_way(edit.resource, last, edit.body)
        return _Request(patch_type, body, threeway.MANAGER)
    appliers = {
        entry.get("manager")
        for entry in (before or {}).get("metadata", {}).get("managedFields") or ()
        if entry.get("operation") == "Apply" and not entry.get("subresource")
    }
    return _Request(PatchType.APPLY, edit.body, _KUBECTL if _KUBECTL in appliers else _MANAGER)


async def _send(host: Client, edit: Edit, request: _Request, held: Mapping[str, str], *, dry_run: bool) -> Object:
    return await host.patch(
        edit.resource,
        edit.name,
        {**request.body, "metadata": {**request.body.get("metadata", {}), **held}},
        patch_type=request.patch_type,
        namespace=edit.namespace,
        field_manager=request.manager,
        force=request.patch_type is PatchType.APPLY,
        dry_run=dry_run,
    )
