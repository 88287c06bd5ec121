"""A pod gets the node rules and the patch of its subset."""

from typing import Any

import pytest

from federation.apimachinery.errors import BadRequest
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.workloadspread.rules.injection import inject_subset, required_terms

ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
LINUX = {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux"]}]}
NODE_1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


def _pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "main"}], **spec}}


def _requiring(*terms: dict[str, Any]) -> dict[str, Any]:
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"nodeAffinity": {key: {"nodeSelectorTerms": list(terms)}}}}


def test_the_required_term_is_added_to_each_alternative() -> None:
    subset = {"name": "a", "requiredNodeSelector": ZONE_A | NODE_1}
    injected = inject_subset(_pod(**_requiring(LINUX, NODE_1)), "ws", subset, patch_pod)
    both = LINUX["matchExpressions"] + ZONE_A["matchExpressions"]
    assert required_terms(injected["spec"]) == [
        {"matchExpressions": both, "matchFields": NODE_1["matchFields"]},
        {"matchExpressions": ZONE_A["matchExpressions"], "matchFields": NODE_1["matchFields"] * 2},
    ]


@pytest.mark.parametrize("spec", [{}, _requiring(), {"affinity": {"nodeAffinity": None}}, {"affinity": None}])
def test_the_required_term_is_the_only_one_of_a_pod_without(spec: dict[str, Any]) -> None:
    injected = inject_subset(_pod(**spec), "ws", {"name": "a", "requiredNodeSelector": ZONE_A}, patch_pod)
    assert required_terms(injected["spec"]) == [ZONE_A]


def test_tolerations_and_preferences_come_after_those_of_the_pod() -> None:
    soft = "preferredDuringSchedulingIgnoredDuringExecution"
    own = {"tolerations": [{"key": "x"}], "affinity": {"nodeAffinity": {soft: [{"weight": 1}]}, "podAffinity": {}}}
    subset = {"name": "a", "tolerations": [{"key": "y"}], "preferredNodeSelector": [{"weight": 2}]}
    injected = inject_subset(_pod(**own), "ws", subset, patch_pod)
    assert injected["spec"]["tolerations"] == [{"key": "x"}, {"key": "y"}]
    assert injected["spec"]["affinity"] == {"nodeAffinity": {soft: [{"weight": 1}, {"weight": 2}]}, "podAffinity": {}}


def test_the_patch_sees_the_injected_rules_and_the_annotation_is_last() -> None:
    patch = {"metadata": {"annotations": {"apps.kruise.io/matched-workloadspread": "x"}}, "spec": {"affinity": None}}
    subset = {"name": "a", "requiredNodeSelector": ZONE_A, "patch": patch}
    injected = inject_subset(_pod(), "ws", subset, patch_pod, uid="id-1")
    assert "affinity" not in injected["spec"]
    assert injected["metadata"]["annotations"] == {
        "apps.kruise.io/matched-workloadspread": '{"name":"ws","subset":"a","uid":"id-1"}'
    }


@pytest.mark.parametrize(("class_name", "priority"), [("high", None), ("low", 5)])
def test_a_new_priority_class_clears_the_number_of_the_old_one(class_name: str, priority: int | None) -> None:
    subset = {"name": "a", "patch": {"spec": {"priorityClassName": class_name}}}
    injected = inject_subset(_pod(priority=5, priorityClassName="low"), "ws", subset, patch_pod)
    assert injected["spec"].get("priority") == priority


def test_a_patch_cannot_remove_the_spec() -> None:
    with pytest.raises(BadRequest, match="must keep metadata and spec"):
        inject_subset(_pod(priorityClassName="low"), "ws", {"name": "a", "patch": {"spec": None}}, patch_pod)


def test_a_malformed_patch_is_an_error() -> None:
    with pytest.raises(BadRequest):
        inject_subset(_pod(), "ws", {"name": "a", "patch": {"$patch": "unknown"}}, patch_pod)


def test_the_patch_changes_any_part_of_the_pod() -> None:
    container = {
        "name": "main",
        "image": "main:arm64",
        "command": ["run"],
        "args": ["--small"],
        "livenessProbe": {"tcpSocket": {"port": 80}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volumes = [{"name": "data", "emptyDir": {}}]
    patch = {"spec": {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 5}}
    pod = _pod(containers=[{"name": "sidecar", "image": "proxy"}, {"name": "main", "image": "main:amd64", "tty": True}])
    spec = inject_subset(pod, "ws", {"name": "a", "patch": patch}, patch_pod)["spec"]
    by_name = {each["name"]: each for each in spec["containers"]}
    assert by_name == {"sidecar": {"name": "sidecar", "image": "proxy"}, "main": {**container, "tty": True}}
    assert spec["volumes"] == volumes
    assert spec["terminationGracePeriodSeconds"] == 5
