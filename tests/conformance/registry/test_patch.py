"""PATCH: the four content types, conflicts, subresources."""

import pytest
from tests.conformance.registry.conftest import APPLY, JSON, MERGE, STRATEGIC, Api, a_config_map, a_deployment

from federation.apimachinery.errors import ApiError, BadRequest, Conflict, Invalid, NotFound, UnsupportedMediaType


async def test_a_merge_patch_changes_what_it_names(api: Api) -> None:
    await api.create("deployments", a_deployment())
    made = await api.patch("deployments", "web", {"spec": {"replicas": 3}, "metadata": {"labels": {"app": None}}})
    assert made["spec"]["replicas"] == 3
    assert made["metadata"].get("labels") in (None, {})
    assert made["metadata"]["generation"] == 2


async def test_a_json_patch_works_by_pointer(api: Api) -> None:
    await api.create("deployments", a_deployment())
    made = await api.patch(
        "deployments",
        "web",
        [{"op": "test", "path": "/spec/replicas", "value": 1}, {"op": "replace", "path": "/spec/replicas", "value": 3}],
        type_=JSON,
    )
    assert made["spec"]["replicas"] == 3


async def test_a_failed_test_in_a_json_patch_is_refused(api: Api) -> None:
    await api.create("deployments", a_deployment())
    with pytest.raises(ApiError):
        await api.patch("deployments", "web", [{"op": "test", "path": "/spec/replicas", "value": 9}], type_=JSON)


async def test_a_strategic_patch_merges_lists_by_key(api: Api) -> None:
    await api.create("deployments", a_deployment())
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox:1"}]}}}}
    made = await api.patch("deployments", "web", sidecar, type_=STRATEGIC)
    assert {entry["name"] for entry in made["spec"]["template"]["spec"]["containers"]} == {"main", "side"}


async def test_a_merge_patch_replaces_lists(api: Api) -> None:
    await api.create("deployments", a_deployment())
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox:1"}]}}}}
    made = await api.patch("deployments", "web", sidecar)
    assert [entry["name"] for entry in made["spec"]["template"]["spec"]["containers"]] == ["side"]


async def test_a_patch_of_status_changes_only_status(api: Api) -> None:
    await api.create("deployments", a_deployment())
    patch = {"status": {"replicas": 2}, "spec": {"replicas": 9}}
    made = await api.patch("deployments", "web", patch, subresource="status")
    assert made["status"] == {"replicas": 2}
    assert made["spec"]["replicas"] == 1


