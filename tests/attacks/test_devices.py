"""Devices: expressions of tenants that cost too much, and members that report more, or other, devices than they have."""

import itertools
from typing import Any

import pytest
from tests.support.cputime import cpu_s
from tests.support.devices import DRIVER, a_claim_template, a_collector, a_device, a_slice, as_cluster, claims, exactly

from federation.admission.deviceselectors import selects
from federation.planning.clusters.deviceclaims import ClaimError, requests_in
from federation.planning.clusters.deviceinventory import DEVICES_MAX, class_resource
from federation.planning.clusters.devicekinds import Kind

KIND = Kind(DRIVER, tuple((f"a/{DRIVER}/attribute{at}", ("string", "x" * 64)) for at in range(32)))
BOMBS = {
    "text that doubles": "['x']" + ".map(a, a+a+a+a+a+a+a+a+a+a)" * 6 + ".exists(a, a != '')",
    "nested loops": "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a+b+c > 0)))",
    "loops over data": " || ".join([f"device.attributes['{DRIVER}'].all(k, k.matches('(a*)*b'))"] * 40),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_selector_that_costs_too_much_selects_nothing(name: str) -> None:
    selects(BOMBS[name], KIND)  # compiled once
    others = (Kind(DRIVER, (*KIND.values, (f"a/z/{number}", ("string", name)))) for number in itertools.count())
    is_selected, taken_s = cpu_s(lambda: selects(BOMBS[name], next(others)), 0.05)
    assert is_selected is False
    assert taken_s < 0.05


def test_selectors_of_one_claim_are_bounded() -> None:
    long = [f"'{'x' * 10_000}{at}' != ''" for at in range(8)]
    with pytest.raises(ClaimError):
        requests_in(a_claim_template("bomb", exactly(1, *long)))
    many = requests_in(a_claim_template("many", *(exactly(2**62, name=f"r{at}") for at in range(1000))))
    assert len(many) == 32
    assert max(each.count for request in many for each in request.alternatives) < 2**31
    assert claims(odd=[{"exactly": "nonsense"}, {"firstAvailable": [7]}]).requests


def test_a_member_with_a_million_devices_is_counted_in_part() -> None:
    collector = a_collector({"node-0": [a_device("one")]})
    listed = [a_device(f"gpu-{at}", model=f"model-{at % 1000}") for at in range(128)]
    for at in range(8_000):
        found = a_slice(f"node-{at % 10}", listed)
        found["spec"]["pool"]["name"] = f"pool-{at}"
        collector.devices.set_slice(f"slice-{at}", found)
    for at in range(1_000):
        text = f"device.driver != '{at}'"
        collector.devices.set_class(f"class-{at}", {"spec": {"selectors": [{"cel": {"expression": text}}] * 100}})
    status, taken_s = cpu_s(lambda: collector.resources().to_status(), 5)
    assert taken_s < 5
    assert int(status["allocatable"].get(class_resource(DRIVER), 0)) <= DEVICES_MAX
    assert len(status["devices"]) <= 64
    assert len(status["allocatable"]) <= 256


LIES: dict[str, dict[str, Any]] = {
    "other types": {"devices": [{"name": 7}, None, {"name": "a", "attributes": 3, "capacity": []}], "nodeName": "one"},
    "endless counters": {"sharedCounters": [{"name": "s", "counters": {"m": {"value": "9" * 200}}}]},
    "counters that nobody has": {
        "devices": [a_device("p", consumesCounters=[{"counterSet": "none", "counters": {"m": {"value": "1"}}}])]
    },
    "negative amounts": {"devices": [a_device("n", memory="-80Gi")]},
    "a pool that claims fewer slices": {"pool": {"name": "one", "generation": 9, "resourceSliceCount": -1}},
}


@pytest.mark.parametrize("name", LIES)
def test_slices_that_lie_are_read(name: str) -> None:
    collector = a_collector({"one": [a_device("real")]})
    lie = a_slice("lie", [])
    lie["spec"] |= LIES[name]
    collector.devices.set_slice("lie", lie)
    collector.devices.set_claim(("x", "y"), {"status": {"allocation": {"devices": {"results": "nonsense"}}}})
    status = collector.resources().to_status()
    assert int(status["allocatable"].get(class_resource(DRIVER), 0)) in (0, 1, 2)
    as_cluster("member", collector)
