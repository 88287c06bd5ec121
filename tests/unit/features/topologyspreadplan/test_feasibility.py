"""What the zones of a sharded service do not allow or guarantee, at the numbers where it begins."""

import pytest

from federation.features.topologyspreadplan.rules.assignment import assign_zones, count_by_zone
from federation.features.topologyspreadplan.rules.feasibility import find_limits
from federation.features.topologyspreadplan.rules.shardedservice import Limits, Service, Zone


def reasons(zones: str, shards: int, replicas: int, node: int, zone: int | None) -> set[str]:
    service = Service(tuple(Zone(name, 4) for name in zones), shards, replicas)
    return {finding.reason for finding in find_limits(service, Limits(node, zone))}


@pytest.mark.parametrize(("zones", "shards", "expected"), [("ab", 3, True), ("ab", 4, False), ("abc", 3, False)])
def test_only_an_odd_number_of_pods_cannot_be_split_over_two_zones(zones: str, shards: int, expected: bool) -> None:
    assert ("OddPods" in reasons(zones, shards, 1, 9, 9)) is expected


@pytest.mark.parametrize(("zone", "expected"), [(1, True), (2, False), (3, False)])
def test_three_zones_with_two_pods_each_hold_six_pods(zone: int, expected: bool) -> None:
    assert ("FewZones" in reasons("abc", 3, 2, 9, zone)) is expected


@pytest.mark.parametrize(("node", "expected"), [(1, False), (2, False)])
def test_a_node_for_each_pod_is_enough(node: int, expected: bool) -> None:
    assert ("FewNodes" in reasons("abc", 6, 2, node, 9)) is expected
    assert ("FewNodes" in reasons("abc", 13, 2, node, 9)) is (node == 1 or 2 * 12 < 26)


def test_the_pods_of_a_zone_are_those_of_the_shards_in_it() -> None:
    assert count_by_zone([("a", "b"), ("a", "c"), ("a", "b")], ["a", "b", "c", "d"]) == {"a": 3, "b": 2, "c": 1, "d": 0}


@pytest.mark.parametrize(("zone_max", "expected"), [(2, [2, 2, 2]), (3, [3, 2, 1]), (1, [3, 2, 1])])
def test_weights_count_within_a_limit_that_the_zones_can_hold(zone_max: int, expected: list[int]) -> None:
    zones = (Zone("a", 4, weight=6), Zone("b", 4, weight=3), Zone("c", 4, weight=2))
    assigned = assign_zones(Service(zones, 3, 2), Limits(9, zone_max))
    assert assigned is not None
    assert list(count_by_zone(assigned, "abc").values()) == expected
