"""Which addresses of a Service are contacted."""

from typing import Any

import pytest

from federation.apiserver.aggregation.targets import Problem, Target, find_targets, is_permitted
from federation.apiserver.registry.apiservices import ServiceBackend

BACKEND = ServiceBackend("system", "metrics", 443)
SERVICE = {"spec": {"type": "ClusterIP", "ports": [{"name": "https", "port": 443}, {"name": "other", "port": 80}]}}


def a_slice(*addresses: str, ready: bool | None = True, port: int = 6443, kind: str = "IPv4") -> dict[str, Any]:
    conditions = {} if ready is None else {"ready": ready}
    endpoints = [{"addresses": [address], "conditions": conditions} for address in addresses]
    return {"addressType": kind, "endpoints": endpoints, "ports": [{"name": "https", "port": port}]}


def reason_of(found: list[Target] | Problem) -> str:
    assert isinstance(found, Problem)
    return found.reason


def test_ready_endpoints_of_the_port_are_found() -> None:
    slices = [a_slice("10.0.0.1", "10.0.0.2"), a_slice("10.0.0.3", ready=False), a_slice("10.0.0.4", ready=None)]
    found = find_targets(BACKEND, SERVICE, slices, None)
    assert found == [Target("10.0.0.1", 6443), Target("10.0.0.2", 6443), Target("10.0.0.4", 6443)]


def test_an_external_name_is_used_with_the_port_of_the_registration() -> None:
    service = {"spec": {"type": "ExternalName", "externalName": "metrics.example.com"}}
    assert find_targets(BACKEND, service, [], None) == [Target("metrics.example.com", 443)]


def test_endpoints_count_when_there_are_no_slices() -> None:
    subset = {"addresses": [{"ip": "10.0.0.9"}], "ports": [{"name": "https", "port": 6443}]}
    endpoints = {"subsets": [subset, {"notReadyAddresses": [{"ip": "10.0.0.8"}], "ports": [{"port": 1}]}]}
    assert find_targets(BACKEND, SERVICE, [], endpoints) == [Target("10.0.0.9", 6443)]
    assert find_targets(BACKEND, SERVICE, [a_slice("10.0.0.1")], endpoints) == [Target("10.0.0.1", 6443)]


@pytest.mark.parametrize(
    ("service", "slices", "reason"),
    [
        (None, [], "ServiceNotFound"),
        ({"spec": {"ports": [{"port": 80}]}}, [], "ServicePortError"),
        (SERVICE, [], "EndpointsNotFound"),
        (SERVICE, [a_slice()], "MissingEndpoints"),
        (SERVICE, [a_slice("10.0.0.1", ready=False)], "MissingEndpoints"),
        (SERVICE, [a_slice("metrics.example.com", kind="FQDN")], "MissingEndpoints"),
        ({"spec": {"type": "Unknown"}}, [], "FailedDiscoveryCheck"),
    ],
)
def test_reasons_are_those_of_kubernetes(service: Any, slices: list[Any], reason: str) -> None:
    assert reason_of(find_targets(BACKEND, service, slices, None)) == reason


@pytest.mark.parametrize(
    ("address", "verified", "insecure"),
    [
        ("10.0.0.1", True, True),
        ("2001:db8::1", True, True),
        ("127.0.0.1", True, False),
        ("::1", True, False),
        ("::ffff:127.0.0.1", True, False),
        ("169.254.169.254", True, False),
        ("fe80::1%eth0", True, False),
        ("0.0.0.0", False, False),  # not bound
        ("::", False, False),
        ("224.0.0.1", False, False),
        ("metrics", False, False),
    ],
)
def test_nearby_addresses_need_a_verified_server(address: str, verified: bool, insecure: bool) -> None:
    assert is_permitted(address, is_insecure=False) is verified
    assert is_permitted(address, is_insecure=True) is insecure


def test_the_authority_of_an_ipv6_address_has_brackets() -> None:
    assert Target("2001:db8::1", 443).authority == "[2001:db8::1]:443"
    assert Target("metrics", 443).authority == "metrics:443"
