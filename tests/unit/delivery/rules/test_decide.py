"""The decision table of one object in one cluster: every row, and what holds in every state."""

from itertools import product
from typing import Any

import pytest

from federation.api import names
from federation.delivery.rules.plan import (
    ABSENT_OBJECT,
    UNKNOWN_OBJECT,
    ClusterState,
    Decision,
    ObservedObject,
    Operation,
    cluster_state_of,
    decide,
)
from federation.delivery.rules.status import ClusterStatus

PRESENT, GOING = ObservedObject(exists=True), ObservedObject(exists=True, terminating=True)
COLLIDING = ObservedObject(exists=True, derived_service_mismatch=True)
OBJECTS = {
    "absent": ABSENT_OBJECT,
    "unknown": UNKNOWN_OBJECT,
    "present": PRESENT,
    "going": GOING,
    "colliding": COLLIDING,
}
CLUSTERS = {
    "ready": ClusterState("m1"),
    "silent": ClusterState("m1", ready=False),
    "leaving": ClusterState("m1", terminating=True),
    "cascading": ClusterState("m1", terminating=True, cascading_delete=True),
    "staying with cascade": ClusterState("m1", cascading_delete=True),
    "without finalizer": ClusterState("m1", has_finalizer=False),
}
NOTHING = (None, None)


