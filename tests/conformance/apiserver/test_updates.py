"""Conformance area: PUT of absent objects, updates without resourceVersion, and metadata.generation."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_definition, a_deployment, a_pod, a_service, a_widget
from tests.support.rest import Api, Object, Refused, refused


def named(name: str, **fields: Any) -> Object:
    return {"metadata": {"name": name}, **fields}


def test_an_absent_custom_object_is_not_found(api: Api, widgets: str, group: str) -> None:
    for metadata in ({"name": "w"}, {"name": "w", "resourceVersion": "5"}, {"name": "w", "uid": "5"}):
        with refused(404, "NotFound", f'widgets.{group} "w" not found'):
            api.update(widgets, {**a_widget(group), "metadata": metadata})
    with refused(404, "NotFound", "not found"):
        api.update(widgets, a_widget(group), "status")


@pytest.mark.every_store
def test_a_custom_object_is_replaced_only_with_its_revision(api: Api, widgets: str, group: str) -> None:
    api.create(widgets, a_widget(group))
    text = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    with refused(422, "Invalid", f'widgets.{group} "w" is invalid: {text}'):
        api.update(widgets, a_widget(group))


def test_an_absent_definition_is_not_found(api: Api, group: str) -> None:
    with refused(404, "NotFound", f'"widgets.{group}" not found'):
        api.update("customresourcedefinitions", a_definition(group))


@pytest.mark.every_store
def test_writes_without_a_revision_never_conflict(api: Api) -> None:
    api.create("configmaps", a_config_map("x"))

    def write(number: int) -> str:
        data = {"written-by": str(number)}
        try:
            if number % 2:
                api.update("configmaps", {**a_config_map("x"), "data": data})
            else:
                api.patch("configmaps", "x", {"data": data})
        except Refused as refusal:
            return str(refusal)
        return "written"

    with ThreadPoolExecutor(40) as threads:
        assert Counter(threads.map(write, range(120))) == {"written": 120}


@pytest.mark.parametrize(
    ("plural", "body"),
    [("configmaps", a_config_map("x")), ("deployments", a_deployment("x")), ("pods", a_pod("x"))],
)
def test_most_kinds_are_not_created_by_an_update(api: Api, plural: str, body: Object) -> None:
    with refused(404, "NotFound", "not found"):
        api.update(plural, body)


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        ("endpoints", named("x")),
        ("leases", named("x")),
        ("leases", {"metadata": {"name": "x", "resourceVersion": "7"}}),
        ("limitranges", named("x", spec={"limits": []})),
        ("roles", named("x", rules=[])),
        ("services", a_service("x")),
    ],
)
def test_some_kinds_are_created_by_an_update(api: Api, plural: str, body: Object) -> None:
    answer = api.send("PUT", api.url(plural, "x"), body)
    assert answer.status_code == 201
    assert answer.json()["metadata"]["uid"]


def test_an_update_with_a_uid_does_not_create(api: Api) -> None:
    with refused(409, "Conflict"):
        api.update("leases", {"metadata": {"name": "x", "uid": "7"}})


def test_a_budget_is_replaced_only_with_its_revision(api: Api) -> None:
    api.create("poddisruptionbudgets", named("x", spec={"minAvailable": 1}))
    with refused(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update"):
        api.update("poddisruptionbudgets", named("x", spec={"minAvailable": 2}))


def generations(api: Api, plural: str, patches: list[Object], subresource: str = "") -> list[int]:
    """Return the generation of the object x after each patch."""
    patched = [api.patch(plural, "x", patch, subresource) for patch in patches]
    return [obj["metadata"].get("generation", 0) for obj in patched]


LABEL: Object = {"metadata": {"labels": {"l": "1"}}}
ANNOTATION: Object = {"metadata": {"annotations": {"a": "1"}}}


def test_annotations_of_a_deployment_change_its_generation(api: Api) -> None:
    assert api.create("deployments", a_deployment("x"))["metadata"]["generation"] == 1
    patches = [LABEL, ANNOTATION, {"spec": {"replicas": 2}}, {"metadata": {"annotations": None}}]
    assert generations(api, "deployments", patches) == [1, 2, 3, 4]
    assert generations(api, "deployments", [ANNOTATION], "status") == [4]


def test_metadata_of_a_replica_set_does_not_change_its_generation(api: Api) -> None:
    api.create("replicasets", named("x", spec=_replica_set()))
    assert generations(api, "replicasets", [LABEL, ANNOTATION, {"spec": {"minReadySeconds": 1}}]) == [1, 1, 2]


def _replica_set() -> Object:
    spec = a_deployment("x")["spec"]
    return {"replicas": 0, "selector": spec["selector"], "template": spec["template"]}


def test_labels_of_an_endpoint_slice_change_its_generation(api: Api) -> None:
    plural = "discovery.k8s.io/v1/endpointslices"
    api.create(plural, named("x", addressType="IPv4", endpoints=[]))
    assert generations(api, plural, [ANNOTATION, LABEL, {"ports": [{"name": "p", "port": 1}]}]) == [1, 2, 3]


def test_a_pod_template_has_a_generation(api: Api) -> None:
    template = a_deployment("x")["spec"]["template"]
    api.create("podtemplates", named("x", template=template))
    assert generations(api, "podtemplates", [LABEL, {"template": {"metadata": {"labels": {"b": "1"}}}}]) == [1, 2]


def test_the_generation_of_a_priority_class_stays(api: Api) -> None:
    name = api.namespace
    api.create("priorityclasses", named(name, value=1))
    try:
        assert api.patch("priorityclasses", name, {"description": "new"})["metadata"]["generation"] == 1
    finally:
        api.delete("priorityclasses", name)


def test_a_csi_driver_counts_its_changes_only(api: Api) -> None:
    plural, name = "storage.k8s.io/v1/csidrivers", api.namespace
    url = f"/apis/{plural}"
    assert "generation" not in api.send("POST", url, named(name, spec={})).json()["metadata"]
    try:
        patch = {"spec": {"requiresRepublish": True}}
        answer = api.send("PATCH", f"{url}/{name}", patch, type_="application/merge-patch+json")
        assert answer.json()["metadata"]["generation"] == 1
    finally:
        api.send("DELETE", f"{url}/{name}")


def test_a_runtime_class_is_created_by_an_update(api: Api) -> None:
    url = f"/apis/node.k8s.io/v1/runtimeclasses/{api.namespace}"
    try:
        assert api.send("PUT", url, named(api.namespace, handler="x")).status_code == 201
        with refused(422, "Invalid", "must be specified for an update"):
            api.send("PUT", url, named(api.namespace, handler="x"))
    finally:
        api.send("DELETE", url)
