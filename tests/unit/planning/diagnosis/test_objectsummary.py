"""Rows of federated objects: what needs attention, and replicas."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS
from federation.planning.diagnosis.objectsummary import Attention, summarize

DEPLOYMENT = FederatedType(
    "deployments.apps",
    DEPLOYMENTS,
    (),
    PathDefinition(replicas_spec=("spec", "replicas"), ready_replicas_status=("status", "readyReplicas")),
)
CONFIGMAP = FederatedType("configmaps", CONFIGMAPS, ())
PLACED = [{"controller": "a", "placement": [{"cluster": "east"}, {"cluster": "west"}]}]
NOTHING: frozenset[str] = frozenset()


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
    federated = a_federated([], conditions=[condition(names.SCHEDULED, "False", "0/3 clusters are available")])
    (problem,) = summarize(federated, None, CONFIGMAP, NOTHING).problems
    assert (problem.attention, problem.text) == (Attention.NOT_PLACED, "0/3 clusters are available")


def test_replicas_that_fit_nowhere_are_counted() -> None:
    federated = a_federated(conditions=DONE)
    federated["metadata"]["annotations"][names.SCHEDULING] = orjson.dumps({"placement": {"east": 1}}).decode()
    (problem,) = summarize(federated, None, DEPLOYMENT, NOTHING).problems
    assert problem.text == "2 of its replicas fit into no cluster"


def test_a_refusal_is_told_in_the_words_of_the_cluster() -> None:
    clusters = [{"cluster": "east", "status": "OK"}, {"cluster": "west", "status": "Failed", "message": "no quota"}]
    federated = a_federated(conditions=[condition(names.PROPAGATED, "False")], clusters=clusters)
    (problem,) = summarize(federated, None, DEPLOYMENT, NOTHING).problems
    assert (problem.attention, problem.text) == (Attention.NOT_DELIVERED, "west: no quota")


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
    assert problem.text.startswith("hold h1: its move away from east")


def test_a_workload_whose_follower_is_refused_needs_attention() -> None:
    refused = condition(names.FOLLOWERS_DELIVERED, "False", "ConfigMap settings is not the host's in east")
    found = summarize(a_federated(conditions=[*DONE, refused]), None, DEPLOYMENT, NOTHING).problems
    assert found == ((Attention.NOT_DELIVERED, "ConfigMap settings is not the host's in east"),)
