"""Conformance area: patches, updates, and the status and scale subresources."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_deployment, a_pod
from tests.support.rest import JSON_PATCH, MERGE, STRATEGIC, Api, Refused, refused, unless_modified


@pytest.fixture
def cm(api: Api) -> Api:
    api.create("configmaps", a_config_map())
    return api


@pytest.fixture
def web(api: Api) -> Api:
    api.create("deployments", a_deployment())
    return api


def test_a_merge_patch_changes_what_it_names(cm: Api) -> None:
    assert cm.patch("configmaps", "cm", {"data": {"a": "b"}})["data"] == {"k": "v", "a": "b"}


def test_null_removes(cm: Api) -> None:
    cm.patch("configmaps", "cm", {"data": {"k": None}, "binaryData": None})
    assert not cm.get("configmaps", "cm").get("data")


def test_a_json_patch_works_by_pointer(cm: Api) -> None:
    operations = [
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "1"}},
        {"op": "replace", "path": "/data/k", "value": "w"},
        {"op": "copy", "from": "/data/k", "path": "/data/c"},
        {"op": "move", "from": "/data/c", "path": "/data/m"},
        {"op": "replace", "path": "/data/absent", "value": "added"},
    ]
    answer = cm.patch("configmaps", "cm", operations, type_=JSON_PATCH)
    assert answer["data"] == {"k": "w", "m": "w", "absent": "added"}
    assert answer["metadata"]["labels"] == {"a": "1"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/k", "value": "other"},
        {"op": "remove", "path": "/data/none"},
        {"op": "replace", "path": "/data/none/deeper", "value": 1},
    ],
    ids=lambda operation: operation["op"],
)
def test_a_json_patch_that_does_not_fit_is_invalid(cm: Api, operation: dict) -> None:
    with refused(422, "Invalid"):
        cm.patch("configmaps", "cm", [operation], type_=JSON_PATCH)


def test_a_strategic_patch_merges_containers_by_name(web: Api) -> None:
    containers = [{"name": "side", "image": "busybox"}, {"name": "main", "image": "nginx:2"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    answer = web.patch("deployments", "web", patch, type_=STRATEGIC)
    images = {c["name"]: c["image"] for c in answer["spec"]["template"]["spec"]["containers"]}
    assert images == {"main": "nginx:2", "side": "busybox"}


def test_a_strategic_patch_deletes_an_entry(web: Api) -> None:
    add = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox"}]}}}}
    web.patch("deployments", "web", add, type_=STRATEGIC)
    remove = {"spec": {"template": {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}}}}
    answer = web.patch("deployments", "web", remove, type_=STRATEGIC)
    assert [c["name"] for c in answer["spec"]["template"]["spec"]["containers"]] == ["main"]


def test_a_merge_patch_replaces_lists(web: Api) -> None:
    containers = [{"name": "side", "image": "busybox"}]
    answer = web.patch("deployments", "web", {"spec": {"template": {"spec": {"containers": containers}}}})
    assert [c["name"] for c in answer["spec"]["template"]["spec"]["containers"]] == ["side"]


@pytest.mark.parametrize(("type_", "body"), [(MERGE, b"{"), (MERGE, b"[]"), (JSON_PATCH, b"{}"), (STRATEGIC, b"1")])
def test_a_broken_patch_is_a_bad_request(cm: Api, type_: str, body: bytes) -> None:
    with refused(400, "BadRequest"):
        cm.patch("configmaps", "cm", body, type_=type_)


def test_an_unknown_patch_type_is_refused(cm: Api) -> None:
    with refused(415, "UnsupportedMediaType"):
        cm.patch("configmaps", "cm", {}, type_="application/json")


@pytest.mark.every_store
def test_a_patch_with_a_stale_revision_is_a_conflict(cm: Api) -> None:
    with refused(409, "Conflict", "the object has been modified"):
        cm.patch("configmaps", "cm", {"metadata": {"resourceVersion": "1"}, "data": {"a": "b"}})


def test_a_patch_to_an_invalid_object_is_refused(web: Api) -> None:
    with refused(422, "Invalid", "spec.replicas"):
        web.patch("deployments", "web", {"spec": {"replicas": -1}})


@pytest.mark.every_store
def test_a_patch_that_changes_nothing_keeps_the_revision(cm: Api) -> None:
    before = cm.get("configmaps", "cm")
    assert cm.patch("configmaps", "cm", {"data": {"k": "v"}}) == before


def test_patching_an_absent_object_is_not_found(api: Api) -> None:
    with refused(404, "NotFound"):
        api.patch("configmaps", "cm", {})


def test_a_patch_cannot_rename(cm: Api) -> None:
    with pytest.raises(Refused) as caught:
        cm.patch("configmaps", "cm", {"metadata": {"name": "other"}})
    assert caught.value.code in {400, 422}


@pytest.mark.every_store
def test_an_update_with_a_stale_revision_is_a_conflict(cm: Api) -> None:
    first = cm.get("configmaps", "cm")
    cm.patch("configmaps", "cm", {"data": {"a": "b"}})
    text = 'Operation cannot be fulfilled on configmaps "cm": the object has been modified'
    with refused(409, "Conflict", text):
        cm.update("configmaps", {**first, "data": {"x": "y"}})


@pytest.mark.every_store
def test_an_update_without_revision_overwrites(cm: Api) -> None:
    assert cm.update("configmaps", {"metadata": {"name": "cm"}, "data": {"x": "y"}})["data"] == {"x": "y"}


def test_updating_an_absent_object_is_not_found(api: Api) -> None:
    with refused(404, "NotFound"):
        api.update("configmaps", a_config_map())


def test_identity_is_kept_over_an_update(cm: Api) -> None:
    before = cm.get("configmaps", "cm")["metadata"]
    after = cm.update("configmaps", a_config_map())["metadata"]
    assert (after["uid"], after["creationTimestamp"]) == (before["uid"], before["creationTimestamp"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}},
            "spec.selector",
        )
    ],
)
def test_immutable_fields_stay(web: Api, change: dict[str, Any], field: str) -> None:
    with refused(422, "Invalid", "field is immutable") as caught:
        web.patch("deployments", "web", {"spec": change}, type_=MERGE)
    assert field in caught.value.fields


def test_an_immutable_config_map_keeps_its_data(api: Api) -> None:
    """[sig-storage] ConfigMap should be immutable if `immutable` field is set."""
    api.create("configmaps", {**a_config_map(), "immutable": True})
    with refused(422, "Invalid", "field is immutable when `immutable` is set"):
        api.patch("configmaps", "cm", {"data": {"k": "w"}})
    with refused(422, "Invalid"):
        api.patch("configmaps", "cm", {"immutable": False})


def test_a_pod_cannot_change_its_containers(api: Api) -> None:
    api.create("pods", a_pod())
    with refused(422, "Invalid", "pod updates may not change fields other than"):
        api.patch("pods", "p", {"spec": {"hostname": "other"}}, type_=STRATEGIC)


def test_the_generation_counts_changes_of_the_spec(web: Api) -> None:
    assert web.patch("deployments", "web", {"spec": {"replicas": 2}})["metadata"]["generation"] == 2
    assert web.patch("deployments", "web", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 2


def test_status_is_written_apart(web: Api) -> None:
    """[sig-apps] Deployment should validate Deployment Status endpoints."""
    assert "replicas" not in web.patch("deployments", "web", {"status": {"replicas": 7}}).get("status", {})
    both = {"spec": {"replicas": 9}, "status": {"observedGeneration": 1, "replicas": 1}}
    answer = web.patch("deployments", "web", both, "status")
    assert (answer["spec"]["replicas"], answer["status"]["replicas"]) == (1, 1)

    def replaced() -> int:
        shown = web.get("deployments", "web", "status")
        shown["status"]["replicas"] = 2
        return web.update("deployments", shown, "status")["status"]["replicas"]

    assert unless_modified(replaced) == 2


def test_a_kind_without_status_has_none(cm: Api) -> None:
    with refused(404):
        cm.get("configmaps", "cm", "status")


def test_a_scale_is_read_written_and_patched(web: Api) -> None:
    """[sig-apps] Deployment should have a working scale subresource."""
    scale = web.get("deployments", "web", "scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]["selector"]) == ({"replicas": 1}, "app=web")

    def scaled() -> int:
        scale = web.get("deployments", "web", "scale")
        scale["spec"]["replicas"] = 2
        return web.update("deployments", scale, "scale")["spec"]["replicas"]

    assert unless_modified(scaled) == 2
    assert web.patch("deployments", "web", {"spec": {"replicas": 4}}, "scale")["spec"]["replicas"] == 4
    assert web.get("deployments", "web")["spec"]["replicas"] == 4


def test_a_stale_scale_is_a_conflict(web: Api) -> None:
    scale = web.get("deployments", "web", "scale")
    web.patch("deployments", "web", {"spec": {"replicas": 3}})
    with refused(409, "Conflict"):
        web.update("deployments", scale, "scale")


def test_a_negative_scale_is_invalid(web: Api) -> None:
    with refused(422, "Invalid", "spec.replicas"):
        web.patch("deployments", "web", {"spec": {"replicas": -1}}, "scale")


@pytest.mark.every_store
def test_of_concurrent_updates_none_is_lost(cm: Api) -> None:
    def add(number: int) -> None:
        while True:
            live = cm.get("configmaps", "cm")
            live["data"][f"n{number}"] = "1"
            try:
                cm.update("configmaps", live)
            except Refused as refusal:
                if refusal.code != 409:
                    raise
            else:
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert len(cm.get("configmaps", "cm")["data"]) == 13


@pytest.mark.every_store
def test_dry_runs_change_nothing(cm: Api) -> None:
    before = cm.get("configmaps", "cm")
    assert cm.patch("configmaps", "cm", {"data": {"k": "w"}}, dryRun="All")["data"] == {"k": "w"}
    assert cm.update("configmaps", {**before, "data": {}}, dryRun="All").get("data", {}) == {}
    assert cm.get("configmaps", "cm") == before


def test_answers_are_indented_on_request(cm: Api) -> None:
    answer = cm.send("GET", cm.url("configmaps", "cm"), pretty="true")
    assert answer.text.startswith("{\n")
