"""The list of `fedctl why -A`: what keeps an object, and which objects have failed."""

from typing import Any

import pytest

from federation.api import names
from federation.cli.whylist import State, from_summary, state_of


def federated(
    *conditions: tuple[str, str, str], namespace: str = "shop", clusters: tuple[str, ...] = ()
) -> dict[str, Any]:
    placement = [{"cluster": cluster} for cluster in clusters]
    decided = {names.PENDING_CONTROLLERS: "[]"}
    return {
        "metadata": {"name": "web", "annotations": decided, **({"namespace": namespace} if namespace else {})},
        "spec": {"template": {"kind": "Deployment"}, "placements": [{"controller": "x", "placement": placement}]},
        "status": {"conditions": [{"type": t, "status": s, "reason": r, "message": "m"} for t, s, r in conditions]},
    }


DELIVERED = ("Propagated", "True", "")
NOT_PLACED = ("Propagated", "False", "NotPlaced")


def test_the_first_condition_that_is_not_fulfilled_is_the_cause() -> None:
    found = federated(NOT_PLACED, ("Scheduled", "False", "PolicyNotFound"))
    assert state_of(found) == State("PolicyNotFound", "m")
    assert state_of(found).is_failed


def test_a_delivered_object_has_no_reason() -> None:
    state = state_of(federated(("Scheduled", "True", ""), DELIVERED, clusters=("east",)))
    assert (state.reason, state.is_failed) == ("", False)


def test_an_object_with_pending_controllers_is_in_progress_and_has_not_failed() -> None:
    found = federated(DELIVERED)
    found["metadata"]["annotations"] = {names.PENDING_CONTROLLERS: '[["kubeadmiral.io/global-scheduler"]]'}
    assert (state_of(found).reason, state_of(found).is_failed) == ("InProgress", False)
    assert state_of(federated(DELIVERED)).reason == ""


@pytest.mark.parametrize(("namespace", "is_failed"), [("shop", True), ("", False)])
def test_objects_without_a_policy_have_failed_unless_they_are_cluster_wide(namespace: str, is_failed: bool) -> None:
    found = federated(("Propagated", "False", names.REASON_NO_POLICY), namespace=namespace)
    assert state_of(found).is_failed is is_failed


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        ({"cluster": "east", "status": "CreationTimedOut"}, "CheckClusters"),
        ({"cluster": "east", "status": "WaitingForRemoval"}, "InProgress"),
    ],
)
def test_an_object_on_its_way_has_not_failed(entry: dict[str, str], state: str) -> None:
    found = federated(("Scheduled", "True", ""), ("Propagated", "False", "CheckClusters"), clusters=("east",))
    found["status"]["clusters"] = [entry]
    assert state_of(found).reason == state


def test_a_delivered_object_whose_follower_is_refused_has_failed() -> None:
    state = state_of(federated(DELIVERED, ("FollowersDelivered", "False", "CheckFollowers"), clusters=("east",)))
    assert (state, state.is_failed) == (State("CheckFollowers", "m"), True)


@pytest.mark.parametrize(
    ("stage", "problems", "cells"),
    [
        ("delivered", [], ["2", "OK", "east, west"]),
        ("propagating", [], ["2", "InProgress", "east, west"]),
        ("unselected", [], ["2", "NoPolicy", "no policy selects it"]),
        ("delivered", [{"attention": "not-placed", "text": "3 fit nowhere"}], ["2", "NotPlaced", "3 fit nowhere"]),
        (
            "unplaced",
            [{"attention": "not-placed", "reason": "NoFeasibleCluster", "text": "0/3 clusters are available"}],
            ["2", "NoFeasibleCluster", "0/3 clusters are available"],
        ),
    ],
)
def test_a_summary_is_listed_as_a_federated_object_is(
    stage: str, problems: list[dict[str, str]], cells: list[str]
) -> None:
    about = {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web"}
    counts = {"clusters": ["west", "east"], "wanted": 3, "ready": 3}
    listed = from_summary({**about, **counts, "stage": stage, "problems": problems})
    assert listed.to_row() == ["shop", "Deployment", "web", *cells]
    assert listed.document["apiVersion"] == "apps/v1"
    assert listed.state.is_failed is (bool(problems) or stage == "unselected")
