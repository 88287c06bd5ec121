"""Versions of a custom resource: conversion by webhook and by name, and objects stored under an older definition."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import orjson
import pytest
import pytest_asyncio
from tests.conformance.registry.conftest import APPLY, Api, Object, a_definition, a_widget, copied
from tests.support.stores import StoreBackend

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import InternalError, WebhookFailed
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, RegistryOptions, WriteOptions

SIZE = {"type": "object", "properties": {"size": {"type": "integer"}, "old": {"type": "string"}}}
LENGTH = {"type": "object", "properties": {"length": {"type": "integer"}, "old": {"type": "string"}}}


class Tailor:
    """A conversion webhook in process: v1 has `spec.size`, v2 has `spec.length`; `spoil` changes its answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.is_there = True
        self.spoil: Callable[[Object], None] = lambda response: None

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        if not self.is_there:
            raise WebhookFailed(f"Post {client_config['url']}: connection refused")
        request = copied(review["request"])
        wanted = request["desiredAPIVersion"]
        self.asked.append((wanted, len(request["objects"])))
        old, new = ("size", "length") if wanted.endswith("/v2") else ("length", "size")
        for obj in request["objects"]:
            obj["apiVersion"] = wanted
            if old in obj["spec"]:
                obj["spec"][new] = obj["spec"].pop(old)
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": request["objects"]}
        self.spoil(response)
        return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


@pytest_asyncio.fixture
async def tailor() -> Tailor:
    return Tailor()


@pytest_asyncio.fixture
async def api(backend: StoreBackend, tailor: Tailor) -> AsyncIterator[Api]:
    clock = ManualClock()
    registry = Registry(
        await backend.open(), clock=clock, options=RegistryOptions(), entropy=SeededEntropy(1), webhooks=tailor
    )
    await registry.start()
    yield Api(registry, clock)


def two_versions(first: Object = SIZE, second: Object = LENGTH, *, storage: str = "v1", webhook: bool = True) -> Object:
    definition = a_definition()
    definition["spec"]["versions"] = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }
        for name, spec in (("v1", first), ("v2", second))
    ]
    if webhook:
        config = {"clientConfig": {"url": "https://tailor"}, "conversionReviewVersions": ["v1", "v1beta1"]}
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": config}
    return definition


def version(api: Api, name: str) -> KindInfo:
    return api.registry.kinds.lookup("example.com", name, "widgets")


async def read(api: Api, name: str = "w", *, at: str) -> Object:
    return orjson.loads(await api.registry.get(version(api, at), "default", name))


async def write(api: Api, name: str = "w", *, at: str, **spec: Any) -> Object:
    obj = {**a_widget(name), "apiVersion": f"example.com/{at}", "spec": spec}
    return orjson.loads(await api.registry.create(version(api, at), "default", obj, WriteOptions()))


async def stored(api: Api, name: str = "w") -> Object:
    entry = await api.registry.store.get(version(api, "v1").key("default", name))
    assert entry is not None
    return orjson.loads(entry.value)


async def test_an_object_is_stored_in_one_version_and_read_in_both(api: Api, tailor: Tailor) -> None:
    await api.create("customresourcedefinitions", two_versions())
    made = await write(api, at="v2", length=5)
    assert (made["apiVersion"], made["spec"]) == ("example.com/v2", {"length": 5})
    assert (await stored(api))["spec"] == {"size": 5}
    assert (await read(api, at="v1"))["spec"] == {"size": 5}
    found = await read(api, at="v2")
    assert (found["apiVersion"], found["spec"]) == ("example.com/v2", {"length": 5})
    assert found["metadata"] == made["metadata"]


async def test_reading_the_stored_version_calls_no_webhook(api: Api, tailor: Tailor) -> None:
    await api.create("customresourcedefinitions", two_versions())
    await write(api, at="v1", size=5)
    await read(api, at="v1")
    assert tailor.asked == []


async def test_a_list_is_converted_in_one_request(api: Api, tailor: Tailor) -> None:
    await api.create("customresourcedefinitions", two_versions())
    for name in "abc":
        await write(api, name, at="v1", size=1)
    found = await api.registry.list(version(api, "v2"), "default", ListOptions())
    assert [orjson.loads(value)["spec"] for value in found.items] == [{"length": 1}] * 3
    assert tailor.asked == [("example.com/v2", 3)]


@pytest.mark.every_store
async def test_a_watch_converts_to_the_requested_version(api: Api) -> None:
    await api.create("customresourcedefinitions", two_versions())
    start = str(await api.registry.store.revision())
    stream = api.registry.watch(version(api, "v2"), "default", ListOptions(resource_version=start))
    made = await write(api, at="v1", size=1)
    made["spec"]["size"] = 2
    await api.registry.update(version(api, "v1"), "default", "w", made, WriteOptions())
    await api.registry.delete(version(api, "v1"), "default", "w", DeleteOptions())
    events: list[tuple[str, Object]] = []
    while len(events) < 3:
        events += [(kind, orjson.loads(value)["spec"]) for kind, value in await anext(stream)]
    assert events == [("ADDED", {"length": 1}), ("MODIFIED", {"length": 2}), ("DELETED", {"length": 2})]
    await stream.aclose()


async def test_patches_are_applied_in_the_version_of_the_request(api: Api) -> None:
    await api.create("customresourcedefinitions", two_versions())
    await write(api, at="v1", size=1, old="x")
    body = orjson.dumps(
        {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"length": 9}}
    )
    options = WriteOptions(field_manager="me", force=True)
    value, _ = await api.registry.patch(version(api, "v2"), "default", "w", APPLY, body, options)
    assert orjson.loads(value)["spec"] == {"length": 9, "old": "x"}
    assert (await stored(api))["spec"] == {"size": 9, "old": "x"}


