from federation.planning import naming


def test_imported_and_derived_names() -> None:
    assert naming.imported_endpoint_slice_name("c1", "web-abc") == "imported-c1-web-abc"
    assert naming.derived_service_object_name("web") == "derived-web-services"
    long = naming.imported_endpoint_slice_name("c" * 200, "e" * 200)
    assert len(long) == 253
    assert long.startswith("imported-ccc")


def test_names_that_need_no_change_carry_no_hash() -> None:
    assert naming.federated_object_name("web", "deployments.apps") == "web-deployments.apps"
    assert naming.federated_object_name("Web", "deployments.apps").startswith("web-deployments.apps-")
    assert naming.federated_object_name("a..b", "x") != naming.federated_object_name("a.b", "x")


def test_an_aggregated_pod_without_a_node_keeps_none() -> None:
    pod = naming.to_aggregated_pod({"metadata": {"name": "p"}}, "c")
    assert pod["metadata"]["name"] == "c-p"
    assert "spec" not in pod


def test_a_long_cluster_name_may_own_a_truncated_one() -> None:
    cluster = "c" * 250
    name = "c" * 243 + "-123456789"
    assert naming.possible_clusters([cluster, "d", "c" * 300], name) == [cluster]
