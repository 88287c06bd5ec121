"""Conformance area: tables and other transformations of responses."""

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_deployment, a_pod, a_service
from tests.support.rest import METADATA, METADATA_LIST, TABLE, Api, refused


@pytest.mark.parametrize(
    ("plural", "body", "columns", "cells"),
    [
        ("configmaps", a_config_map(), ["Name", "Data", "Age"], ["cm", 1]),
        (
            "pods",
            a_pod(),
            ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"],
            ["p", "0/1", "Pending", "0"],
        ),
        (
            "deployments",
            a_deployment(),
            ["Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"],
            ["web", "0/1"],
        ),
        (
            "services",
            a_service(),
            ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"],
            ["svc", "ClusterIP"],
        ),
        ("secrets", {"metadata": {"name": "s"}}, ["Name", "Type", "Data", "Age"], ["s", "Opaque", 0]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_kinds_have_their_columns(api: Api, plural: str, body: dict, columns: list[str], cells: list) -> None:
    """[sig-api-machinery] Servers with support for Table transformation should return pod details."""
    api.create(plural, body)
    table = api.get(plural, body["metadata"]["name"], accept=TABLE)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == columns
    assert table["rows"][0]["cells"][: len(cells)] == cells
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_the_whole_object_comes_on_request(api: Api) -> None:
    api.create("configmaps", a_config_map())
    table = api.list("configmaps", accept=TABLE, includeObject="Object", fieldSelector="metadata.name=cm")
    assert table["rows"][0]["object"]["data"] == {"k": "v"}


def test_no_object_comes_on_request(api: Api) -> None:
    api.create("configmaps", a_config_map())
    table = api.list("configmaps", accept=TABLE, includeObject="None", fieldSelector="metadata.name=cm")
    assert not table["rows"][0].get("object")


@pytest.mark.every_store
def test_tables_come_in_chunks(api: Api) -> None:
    """[sig-api-machinery] Servers with support for Table transformation should return chunks of table results."""
    for name in "abc":
        api.create("configmaps", a_config_map(name, {"test": "1"}))
    first = api.list("configmaps", accept=TABLE, limit=2, labelSelector="test")
    assert len(first["rows"]) == 2
    token = first["metadata"]["continue"]
    rest = api.list("configmaps", accept=TABLE, limit=2, labelSelector="test", **{"continue": token})
    assert [row["cells"][0] for row in rest["rows"]] == ["c"]


def test_a_table_alone_is_refused_where_there_is_none(api: Api) -> None:
    """[sig-api-machinery] Servers should return a 406 for a backend which does not implement metadata."""
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    with refused(406, "NotAcceptable"):
        api.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, accept=TABLE.split(",")[0])


def test_an_unknown_transformation_is_refused(api: Api) -> None:
    with refused(406, "NotAcceptable"):
        api.list("configmaps", accept="application/json;as=Poem;v=v1;g=meta.k8s.io")


def test_metadata_alone(api: Api) -> None:
    api.create("configmaps", a_config_map(labels={"a": "b"}))
    shown = api.get("configmaps", "cm", accept=METADATA)
    assert set(shown) == {"kind", "apiVersion", "metadata"}
    assert shown["metadata"]["labels"] == {"a": "b"}


def test_metadata_of_a_list(api: Api) -> None:
    api.create("configmaps", a_config_map())
    listed = api.list("configmaps", accept=METADATA_LIST)
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert "cm" in [item["metadata"]["name"] for item in listed["items"]]
    assert all("data" not in item for item in listed["items"])


def test_only_unknown_forms_are_not_acceptable(api: Api) -> None:
    with refused(406):
        api.list("configmaps", accept="text/csv")


def test_protobuf_readers_fall_back_to_json(api: Api) -> None:
    answer = api.send("GET", api.url("configmaps"), accept="application/vnd.kubernetes.protobuf,application/json")
    assert answer.status_code == 200


def test_large_responses_are_compressed_on_request(api: Api) -> None:
    body = a_config_map()
    body["data"] = {"k": "x" * 300_000}
    api.create("configmaps", body)
    answer = api.send("GET", api.url("configmaps", "cm"), headers={"accept-encoding": "gzip"})
    assert answer.headers.get("content-encoding") == "gzip"
    assert answer.json()["data"] == body["data"]
