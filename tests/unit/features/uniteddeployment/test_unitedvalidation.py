"""Validation of UnitedDeployments names the field of every problem."""

from typing import Any

import pytest

from federation.features.uniteddeployment.admission import RULES
from federation.features.uniteddeployment.names import DELETE_PROTECTION_LABEL
from federation.features.uniteddeployment.rules.countvalidation import validate_counts
from federation.features.uniteddeployment.rules.uniteddefaults import default_spec
from federation.features.uniteddeployment.rules.unitedvalidation import (
    deletion_problem,
    validate_united,
    validate_update,
)


def a_spec(kind: str = "deploymentTemplate", workload: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "a", "image": "a", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    pods["spec"] |= {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"template": pods, **(workload or {})}}
    return {"replicas": 4, "selector": {"matchLabels": {"app": "a"}}, "template": {kind: template}, **spec}


def fields(**spec: Any) -> list[str]:
    return [cause["field"] for cause in validate_united({"spec": a_spec(**spec)}, RULES)]


def subsets(*listed: dict[str, Any], **topology: Any) -> dict[str, Any]:
    return {"subsets": list(listed), **topology}


SUBSETS = "spec.topology.subsets"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"replicas": -1}, ["spec.replicas"]),
        ({"selector": {}}, ["spec.selector"]),
        ({"selector": {"matchLabels": {"a b": "c"}}}, ["spec.selector.matchLabels"]),
        ({"template": {}}, ["spec.template"]),
        ({"workload": {"replicas": 2}}, ["spec.template.deploymentTemplate.spec.replicas"]),
        (
            {"kind": "statefulSetTemplate", "workload": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}},
            ["spec.template.statefulSetTemplate.spec.updateStrategy.rollingUpdate.partition"],
        ),
        ({"kind": "cloneSetTemplate", "workload": {"replicas": 2}}, []),
        ({"topology": subsets({"name": "a"}, {"name": "a"})}, [f"{SUBSETS}[1].name"]),
        (
            {"topology": subsets({"name": "a", "tolerations": [{"key": "a b"}]})},
            [f"{SUBSETS}[0].tolerations[0].key"],
        ),
        ({"topology": subsets(scheduleStrategy={"type": "x"})}, ["spec.topology.scheduleStrategy.type"]),
        (
            {
                "kind": "statefulSetTemplate",
                "topology": subsets(
                    scheduleStrategy={"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}
                ),
            },
            ["spec.topology.scheduleStrategy.adaptive.reserveUnschedulablePods"],
        ),
        ({"updateStrategy": {"type": "Rolling"}}, ["spec.updateStrategy.type"]),
        (
            {"updateStrategy": {"manualUpdate": {"partitions": {"x": 1}}}},
            ["spec.updateStrategy.manualUpdate.partitions"],
        ),
        (
            {"topology": subsets({"name": "a"}), "updateStrategy": {"manualUpdate": {"partitions": {"a": -1}}}},
            ["spec.updateStrategy.manualUpdate.partitions[a]"],
        ),
    ],
)
def test_every_problem_names_its_field(spec: dict[str, Any], expected: list[str]) -> None:
    assert fields(**spec) == expected


def test_a_target_cluster_must_be_registered() -> None:
    united = {"spec": a_spec(topology=subsets({"name": "a", "targetCluster": {"name": "x"}}))}
    assert validate_united(united, RULES) == []
    assert validate_united(united, RULES, clusters={("default", "x")}) == []
    (cause,) = validate_united(united, RULES, clusters={("other", "x")})
    assert cause["field"] == f"{SUBSETS}[0].targetCluster"