@pytest.mark.every_store
async def test_a_patch_with_a_stale_resource_version_is_a_conflict(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    await api.patch("configmaps", "cm", {"data": {"a": "1"}})
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    with pytest.raises(Conflict, match="the object has been modified"):
        await api.patch("configmaps", "cm", stale)


async def test_a_patch_with_the_live_resource_version_is_taken(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    pinned = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    assert (await api.patch("configmaps", "cm", pinned))["data"]["a"] == "2"


@pytest.mark.every_store
async def test_a_patch_that_changes_nothing_writes_nothing(api: Api) -> None:
    made = await api.create("deployments", a_deployment(), field_manager="kubectl")
    before = await api.registry.store.revision()
    assert await api.patch("deployments", "web", {"spec": {"replicas": 1}}, field_manager="other") == made
    assert await api.registry.store.revision() == before


async def test_patching_an_absent_object_is_not_found(api: Api) -> None:
    with pytest.raises(NotFound):
        await api.patch("configmaps", "cm", {"data": {}})


async def test_a_patch_cannot_rename(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(BadRequest, match="does not match the name on the URL"):
        await api.patch("configmaps", "cm", {"metadata": {"name": "other"}})


async def test_a_patch_to_an_invalid_object_is_refused(api: Api) -> None:
    await api.create("deployments", a_deployment())
    with pytest.raises(Invalid, match=r"spec\.replicas: Invalid value: -1: must be greater than or equal to 0"):
        await api.patch("deployments", "web", {"spec": {"replicas": -1}})


async def test_strict_validation_holds_for_patches(api: Api) -> None:
    await api.create("deployments", a_deployment())
    with pytest.raises(Invalid, match=r'unknown field "spec\.replica"'):
        await api.patch("deployments", "web", {"spec": {"replica": 2}}, field_validation="Strict")


async def test_an_unknown_content_type_is_refused(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(UnsupportedMediaType, match="accepted media types include: application/json-patch"):
        await api.patch("configmaps", "cm", {}, type_="text/plain")


@pytest.mark.parametrize(("type_", "body"), [(MERGE, b"{"), (MERGE, b"[]"), (JSON, b"{}"), (STRATEGIC, b"1")], ids=str)
async def test_a_broken_body_is_a_bad_request(api: Api, type_: str, body: bytes) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(BadRequest, match="error decoding patch"):
        await api.patch("configmaps", "cm", body, type_=type_)


async def test_dry_run_of_a_patch_stores_nothing(api: Api) -> None:
    made = await api.create("configmaps", a_config_map())
    answer = await api.patch("configmaps", "cm", {"data": {"a": "1"}}, dry_run=True)
    assert answer["data"]["a"] == "1"
    assert await api.get("configmaps", "cm") == made


async def test_force_is_only_for_apply(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    with pytest.raises(Invalid, match="force: Forbidden: may not be specified for non-apply patch"):
        await api.patch("configmaps", "cm", {}, force=True)


async def test_apply_creates_and_then_changes(api: Api) -> None:
    made = await api.patch("deployments", "web", a_deployment(), type_=APPLY, field_manager="me")
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["managedFields"][0]["operation"] == "Apply"
    made = await api.patch("deployments", "web", a_deployment(replicas=3), type_=APPLY, field_manager="me")
    assert made["spec"]["replicas"] == 3
    assert made["metadata"]["generation"] == 2


async def test_apply_needs_a_manager(api: Api) -> None:
    with pytest.raises(Invalid, match="fieldManager: Required value: is required for apply patch"):
        await api.patch("configmaps", "cm", a_config_map(), type_=APPLY)


@pytest.mark.every_store
async def test_apply_again_changes_nothing(api: Api) -> None:
    made = await api.patch("deployments", "web", a_deployment(), type_=APPLY, field_manager="me")
    await api.clock.advance(10)
    assert await api.patch("deployments", "web", a_deployment(), type_=APPLY, field_manager="me") == made


async def test_apply_removes_what_is_no_longer_applied(api: Api) -> None:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    await api.patch("configmaps", "cm", {**head, "data": {"a": "1", "b": "2"}}, type_=APPLY, field_manager="me")
    made = await api.patch("configmaps", "cm", {**head, "data": {"a": "1"}}, type_=APPLY, field_manager="me")
    assert made["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("patch", "type_"),
    [([{"op": "remove", "path": "/metadata"}], JSON), ({"metadata": None}, MERGE), ({"metadata": {"name": ""}}, MERGE)],
)
async def test_a_patch_cannot_take_an_objects_name_and_all_else_in_its_metadata(
    api: Api, patch: object, type_: str
) -> None:
    made = await api.create("configmaps", a_config_map(labels={"a": "b"}, finalizers=["example.com/x"]))
    with pytest.raises(BadRequest, match=r"the name of the object \(cm based on URL\) was undeterminable"):
        await api.patch("configmaps", "cm", patch, type_=type_)
    assert await api.get("configmaps", "cm") == made


async def test_apply_conflicts_name_the_other_manager(api: Api) -> None:
    await api.patch("deployments", "web", a_deployment(replicas=2), type_=APPLY, field_manager="one")
    with pytest.raises(Conflict) as caught:
        await api.patch("deployments", "web", a_deployment(replicas=3), type_=APPLY, field_manager="two")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    made = await api.patch("deployments", "web", a_deployment(replicas=3), type_=APPLY, field_manager="two", force=True)
    assert made["spec"]["replicas"] == 3


async def test_dry_run_of_an_apply_of_a_new_object_stores_nothing(api: Api) -> None:
    await api.patch("deployments", "web", a_deployment(), type_=APPLY, field_manager="me", dry_run=True)
    assert not await api.exists("deployments", "web")


async def test_apply_to_the_status_subresource_owns_status(api: Api) -> None:
    await api.create("deployments", a_deployment())
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}}
    made = await api.patch("deployments", "web", wanted, type_=APPLY, field_manager="me", subresource="status")
    assert made["status"] == {"replicas": 3}
    assert made["spec"]["replicas"] == 1


async def test_apply_ignores_the_status_of_a_kind_that_has_it_as_subresource(api: Api) -> None:
    wanted = {**a_deployment(), "status": {"replicas": 3}}
    made = await api.patch("deployments", "web", wanted, type_=APPLY, field_manager="me")
    assert made["status"] == {}
    assert "f:status" not in made["metadata"]["managedFields"][0]["fieldsV1"]


async def test_a_later_update_is_recorded_once_fields_are_tracked(api: Api) -> None:
    await api.create("deployments", a_deployment(), field_manager="kubectl-create")
    made = await api.patch("deployments", "web", {"spec": {"replicas": 4}}, user_agent="kubectl/v1.30 (linux)")
    assert {entry["manager"] for entry in made["metadata"]["managedFields"]} == {"kubectl-create", "kubectl"}


async def test_managed_fields_can_be_reset(api: Api) -> None:
    await api.create("configmaps", a_config_map(), field_manager="a")
    made = await api.patch("configmaps", "cm", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in made["metadata"]
