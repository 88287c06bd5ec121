"""Conformance area: options and errors of everyday requests: names, PUT, patches, apply, dry run, deletion, namespaces."""

import pytest
from tests.conformance.apiserver.objects import TEMPLATE, a_config_map, a_deployment, a_pod, a_spec
from tests.support.rest import (
    APPLY,
    JSON_PATCH,
    MERGE,
    METADATA,
    METADATA_LIST,
    STRATEGIC,
    Api,
    Object,
    eventually,
    refused,
)


def test_a_prefix_for_names_must_make_a_name(api: Api) -> None:
    with refused(422, "Invalid", 'metadata.generateName: Invalid value: "X_"') as caught:
        api.create("configmaps", {"metadata": {"generateName": "X_"}})
    assert caught.value.fields == ["metadata.generateName", "metadata.name"]
    with refused(422, "Invalid", "must be no more than 253 characters") as caught:
        api.create("configmaps", {"metadata": {"generateName": "x" * 254}})
    assert caught.value.fields == ["metadata.generateName"]
    assert len(api.create("configmaps", {"metadata": {"generateName": "x" * 100}})["metadata"]["name"]) == 63


def test_a_name_and_a_prefix_are_both_kept(api: Api) -> None:
    metadata = api.create("configmaps", {"metadata": {"name": "cm", "generateName": "c-"}})["metadata"]
    assert (metadata["name"], metadata["generateName"]) == ("cm", "c-")


@pytest.mark.parametrize(
    ("plural", "obj"),
    [
        ("leases", {"spec": {}}),
        ("v1/endpoints", {}),
        ("roles", {"rules": []}),
        ("v1/limitranges", {"spec": {"limits": []}}),
        ("services", {"spec": {"ports": [{"port": 1}]}}),
    ],
)
def test_a_put_creates_objects_of_some_kinds(api: Api, plural: str, obj: Object) -> None:
    answer = api.send("PUT", api.url(plural, "new"), {**obj, "metadata": {"name": "new"}})
    assert answer.status_code == 201
    assert api.exists(plural, "new")


@pytest.mark.parametrize("metadata", [{}, {"resourceVersion": "5"}, {"uid": "x"}])
def test_a_put_creates_no_others(api: Api, metadata: Object) -> None:
    with refused(404, "NotFound", 'configmaps "cm" not found'):
        api.update("configmaps", a_config_map(**metadata))


def test_a_put_must_name_its_object(api: Api) -> None:
    api.create("configmaps", a_config_map())
    with refused(400, "BadRequest", "the name of the object (other) does not match the name on the URL (cm)"):
        api.send("PUT", api.url("configmaps", "cm"), a_config_map("other"))
    with refused(400, "BadRequest", "name must be provided"):
        api.send("PUT", api.url("configmaps", "cm"), {"data": {}})
    text = "the namespace of the provided object does not match the namespace sent on the request"
    with refused(400, "BadRequest") as caught:
        api.send("PUT", api.url("configmaps", "cm"), a_config_map(namespace="x"))
    assert caught.value.message == text


@pytest.mark.every_store
def test_a_put_of_another_uid_is_a_conflict(api: Api) -> None:
    uid = api.create("configmaps", a_config_map())["metadata"]["uid"]
    with refused(409, "Conflict", f"Precondition failed: UID in precondition: x, UID in object meta: {uid}"):
        api.update("configmaps", a_config_map(uid="x"))


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({"metadata": {"name": "cm"}}, "invalid object type: /, Kind="),
        ({"kind": "ConfigMap", "metadata": {"name": "cm"}}, "invalid object type: /, Kind=ConfigMap"),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cm"}}, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "a/v2", "kind": "ConfigMap", "metadata": {"name": "cm"}}, "object type: a/v2, Kind=ConfigMap"),
        (a_config_map("other"), "the name of the object (other) does not match the name on the URL (cm)"),
        (a_config_map(managedFields=[{"manager": "x"}]), "metadata.managedFields must be nil"),
    ],
)
def test_a_wrong_configuration_is_not_applied(api: Api, obj: Object, text: str) -> None:
    api.create("configmaps", a_config_map())
    with refused(400, "BadRequest", text):
        api.patch("configmaps", "cm", obj, type_=APPLY, fieldManager="x")


def test_an_apply_needs_a_manager(api: Api) -> None:
    with refused(422, "Invalid", "fieldManager: Required value: is required for apply patch"):
        api.patch("configmaps", "cm", a_config_map(), type_=APPLY)
    with refused(422, "Invalid", "fieldManager: Too long: may not be more than 128 bytes"):
        api.apply("configmaps", a_config_map(), "x" * 129)
    with refused(422, "Invalid", "force: Forbidden: may not be specified for non-apply patch") as caught:
        api.patch("configmaps", "cm", {}, force=True)
    assert caught.value.status["details"]["kind"] == "PatchOptions"
    assert "name" not in caught.value.status["details"]


