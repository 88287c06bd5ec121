"""Conformance area: APIServices, which register group versions; those of aggregated API servers are in another module."""

from collections.abc import Iterator

import pytest
from tests.conformance.apiserver.conftest import define
from tests.conformance.apiserver.objects import a_definition
from tests.support.rest import Api, Object, eventually, refused

MANAGED = "kube-aggregator.kubernetes.io/automanaged"


def an_api_service(group: str, *, version: str = "v1", **spec: object) -> Object:
    spec = {"group": group, "version": version, "groupPriorityMinimum": 2000, "versionPriority": 20, **spec}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": spec,
    }


@pytest.fixture
def service(api: Api) -> Object:
    """The reference to a service that does not exist."""
    return {"namespace": api.namespace, "name": "missing"}


@pytest.fixture
def registered(api: Api, group: str) -> Iterator[str]:
    """The name of an APIService that is removed after the test."""
    yield f"v1.{group}"
    api.delete("apiservices", f"v1.{group}")


def stored(api: Api) -> list[Object]:
    items: list[Object] = api.list("apiservices")["items"]
    return items


def condition(obj: Object) -> Object:
    conditions: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return next((found for found in conditions if found["type"] == "Available"), {})


@pytest.mark.parametrize("name", ["v1.", "v1.apps", "v2.autoscaling", "v1.authorization.k8s.io"])
def test_built_in_groups_are_registered(api: Api, name: str) -> None:
    found = eventually(lambda: [item for item in stored(api) if item["metadata"]["name"] == name])[0]
    assert found["metadata"]["labels"][MANAGED] == "onstart"
    assert "service" not in found["spec"]
    available = condition(found)
    assert (available["status"], available["reason"]) == ("True", "Local")
    assert available["message"] == "Local APIServices are always available"
    assert available["lastTransitionTime"]


def test_priorities_are_those_of_kubernetes(api: Api) -> None:
    specs = {item["metadata"]["name"]: item["spec"] for item in stored(api)}
    priorities = {name: (spec["groupPriorityMinimum"], spec["versionPriority"]) for name, spec in specs.items()}
    assert priorities["v1."] == (18000, 1)
    assert priorities["v2.autoscaling"] == (17500, 30)
    assert priorities["v1.storage.k8s.io"] == (16800, 15)


def test_groups_are_listed_by_priority(api: Api) -> None:
    names = [entry["name"] for entry in api.send("GET", "/apis").json()["groups"]]
    wanted = ["apiregistration.k8s.io", "apps", "events.k8s.io", "batch", "rbac.authorization.k8s.io", "node.k8s.io"]
    assert [name for name in names if name in wanted] == wanted
    assert names[0] == "apiregistration.k8s.io"


def test_groups_of_custom_resources_are_registered_while_they_are_served(api: Api, group: str) -> None:
    definition = a_definition(group)
    define(api, definition)
    name = f"v1.{group}"
    found = eventually(lambda: [item for item in stored(api) if item["metadata"]["name"] == name])[0]
    assert found["metadata"]["labels"] == {MANAGED: "true"}
    assert found["spec"] == {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}
    api.delete("apiservices", name)
    uid = found["metadata"]["uid"]

    def again() -> bool:
        live = [item for item in stored(api) if item["metadata"]["name"] == name]
        return bool(live) and live[0]["metadata"]["uid"] != uid

    eventually(again)
    api.patch("apiservices", name, {"spec": {"versionPriority": 7}})
    eventually(lambda: api.get("apiservices", name)["spec"]["versionPriority"] == 100)
    api.delete("customresourcedefinitions", definition["metadata"]["name"])
    eventually(lambda: not [item for item in stored(api) if item["metadata"]["name"] == name])


def test_the_port_has_a_default(api: Api, group: str, service: Object, registered: str) -> None:
    created = api.create("apiservices", an_api_service(group, service=service))
    assert created["spec"]["service"] == {**service, "port": 443}
    assert created["status"] == {}
    assert "generation" not in created["metadata"]


def test_a_local_registration_is_available_at_once(api: Api, group: str, registered: str) -> None:
    created = api.create("apiservices", an_api_service(group))
    assert condition(created)["reason"] == "Local"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"versionPriority": 0}, "spec.versionPriority: Invalid value: 0: must be positive and less than 1000"),
        (
            {"groupPriorityMinimum": 20001},
            "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
        ),
        ({"version": "V1"}, 'spec.version: Invalid value: "V1": a DNS-1035 label must consist of'),
        ({"group": "no_group"}, 'spec.group: Invalid value: "no_group": a lowercase RFC 1123 subdomain'),
        ({"group": "", "version": "v2"}, "spec.group: Required value: only v1 may have an empty group"),
        ({"caBundle": "Zm9v"}, 'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle'),
        (
            {"insecureSkipTLSVerify": True},
            "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
        ),
        ({"service": {"namespace": "default"}}, "spec.service.name: Required value"),
        ({"service": {"name": "some"}}, "spec.service.namespace: Required value"),
        (
            {"service": {"namespace": "a", "name": "b", "port": 65536}},
            "spec.service.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive",
        ),
        (
            {"service": {"namespace": "a", "name": "b"}, "insecureSkipTLSVerify": True, "caBundle": "Zm9v"},
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_fields_are_refused(api: Api, group: str, change: Object, text: str) -> None:
    obj = an_api_service(group)
    obj["spec"] |= change
    obj["metadata"]["name"] = f"{obj['spec']['version']}.{obj['spec']['group']}"
    with refused(422, "Invalid", text):
        api.create("apiservices", obj)


def test_the_name_is_version_and_group(api: Api, group: str) -> None:
    obj = an_api_service(group)
    obj["metadata"]["name"] = "other"
    text = f'metadata.name: Invalid value: "other": must be `spec.version+"."+spec.group`: "v1.{group}"'
    with refused(422, "Invalid", text):
        api.create("apiservices", obj)


@pytest.mark.every_store
def test_updates_need_a_resource_version(api: Api, group: str, registered: str) -> None:
    obj = an_api_service(group)
    api.create("apiservices", obj)
    with refused(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update"):
        api.send("PUT", api.url("apiservices", registered), obj)


def test_a_condition_needs_a_known_status(api: Api, group: str, service: Object, registered: str) -> None:
    api.create("apiservices", an_api_service(group, service=service))
    text = 'status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", "False", "Unknown"'
    with refused(422, "Invalid", text):
        api.patch("apiservices", registered, {"status": {"conditions": [{"type": "Odd", "status": "Maybe"}]}}, "status")
