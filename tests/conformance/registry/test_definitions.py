"""CustomResourceDefinitions: serving, validation, defaults, pruning, subresources, versions, removal."""

import asyncio

import pytest
from tests.conformance.registry.conftest import APPLY, MERGE, STRATEGIC, Api, a_definition, a_widget, copied

from federation.apimachinery.errors import (
    BadRequest,
    Conflict,
    Invalid,
    MethodNotAllowed,
    NotFound,
    UnsupportedMediaType,
)
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import ListOptions

OPEN = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
STATUS_AND_SCALE = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


async def test_a_definition_is_served_when_it_is_answered(api: Api) -> None:
    generation = api.registry.kinds.generation
    made = await api.create("customresourcedefinitions", a_definition())
    conditions = {condition["type"]: condition["status"] for condition in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert made["status"]["storedVersions"] == ["v1"]
    assert api.registry.kinds.generation > generation
    info = api.registry.kinds.lookup("example.com", "v1", "widgets")
    assert (info.singular, info.short_names, info.categories) == ("widget", ("wi",), ("all",))
    assert api.registry.kinds.by_kind("example.com", "v1", "Widget") is info


async def test_an_unknown_kind_is_not_found(api: Api) -> None:
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        api.registry.kinds.lookup("example.com", "v1", "widgets")


async def test_custom_objects_are_defaulted_and_pruned(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    warnings: list[str] = []
    made = await api.create("widgets", a_widget(extra=1), warnings=warnings)
    assert made["spec"] == {"size": 3, "color": "red"}
    assert warnings == ['unknown field "spec.extra"']
    assert made["metadata"]["generation"] == 1


async def test_strict_validation_refuses_unknown_fields_of_custom_objects(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec\.extra"'):
        await api.create("widgets", a_widget(extra=1), field_validation="Strict")


async def test_unknown_fields_are_kept_where_the_schema_says_so(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition(schema=OPEN))
    made = await api.create("widgets", a_widget(extra={"a": [1]}))
    assert made["spec"]["extra"] == {"a": [1]}


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"size": 0}, "spec.size", "should be greater than or equal to 1"),
        ({"size": "big"}, "spec.size", "must be of type integer"),
        ({"color": "green"}, "spec.color", 'Unsupported value: "green": supported values: "red", "blue"'),
        ({"size": None}, "spec.size", ""),
    ],
    ids=["below the minimum", "wrong type", "outside the enum", "required"],
)
async def test_custom_objects_are_validated(api: Api, spec: dict, field: str, text: str) -> None:
    await api.create("customresourcedefinitions", a_definition())
    with pytest.raises(Invalid) as caught:
        await api.create("widgets", a_widget(**spec))
    (cause,) = [cause for cause in caught.value.details["causes"] if cause["field"] == field][:1]
    assert text in cause["message"]
    assert caught.value.message.startswith('Widget.example.com "w" is invalid: ')


