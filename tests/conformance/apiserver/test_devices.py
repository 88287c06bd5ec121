"""resource.k8s.io: device classes, slices of devices, claims, and the status that schedulers and drivers write."""

from collections.abc import Iterator

import pytest
from tests.support.rest import Api, Object, Refused, eventually, refused, until_not_refused

RESULT: Object = {"request": "r", "driver": "example.com", "pool": "p", "device": "d"}
ALLOCATION: Object = {"devices": {"results": [RESULT]}}
CONSUMER: Object = {"resource": "pods", "name": "p", "uid": "u"}
DEVICE: Object = {"driver": "example.com", "pool": "p", "device": "d"}
POOL: Object = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def a_request(**fields: object) -> Object:
    return {"name": "r", "exactly": {"deviceClassName": "gpu", **fields}}


def a_claim(*requests: Object, **devices: object) -> Object:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests), **devices}}}


def a_slice(name: str, *devices: Object, **spec: object) -> Object:
    given = {"driver": "example.com", "pool": POOL, "allNodes": True, "devices": list(devices), **spec}
    return {"metadata": {"name": name}, "spec": given}


@pytest.fixture
def claim(api: Api) -> Object:
    return api.create("resourceclaims", a_claim(a_request()))


def report(api: Api, **status: object) -> Object:
    return api.patch("resourceclaims", "c", {"status": status}, "status")


def test_a_request_asks_for_one_device_unless_it_says_otherwise(claim: Object) -> None:
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] == "ExactCount"
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert claim["status"] == {}


@pytest.mark.usefixtures("claim")
def test_the_spec_of_a_claim_is_immutable(api: Api) -> None:
    with refused(422, text="field is immutable"):
        api.patch("resourceclaims", "c", {"spec": {"devices": {"requests": []}}})


@pytest.mark.usefixtures("claim")
def test_a_scheduler_allocates_once_and_reserves(api: Api) -> None:
    with refused(422, text="may not be specified when `allocated` is not set"):
        report(api, reservedFor=[CONSUMER])
    assert report(api, allocation=ALLOCATION, reservedFor=[CONSUMER])["status"]["reservedFor"] == [CONSUMER]
    with refused(422, text="field is immutable"):
        report(api, allocation={"devices": {"results": []}})


@pytest.mark.usefixtures("claim")
def test_the_status_of_a_device_ends_with_its_allocation(api: Api) -> None:
    with refused(422, text="must be an allocated device in the claim"):
        report(api, allocation=ALLOCATION, devices=[{**DEVICE, "device": "other"}])
    report(api, allocation=ALLOCATION, devices=[{**DEVICE, "data": {"k": 1}}])
    assert "devices" not in report(api, allocation=None)["status"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"name": "r"}, "spec.devices.requests[0]"),
        (a_request(allocationMode="All", count=2), "spec.devices.requests[0].exactly.count"),
        (a_request(deviceClassName=""), "spec.devices.requests[0].exactly.deviceClassName"),
        (a_request(selectors=[{}]), "spec.devices.requests[0].exactly.selectors[0].cel"),
        (
            a_request(selectors=[{"cel": {"expression": "1 +"}}]),
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        ),
        (
            a_request(tolerations=[{"operator": "Exists", "value": "x"}]),
            "spec.devices.requests[0].exactly.tolerations[0].value",
        ),
    ],
)
def test_a_claim_is_refused_with_the_field_that_is_wrong(api: Api, request_: Object, field: str) -> None:
    with refused(422, "Invalid") as caught:
        api.create("resourceclaims", a_claim(request_))
    assert caught.value.fields == [field]


def test_constraints_name_requests_of_the_claim(api: Api) -> None:
    constraints = [{"requests": ["other"], "matchAttribute": "example.com/a"}]
    with refused(422, text="must be the name of a request in the claim"):
        api.create("resourceclaims", a_claim(a_request(), constraints=constraints))


def test_administrative_access_needs_a_label_on_the_namespace(api: Api) -> None:
    text = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label"
    claim = a_claim(a_request(adminAccess=True))
    with refused(422, text=text):
        api.create("resourceclaims", claim)
    api.patch("namespaces", api.namespace, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})
    until_not_refused(lambda: api.create("resourceclaims", claim, dryRun="All"), text)


