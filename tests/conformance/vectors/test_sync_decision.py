"""Behaviour vectors: what sync does in one cluster."""

from typing import Any

from tests.support.deliveryfacts import CONTENTS
from tests.support.vectors import each_case, filled, load

from federation.delivery.rules.decide import decide
from federation.delivery.rules.facts import Facts
from federation.delivery.rules.plan import PENDING_STATUS, ClusterState, ObservedObject, Operation

_OPERATIONS = {"create": Operation.CREATE, "update": Operation.UPDATE, "delete": Operation.DELETE}
_WHILE_PENDING = {Operation.CREATE: "OK", Operation.UPDATE: "OK"}
"""The vectors have the status after the operation, we have the one until then."""


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
    facts = Facts(cluster, observed=observed, is_selected=given["selected"], **CONTENTS["differs"])
    decision = decide(facts)
    assert decision.operation == (_OPERATIONS[operation] if operation else None)
    if decision.operation is None:
        assert decision.status == status
    else:
        assert decision.status == PENDING_STATUS[decision.operation]
        assert _WHILE_PENDING.get(decision.operation, decision.status) == status