@pytest.mark.every_store
async def test_a_new_storage_version_takes_over_with_the_next_write(api: Api, tailor: Tailor) -> None:
    await api.create("customresourcedefinitions", two_versions())
    made = await write(api, at="v1", size=3)
    change = two_versions(storage="v2")["spec"]["versions"]
    changed = await api.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"versions": change}})
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    assert (await stored(api))["apiVersion"] == "example.com/v1"
    assert (await read(api, at="v2"))["spec"] == {"length": 3}
    found = await read(api, at="v1")
    await api.registry.update(version(api, "v1"), "default", "w", found, WriteOptions())
    assert (await stored(api))["spec"] == {"length": 3}
    found = await read(api, at="v1")
    assert (found["spec"], found["metadata"]["uid"]) == ({"size": 3}, made["metadata"]["uid"])


async def test_a_version_that_objects_are_stored_in_cannot_be_dropped(api: Api) -> None:
    from federation.apimachinery.errors import Invalid

    await api.create("customresourcedefinitions", two_versions())
    change = two_versions(storage="v2")["spec"]["versions"]
    await api.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"versions": change}})
    only = {"spec": {"versions": change[1:], "conversion": None}}
    with pytest.raises(Invalid, match=r'status\.storedVersions\[0\]: Invalid value: "v1": missing from spec\.versions'):
        await api.patch("customresourcedefinitions", "widgets.example.com", only)
    done = {"status": {"storedVersions": ["v2"]}}
    await api.patch("customresourcedefinitions", "widgets.example.com", done, subresource="status")
    changed = await api.patch("customresourcedefinitions", "widgets.example.com", only)
    assert changed["status"]["storedVersions"] == ["v2"]


async def test_a_definition_and_its_objects_are_deleted_without_their_webhook(api: Api, tailor: Tailor) -> None:
    await api.create("customresourcedefinitions", two_versions())
    await write(api, at="v1", size=3)
    change = two_versions(storage="v2")["spec"]["versions"]
    await api.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"versions": change}})
    tailor.is_there = False
    with pytest.raises(InternalError, match=r"conversion webhook for example\.com/v1, Kind=Widget failed: Post"):
        await read(api, at="v2")
    answer, gone = await api.registry.delete(version(api, "v2"), "default", "w", DeleteOptions())
    assert gone, answer


def rename(response: Object) -> None:
    response["convertedObjects"][0]["metadata"]["name"] = "other"


def relabel(response: Object) -> None:
    metadata = response["convertedObjects"][0]["metadata"]
    metadata |= {"labels": {"seen": "yes"}, "finalizers": ["a/b"], "ownerReferences": None}


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda response: response.update(uid="x"), 'expected response.uid="'),
        (lambda response: response.update(convertedObjects=[]), "returned 0 objects, expected 1"),
        (lambda response: response.update(result={"status": "Failure", "message": "no cloth"}), "failed: no cloth"),
        (lambda response: response.update(result=None), "response.result.status was '', not 'Success'"),
        (lambda response: response.update(convertedObjects=[7]), "missing metadata in converted object"),
        (lambda response: response["convertedObjects"][0].update(apiVersion="a/b"), "invalid groupVersion"),
        (rename, "must have the same name: w != other"),
    ],
)
async def test_an_answer_that_is_no_conversion_is_refused(api: Api, tailor: Tailor, spoil: Any, text: str) -> None:
    await api.create("customresourcedefinitions", two_versions())
    await write(api, at="v1", size=3)
    tailor.spoil = spoil
    with pytest.raises(InternalError) as caught:
        await read(api, at="v2")
    assert text in caught.value.message


async def test_a_webhook_changes_labels_and_annotations_and_no_other_metadata(api: Api, tailor: Tailor) -> None:
    await api.create("customresourcedefinitions", two_versions())
    made = await write(api, at="v1", size=3)
    tailor.spoil = relabel
    found = await read(api, at="v2")
    assert found["metadata"] == {**made["metadata"], "labels": {"seen": "yes"}}


async def test_without_a_webhook_fields_of_the_other_version_are_not_shown(api: Api) -> None:
    await api.create("customresourcedefinitions", two_versions(webhook=False))
    await write(api, at="v1", size=3, old="x")
    assert (await read(api, at="v2"))["spec"] == {"old": "x"}
    assert (await read(api, at="v1"))["spec"] == {"size": 3, "old": "x"}


async def test_objects_get_the_defaults_that_came_after_them(api: Api) -> None:
    schema = copied(a_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    await api.create("customresourcedefinitions", a_definition())
    made = await api.create("widgets", a_widget())
    schema["properties"]["spec"]["properties"]["shade"] = {"type": "string", "default": "dark"}
    del schema["properties"]["spec"]["properties"]["color"]
    versions = a_definition(schema={"openAPIV3Schema": schema})["spec"]["versions"]
    await api.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"versions": versions}})
    found = await api.get("widgets", "w")
    assert found["spec"] == {"size": 3, "shade": "dark"}
    assert found["metadata"] == made["metadata"]
    again = Registry(api.registry.store, clock=api.clock)
    await again.start()
    listed = await again.list(again.kinds.lookup("example.com", "v1", "widgets"), "default", ListOptions())
    assert [orjson.loads(value) for value in listed.items] == [found]
    written = await api.update("widgets", found)
    assert written["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]
    assert (await stored(api))["spec"] == {"size": 3, "shade": "dark"}
