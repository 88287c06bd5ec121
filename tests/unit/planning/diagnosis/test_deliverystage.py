from typing import Any

import orjson
import pytest

from federation.api import names
from federation.planning.diagnosis.deliverystage import Stage, is_ready, stage_of, unplaced_replicas


def federated(
    *clusters: str,
    pending: str = "[]",
    conditions: dict[str, tuple[str, str]] | None = None,
    statuses: dict[str, str] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    return {
        "metadata": {"annotations": {names.PENDING_CONTROLLERS: pending}, **metadata},
        "spec": {
            "placements": [{"controller": "a", "placement": [{"cluster": name} for name in clusters]}],
            "template": {"spec": {"replicas": 5}},
        },
        "status": {
            "conditions": [
                {"type": type_, "status": status, "reason": reason}
                for type_, (status, reason) in (conditions or {}).items()
            ],
            "clusters": [{"cluster": name, "status": status} for name, status in (statuses or {}).items()],
        },
    }


def silent(*statuses: str) -> dict[str, Any]:
    """Return an object that is not delivered, with these statuses in its clusters."""
    found = {f"c{at}": status for at, status in enumerate(statuses)}
    return federated(*found, conditions={"Propagated": ("False", "CheckClusters")}, statuses=found)


BUSY = '[["kubeadmiral.io/global-scheduler"]]'


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (federated(pending=BUSY), Stage.PENDING),
        (federated("east", pending=BUSY), Stage.PENDING),
        (federated(pending=BUSY, conditions={"Scheduled": ("False", "NoFeasibleCluster")}), Stage.UNPLACED),
        (federated(conditions={"Scheduled": ("False", names.REASON_NO_POLICY)}), Stage.UNSELECTED),
        (federated(), Stage.UNSELECTED),
        (federated("east"), Stage.PROPAGATING),
        (federated("east", conditions={"Propagated": ("False", "CheckClusters")}), Stage.PROPAGATING),
        (
            federated(
                "east", conditions={"Propagated": ("False", "CheckClusters")}, statuses={"east": "CreationFailed"}
            ),
            Stage.FAILING,
        ),
        (silent("ClusterNotReady"), Stage.SILENT),
        (silent("UpdateTimedOut"), Stage.SILENT),
        (silent("ClusterNotReady", "CreationFailed"), Stage.FAILING),
        (silent("AdmissionPending"), Stage.PROPAGATING),
        (silent("FromALaterVersion"), Stage.FAILING),
        (federated("east", conditions={"Propagated": ("True", "")}), Stage.APPLIED),
        (federated("east", deletionTimestamp="2026-01-01T00:00:00Z"), Stage.DELETING),
    ],
)
def test_each_object_is_in_one_stage(obj: dict[str, Any], expected: Stage) -> None:
    assert stage_of(obj) is expected


@pytest.mark.parametrize(
    ("placement", "stage", "expected"),
    [
        ({"east": 2, "west": 1}, Stage.APPLIED, 2),
        ({"east": 9}, Stage.APPLIED, 0),
        ({"east": None}, Stage.APPLIED, 0),
        ({}, Stage.PENDING, 0),
        ({}, Stage.UNPLACED, 5),
        ("malformed", Stage.APPLIED, 0),
    ],
)
def test_replicas_without_a_cluster_are_those_that_the_placement_lacks(
    placement: Any, stage: Stage, expected: int
) -> None:
    obj = federated("east")
    obj["metadata"]["annotations"][names.SCHEDULING] = orjson.dumps({"placement": placement}).decode()
    assert unplaced_replicas(obj, ("spec", "replicas"), stage) == expected
    assert unplaced_replicas(obj, (), stage) == 0


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"observedGeneration": 2, "readyReplicas": 3}, True),
        ({"observedGeneration": 1, "readyReplicas": 3}, False),
        ({"observedGeneration": 2, "readyReplicas": 2}, False),
        ({}, False),
    ],
)
def test_a_workload_is_ready_when_its_newest_generation_has_all_replicas(status: Any, expected: bool) -> None:
    source = {"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status}
    assert is_ready(source) is expected
