"""Behaviour vectors: what sync does in one cluster."""

from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.delivery.rules.plan import ClusterState, ObservedObject, Operation, decide

_OPERATIONS = {"create": Operation.CREATE, "update": Operation.UPDATE, "delete": Operation.DELETE}


@each_case(load("sync_decision_derived"))
def test_decision(case: dict[str, Any]) -> None:
    given = filled(
        case["input"],
        clusterReady=False,
        clusterTerminating=False,
        cascadingDelete=False,
        clusterHasFinalizer=False,
        objectExists=False,
        objectTerminating=False,
        derivedServiceMismatch=False,
        selected=False,
    )
    status, operation = case["expected"].get("status"), case["expected"].get("operation")
    cluster = ClusterState(
        "member",
        ready=given["clusterReady"],
        terminating=given["clusterTerminating"],
        cascading_delete=given["cascadingDelete"],
        has_finalizer=given["clusterHasFinalizer"],
    )
    observed = ObservedObject(
        exists=given["objectExists"],
        terminating=given["objectTerminating"],
        derived_service_mismatch=given["derivedServiceMismatch"],
    )
    # A cluster that is not ready and not selected keeps its entry with us when it is recorded; the vectors ask about
    # one that is not.
    decision = decide(cluster, is_selected=given["selected"], is_recorded=False, observed=observed)
    assert decision.status == status
    assert decision.operation == (_OPERATIONS[operation] if operation else None)
