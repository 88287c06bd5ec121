"""One write to the host: sent as a dry run to see what the server would make of it, and again for real.

Both are the same request, so that defaults, validation and admission of a plan are those of the server. A real one
carries the resourceVersion of what the plan was made from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federation.api.resources import Object, Resource
from federation.base.errors import ApiError, ConfigurationError, NotFound
from federation.client.protocol import Client, PatchType
from federation.scheduling.whatif.world import Change

_MANAGER = "fedctl"


class Verb(StrEnum):
    """How an edit is sent."""

    APPLY = "apply"
    """Server-side apply, conflicts forced: the manifest says what its fields are."""
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


async def try_out(host: Client, edit: Edit) -> Change:
    """Return what the edit would make of the object; ConfigurationError naming its origin when it is refused."""
    before = await find(host, edit.resource, edit.namespace, edit.name)
    if edit.verb is Verb.DELETE:
        if before is None:
            raise ConfigurationError(f"{edit.origin}: {edit} does not exist")
        return Change(edit.resource, edit.namespace, edit.name, before, None)
    try:
        after = await _patch(host, edit, edit.body, dry_run=True)
    except ApiError as error:
        raise ConfigurationError(f"{edit.origin}: {edit}: {error.message}") from error
    return Change(edit.resource, edit.namespace, edit.name, before, after)


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
    await _patch(host, edit, {**edit.body, "metadata": {**edit.body.get("metadata", {}), **held}}, dry_run=False)


async def _patch(host: Client, edit: Edit, body: Object, *, dry_run: bool) -> Object:
    is_apply = edit.verb is Verb.APPLY
    return await host.patch(
        edit.resource,
        edit.name,
        body,
        patch_type=PatchType.APPLY if is_apply else PatchType.MERGE,
        namespace=edit.namespace,
        field_manager=_MANAGER,
        force=is_apply,
        dry_run=dry_run,
    )
