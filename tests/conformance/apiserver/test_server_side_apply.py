"""Conformance area: server-side apply."""

from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_deployment, a_service
from tests.support.rest import APPLY, Api, Refused, refused


def managers(obj: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(e["manager"], e["operation"], e.get("subresource", "")) for e in obj["metadata"].get("managedFields", [])]


def fields(obj: dict[str, Any], manager: str) -> dict[str, Any]:
    return next(e["fieldsV1"] for e in obj["metadata"]["managedFields"] if e["manager"] == manager)


def applied(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", **metadata}}
    return {**head, "data": data} if data is not None else head


def test_apply_creates_and_records_its_manager(api: Api) -> None:
    answer = api.send("PATCH", api.url("configmaps", "cm"), applied({"a": "1"}), type_=APPLY, fieldManager="one")
    assert answer.status_code == 201
    entry = answer.json()["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("one", "Apply", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"] == {"f:data": {"f:a": {}}}
    assert entry["time"].endswith("Z")


def test_apply_needs_a_manager(api: Api) -> None:
    with refused(422, "Invalid", "fieldManager: Required value"):
        api.patch("configmaps", "cm", applied(), type_=APPLY)


def test_apply_again_changes_nothing(api: Api) -> None:
    first = api.apply("configmaps", applied({"a": "1"}))
    assert api.apply("configmaps", applied({"a": "1"})) == first


def test_a_field_that_is_no_longer_applied_goes(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1", "b": "2"}))
    assert api.apply("configmaps", applied({"a": "1"}))["data"] == {"a": "1"}


def test_a_field_stays_while_another_owns_it(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1", "b": "2"}))
    api.apply("configmaps", applied({"b": "2"}), "two")
    assert api.apply("configmaps", applied({"a": "1"}))["data"] == {"a": "1", "b": "2"}


def test_a_conflict_names_manager_and_field(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1"}))
    with refused(409, "Conflict", 'conflict with "one": .data.a') as caught:
        api.apply("configmaps", applied({"a": "2"}), "two")
    cause = caught.value.causes[0]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.a")


def test_force_takes_the_field_over(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1"}))
    answer = api.apply("configmaps", applied({"a": "2"}), "two", force=True)
    assert answer["data"] == {"a": "2"}
    assert [manager for manager, _, _ in managers(answer)] == ["two"]


def test_equal_values_are_shared_without_conflict(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1"}))
    answer = api.apply("configmaps", applied({"a": "1"}), "two")
    assert sorted(manager for manager, _, _ in managers(answer)) == ["one", "two"]


def test_an_update_takes_ownership_of_what_it_changes(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1", "b": "2"}))
    answer = api.patch("configmaps", "cm", {"data": {"a": "9"}}, fieldManager="editor")
    assert fields(answer, "editor") == {"f:data": {"f:a": {}}}
    assert fields(answer, "one") == {"f:data": {"f:b": {}}}
    with refused(409, "Conflict", '"editor"'):
        api.apply("configmaps", applied({"a": "1", "b": "2"}))


def test_an_entry_of_a_keyed_list_has_an_owner(api: Api) -> None:
    api.apply("services", a_service(ports=[{"name": "a", "port": 80}]))
    both = api.apply("services", a_service(ports=[{"name": "b", "port": 81}]), "two")
    assert [port["port"] for port in both["spec"]["ports"]] == [80, 81]
    assert 'k:{"port":80,"protocol":"TCP"}' in fields(both, "one")["f:spec"]["f:ports"]
    left = api.apply("services", {**a_service(), "spec": {}}, "two")
    assert [port["port"] for port in left["spec"]["ports"]] == [80]


def test_containers_merge_by_name(api: Api) -> None:
    api.apply("deployments", a_deployment())
    sidecar = a_deployment()
    sidecar["spec"]["template"]["spec"]["containers"] = [{"name": "sidecar", "image": "busybox"}]
    both = api.apply("deployments", sidecar, "two")
    assert [c["name"] for c in both["spec"]["template"]["spec"]["containers"]] == ["main", "sidecar"]


def test_finalizers_are_a_set(api: Api) -> None:
    api.apply("configmaps", applied(finalizers=["example.com/a"]))
    both = api.apply("configmaps", applied(finalizers=["example.com/b"]), "two")
    assert both["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    left = api.apply("configmaps", applied(), "two")
    assert left["metadata"]["finalizers"] == ["example.com/a"]
    api.apply("configmaps", applied())


def test_defaulted_fields_have_no_owner(api: Api) -> None:
    answer = api.apply("deployments", a_deployment())
    assert answer["spec"]["revisionHistoryLimit"] == 10
    assert "f:revisionHistoryLimit" not in fields(answer, "one")["f:spec"]


def test_leaving_replicas_to_another_manager(api: Api) -> None:
    api.apply("deployments", a_deployment(replicas=1))
    api.patch("deployments", "web", {"spec": {"replicas": 5}}, "scale", fieldManager="autoscaler")
    with refused(409, "Conflict", ".spec.replicas"):
        api.apply("deployments", a_deployment(replicas=1))
    answer = api.apply("deployments", a_deployment())
    assert answer["spec"]["replicas"] == 5
    assert ("autoscaler", "Update", "scale") in managers(answer)


def test_status_is_applied_apart(api: Api) -> None:
    api.apply("deployments", a_deployment())
    status = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 2}}
    answer = api.apply("deployments", status, "controller", "status")
    assert answer["status"]["replicas"] == 2
    assert ("controller", "Apply", "status") in managers(answer)


def test_dry_run_of_a_new_object_stores_nothing(api: Api) -> None:
    assert api.apply("configmaps", applied({"a": "1"}), dryRun="All")["data"] == {"a": "1"}
    assert not api.exists("configmaps", "cm")


def test_yaml_is_understood(api: Api) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: '1'}\n"
    assert api.patch("configmaps", "cm", text, type_=APPLY, fieldManager="one")["data"] == {"a": "1"}


def test_managed_fields_cannot_be_applied(api: Api) -> None:
    body = applied({"a": "1"}, managedFields=[{"manager": "x", "operation": "Apply", "apiVersion": "v1"}])
    with refused(400, "BadRequest", "managedFields must be nil"):
        api.apply("configmaps", body)


def test_an_empty_list_resets_managed_fields(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1"}))
    answer = api.patch("configmaps", "cm", {"metadata": {"managedFields": [{}]}})
    assert not answer["metadata"].get("managedFields")


def test_the_name_must_be_that_of_the_url(api: Api) -> None:
    with refused(400, "BadRequest"):
        api.patch("configmaps", "other", applied(), type_=APPLY, fieldManager="one")


@pytest.mark.every_store
def test_a_stale_revision_is_a_conflict(api: Api) -> None:
    api.apply("configmaps", applied({"a": "1"}))
    with refused(409, "Conflict"):
        api.apply("configmaps", applied({"a": "2"}, resourceVersion="1"))


def test_a_create_records_an_update_of_its_manager(api: Api) -> None:
    created = api.create("configmaps", a_config_map(), fieldManager="creator")
    assert managers(created) == [("creator", "Update", "")]
    assert fields(created, "creator") == {"f:data": {".": {}, "f:k": {}}}


def test_an_unknown_field_cannot_be_applied(api: Api) -> None:
    """kube-apiserver refuses it with the same words, but with the code 500."""
    with pytest.raises(Refused, match=r"\.spec\.nonsense: field not declared in schema") as caught:
        api.apply("deployments", a_deployment(nonsense=1))
    assert caught.value.code in {400, 500}


def scaled(api: Api, replicas: int, manager: str, **options: Any) -> dict[str, Any]:
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas},
    }
    url = api.url("deployments", "web", "scale")
    answer = api.send("PATCH", url, scale, type_=APPLY, fieldManager=manager, **options)
    found: dict[str, Any] = answer.json()
    return found


REPLICAS = {"f:spec": {"f:replicas": {}}}


def owners_of_replicas(api: Api) -> list[tuple[str, str, str]]:
    found = api.get("deployments", "web")
    return sorted(
        (entry["manager"], entry["operation"], entry.get("subresource", ""))
        for entry in found["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    )


def test_apply_of_a_scale_conflicts_with_the_manager_of_the_replicas(api: Api) -> None:
    api.apply("deployments", {"apiVersion": "apps/v1", "kind": "Deployment", **a_deployment("web", replicas=2)})
    with refused(409, "Conflict", 'conflict with "one": .spec.replicas') as caught:
        scaled(api, 3, "two")
    assert caught.value.causes[0]["field"] == ".spec.replicas"
    assert api.get("deployments", "web")["spec"]["replicas"] == 2


def test_apply_of_a_scale_shares_equal_replicas_and_takes_others_with_force(api: Api) -> None:
    api.apply("deployments", {"apiVersion": "apps/v1", "kind": "Deployment", **a_deployment("web", replicas=2)})
    assert scaled(api, 2, "two")["spec"]["replicas"] == 2
    assert owners_of_replicas(api) == [("one", "Apply", ""), ("two", "Apply", "scale")]
    assert scaled(api, 3, "two", force="true")["spec"]["replicas"] == 3
    assert owners_of_replicas(api) == [("two", "Apply", "scale")]
    assert fields(api.get("deployments", "web"), "two") == REPLICAS
    with refused(409, "Conflict", 'conflict with "two" with subresource "scale": .spec.replicas'):
        api.apply("deployments", {"apiVersion": "apps/v1", "kind": "Deployment", **a_deployment("web", replicas=2)})


def test_an_update_of_the_scale_takes_the_replicas_over(api: Api) -> None:
    api.apply("deployments", {"apiVersion": "apps/v1", "kind": "Deployment", **a_deployment("web", replicas=2)})
    api.patch("deployments", "web", {"spec": {"replicas": 4}}, "scale", fieldManager="autoscaler")
    assert owners_of_replicas(api) == [("autoscaler", "Update", "scale")]
    with refused(
        409, "Conflict", 'conflict with "autoscaler" with subresource "scale" using autoscaling/v1: .spec.replicas'
    ):
        scaled(api, 3, "two")


def test_a_null_in_a_map_is_an_empty_text(api: Api) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nulls", "labels": {"a": None, "b": "c"}}}
    for _ in range(2):
        found = api.apply("configmaps", {**config, "data": {"key": "value", "none": None}}, "one")
        assert found["data"] == {"key": "value", "none": ""}
        assert found["metadata"]["labels"] == {"a": "", "b": "c"}
    found = api.apply("configmaps", {**config, "data": None}, "one")
    assert "data" not in found
