"""ServiceCIDRs, IPAddresses and VolumeAttributesClasses: small kinds with strict fields."""

import pytest
from tests.support.rest import Api, Object, refused

PARENT: Object = {"resource": "services", "namespace": "default", "name": "x"}


def a_range(*cidrs: str, name: str = "x") -> Object:
    return {"metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}}


@pytest.mark.parametrize(
    ("cidrs", "text"),
    [
        ((), "at least one CIDR required"),
        (("192.168.0.1/24",), "must not have bits set beyond the prefix length"),
        (("192.168.00.0/24",), "must not have leading 0s"),
        (("10.0.0.0/255.0.0.0",), "must be a valid CIDR value"),
        (("FD00::/64",), "must be in canonical form"),
        (("::ffff:1.2.3.0/120",), "must not have an IPv4-mapped IPv6 address"),
        (("10.1.0.0/16", "10.2.0.0/16"), "no more than one IP for each IP family"),
    ],
)
def test_a_service_range_is_canonical(api: Api, cidrs: tuple[str, ...], text: str) -> None:
    with refused(422, "Invalid", text):
        api.create("servicecidrs", a_range(*cidrs))


def test_a_service_range_may_only_become_dual_stack(api: Api) -> None:
    name = api.namespace
    api.create("servicecidrs", a_range("192.168.77.0/24", name=name))
    with refused(422, text="field is immutable"):
        api.patch("servicecidrs", name, {"spec": {"cidrs": ["192.168.78.0/24"]}})
    api.patch("servicecidrs", name, {"spec": {"cidrs": ["192.168.77.0/24", "fd00:77::/64"]}})
    with refused(422, text="field is immutable"):
        api.patch("servicecidrs", name, {"spec": {"cidrs": ["192.168.77.0/24"]}})
    body = {"metadata": {"annotations": {"a": "b"}}, "status": {"conditions": []}}
    assert "annotations" not in api.patch("servicecidrs", name, body, "status")["metadata"]
    api.delete("servicecidrs", name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x", "must be a valid IP address"),
        ("10.0.0.010", "must not have leading 0s"),
        ("fd00::0:1", "must be in canonical form"),
    ],
)
def test_the_name_of_an_address_is_the_address(api: Api, name: str, text: str) -> None:
    with refused(422, "Invalid", text):
        api.create("ipaddresses", {"metadata": {"name": name}, "spec": {"parentRef": PARENT}})


def test_an_address_needs_a_parent_that_stays(api: Api) -> None:
    name = "192.168.99.200"
    with refused(422, "Invalid") as caught:
        api.create("ipaddresses", {"metadata": {"name": name}, "spec": {"parentRef": {"namespace": "a/b"}}})
    fields = ["spec.parentRef.name", "spec.parentRef.namespace", "spec.parentRef.resource"]
    assert sorted(caught.value.fields) == fields
    api.create("ipaddresses", {"metadata": {"name": name}, "spec": {"parentRef": PARENT}})
    with refused(422, text="field is immutable"):
        api.patch("ipaddresses", name, {"spec": {"parentRef": {"name": "other"}}})
    api.delete("ipaddresses", name)


def test_a_volume_attributes_class_never_changes(api: Api) -> None:
    with refused(422, "Invalid") as caught:
        api.create("volumeattributesclasses", {"metadata": {"name": "x"}, "driverName": ""})
    assert sorted(caught.value.fields) == ["driverName", "parameters"]
    name = api.namespace
    obj = {"metadata": {"name": name}, "driverName": "example.com", "parameters": {"iops": "1"}}
    api.create("volumeattributesclasses", obj)
    with refused(422, text="updates to parameters are forbidden."):
        api.patch("volumeattributesclasses", name, {"parameters": {"iops": "2"}})
    api.delete("volumeattributesclasses", name)