async def test_wrong_metadata_of_a_custom_object_is_a_bad_request(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    with pytest.raises(BadRequest, match="cannot be handled as a Widget"):
        await api.create("widgets", {**a_widget(), "metadata": {"name": "w", "labels": ["a"]}})


async def test_an_update_of_a_custom_object_needs_its_version(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    made = await api.create("widgets", a_widget())
    with pytest.raises(Invalid, match="must be specified for an update"):
        await api.update("widgets", a_widget(size=4))
    made["spec"]["size"] = 4
    made = await api.update("widgets", made)
    assert made["metadata"]["generation"] == 2


async def test_status_is_apart_when_it_is_a_subresource(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition(subresources=STATUS_AND_SCALE))
    made = await api.create("widgets", {**a_widget(), "status": {"replicas": 9}})
    assert "status" not in made
    made = await api.patch("widgets", "w", {"status": {"replicas": 2}, "spec": {"size": 8}}, subresource="status")
    assert (made["status"], made["spec"]["size"]) == ({"replicas": 2}, 3)
    assert made["metadata"]["generation"] == 1
    made = await api.patch("widgets", "w", {"status": {"replicas": 7}})
    assert made["status"] == {"replicas": 2}


async def test_status_is_part_of_the_object_when_it_is_not(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    made = await api.create("widgets", {**a_widget(), "status": {"replicas": 9}})
    assert made["status"] == {"replicas": 9}
    assert (await api.patch("widgets", "w", {"status": {"replicas": 1}}))["metadata"]["generation"] == 2
    with pytest.raises(NotFound):
        await api.patch("widgets", "w", {"status": {}}, subresource="status")


async def test_status_is_validated_too(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition(subresources=STATUS_AND_SCALE))
    await api.create("widgets", a_widget())
    with pytest.raises(Invalid, match=r"status\.replicas"):
        await api.patch("widgets", "w", {"status": {"replicas": "many"}}, subresource="status")


async def test_custom_objects_scale(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition(subresources=STATUS_AND_SCALE))
    await api.create("widgets", a_widget())
    await api.patch("widgets", "w", {"status": {"replicas": 2, "selector": "a=b"}}, subresource="status")
    await api.patch("widgets", "w", {"spec": {"replicas": 5}}, subresource="scale")
    scale = await api.get("widgets", "w", subresource="scale")
    assert scale["spec"] == {"replicas": 5}
    assert scale["status"] == {"replicas": 2, "selector": "a=b"}


async def test_custom_objects_take_apply_but_no_strategic_patch(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    await api.patch("widgets", "w", a_widget(), type_=APPLY, field_manager="me")
    assert (await api.patch("widgets", "w", {"spec": {"size": 9}}, type_=MERGE))["spec"]["size"] == 9
    with pytest.raises(UnsupportedMediaType):
        await api.patch("widgets", "w", {"spec": {"size": 9}}, type_=STRATEGIC)


async def test_every_served_version_shows_the_same_objects(api: Api) -> None:
    definition = a_definition(schema=OPEN)
    versions = definition["spec"]["versions"]
    versions.append({**versions[0], "name": "v2", "storage": False})
    versions.append({**versions[0], "name": "v0", "storage": False, "served": False})
    await api.create("customresourcedefinitions", definition)
    await api.create("widgets", a_widget())
    v2 = api.registry.kinds.lookup("example.com", "v2", "widgets")
    value = await api.registry.get(v2, "default", "w")
    assert value.startswith(b'{"apiVersion":"example.com/v2","kind":"Widget"')
    listed = await api.registry.list(v2, "default", ListOptions())
    assert listed.items == [value]
    with pytest.raises(NotFound):
        api.registry.kinds.lookup("example.com", "v0", "widgets")


async def test_a_write_in_another_version_is_stored_in_the_storage_version(api: Api) -> None:
    from federation.apiserver.verbs.requestoptions import WriteOptions

    definition = a_definition(schema=OPEN)
    definition["spec"]["versions"].append({**definition["spec"]["versions"][0], "name": "v2", "storage": False})
    await api.create("customresourcedefinitions", definition)
    v2 = api.registry.kinds.lookup("example.com", "v2", "widgets")
    value = await api.registry.create(v2, "default", {**a_widget(), "apiVersion": "example.com/v2"}, WriteOptions())
    assert b'"example.com/v2"' in value
    entry = await api.registry.store.get(v2.key("default", "w"))
    assert entry is not None
    assert entry.value.startswith(b'{"apiVersion":"example.com/v1"')


async def test_a_changed_definition_is_served_at_once(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    change = copied(a_definition(schema=OPEN))["spec"]["versions"]
    made = await api.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"versions": change}})
    assert made["metadata"]["generation"] == 2
    assert (await api.create("widgets", a_widget(extra=1)))["spec"]["extra"] == 1


async def test_installing_twice_changes_nothing(api: Api) -> None:
    await api.registry.install_crds([a_definition()])
    before = await api.registry.store.revision()
    await api.registry.install_crds([a_definition()])
    assert await api.registry.store.revision() == before


async def test_installing_brings_a_definition_up_to_date(api: Api) -> None:
    await api.registry.install_crds([a_definition()])
    await api.registry.install_crds([a_definition(schema=OPEN)])
    assert (await api.create("widgets", a_widget(extra=1)))["spec"]["extra"] == 1


async def test_a_labelled_manifest_replaces_only_a_definition_with_the_label(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    labelled = a_definition(schema=OPEN)
    labelled["metadata"]["labels"] = {"shipped": "true"}
    await api.registry.install_crds([labelled])
    assert "extra" not in (await api.create("widgets", a_widget(extra=1)))["spec"]
    await api.patch("customresourcedefinitions", "widgets.example.com", {"metadata": labelled["metadata"]})
    await api.registry.install_crds([labelled])
    assert (await api.create("widgets", {**a_widget(extra=1), "metadata": {"name": "b"}}))["spec"]["extra"] == 1


@pytest.mark.every_store
async def test_a_restart_serves_what_was_defined(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    await api.create("widgets", a_widget())
    again = Registry(api.registry.store, clock=api.clock)
    await again.start()
    info = again.kinds.lookup("example.com", "v1", "widgets")
    assert await again.get(info, "default", "w")


async def test_names_that_are_taken_are_not_accepted(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    second = a_definition("gadgets", kind="Widget")
    second["spec"]["names"].pop("shortNames")
    made = await api.create("customresourcedefinitions", second)
    conditions = {condition["type"]: condition for condition in made["status"]["conditions"]}
    assert conditions["NamesAccepted"]["status"] == "False"
    assert conditions["NamesAccepted"]["message"] == '"widget" is already in use'
    assert conditions["Established"]["status"] == "False"
    with pytest.raises(NotFound):
        api.registry.kinds.lookup("example.com", "v1", "gadgets")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d["metadata"].update(name="other.example.com"), "must be spec.names.plural"),
        (lambda d: d["spec"].update(scope="Galaxy"), 'spec.scope: Unsupported value: "Galaxy"'),
        (lambda d: d["spec"]["versions"][0].update(storage=False), "exactly one version marked as storage version"),
        (lambda d: d["spec"]["versions"][0].pop("schema"), "schemas are required"),
        (lambda d: d["spec"].update(versions=[]), "must have exactly one version marked as storage version"),
        (
            lambda d: d["spec"].update(conversion={"strategy": "Webhook"}),
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        ),
        (lambda d: d["spec"].update(conversion={"strategy": "Magic"}), "spec.conversion.strategy: Unsupported value"),
        (lambda d: d["spec"]["names"].pop("kind"), "spec.names.kind: Required value"),
    ],
    ids=["name", "scope", "storage", "schema", "versions", "webhook", "strategy", "kind"],
)
async def test_a_broken_definition_is_invalid(api: Api, change: object, text: str) -> None:
    definition = a_definition()
    change(definition)  # type: ignore[operator]
    with pytest.raises(Invalid) as caught:
        await api.create("customresourcedefinitions", definition)
    assert text in caught.value.message


async def test_a_dry_run_defines_nothing(api: Api) -> None:
    made = await api.create("customresourcedefinitions", a_definition(), dry_run=True)
    assert made["status"]["conditions"]
    with pytest.raises(NotFound):
        api.registry.kinds.lookup("example.com", "v1", "widgets")


@pytest.mark.every_store
async def test_deleting_a_definition_removes_its_objects_first(running: Api) -> None:
    api = running
    await api.create("customresourcedefinitions", a_definition())
    info = api.info("widgets")
    held = a_widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create("widgets", a_widget("free"))
    await api.create("widgets", held)
    answer, gone = await api.delete("customresourcedefinitions", "widgets.example.com")
    assert not gone
    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    with pytest.raises(MethodNotAllowed):
        await api.create("widgets", a_widget("late"))

    async def only_held() -> bool:
        return await api.names("widgets") == ["held"]

    await api.eventually(only_held)
    assert await api.exists("customresourcedefinitions", "widgets.example.com")
    await api.patch("widgets", "held", {"metadata": {"finalizers": None}})

    async def is_gone() -> bool:
        return not await api.exists("customresourcedefinitions", "widgets.example.com")

    await api.eventually(is_gone)
    assert (await api.registry.store.list(info.prefix)).entries == []

    async def is_unserved() -> bool:
        return info.resource.plural not in {found.resource.plural for found in api.registry.kinds.all()}

    await api.eventually(is_unserved)


@pytest.mark.every_store
async def test_another_process_learns_of_a_definition(running: Api) -> None:
    other = Registry(running.registry.store, clock=running.clock)
    task = asyncio.create_task(other.run())

    async def knows() -> bool:
        return any(info.resource.plural == "widgets" for info in other.kinds.all())

    await running.eventually(lambda: asyncio.sleep(0, True))
    await running.create("customresourcedefinitions", a_definition())
    await running.eventually(knows)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_conflict_names_the_custom_resource(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    made = await api.create("widgets", a_widget())
    await api.patch("widgets", "w", {"spec": {"size": 5}})
    with pytest.raises(Conflict, match=r'Operation cannot be fulfilled on widgets\.example\.com "w"'):
        await api.update("widgets", made | {"spec": {"size": 6}})


def a_ruled_definition() -> dict:
    definition = a_definition(subresources={"status": {}})
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema["spec"]["x-kubernetes-validations"] = [
        {"rule": "!has(self.replicas) || self.replicas <= self.size", "message": "more replicas than size"},
        {"rule": "self.color == oldSelf.color", "message": "color is immutable", "fieldPath": ".color"},
    ]
    schema["status"]["x-kubernetes-validations"] = [{"rule": "self.replicas >= 0", "message": "negative"}]
    return definition


async def test_rules_of_a_definition_are_checked_on_every_kind_of_write(api: Api) -> None:
    await api.create("customresourcedefinitions", a_ruled_definition())
    with pytest.raises(Invalid) as caught:
        await api.create("widgets", a_widget(size=1, replicas=2))
    assert caught.value.message == (
        'Widget.example.com "w" is invalid: spec: Invalid value: "object": more replicas than size'
    )
    made = await api.create("widgets", a_widget())
    with pytest.raises(Invalid, match="more replicas than size"):
        await api.patch("widgets", "w", {"spec": {"replicas": 9}})
    with pytest.raises(Invalid) as caught:
        await api.update("widgets", {**made, "spec": {"size": 3, "color": "blue"}})
    assert [found["field"] for found in caught.value.details["causes"]] == ["spec.color"]
    with pytest.raises(Invalid, match="color is immutable"):
        await api.patch("widgets", "w", a_widget(color="blue"), type_=APPLY, field_manager="me", force=True)
    with pytest.raises(Invalid, match="more replicas than size"):
        await api.patch("widgets", "v", a_widget("v", replicas=9), type_=APPLY, field_manager="me")
    with pytest.raises(Invalid, match="negative"):
        await api.update("widgets", {**made, "status": {"replicas": -1}}, subresource="status")
    changed = await api.patch("widgets", "w", {"spec": {"size": 9}})
    assert changed["spec"] == {"size": 9, "color": "red"}


async def test_a_definition_with_a_broken_rule_is_refused(api: Api) -> None:
    definition = a_ruled_definition()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [{"rule": "self.("}]
    with pytest.raises(Invalid) as caught:
        await api.create("customresourcedefinitions", definition)
    (found,) = caught.value.details["causes"]
    assert found["field"] == "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule"
    assert "compilation failed: ERROR" in found["message"]


async def test_true_does_not_pass_for_an_unchanged_one(api: Api) -> None:
    await api.create("customresourcedefinitions", a_definition())
    made = await api.create("widgets", a_widget(size=1))
    with pytest.raises(Invalid, match=r"spec\.size: Invalid value: \"boolean\""):
        await api.update("widgets", {**made, "spec": {**made["spec"], "size": True, "color": "blue"}})


async def test_one_may_become_true_where_anything_may_stand(api: Api) -> None:
    definition = a_definition()
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-preserve-unknown-fields"] = True
    await api.create("customresourcedefinitions", definition)
    made = await api.create("widgets", a_widget(free={"on": 1}))
    changed = await api.update("widgets", {**made, "spec": {**made["spec"], "free": {"on": True}}})
    assert changed["spec"]["free"] == {"on": True}
    assert changed["spec"]["free"]["on"] is True
    assert changed["metadata"]["generation"] == 2
