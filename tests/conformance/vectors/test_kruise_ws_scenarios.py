"""Actions of users on a workload lead to the subsets of the vectors."""

from collections.abc import Mapping
from typing import Any

from tests.support.spreads import CLONE_SET, REPLICA_SET, SpreadWorkload, a_spread
from tests.support.vectors import each_case, filled, load

FACTS = ("unmanagedPods", "unmanagedDeletionCostAnnotation")


@each_case(load("kruise-ws-scenarios"))
def test_actions_lead_to_the_subsets_of_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], kind="CloneSet", subsets=[], steps=[])
    kind, _, _ = str(given["kind"]).partition(".")
    owner = REPLICA_SET if kind == "Deployment" else {**CLONE_SET, "kind": kind}
    workload = SpreadWorkload(
        a_spread(given["subsets"], kind), owner=owner, version="v1" if kind == "Deployment" else ""
    )
    for number, (step, expected) in enumerate(zip(given["steps"], case["expected"] or [], strict=False)):
        if step.get("updateImage"):
            workload.roll_out(f"v{number + 2}")
        if (replicas := step.get("replicas", step.get("pods"))) is not None:
            workload.scale(replicas)
        if step.get("total") is not None:
            workload.total = step["total"]
            workload.reconcile()
        _check(workload, filled(expected))


def _check(workload: SpreadWorkload, expected: Mapping[str, Any]) -> None:
    status = workload.reconcile().status
    statuses = {status["name"]: status for status in status["subsetStatuses"]}
    for name, wanted in expected.items():
        if name in FACTS:
            continue
        assert name in statuses
        found = {"replicas": workload.counts().get(name, 0), "missingReplicas": statuses[name]["missingReplicas"]}
        assert statuses[name]["replicas"] == found["replicas"]
        assert found == found | {key: value for key, value in filled(wanted).items() if key != "deletionCost"}
        if wanted.get("deletionCost") is not None:
            assert sorted(workload.costs(name)) == sorted(wanted["deletionCost"])
    if expected.get("unmanagedPods") is not None:
        # These pods have no node here, so that no subset can adopt them.
        assert workload.counts().get(None, 0) == expected["unmanagedPods"]
