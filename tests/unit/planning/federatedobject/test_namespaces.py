import re
from typing import Any

import orjson
import pytest

from federation.api import names
from federation.planning.federatedobject import namespaces

STAGES = ((names.NSAUTOPROP_CONTROLLER,), (names.OVERRIDE_CONTROLLER,))


def a_cluster(name: str, *, joined: str = "True", leaving: bool = False) -> dict[str, Any]:
    metadata = {"name": name} | ({"deletionTimestamp": "now"} if leaving else {})
    return {"metadata": metadata, "status": {"conditions": [{"type": "Joined", "status": joined}]}}


def a_namespace(name: str = "shop", *, placed: tuple[str, ...] = (), **annotations: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"template": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}}
    if placed:
        placement = [{"cluster": cluster} for cluster in placed]
        spec["placements"] = [
            {"controller": "other", "placement": [{"cluster": "x"}]},
            {"controller": names.NSAUTOPROP_CONTROLLER, "placement": placement},
        ]
    held = {names.PENDING_CONTROLLERS: orjson.dumps(STAGES).decode(), **annotations}
    return {"metadata": {"name": f"{name}-namespaces", "resourceVersion": "3", "annotations": held}, "spec": spec}


def done(obj: dict[str, Any], *clusters: str) -> dict[str, Any]:
    adopted = {
        names.INTERNAL_CONFLICT_RESOLUTION: "adopt",
        names.INTERNAL_CLUSTERS_TO_ADOPT: '{"regexp":".*"}',
        names.INTERNAL_ORPHAN: "adopted",
        names.PENDING_CONTROLLERS: "[]",
    }
    obj["metadata"]["annotations"] |= adopted
    return obj


def test_a_namespace_goes_to_every_joined_cluster_and_is_adopted_there() -> None:
    clusters = [a_cluster("b"), a_cluster("a"), a_cluster("new", joined="False"), a_cluster("out", leaving=True)]
    patch = namespaces.plan_namespace(a_namespace(), clusters, STAGES)
    assert patch is not None
    assert patch["spec"]["placements"] == [
        {"controller": names.NSAUTOPROP_CONTROLLER, "placement": [{"cluster": "a"}, {"cluster": "b"}]}
    ]
    annotations = patch["metadata"]["annotations"]
    assert annotations[names.INTERNAL_ORPHAN] == "adopted"
    assert orjson.loads(annotations[names.PENDING_CONTROLLERS]) == [[names.OVERRIDE_CONTROLLER]]
    assert patch["metadata"]["resourceVersion"] == "3"


def test_nothing_is_written_when_it_is_there_already() -> None:
    federated = done(a_namespace(placed=("a",)))
    assert namespaces.plan_namespace(federated, [a_cluster("a")], STAGES) is None


def test_an_unreachable_cluster_keeps_its_namespaces() -> None:
    federated = done(a_namespace(placed=("a",)))
    assert namespaces.plan_namespace(federated, [a_cluster("a", joined="Unknown")], STAGES) is None


def test_a_cluster_that_left_is_dropped_and_other_controllers_entries_stay() -> None:
    federated = done(a_namespace(placed=("a", "b")))
    patch = namespaces.plan_namespace(federated, [a_cluster("a", leaving=True), a_cluster("b")], STAGES)
    assert patch is not None
    assert patch["spec"]["placements"] == [
        {"controller": "other", "placement": [{"cluster": "x"}]},
        {"controller": names.NSAUTOPROP_CONTROLLER, "placement": [{"cluster": "b"}]},
    ]
    assert names.DEPARTED_CLUSTERS not in patch["metadata"]["annotations"]
    gone = namespaces.plan_namespace(done(a_namespace(placed=("a",))), [], STAGES)
    assert gone is not None
    assert [entry["controller"] for entry in gone["spec"]["placements"]] == ["other"]


@pytest.mark.parametrize(
    "federated",
    [
        a_namespace("kube-system"),
        a_namespace(names.SYSTEM_NAMESPACE),
        a_namespace("private-x"),
        a_namespace("shop", **{names.NO_AUTO_PROPAGATION: "true"}),
    ],
    ids=["kube", "system", "regexp", "annotation"],
)
def test_an_excluded_namespace_only_advances_the_pipeline(federated: dict[str, Any]) -> None:
    patch = namespaces.plan_namespace(federated, [a_cluster("a")], STAGES, re.compile("^private-"))
    assert patch is not None
    assert "spec" not in patch
    assert set(patch["metadata"]["annotations"]) == {names.PENDING_CONTROLLERS}


def test_only_core_namespaces_count() -> None:
    assert namespaces.is_namespace(a_namespace())
    assert not namespaces.is_namespace({"spec": {"template": {"apiVersion": "v1", "kind": "ConfigMap"}}})
    assert not namespaces.is_namespace({})