@pytest.mark.parametrize(
    ("cluster", "use", "observed", "expected"),
    [
        ("ready", "selected", "absent", (Operation.CREATE, ClusterStatus.OK)),
        ("ready", "selected", "present", (Operation.UPDATE, ClusterStatus.OK)),
        ("ready", "selected", "going", (Operation.UPDATE, ClusterStatus.OK)),
        ("ready", "selected", "colliding", (Operation.CREATE, ClusterStatus.OK)),
        ("ready", "selected", "unknown", (None, ClusterStatus.CACHED_RETRIEVAL_FAILED)),
        ("ready", "recorded", "absent", NOTHING),
        ("ready", "recorded", "present", (Operation.DELETE, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("ready", "recorded", "going", (None, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("ready", "recorded", "colliding", NOTHING),
        ("ready", "recorded", "unknown", (None, ClusterStatus.CACHED_RETRIEVAL_FAILED)),
        ("ready", "kept", "present", (None, ClusterStatus.KEPT)),
        ("ready", "kept", "going", (None, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("ready", "kept", "absent", NOTHING),
        ("ready", "none", "unknown", NOTHING),
        ("silent", "selected", "absent", (None, ClusterStatus.CLUSTER_NOT_READY)),
        ("silent", "recorded", "present", (None, ClusterStatus.CLUSTER_NOT_READY)),
        ("silent", "none", "present", NOTHING),
        ("leaving", "selected", "absent", (None, ClusterStatus.CLUSTER_TERMINATING)),
        ("leaving", "selected", "present", (None, ClusterStatus.CLUSTER_TERMINATING)),
        ("leaving", "recorded", "present", NOTHING),
        ("leaving", "recorded", "going", (None, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("leaving", "kept", "present", NOTHING),
        ("cascading", "selected", "absent", NOTHING),
        ("cascading", "selected", "present", (None, ClusterStatus.WAITING_FOR_CASCADING_DELETION)),
        ("cascading", "recorded", "present", (None, ClusterStatus.WAITING_FOR_CASCADING_DELETION)),
        ("cascading", "recorded", "going", NOTHING),
        ("cascading", "recorded", "colliding", NOTHING),
        ("staying with cascade", "selected", "present", (Operation.UPDATE, ClusterStatus.OK)),
        ("staying with cascade", "recorded", "present", (Operation.DELETE, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("without finalizer", "selected", "absent", (None, ClusterStatus.FINALIZER_CHECK_FAILED)),
        ("without finalizer", "selected", "present", (None, ClusterStatus.FINALIZER_CHECK_FAILED)),
        ("without finalizer", "recorded", "present", (Operation.DELETE, ClusterStatus.WAITING_FOR_REMOVAL)),
    ],
)
def test_every_state_has_its_row(cluster: str, use: str, observed: str, expected: tuple[Any, Any]) -> None:
    decision = decide(
        CLUSTERS[cluster],
        is_selected=use == "selected",
        is_recorded=use in ("recorded", "kept"),
        observed=OBJECTS[observed],
        is_kept=use == "kept",
    )
    assert (decision.operation, decision.status) == expected
    assert decision.recheck_after_s == (10.0 if decision.status is ClusterStatus.FINALIZER_CHECK_FAILED else None)


ALL_STATES = [
    (cluster, observed, is_selected, is_recorded, is_kept)
    for cluster, observed, is_selected, is_recorded, is_kept in product(
        CLUSTERS.values(), OBJECTS.values(), (False, True), (False, True), (False, True)
    )
]


def _decide(state: tuple[ClusterState, ObservedObject, bool, bool, bool]) -> Decision:
    cluster, observed, is_selected, is_recorded, is_kept = state
    return decide(cluster, is_selected=is_selected, is_recorded=is_recorded, observed=observed, is_kept=is_kept)


def test_nothing_is_written_to_a_cluster_that_is_silent_leaving_or_unknown() -> None:
    for state in ALL_STATES:
        cluster, observed = state[:2]
        if not cluster.ready or cluster.terminating or observed.lookup_failed:
            assert _decide(state).operation is None, state


def test_only_what_is_selected_is_written_and_only_what_is_not_is_deleted() -> None:
    for state in ALL_STATES:
        _, observed, is_selected, _, is_kept = state
        operation = _decide(state).operation
        if operation in (Operation.CREATE, Operation.UPDATE):
            assert is_selected, state
            assert (operation is Operation.UPDATE) == (observed in (PRESENT, GOING)), state
        if operation is Operation.DELETE:
            assert observed == PRESENT, state
            assert not is_selected, state
            assert not is_kept, state


def test_a_cluster_that_cannot_be_asked_keeps_its_entry_if_it_may_have_the_object() -> None:
    for state in ALL_STATES:
        cluster, observed, is_selected, is_recorded, _ = state
        if not cluster.ready or observed.lookup_failed:
            assert (_decide(state).status is not None) == (is_selected or is_recorded), state


def a_cluster(**status: Any) -> dict[str, Any]:
    found = [{"type": type_, "status": "True"} for type_ in status.pop("true", ())]
    return {"metadata": {"name": "m1"}, "status": {"conditions": found, **status}}


@pytest.mark.parametrize(
    ("cluster", "ready", "joined"),
    [
        (a_cluster(true=["Joined", "Ready"]), True, True),
        (a_cluster(true=["Joined"]), False, True),
        (a_cluster(true=["Ready"]), False, False),
        (a_cluster(joinPerformed=True), False, True),
        (a_cluster(), False, False),
        ({"metadata": {"name": "m1"}}, False, False),
    ],
    ids=["ready", "not ready", "not joined", "joining", "new", "without status"],
)
def test_a_cluster_is_ready_when_it_is_joined_and_may_have_objects_once_it_was_joining(
    cluster: dict[str, Any], ready: bool, joined: bool
) -> None:
    state = cluster_state_of(cluster)
    assert (state.name, state.ready, state.joined) == ("m1", ready, joined)
    assert (state.terminating, state.cascading_delete, state.has_finalizer) == (False, False, False)
    assert (state.uid, state.is_drained) == ("", False)


def test_marks_of_a_cluster_are_read_from_their_places() -> None:
    cluster = a_cluster(clusterUid="u1")
    cluster["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {names.CASCADING_DELETE: ""},
        "finalizers": ["other", names.CASCADING_DELETE_FINALIZER],
    }
    cluster["spec"] = {"taints": [{"key": "other"}, {"key": names.TAINT_DRAIN}]}
    state = cluster_state_of(cluster)
    assert (state.terminating, state.cascading_delete, state.has_finalizer) == (True, True, True)
    assert (state.uid, state.is_drained) == ("u1", True)
    cluster["spec"] = {"taints": [{"key": "other"}]}
    cluster["metadata"]["finalizers"] = ["other"]
    cluster["metadata"]["annotations"] = {"other": ""}
    state = cluster_state_of(cluster)
    assert (state.cascading_delete, state.has_finalizer, state.is_drained) == (False, False, False)
