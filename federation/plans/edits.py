"""One write to the host: sent as a dry run for the plan, and again for real when the plan is applied.

Both are the same request, so the server's defaulting, validation and admission apply to the plan. The real request also
carries the resourceVersion and uid of the object that the plan was computed from. Controllers write statuses and
feedback into it all the time; where nothing else changed, the request is repeated for the newest version.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from federation.api import names
from federation.apimachinery.errors import (
    ApiError,
    ConfigurationError,
    Conflict,
    NotFound,
    UnknownName,
    is_kind_missing,
)
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.client.client import Client, PatchType
from federation.planning.federatedobject.changes import is_edited
from federation.plans import threeway
from federation.scheduling.whatif.state import ObjectChange

_MANAGER, _KUBECTL = "fedctl", "kubectl"
"""Field managers: ours, and the one of `kubectl apply --server-side`, used for objects that were applied with it."""
_ATTEMPTS_MAX = 10
"""A status is written a few times per second at most, and reading and writing takes milliseconds."""
NAMESPACE_DEFAULT = "default"
"""A namespace that exists on every server."""


class Verb(StrEnum):
    """How an edit is sent."""

    APPLY = "apply"
    """Like `kubectl apply`: server-side with forced conflicts, or a three-way patch for objects applied client-side."""
    MERGE = "merge"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Edit:
    """One write; `origin` names the option or document that it comes from, for messages."""

    origin: str
    verb: Verb
    resource: Resource
    namespace: str
    name: str
    body: Object

    def __str__(self) -> str:
        return describe_object(self.resource, self.namespace, self.name)

    def to_json(self) -> dict[str, Any]:
        """Return it for a plan file."""
        return {
            "origin": self.origin,
            "verb": self.verb,
            "resource": resource_to_json(self.resource),
            "namespace": self.namespace,
            "name": self.name,
            "body": self.body,
        }


def describe_object(resource: Resource, namespace: str, name: str) -> str:
    """Return `deployment/web in default`."""
    where = f" in {namespace}" if namespace else ""
    return f"{resource.kind.lower()}/{name}{where}"


def edit_from_json(value: Mapping[str, Any]) -> Edit:
    """Return an edit from a plan file; KeyError, ValueError or TypeError when the value is not an edit."""
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
    """Return a resource from a plan file; KeyError or TypeError when the value is not a resource."""
    return Resource(value["group"], value["version"], value["kind"], value["plural"], value["namespaced"])


async def get_or_none(host: Client, resource: Resource, namespace: str, name: str) -> Object | None:
    """Return an object of the host, None when it does not exist."""
    try:
        return await host.get(resource, name, namespace)
    except NotFound:
        return None


def created_namespaces(edits: Iterable[Edit]) -> frozenset[str]:
    """Return the namespaces that the edits create or update."""
    return frozenset(edit.name for edit in edits if edit.resource == NAMESPACES and edit.verb is not Verb.DELETE)


async def dry_run(host: Client, edit: Edit, created: Collection[str] = ()) -> ObjectChange:
    """Return the object before and after the edit; ConfigurationError names the edit's origin when it is rejected.

    `created` are the namespaces that the plan itself writes. They may not exist yet, so a dry run in one of them is
    repeated in another namespace.
    """
    before = await get_or_none(host, edit.resource, edit.namespace, edit.name)
    if edit.verb is Verb.DELETE:
        if before is None:
            raise UnknownName(f"{edit.origin}: {edit} does not exist")
        return ObjectChange(edit.resource, edit.namespace, edit.name, before, None)
    try:
        after = await _send(host, edit, _to_patch(edit, before), {}, dry_run=True)
    except NotFound as error:
        if error.details.get("name") == edit.name and not is_kind_missing(error):
            raise  # an object to change, and not the namespace of a new one
        if edit.namespace not in created:
            raise ConfigurationError(f"{edit.origin}: {edit}: {error.message}") from error
        after = await _dry_run_in_default_namespace(host, edit)
    except ApiError as error:
        raise ConfigurationError(f"{edit.origin}: {edit}: {error.message}") from error
    return ObjectChange(edit.resource, edit.namespace, edit.name, before, after)


async def _dry_run_in_default_namespace(host: Client, edit: Edit) -> Object:
    """Return the result of creating an object whose namespace does not exist yet, by a dry run in `default`.

    Defaulting and validation do not depend on the namespace. The name is changed until it is unused there
    (docs/decisions/0025).
    """
    name = edit.name
    while await get_or_none(host, edit.resource, NAMESPACE_DEFAULT, name) is not None:
        name += "-x"
    metadata = {**edit.body["metadata"], "name": name, "namespace": NAMESPACE_DEFAULT}
    moved = replace(edit, namespace=NAMESPACE_DEFAULT, name=name, body={**edit.body, "metadata": metadata})
    try:
        after = await _send(host, moved, _to_patch(moved, None), {}, dry_run=True)
    except ApiError as error:
        raise ConfigurationError(f"{edit.origin}: {edit}: {error.message}") from error
    return {**after, "metadata": {**after["metadata"], "name": edit.name, "namespace": edit.namespace}}


async def apply_edit(host: Client, edit: Edit, before: Object | None) -> None:
    """Send the edit; Conflict when more than status and feedback differs from `before` (None: it did not exist)."""
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        try:
            await _write(host, edit, before)
        except Conflict:
            now = await get_or_none(host, edit.resource, edit.namespace, edit.name)
            if attempt == _ATTEMPTS_MAX or before is None or now is None or is_edited(before, now):
                raise
            before = now
        else:
            return


async def _write(host: Client, edit: Edit, before: Object | None) -> None:
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
    preconditions = {"resourceVersion": version, "uid": uid} if before is not None else {}
    await _send(host, edit, _to_patch(edit, before), preconditions, dry_run=False)


@dataclass(frozen=True, slots=True)
class _Patch:
    """The patch request of an edit."""

    patch_type: PatchType
    body: Object
    manager: str


def _to_patch(edit: Edit, before: Mapping[str, Any] | None) -> _Patch:
    """Return the patch request: manifests are applied by the method that was used for the object before."""
    if edit.verb is not Verb.APPLY:
        return _Patch(PatchType.MERGE, edit.body, _MANAGER)
    if before is not None and (last := threeway.last_applied(before)) is not None:
        patch_type, body = threeway.three_way(edit.resource, last, edit.body)
        return _Patch(patch_type, body, threeway.MANAGER)
    appliers = {
        entry.get("manager")
        for entry in (before or {}).get("metadata", {}).get("managedFields") or ()
        if entry.get("operation") == "Apply" and not entry.get("subresource")
    }
    return _Patch(PatchType.APPLY, edit.body, _manager_among(appliers))


def _manager_among(appliers: Collection[str]) -> str:
    """Return the manager to apply as: fedctl, or the one user of server-side apply so far.

    Argo CD and Flux apply with managers of their own. Only under the same one do fields go that a manifest lost.
    """
    users = {each for each in appliers if each and each != names.FIELD_MANAGER}
    if _MANAGER in users or not users:
        return _MANAGER
    return _KUBECTL if _KUBECTL in users else next(iter(users)) if len(users) == 1 else _MANAGER


async def _send(
    host: Client, edit: Edit, request: _Patch, preconditions: Mapping[str, str], *, dry_run: bool
) -> Object:
    return await host.patch(
        edit.resource,
        edit.name,
        {**request.body, "metadata": {**request.body.get("metadata", {}), **preconditions}},
        patch_type=request.patch_type,
        namespace=edit.namespace,
        field_manager=request.manager,
        force=request.patch_type is PatchType.APPLY,
        dry_run=dry_run,
    )
