"""The region of a member: its FederatedCluster's label, or its nodes'."""

from federation.planning.clusters.region import REGION_LABEL, region_of


def resources(*regions: str | None) -> dict[str, object]:
    return {"nodeClasses": [{"labels": {REGION_LABEL: region} if region else {}} for region in regions]}


def test_the_label_of_the_federated_cluster_wins() -> None:
    assert region_of({"metadata": {"labels": {REGION_LABEL: "eu"}}}, resources("us")) == "eu"


def test_nodes_in_several_regions_are_listed_in_order_and_once() -> None:
    assert region_of({"metadata": {}}, resources("us", "eu", None, "us")) == "eu,us"


def test_the_region_of_a_cluster_without_such_labels_is_unknown() -> None:
    assert region_of({}, {}) == ""
    assert region_of({"metadata": {}}, resources(None)) == ""
