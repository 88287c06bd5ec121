"""Services of both address families, health check ports, and fields that only load balancers have."""

import pytest
from tests.conformance.registry.conftest import Api, Object, a_service

from federation.apimachinery.errors import Invalid

BALANCER = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
LISTED = ["10.96.7.7", "fd00:10:96::77"]


def families(service: Object) -> tuple[list[str], list[str], str]:
    spec = service["spec"]
    shown = ["None" if ip == "None" else "IPv6" if ":" in ip else "IPv4" for ip in spec["clusterIPs"]]
    assert spec["clusterIP"] == spec["clusterIPs"][0]
    return shown, spec["ipFamilies"], spec["ipFamilyPolicy"]


@pytest.mark.parametrize(
    ("written", "addresses", "expected", "policy"),
    [
        ({}, ["IPv4"], ["IPv4"], "SingleStack"),
        ({"ipFamilies": ["IPv6"]}, ["IPv6"], ["IPv6"], "SingleStack"),
        ({"clusterIP": LISTED[1]}, ["IPv6"], ["IPv6"], "SingleStack"),
        ({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4", "IPv6"], ["IPv4", "IPv6"], "PreferDualStack"),
        (
            {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6"]},
            ["IPv6", "IPv4"],
            ["IPv6", "IPv4"],
            "RequireDualStack",
        ),
        (
            {"ipFamilyPolicy": "RequireDualStack", "clusterIP": LISTED[0], "clusterIPs": LISTED},
            ["IPv4", "IPv6"],
            ["IPv4", "IPv6"],
            "RequireDualStack",
        ),
        ({"clusterIP": "None", "selector": None}, ["None"], ["IPv4", "IPv6"], "RequireDualStack"),
        ({"clusterIP": "None", "selector": {"a": "b"}}, ["None"], ["IPv4"], "SingleStack"),
    ],
)
async def test_families_follow_policy_and_addresses(
    api: Api, written: Object, addresses: list[str], expected: list[str], policy: str
) -> None:
    made = await api.create("services", a_service(**written))
    assert families(made) == (addresses, expected, policy)
    assert await api.update("services", made) == made


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ({"ipFamilyPolicy": "Both"}, "supported values: .*PreferDualStack"),
        ({"ipFamilies": ["IPv5"]}, "spec.ipFamilies.0.: Unsupported value"),
        ({"ipFamilies": ["IPv4", "IPv4"]}, "spec.ipFamilies.1.: Duplicate value"),
        ({"ipFamilies": ["IPv4", "IPv6"]}, "when multiple IP families are specified"),
        ({"clusterIP": LISTED[0], "clusterIPs": LISTED}, "when multiple cluster IPs are specified"),
        ({"clusterIP": LISTED[1], "ipFamilies": ["IPv4"]}, "expected an IPv4 value as indicated by `ipFamilies.0.`"),
        ({"clusterIP": LISTED[0], "clusterIPs": LISTED[1:]}, "first value must match `clusterIP`"),
        ({"clusterIP": "None", "clusterIPs": ["None", LISTED[1]]}, "'None' must be the first and only value"),
        ({"clusterIP": LISTED[0], "clusterIPs": [*LISTED, LISTED[0]]}, "may only hold up to 2 values"),
        ({"healthCheckNodePort": 31999}, "spec.healthCheckNodePort: .* may only be set when"),
        (BALANCER | {"healthCheckNodePort": 80}, "spec.healthCheckNodePort: .* not in the valid range"),
    ],
)
async def test_families_that_do_not_fit_are_refused(api: Api, written: Object, text: str) -> None:
    with pytest.raises(Invalid, match=text):
        await api.create("services", a_service(**written))


async def test_a_service_becomes_dual_stack_and_single_stack_again(api: Api) -> None:
    made = await api.create("services", a_service(ipFamilies=["IPv6"]))
    both = await api.patch("services", "svc", {"spec": {"ipFamilyPolicy": "PreferDualStack"}})
    assert families(both) == (["IPv6", "IPv4"], ["IPv6", "IPv4"], "PreferDualStack")
    assert both["spec"]["clusterIPs"][0] == made["spec"]["clusterIP"]
    one = await api.patch("services", "svc", {"spec": {"ipFamilyPolicy": "SingleStack"}})
    assert families(one) == (["IPv6"], ["IPv6"], "SingleStack")
    again = await api.update("services", a_service(clusterIP=made["spec"]["clusterIP"]))
    assert again["spec"] == one["spec"]


async def test_a_released_second_address_is_free(api: Api) -> None:
    await api.create(
        "services", a_service("a", ipFamilyPolicy="RequireDualStack", clusterIP=LISTED[0], clusterIPs=LISTED)
    )
    with pytest.raises(Invalid, match="already allocated"):
        await api.create("services", a_service("b", clusterIP=LISTED[1]))
    await api.patch("services", "a", {"spec": {"ipFamilyPolicy": "SingleStack"}})
    assert await api.create("services", a_service("b", clusterIP=LISTED[1]))


async def test_a_health_check_port_is_allocated_kept_and_released(api: Api) -> None:
    made = await api.create("services", a_service(**BALANCER))
    port = made["spec"]["healthCheckNodePort"]
    assert 30000 <= port <= 32767
    assert port not in {each["nodePort"] for each in made["spec"]["ports"]}
    assert await api.update("services", a_service(**BALANCER)) == made
    with pytest.raises(Invalid, match=r"spec\.healthCheckNodePort: Forbidden: field is immutable"):
        await api.patch("services", "svc", {"spec": {"healthCheckNodePort": 32767 if port != 32767 else 32766}})
    after = await api.patch("services", "svc", {"spec": {"externalTrafficPolicy": "Cluster"}})
    assert "healthCheckNodePort" not in after["spec"]


async def test_a_service_that_is_no_balancer_any_more_loses_what_only_balancers_have(api: Api) -> None:
    await api.create("services", a_service(**BALANCER, loadBalancerClass="a.example/b"))
    after = await api.patch("services", "svc", {"spec": {"type": "NodePort"}})
    assert not {"allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"} & after["spec"].keys()


async def test_families_are_not_owned_by_the_creator(api: Api) -> None:
    made = await api.create("services", a_service(), field_manager="m")
    owned = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert not {"f:ipFamilies", "f:ipFamilyPolicy", "f:clusterIP"} & owned.keys()


async def test_an_external_name_has_no_families(api: Api) -> None:
    await api.create("services", a_service(ipFamilyPolicy="PreferDualStack"))
    after = await api.patch("services", "svc", {"spec": {"type": "ExternalName", "externalName": "a.example"}})
    assert not {"clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"} & after["spec"].keys()
    back = await api.patch("services", "svc", {"spec": {"type": "ClusterIP", "externalName": None}})
    assert families(back) == (["IPv4"], ["IPv4"], "SingleStack")