def test_conflicts_are_listed_by_manager(api: Api) -> None:
    def configuration(**data: str) -> Object:
        return {**a_config_map(), "data": data}

    api.apply("configmaps", configuration(a="1", b="1"))
    api.patch("configmaps", "cm", {"data": {"c": "1"}}, fieldManager="editor")
    with refused(409, "Conflict", "Apply failed with 3 conflicts: ") as caught:
        api.apply("configmaps", configuration(a="2", b="2", c="2"), "two")
    assert 'conflicts with "one":\n- .data.a\n- .data.b' in caught.value.message
    assert 'conflicts with "editor" using v1:\n- .data.c' in caught.value.message
    assert sorted(caught.value.fields) == [".data.a", ".data.b", ".data.c"]
    assert {cause["reason"] for cause in caught.value.causes} == {"FieldManagerConflict"}
    forced = api.apply("configmaps", configuration(a="2", b="2", c="2"), "two", force=True)
    assert forced["data"] == {"a": "2", "b": "2", "c": "2"}
    # What another manager has taken over does not vanish with the first one's configuration.
    assert api.apply("configmaps", configuration(a="2"))["data"] == {"a": "2", "b": "2", "c": "2"}


def test_an_equal_value_is_owned_by_both(api: Api) -> None:
    api.apply("configmaps", a_config_map())
    api.apply("configmaps", a_config_map(), "two")
    without: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}
    assert api.apply("configmaps", without)["data"] == {"k": "v"}
    assert not api.apply("configmaps", without, "two").get("data")


def test_a_dry_run_apply_creates_nothing(api: Api) -> None:
    answer = api.send("PATCH", api.url("configmaps", "cm"), a_config_map(), type_=APPLY, fieldManager="x", dryRun="All")
    assert answer.status_code == 201
    assert not api.exists("configmaps", "cm")


@pytest.mark.parametrize("type_", [MERGE, STRATEGIC, JSON_PATCH])
def test_an_empty_patch_changes_nothing(api: Api, type_: str) -> None:
    before = api.create("configmaps", a_config_map())
    assert api.patch("configmaps", "cm", [] if type_ == JSON_PATCH else {}, type_=type_) == before


def test_a_patch_that_replaces_the_whole_object_must_keep_its_name(api: Api) -> None:
    api.create("configmaps", a_config_map())
    with refused(400, "BadRequest", "the name of the object (cm based on URL) was undeterminable"):
        api.patch("configmaps", "cm", [{"op": "replace", "path": "", "value": {}}], type_=JSON_PATCH)


def test_a_strategic_patch_may_replace_a_map_or_a_list(api: Api) -> None:
    api.create("deployments", a_deployment())
    labels = {"$patch": "replace", "app": "web", "only": "this"}
    containers = [{"$patch": "replace"}, {"name": "new", "image": "i"}]
    patch = {"metadata": {"labels": labels}, "spec": {"template": {"spec": {"containers": containers}}}}
    answer = api.patch("deployments", "web", patch, type_=STRATEGIC)
    assert answer["metadata"]["labels"] == {"app": "web", "only": "this"}
    assert [container["name"] for container in answer["spec"]["template"]["spec"]["containers"]] == ["new"]


def test_a_strategic_patch_orders_a_list(api: Api) -> None:
    two = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    pod = {**TEMPLATE["spec"], "containers": two}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    api.create("deployments", a_deployment(template=template))
    order = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "j"}]}
    answer = api.patch("deployments", "web", {"spec": {"template": {"spec": order}}}, type_=STRATEGIC)
    containers = answer["spec"]["template"]["spec"]["containers"]
    assert [(container["name"], container["image"]) for container in containers] == [("b", "i"), ("a", "j")]


def test_a_created_object_keeps_nothing_that_only_the_server_sets(api: Api) -> None:
    sent = a_config_map(uid="mine", deletionTimestamp="2024-01-01T00:00:00Z", selfLink="/x")
    metadata = api.create("configmaps", sent)["metadata"]
    assert metadata["uid"] != "mine"
    assert not {"deletionTimestamp", "selfLink"} & metadata.keys()


def test_what_a_path_does_not_serve_is_not_found_or_not_allowed(api: Api) -> None:
    with refused(404, "NotFound", "the server could not find the requested resource"):
        api.send("GET", "/api/v1/nonsense")
    with refused(404, "NotFound", "the server could not find the requested resource"):
        api.send("GET", f"/api/v1/namespaces/{api.namespace}/nodes")
    for method, url in (
        ("POST", api.url("configmaps", "cm")),
        ("PATCH", api.url("configmaps")),
        ("POST", "/api/v1/configmaps"),
    ):
        with refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"):
            api.send(method, url, {})


