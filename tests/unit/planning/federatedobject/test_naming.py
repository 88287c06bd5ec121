from federation.planning.federatedobject import naming


def test_names_that_need_no_change_have_no_hash() -> None:
    assert naming.federated_object_name("web", "deployments.apps") == "web-deployments.apps"
    assert naming.federated_object_name("Web", "deployments.apps").startswith("web-deployments.apps-")
    assert naming.federated_object_name("a..b", "x") != naming.federated_object_name("a.b", "x")


def test_long_names_keep_their_beginning_and_end_in_a_hash() -> None:
    long = naming.federated_object_name("e" * 250, "deployments.apps")
    assert len(long) == 253
    assert long.startswith("eee")
    assert long != naming.federated_object_name("e" * 251, "deployments.apps")
