"""What planners are given for a unit: weights and bounds by cluster."""

from typing import Any

import pytest

from federation.planning.placement.replicas import Preference
from federation.scheduling.framework.division import demand_of
from federation.scheduling.framework.testing import a_cluster, a_divided_unit


@pytest.mark.parametrize(
    ("weights", "fields", "east", "west"),
    [
        ({"east": 3}, {}, Preference(3), Preference(0)),
        ({"east": 3, "west": -1}, {}, Preference(3), Preference(0)),
        ({"east": 3}, {"min_replicas": {"east": 2}}, Preference(3, 2), Preference(0)),
        ({}, {"min_replicas": {"east": 2}}, Preference(0, 2), Preference(0)),
        ({}, {"max_replicas": {"east": 2}}, Preference(0, 0, 2), Preference(0)),
        ({}, {"min_replicas": {"east": 3}, "max_replicas": {"east": 2}}, Preference(0, 2, 2), Preference(0)),
    ],
)
def test_a_cluster_without_weight_and_bounds_has_none(
    weights: dict[str, int], fields: dict[str, Any], east: Preference, west: Preference
) -> None:
    clusters = [a_cluster(name).built() for name in ("east", "west")]
    found = demand_of(a_divided_unit(4, **fields), clusters, weights).preferences
    assert found == {"east": east, "west": west}