@pytest.mark.usefixtures("claim")
def test_the_right_to_write_the_status_is_not_the_right_to_allocate(api: Api, nobody: Api) -> None:
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["*"]}]
    api.create("roles", {"metadata": {"name": "status"}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "status"}
    subject = {"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}
    api.create("rolebindings", {"metadata": {"name": "status"}, "roleRef": reference, "subjects": [subject]})

    def refusal(**status: object) -> str:
        with pytest.raises(Refused) as caught:
            report(nobody, **status)
        return str(caught.value)

    eventually(lambda: "resourceclaims/binding" in refusal(allocation=ALLOCATION))  # roles count after a moment
    report(api, allocation=ALLOCATION)
    assert "resourceclaims/driver" in refusal(devices=[DEVICE])


@pytest.fixture
def slice_name(api: Api) -> Iterator[str]:
    yield api.namespace
    if api.exists("resourceslices", api.namespace):
        api.delete("resourceslices", api.namespace)


def test_a_slice_dates_its_taints_and_keeps_its_driver(api: Api, slice_name: str) -> None:
    taint = {"key": "broken", "effect": "NoSchedule"}
    created = api.create("resourceslices", a_slice(slice_name, {"name": "d", "taints": [taint]}))
    assert created["spec"]["devices"][0]["taints"][0]["timeAdded"]
    changed = api.patch("resourceslices", slice_name, {"spec": {"pool": {"generation": 2}}})
    assert changed["metadata"]["generation"] == 2
    with refused(422, text="field is immutable"):
        api.patch("resourceslices", slice_name, {"spec": {"driver": "other.example.com"}})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"allNodes": False, "nodeName": "n"}, "spec.allNodes"),
        ({"nodeName": "n"}, "spec"),
        ({"pool": {**POOL, "resourceSliceCount": 0}}, "spec.pool.resourceSliceCount"),
        ({"devices": [{"name": "d", "nodeName": "n"}]}, "spec.devices[0]"),
        ({"devices": [{"name": "d", "attributes": {"a": {"version": "1"}}}]}, "spec.devices[0].attributes[a].version"),
        ({"devices": [{"name": "d", "attributes": {"a": {}}}]}, "spec.devices[0].attributes[a]"),
        (
            {"devices": [{"name": "d", "capacity": {"m": {"value": "1", "requestPolicy": {}}}}]},
            "spec.devices[0].capacity[m].requestPolicy",
        ),
        ({"devices": [{"name": "d"}, {"name": "d"}]}, "spec.devices[1]"),
    ],
)
def test_a_slice_is_refused_with_the_field_that_is_wrong(api: Api, spec: Object, field: str) -> None:
    with refused(422, "Invalid") as caught:
        api.create("resourceslices", a_slice("x", **spec))
    assert caught.value.fields == [field]


def test_a_device_class_validates_selectors_and_configuration(api: Api) -> None:
    spec = {"selectors": [{}], "config": [{}], "extendedResourceName": "cpu"}
    with refused(422, "Invalid") as caught:
        api.create("deviceclasses", {"metadata": {"name": "x"}, "spec": spec})
    assert sorted(caught.value.fields) == [
        "spec.config[0].opaque",
        "spec.extendedResourceName",
        "spec.selectors[0].cel",
    ]


@pytest.mark.parametrize(
    ("role", "verb", "resource"),
    [
        ("view", "list", "resourceclaims/status"),
        ("view", "list", "resourceclaimtemplates"),
        ("edit", "create", "resourceclaims"),
        ("edit", "create", "resourceclaimtemplates"),
    ],
)
def test_the_default_roles_include_claims_and_not_devices(api: Api, role: str, verb: str, resource: str) -> None:
    rules = [rule for rule in api.get("clusterroles", role)["rules"] if "resource.k8s.io" in rule.get("apiGroups", ())]
    assert any(verb in rule["verbs"] and resource in rule["resources"] for rule in rules)
    assert not any({"resourceslices", "deviceclasses"} & set(rule["resources"]) for rule in rules)