@pytest.mark.parametrize(
    ("total", "listed", "expected"),
    [
        (4, [{"replicas": "50%"}, {"replicas": "50%"}], []),
        (7, [{"replicas": "50%"}, {"replicas": "25%"}, {"replicas": "25%"}], []),
        (None, [{"replicas": 1}, {}], ["subsets"]),
        (None, [{"replicas": "10%"}], ["subsets[0].replicas"]),
        (None, [{"minReplicas": 1}], ["spec.replicas"]),
        (4, [{"replicas": 5}], ["subsets"]),
        (4, [{"minReplicas": 6}, {"maxReplicas": 1}], []),
        (4, [{"replicas": "101%"}], ["subsets[0].replicas"]),
    ],
)
def test_counts_must_fit_the_total(total: int | None, listed: list[dict[str, Any]], expected: list[str]) -> None:
    named = [{"name": str(place), **subset} for place, subset in enumerate(listed)]
    assert [cause["field"] for cause in validate_counts(total, named, "subsets")] == expected


def test_strict_parity_refuses_percentages_that_round_to_more() -> None:
    named = [{"name": name, "replicas": share} for name, share in (("a", "50%"), ("b", "25%"), ("c", "25%"))]
    (cause,) = validate_counts(7, named, "subsets", is_strict=True)
    assert cause["field"] == "subsets"


def test_sums_of_bounds_are_compared() -> None:
    named = [{"name": "a", "minReplicas": 5, "maxReplicas": 5}, {"name": "b", "minReplicas": 1_000_001}]
    found = [cause["field"] for cause in validate_counts(4, named, "subsets")]
    assert found == ["subsets"]


def test_updates_of_stateful_sets_change_listed_fields_only() -> None:
    def united(kind: str, **workload: Any) -> dict[str, Any]:
        return {"spec": a_spec(kind, workload)}

    old = united("statefulSetTemplate", serviceName="a", minReadySeconds=1)
    assert validate_update(united("statefulSetTemplate", serviceName="a", minReadySeconds=2), old) == []
    (cause,) = validate_update(united("statefulSetTemplate", serviceName="b", minReadySeconds=1), old)
    assert cause["field"] == "spec.template.statefulSetTemplate.spec.serviceName"
    assert validate_update(united("deploymentTemplate", paused=True), old) == []


def test_nodes_and_tolerations_of_a_subset_are_immutable_and_new_subsets_are_free() -> None:
    old = {"spec": {"topology": subsets({"name": "a", "tolerations": [{"key": "x"}]})}}
    new = {"spec": {"topology": subsets({"name": "new", "tolerations": []}, {"name": "a", "nodeSelectorTerm": {}})}}
    assert [cause["field"] for cause in validate_update(new, old)] == [f"{SUBSETS}[1].tolerations"]


@pytest.mark.parametrize(
    ("label", "replicas", "is_protected"),
    [("Always", 0, True), ("Cascading", 1, True), ("Cascading", 0, False), ("Cascading", None, True), ("", 3, False)],
)
def test_a_label_protects_from_deletion(label: str, replicas: int | None, is_protected: bool) -> None:
    united = {"metadata": {"labels": {DELETE_PROTECTION_LABEL: label}}, "spec": {"replicas": replicas}}
    assert bool(deletion_problem(united)) == is_protected


def test_the_total_defaults_to_the_sum_of_integers_in_every_subset() -> None:
    def total(*counts: Any) -> int:
        listed = [{"name": str(place), "replicas": count} for place, count in enumerate(counts)]
        return int(default_spec({"topology": {"subsets": listed}})["replicas"])

    assert [total(2, 3), total(2, None), total(2, "50%"), total()] == [5, 1, 1, 1]


def test_minimums_default_to_zero_only_beside_bounds() -> None:
    spec = default_spec({"topology": {"subsets": [{"name": "a", "maxReplicas": 2}, {"name": "b"}]}})
    assert [subset["minReplicas"] for subset in spec["topology"]["subsets"]] == [0, 0]


@pytest.mark.parametrize("field", ["nodeSelectorTerm", "nodeSelector", "tolerations"])
def test_an_empty_field_of_a_subset_may_be_left_out_and_written(field: str) -> None:
    absent, empty = ({"spec": a_spec(topology=subsets({"name": "a", **fields_}))} for fields_ in ({}, {field: {}}))
    assert validate_update(absent, empty) == []
    assert validate_update(empty, absent) == []
