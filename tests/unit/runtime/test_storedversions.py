"""Every kind of patch through every version of a kind: no field that a user wrote in the stored version is lost."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.definitions import version_of_patches
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import CONFIGMAPS, CRDS, Object, Resource
from federation.client.client import Client, PatchType
from federation.client.local import LocalClient
from federation.client.storedversion import StoredVersionTransport
from federation.runtime.informers import Informers
from federation.runtime.storedversions import StoredVersions

STORED = Resource("example.com", "v1", "Widget", "widgets")
VERSIONS = [STORED._replace(version=version) for version in ("v1alpha1", "v1beta1", "v1")]
SPEC = {"size": 3, "color": "blue", "parts": [{"name": "a", "weight": 7}]}
STATUS = {"size": 3, "phase": "Ready"}
"""`v1alpha1` has the sizes only, `v1beta1` has the parts without their weights, too."""


def _schema(spec: Object, status: Object) -> Object:
    parts = {"spec": spec, "status": status}
    return {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {name: {"type": "object", "properties": each} for name, each in parts.items()},
        }
    }


def _parts(**fields: str) -> Object:
    properties = {name: {"type": type_} for name, type_ in fields.items()}
    return {"type": "array", "items": {"type": "object", "properties": properties}}


def a_definition(**spec: Any) -> Object:
    number, text = {"type": "integer"}, {"type": "string"}
    schemas = {
        "v1alpha1": _schema({"size": number}, {"size": number}),
        "v1beta1": _schema({"size": number, "parts": _parts(name="string")}, {"size": number}),
        "v1": _schema(
            {"size": number, "color": text, "parts": _parts(name="string", weight="integer")},
            {"size": number, "phase": text},
        ),
    }
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": schema,
            "subresources": {"status": {}, "scale": scale},
        }
        for name, schema in schemas.items()
    ]
    kind = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": versions, **spec},
    }


Write = Callable[[Client, Resource], Awaitable[Object | None]]


async def _finalizer(client: Client, resource: Resource) -> Object:
    seen = await client.get(resource, "one", "default")
    pinned = {"resourceVersion": seen["metadata"]["resourceVersion"], "finalizers": ["example.com/held"]}
    return await client.patch(resource, "one", {"metadata": pinned}, namespace="default", field_manager="us")


async def _json_patch(client: Client, resource: Resource) -> Object:
    body = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]
    return await client.patch(resource, "one", body, patch_type=PatchType.JSON, namespace="default")


async def _apply(client: Client, resource: Resource) -> Object:
    metadata = {"name": "one", "labels": {"a": "b"}}
    body: Object = {"apiVersion": resource.api_version, "kind": "Widget", "metadata": metadata}
    return await client.patch(
        resource, "one", body, patch_type=PatchType.APPLY, namespace="default", field_manager="us", force=True
    )


async def _merged_status(client: Client, resource: Resource) -> Object | None:
    seen = await client.get(resource, "one", "default")
    return await client.patch_status(resource, seen, {"size": 5}, field_manager="us")


async def _whole_status(client: Client, resource: Resource) -> Object:
    body = {"status": {"size": 5}}
    return await client.patch(resource, "one", body, namespace="default", subresource="status")


async def _scale(client: Client, resource: Resource) -> Object:
    return await client.patch(resource, "one", {"spec": {"replicas": 5}}, namespace="default", subresource="scale")


async def _spec(client: Client, resource: Resource) -> Object:
    return await client.patch(resource, "one", {"spec": {"size": 5}}, namespace="default")


WRITES: tuple[Write, ...] = (_finalizer, _json_patch, _apply, _merged_status, _whole_status, _scale, _spec)


@pytest.fixture
async def host(server: LocalClient, clock: ManualClock, start: Any) -> tuple[LocalClient, Client]:
    """The host as its user sees it, and as our controllers do."""
    informers = Informers(server, clock=clock)
    stored = StoredVersions(informers, version_of_patches)
    start(informers.run())
    return server, Client(StoredVersionTransport(server.transport, stored.stored_in))


async def _created(user: Client) -> Object:
    metadata = {"name": "one", "namespace": "default"}
    body: Object = {"apiVersion": STORED.api_version, "kind": "Widget", "metadata": metadata, "spec": SPEC}
    await user.create(STORED, body)
    return await user.patch(STORED, "one", {"status": STATUS}, namespace="default", subresource="status")


@pytest.mark.parametrize("resource", VERSIONS, ids=lambda each: str(each.version))
@pytest.mark.parametrize("write", WRITES, ids=lambda each: each.__name__.strip("_"))
async def test_no_field_is_lost(
    host: tuple[LocalClient, Client], settle: Any, resource: Resource, write: Write
) -> None:
    user, ours = host
    await user.create(CRDS, a_definition())
    before = await _created(user)
    await settle()
    answer = await write(ours, resource)
    after = await user.get(STORED, "one", "default")
    changed_spec = {"size": 5} if write in (_scale, _spec) else {}
    changed_status = {"size": 5} if write in (_merged_status, _whole_status) else {}
    assert (after["spec"], after["status"]) == (SPEC | changed_spec, STATUS | changed_status)
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    # The caller gets what it knows: the object in its own version.
    assert answer is not None
    assert answer["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    if write is not _scale:
        assert answer == await user.get(resource, "one", "default")


async def test_a_patch_through_an_older_version_would_lose_fields(host: tuple[LocalClient, Client]) -> None:
    user, _ = host
    await user.create(CRDS, a_definition())
    await _created(user)
    await _finalizer(user, VERSIONS[1])
    after = await user.get(STORED, "one", "default")
    assert after["spec"] == {"size": 3, "parts": [{"name": "a"}]}


async def test_the_answer_to_the_write_that_ends_an_object_has_the_version_of_the_caller(
    host: tuple[LocalClient, Client], settle: Any
) -> None:
    user, ours = host
    await user.create(CRDS, a_definition())
    await _created(user)
    await settle()
    await _finalizer(ours, VERSIONS[0])
    await user.delete(STORED, "one", "default")
    answer = await ours.patch(VERSIONS[0], "one", {"metadata": {"finalizers": None}}, namespace="default")
    assert answer["apiVersion"] == VERSIONS[0].api_version
    with pytest.raises(NotFound):
        await user.get(STORED, "one", "default")


async def test_a_dry_run_stores_nothing(host: tuple[LocalClient, Client]) -> None:
    user, ours = host
    await user.create(CRDS, a_definition())
    await _created(user)
    planned = await ours.patch(VERSIONS[0], "one", {"spec": {"size": 9}}, namespace="default", dry_run=True)
    assert planned["spec"] == {"size": 9}
    assert (await user.get(STORED, "one", "default"))["spec"] == SPEC


async def test_a_stored_version_that_moves_is_followed(
    server: LocalClient, clock: ManualClock, start: Any, settle: Any
) -> None:
    informers = Informers(server, clock=clock)
    stored = StoredVersions(informers, version_of_patches)
    start(informers.run())
    definition = await server.create(CRDS, a_definition())
    await settle()
    assert [await stored.stored_in(each) for each in VERSIONS] == [STORED] * 3
    versions = [{**each, "storage": each["name"] == "v1beta1"} for each in definition["spec"]["versions"]]
    await server.patch(CRDS, "widgets.example.com", {"spec": {"versions": versions}})
    await settle()
    assert await stored.stored_in(STORED) == VERSIONS[1]
    assert await stored.stored_in(CONFIGMAPS) == CONFIGMAPS


def test_a_kind_that_a_webhook_converts_is_left_alone() -> None:
    assert version_of_patches(a_definition()) == "v1"
    assert version_of_patches(a_definition(conversion={"strategy": "None"})) == "v1"
    assert version_of_patches(a_definition(conversion={"strategy": "Webhook"})) == ""
