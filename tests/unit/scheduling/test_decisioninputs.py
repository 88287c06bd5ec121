"""Hashes of a decision's inputs: each changes only with its input."""

from typing import Any

from federation.api import names
from federation.scheduling.decisioninputs import inputs_of, object_hash
from federation.scheduling.snapshot import ClusterCache


def a_federated(**more: Any) -> dict[str, Any]:
    metadata = {"name": "web", "labels": {"tier": "front"}, **more.pop("template_metadata", {})}
    annotations = {names.SCHEDULING_TRIGGERS: "{}", **more.pop("annotations", {})}
    return {
        "metadata": {"name": "web-deployments.apps", "annotations": annotations},
        "spec": {"template": {"metadata": metadata, "spec": {"replicas": 3, **more}}, "placements": []},
    }


def a_cluster(name: str, **spec: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "Joined", "status": "True"}], "resources": spec.pop("resources", {})}
    return {"metadata": {"name": name, "labels": spec.pop("labels", {})}, "spec": spec, "status": status}


def clusters(*sources: dict[str, Any]) -> str:
    cache = ClusterCache()
    for source in sources:
        cache.update(source)
    return cache.snapshot().content_hash


def test_the_object_hash_covers_scheduling_inputs_only() -> None:
    same = object_hash(a_federated())
    assert object_hash(a_federated(template_metadata={"generation": 7})) == same
    assert object_hash(a_federated(annotations={names.SCHEDULING_TRIGGERS: "other"})) == same
    different = {
        object_hash(a_federated(replicas=4)),
        object_hash(a_federated(template_metadata={"labels": {}})),
        object_hash(a_federated(template_metadata={"annotations": {"a": "b"}})),
        object_hash(a_federated(annotations={names.MAX_CLUSTERS: "1"})),
        object_hash(a_federated(annotations={names.AUTO_MIGRATION_INFO: "{}"})),
    }
    assert len(different) == 5
    assert same not in different


def test_the_clusters_hash_covers_scheduling_inputs_only() -> None:
    east, west = a_cluster("east"), a_cluster("west")
    same = clusters(east, west)
    assert clusters(west, east) == same
    assert clusters({**east, "metadata": {**east["metadata"], "resourceVersion": "9"}}, west) == same
    different = {
        clusters(east),
        clusters(east, a_cluster("west", labels={"a": "b"})),
        clusters(east, a_cluster("west", taints=[{"key": "a", "effect": "NoSchedule"}])),
        clusters(east, a_cluster("west", resources={"available": {"cpu": "1"}})),
    }
    assert len(different) == 4
    assert same not in different


def test_profile_and_assumed_replicas_are_recorded_if_any() -> None:
    cache = ClusterCache()
    plain = inputs_of(a_federated(), cache.snapshot(), policy_hash="12")
    assert plain.keys() == {"object", "policy", "clusters"}
    assumed = {"east": {(("cpu", 100),): 3}}
    full = inputs_of(a_federated(), cache.snapshot(), policy_hash="12", profile_hash="9", assumed=assumed)
    assert full.keys() == {"object", "policy", "clusters", "profile", "promised"}
    assert full["profile"] == "9"
