"""Rows of federated objects: what needs attention, and replicas."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS
from federation.planning.diagnosis.objectsummary import Attention, ObjectSummary, Outcome, changes_at
from federation.planning.diagnosis.objectsummary import summarize as summarize_at

DEPLOYMENT = FederatedType(
    "deployments.apps",
    DEPLOYMENTS,
    (),
    PathDefinition(replicas_spec=("spec", "replicas"), ready_replicas_status=("status", "readyReplicas")),
)
CONFIGMAP = FederatedType("configmaps", CONFIGMAPS, ())
PLACED = [{"controller": "a", "placement": [{"cluster": "east"}, {"cluster": "west"}]}]
NOTHING: frozenset[str] = frozenset()


NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def summarize(federated: Any, source: Any, type_: FederatedType, silent: frozenset[str]) -> ObjectSummary:
    return summarize_at(federated, source, type_, silent, NOW)


def a_federated(placements: Any = PLACED, *, replicas: int = 3, **status: Any) -> dict[str, Any]:
    template = {"metadata": {"name": "web"}, "spec": {"replicas": replicas}}
    annotations = {names.PENDING_CONTROLLERS: "[]"}
    return {
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {"template": template, "placements": placements},
        "status": status,
    }


def condition(type_: str, status: str, message: str = "", reason: str = "R") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


DONE = [condition(names.PROPAGATED, "True")]


def kinds(federated: dict[str, Any], type_: FederatedType = DEPLOYMENT, silent: frozenset[str] = NOTHING) -> list[str]:
    return [problem.attention for problem in summarize(federated, None, type_, silent).problems]


@pytest.mark.parametrize("ready", [0, 2, 3, 4])
def test_a_row_changes_with_time_when_it_says_so(ready: int) -> None:
    """The list keeps rows until then; one whose replicas are missing becomes a problem by waiting."""
    unavailable = {**condition("Available", "False"), "lastTransitionTime": "2026-01-01T11:59:30Z"}
    source = {"status": {"readyReplicas": ready, "conditions": [unavailable]}}
    federated = a_federated(conditions=DONE)

    def row(at: datetime) -> ObjectSummary:
        return summarize_at(federated, source, DEPLOYMENT, NOTHING, at)

    ripe = changes_at(row(NOW), source, NOW)
    assert (ripe is None) == (ready >= 3)
    ripe = ripe or NOW
    assert row(NOW) == row(ripe - timedelta(microseconds=1) if ready < 3 else ripe)
    assert (row(NOW) == row(ripe)) == (ready >= 3)
    assert changes_at(row(ripe), source, ripe) is None
    assert row(ripe) == row(ripe + timedelta(days=1))


def test_a_delivered_object_needs_nothing() -> None:
    row = summarize(a_federated(conditions=DONE), {"status": {"readyReplicas": 2}}, DEPLOYMENT, NOTHING)
    assert (row.clusters, row.wanted, row.ready, row.problems) == (("east", "west"), 3, 2, ())


@pytest.mark.parametrize("source", [None, {}, {"status": {"readyReplicas": "many"}}])
def test_replicas_that_nobody_reports_are_not_ready(source: Any) -> None:
    assert summarize(a_federated(conditions=DONE), source, DEPLOYMENT, NOTHING).ready == 0


def test_kinds_without_replicas_have_none() -> None:
    row = summarize(a_federated(conditions=DONE), {}, CONFIGMAP, NOTHING)
    assert (row.wanted, row.ready) == (None, None)


def test_a_workload_that_no_policy_selects_needs_attention_and_another_object_does_not() -> None:
    federated = a_federated([], conditions=[condition(names.SCHEDULED, "False", "none", names.REASON_NO_POLICY)])
    assert kinds(federated) == [Attention.NOT_PLACED]
    assert kinds(federated, CONFIGMAP) == []


def test_an_object_that_no_cluster_takes_is_not_placed() -> None:
    failed = condition(names.SCHEDULED, "False", "0/3 clusters are available", "NoFeasibleCluster")
    unplaced = condition(names.PROPAGATED, "False", "0/3 clusters are available", "NotPlaced")
    federated = a_federated([], conditions=[unplaced, failed])
    (problem,) = summarize(federated, None, CONFIGMAP, NOTHING).problems
    assert (problem.attention, problem.text) == (Attention.NOT_PLACED, "0/3 clusters are available")
    assert problem.reason == "NoFeasibleCluster"  # as in the list for users who may read federated objects


def test_replicas_that_fit_nowhere_are_counted() -> None:
    federated = a_federated(conditions=DONE)
    federated["metadata"]["annotations"][names.SCHEDULING] = orjson.dumps({"placement": {"east": 1}}).decode()
    (problem,) = summarize(federated, None, DEPLOYMENT, NOTHING).problems
    assert problem.text == "2 of its replicas fit into no cluster"


def test_a_refusal_is_told_in_the_words_of_the_cluster() -> None:
    clusters = [{"cluster": "east", "status": "OK"}, {"cluster": "west", "status": "Failed", "message": "no quota"}]
    refused = condition(names.PROPAGATED, "False", "", names.REASON_CHECK_CLUSTERS)
    (problem,) = summarize(a_federated(conditions=[refused], clusters=clusters), None, DEPLOYMENT, NOTHING).problems
    assert (problem.attention, problem.text) == (Attention.NOT_DELIVERED, "west: no quota")
    assert problem.reason == names.REASON_CHECK_CLUSTERS


def test_only_silent_clusters_that_have_the_object_make_it_stale() -> None:
    federated = a_federated(conditions=DONE)
    assert kinds(federated, silent=frozenset(("north",))) == []
    assert kinds(federated, silent=frozenset(("north", "west"))) == [Attention.STALE]


def test_a_held_move_names_its_hold() -> None:
    federated = a_federated(conditions=DONE)
    record = {"hold": "h1", "cause": "Policy default/p", "from": ["east"], "since": "2026-01-01T00:00:00Z"}
    federated["metadata"]["annotations"][names.HELD_PLACEMENT] = orjson.dumps(record).decode()
    (problem,) = summarize(federated, None, DEPLOYMENT, NOTHING).problems
    assert problem.attention == Attention.HELD
    assert problem.text.startswith("its move away from east")
    assert [cause.key for cause in problem.causes] == ["held:h1"]


def test_a_workload_whose_follower_is_refused_needs_attention() -> None:
    refused = condition(names.FOLLOWERS_DELIVERED, "False", "ConfigMap settings is not the host's in east")
    found = summarize(a_federated(conditions=[*DONE, refused]), None, DEPLOYMENT, NOTHING).problems
    assert [each[:2] for each in found] == [(Attention.NOT_DELIVERED, "ConfigMap settings is not the host's in east")]


def test_a_silent_cluster_is_one_cause_and_no_refusal() -> None:
    clusters = [{"cluster": "east", "status": "OK"}, {"cluster": "west", "status": "ClusterNotReady"}]
    federated = a_federated(conditions=[condition(names.PROPAGATED, "False")], clusters=clusters)
    (problem,) = summarize(federated, None, CONFIGMAP, frozenset(("west",))).problems
    assert problem.attention is Attention.STALE
    assert [(cause.key, cause.title) for cause in problem.causes] == [("stale:west", "west does not answer")]


def test_refusals_have_one_cause_per_cluster_and_kind_of_refusal() -> None:
    clusters = [
        {"cluster": name, "status": "CreationFailed", "message": f"web-{name}: no quota"} for name in ("east", "west")
    ]
    federated = a_federated(conditions=[condition(names.PROPAGATED, "False")], clusters=clusters)
    (problem,) = summarize(federated, None, CONFIGMAP, NOTHING).problems
    assert problem.text == "east: web-east: no quota and 1 more clusters"
    assert [cause.title for cause in problem.causes] == ["east: creation refused", "west: creation refused"]


@pytest.mark.parametrize(
    ("conditions", "ready", "expected"),
    [
        ([("Available", "False", "2026-01-01T11:58:00Z")], 0, [Attention.NOT_READY]),
        ([("Available", "False", "2026-01-01T11:59:30Z")], 0, []),
        ([("Available", "False", "2026-01-01T11:59:30Z"), ("Progressing", "False", "")], 0, [Attention.NOT_READY]),
        ([("Available", "True", "2026-01-01T10:00:00Z")], 5, []),
        ([("Available", "False", "2026-01-01T11:00:00Z")], 6, []),
        ([], 0, []),
    ],
)
def test_replicas_that_do_not_start_in_time_need_attention(conditions: Any, ready: int, expected: Any) -> None:
    held = [{"type": type_, "status": status, "lastTransitionTime": at} for type_, status, at in conditions]
    source = {"status": {"readyReplicas": ready, "conditions": held}}
    found = summarize(a_federated(conditions=DONE), source, DEPLOYMENT, NOTHING)
    assert [problem.attention for problem in found.problems] == expected


@pytest.mark.parametrize(("type_", "outcome"), [("Complete", Outcome.COMPLETE), ("Failed", Outcome.FAILED)])
def test_what_has_ended_has_no_replicas_to_wait_for(type_: str, outcome: Outcome) -> None:
    source = {"status": {"conditions": [condition(type_, "True", reason="BackoffLimitExceeded")]}}
    row = summarize(a_federated(conditions=DONE), source, DEPLOYMENT, NOTHING)
    assert (row.wanted, row.ready, row.outcome) == (None, None, outcome)
    assert [problem.text for problem in row.problems] == (
        [] if outcome is Outcome.COMPLETE else ["the Job has failed: BackoffLimitExceeded"]
    )


def test_copies_are_counted_in_all_clusters_and_shares_once() -> None:
    federated = a_federated([{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "a"}, {"cluster": "b"}]}])
    assert summarize(federated, None, DEPLOYMENT, NOTHING).wanted == 6
    patch = {"path": "/spec/replicas", "value": 1}
    shares = [{"cluster": name, "patches": [patch]} for name in ("a", "b")]
    federated["spec"]["overrides"] = [{"controller": names.GLOBAL_SCHEDULER, "clusters": shares}]
    assert summarize(federated, None, DEPLOYMENT, NOTHING).wanted == 3
