"""Vectors `hpa_util`: why a HorizontalPodAutoscaler on the host does not work, and how that is marked on it.

Our pipeline has no stage of the autoscaler's own, so `addPending` and `removePending` have no counterpart.
"""

from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.api import names
from federation.features.autoscaling.rules import hpamodes
from federation.features.autoscaling.rules.hpamodes import BoundPolicy
from federation.features.autoscaling.rules.idleautoscaler import target_of
from federation.scheduling.policymatching import labelled_policy


def cases(*operations: str) -> list[Any]:
    return [case for case in load("hpa_util") if case["input"]["op"] in operations]


def a_policy(given: dict[str, Any]) -> BoundPolicy | None:
    reference = given["policyRef"]
    return None if reference is None else BoundPolicy(reference["kind"], reference["name"], given["policy"])


@each_case(cases("distributedReason", "centralizedReason"))
def test_the_reason(case: dict[str, Any]) -> None:
    given = filled(
        case["input"],
        policyRef=None,
        policy=None,
        workloadAnnotations={},
        workloadNamespace="",
        hpa={"metadata": {"name": ""}},
    )
    if given["op"] == "centralizedReason":
        found = hpamodes.central_problem(a_policy(given))
    else:
        metadata = {"namespace": given["workloadNamespace"], "annotations": given["workloadAnnotations"]}
        found = hpamodes.distributed_problem(a_policy(given), {"metadata": metadata}, given["hpa"])
    assert found == filled(case["expected"], reason="")["reason"]


@each_case(cases("addEnableLabel", "removeEnableLabel"))
def test_the_label_of_an_autoscaler_that_acts_on_the_host(case: dict[str, Any]) -> None:
    given = filled(case["input"], labels={})
    expected = filled(case["expected"], updated=False, labels={})
    mode = {names.HPA_MODE: names.HPA_CENTRALIZED}
    scaler = {"metadata": {"labels": {**given["labels"], **mode}}}
    patch = hpamodes.plan_marks(scaler, hpamodes.WORKS if given["op"] == "addEnableLabel" else "")
    assert (patch is not None) == expected["updated"]
    labels = scaler["metadata"]["labels"] | (patch or {"metadata": {"labels": {}}})["metadata"]["labels"]
    assert {key: value for key, value in labels.items() if value is not None} == expected["labels"] | mode


@each_case(cases("addReason", "removeReason"))
def test_the_annotation_with_the_reason(case: dict[str, Any]) -> None:
    given = filled(case["input"], annotations={}, reason="")
    expected = filled(case["expected"], updated=False, annotations={})
    annotations = given["annotations"]
    scaler = {"metadata": {"annotations": annotations, "labels": {names.HPA_MODE: names.HPA_DISTRIBUTED}}}
    patch = hpamodes.plan_marks(scaler, given["reason"] or hpamodes.WORKS)
    assert (patch is not None) == expected["updated"]
    after = annotations | (patch or {"metadata": {"annotations": {}}})["metadata"]["annotations"]
    assert {key: value for key, value in after.items() if value is not None} == expected["annotations"]


@each_case(cases("isCentralizedHPA"))
def test_the_mode_of_an_autoscaler_that_acts_on_the_host(case: dict[str, Any]) -> None:
    given = filled(case["input"], labels={}, template={}, object={})
    metadata = {**(given["template"].get("metadata") or {}), **(given["object"].get("metadata") or {})}
    labels = {**(metadata.get("labels") or {}), **given["labels"]}
    is_central = hpamodes.mode_of({"metadata": {"labels": labels}}) == names.HPA_CENTRALIZED
    assert list(case["expected"].values()) == [is_central]


@each_case(cases("policyOfWorkload"))
def test_the_policy_of_a_workload(case: dict[str, Any]) -> None:
    given = filled(case["input"], namespace="", labels={})
    found = labelled_policy(given["namespace"], given["labels"])
    expected = filled(case["expected"], policy=None)["policy"]
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.name == expected["name"]


@each_case(cases("scaleTargetRef"))
def test_the_target(case: dict[str, Any]) -> None:
    # A type config of another version does not apply, and target_of reads the versions that the API serves.
    given = filled(case["input"], gvk="", paths={}, object={"metadata": {}})
    expected = filled(case["expected"], error=False)
    is_known = given["gvk"] in given["paths"] and given["gvk"].startswith(("autoscaling/v1,", "autoscaling/v2,"))
    assert is_known != expected["error"]
    assert set(given["paths"].values()) <= {"spec.scaleTargetRef"}
    found = target_of(given["object"])
    if is_known:
        group, kind, namespace, name = found
        facts_found = {"group": group, "kind": kind, "namespace": namespace, "name": name}
        for key, value in expected.items():
            assert facts_found.get(key, value) == value, key