def test_metadata_is_asked_for_as_one_object_or_as_a_list(api: Api) -> None:
    api.create("configmaps", a_config_map())
    with refused(
        406, "NotAcceptable", "you requested PartialObjectMetadataList, but the requested object is not a list"
    ):
        api.get("configmaps", "cm", accept=METADATA_LIST)
    with refused(406, "NotAcceptable", "you requested PartialObjectMetadata, but the requested object is a list"):
        api.list("configmaps", accept=METADATA)


@pytest.mark.every_store
def test_a_collection_is_deleted_by_field_and_in_a_dry_run_not_at_all(api: Api) -> None:
    for name in ("a", "b"):
        api.create("configmaps", a_config_map(name, {"test": "1"}))
    api.send("DELETE", api.url("configmaps"), labelSelector="test=1", dryRun="All")
    assert api.names("configmaps", labelSelector="test") == ["a", "b"]
    api.send("DELETE", api.url("configmaps"), fieldSelector="metadata.name=a")
    assert api.names("configmaps", labelSelector="test") == ["b"]


def test_an_object_with_a_finalizer_is_answered_with_and_generations_count_its_deletion(api: Api) -> None:
    deployment = a_deployment()
    deployment["metadata"]["finalizers"] = ["example.com/a"]
    api.create("deployments", deployment)
    held = api.delete("deployments", "web")
    assert (held["kind"], held["metadata"]["generation"]) == ("Deployment", 2)
    again = api.delete("deployments", "web")
    assert again["metadata"]["deletionTimestamp"] == held["metadata"]["deletionTimestamp"]
    api.patch("deployments", "web", {"metadata": {"finalizers": None}})
    api.wait_gone("deployments", "web")


def test_a_pod_is_bound_once(api: Api) -> None:
    api.create("pods", a_pod())
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    status = api.create("pods", binding, name="p", subresource="binding")
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Success", 201)
    pod = api.get("pods", "p")
    assert pod["spec"]["nodeName"] == "n1"
    assert {"PodScheduled": "True"}.items() <= {c["type"]: c["status"] for c in pod["status"]["conditions"]}.items()
    with refused(409, "Conflict", 'pod p is already assigned to node "n1"'):
        api.create("pods", binding, name="p", subresource="binding")


def test_an_eviction_waits_for_its_budget(api: Api) -> None:
    api.create("pods", a_pod())
    conditions = [{"type": "Ready", "status": "True"}]
    api.patch("pods", "p", {"status": {"phase": "Running", "conditions": conditions}}, "status")
    api.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}})
    with refused(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.") as caught:
        api.create("pods", {"metadata": {"name": "p"}}, name="p", subresource="eviction")
    assert caught.value.causes[0]["reason"] == "DisruptionBudget"
    assert api.exists("pods", "p")


def test_an_eviction_may_be_tried(api: Api) -> None:
    api.create("pods", a_pod())
    tried = {"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}}
    assert api.create("pods", tried, name="p", subresource="eviction")["status"] == "Success"
    assert api.exists("pods", "p")


def test_a_scale_is_checked(api: Api) -> None:
    api.create("replicasets", {"metadata": {"name": "rs"}, "spec": a_spec("replicasets")})
    scale = api.get("replicasets", "rs", "scale")
    assert scale["spec"] == {}
    with refused(422, "Invalid", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"):
        api.update("replicasets", {**scale, "spec": {"replicas": -1}}, "scale")
    with refused(400, "BadRequest"):
        api.update("replicasets", {**scale, "kind": "ReplicaSet", "apiVersion": "apps/v1"}, "scale")


def test_a_namespace_is_gone_when_its_finalizer_is(api: Api) -> None:
    name = f"{api.namespace}-held"
    api.create("namespaces", {"metadata": {"name": name}, "spec": {"finalizers": ["example.com/hold", "kubernetes"]}})
    api.delete("namespaces", name)
    eventually(lambda: api.get("namespaces", name)["spec"]["finalizers"] == ["example.com/hold"])
    assert api.get("namespaces", name)["status"]["phase"] == "Terminating"
    with refused(403, "Forbidden", f"unable to create new content in namespace {name} because it is being terminated"):
        api.send("POST", api.url("configmaps", namespace=name), a_config_map())
    held = api.get("namespaces", name)
    held["spec"]["finalizers"] = []
    api.update("namespaces", held, "finalize")
    api.wait_gone("namespaces", name)
