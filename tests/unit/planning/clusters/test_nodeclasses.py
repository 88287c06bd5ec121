"""What a class of nodes says about them."""

import pytest

from federation.planning.clusters.nodeclasses import compute_node_classes, round_down


def test_a_resource_that_no_node_offers_is_not_named() -> None:
    nodes = [({"cpu": 2_000, "gpu": 0}, {"cpu": 1_000, "gpu": 0}), ({"cpu": 1_000}, {"cpu": 500})]
    (found,) = compute_node_classes({((), ()): nodes})["nodeClasses"]
    assert found["nodes"] == 2
    assert set(found["largest"]) == {"cpu"}


def test_what_a_node_lacks_or_has_given_away_twice_is_not_free() -> None:
    nodes = [
        ({"cpu": 2_000, "gpu": 1_000}, {"cpu": 1_000, "gpu": 1_000}),
        ({"cpu": 4_000}, {"cpu": 500}),
        ({"cpu": 1_000}, {"cpu": -1_000}),
        ({"cpu": 1_000}, {}),
    ]
    (found,) = compute_node_classes({((), ()): nodes})["nodeClasses"]
    assert found["largest"] == {"cpu": "4", "gpu": "1k"}
    assert found["free"] == [
        {"nodes": 1, "resources": {"cpu": "1", "gpu": "1k"}},
        {"nodes": 1, "resources": {"cpu": "500m"}},
    ]


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (0, 0),
        (63, 63),
        (65, 64),
        (1_000, 1_000),
        (1_130, 1_120),
        (1_240, 1_216),
        (1_260, 1_250),
        (15_999, 15_872),
        (127_000, 126_000),
        (64 << 30, 64 << 30),
        ((64 << 30) + 1, 64 << 30),
    ],
)
def test_amounts_keep_their_highest_bits(amount: int, expected: int) -> None:
    assert round_down(amount) == expected
