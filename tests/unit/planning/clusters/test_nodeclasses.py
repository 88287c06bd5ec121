"""What a class of nodes says about them."""

from federation.planning.clusters.nodeclasses import compute_node_classes


def test_a_resource_that_no_node_offers_is_not_named() -> None:
    nodes = [({"cpu": 2_000, "gpu": 0}, {"cpu": 1_000, "gpu": 0}), ({"cpu": 1_000}, {"cpu": 500})]
    (found,) = compute_node_classes({((), ()): nodes})["nodeClasses"]
    assert found["nodes"] == 2
    assert set(found["largest"]) == {"cpu"}
