"""The delivery of an object per cluster: wanted, applied, ready and the reason of what is missing."""

from typing import Any

import pytest
from tests.support.whatif import DEPLOYMENT, a_source

from federation.api import names
from federation.planning.federatedobject.builder import build
from federation.planning.rendering.memberobject import Renderer
from federation.planning.status.delivery import ClusterDelivery, deliveries_of, delivery_to_json
from federation.planning.status.rolloutprogress import Progress


def _federated(placed: tuple[str, ...], *reported: dict[str, Any], **counts: int) -> dict[str, Any]:
    federated = build(a_source("web"), DEPLOYMENT)
    federated["metadata"]["annotations"][names.PENDING_CONTROLLERS] = "[]"
    controller = names.GLOBAL_SCHEDULER
    federated["spec"]["placements"] = [
        {"controller": controller, "placement": [{"cluster": cluster} for cluster in placed]}
    ]
    federated["spec"]["overrides"] = [
        {
            "controller": controller,
            "clusters": [
                {"cluster": cluster, "patches": [{"op": "replace", "path": "/spec/replicas", "value": count}]}
                for cluster, count in counts.items()
            ],
        }
    ]
    federated["status"] = {"clusters": list(reported)}
    return federated


def _live(federated: dict[str, Any], cluster: str, **status: Any) -> dict[str, Any]:
    return {**Renderer(federated, DEPLOYMENT).render(cluster).object, "status": status}


def _cluster(**statuses: str) -> dict[str, Any]:
    conditions = [
        {"type": type_, "status": status, "reason": f"{type_}Is{status}", "message": "no rights for things.example.com"}
        for type_, status in statuses.items()
    ]
    return {"status": {"conditions": conditions}}


CLUSTERS = {name: _cluster(Joined="True", Ready="True", Authorized="True") for name in ("east", "west", "a", "b", "c")}


def _rows(federated: dict[str, Any], observed: dict[str, Any]) -> dict[str, ClusterDelivery]:
    return {row.cluster: row for row in deliveries_of(federated, DEPLOYMENT, observed, CLUSTERS)}


def test_what_is_being_deleted_is_wanted_nowhere() -> None:
    federated = _federated(("east", "west"), {"cluster": "east", "status": "WaitingForRemoval"}, east=4)
    federated["metadata"]["deletionTimestamp"] = "2026-07-01T00:00:00Z"
    live = _live(federated, "east", readyReplicas=4)
    [row] = deliveries_of(federated, DEPLOYMENT, {"east": live, "west": None}, CLUSTERS)
    assert (row.cluster, row.is_placed, row.wanted, row.message) == ("east", False, None, "")


def test_rows_tell_what_is_wanted_applied_and_ready() -> None:
    ok = {"cluster": "east", "status": "OK"}
    refused = {"cluster": "west", "status": "CreationFailed", "message": "admission webhook denied the request"}
    federated = _federated(("east", "west"), ok, refused, east=4, west=2)
    rows = _rows(federated, {"east": _live(federated, "east", readyReplicas=3), "west": None})
    waits = Progress(4, 0, 3, 0, "0 of 4 replicas are updated")
    assert rows["east"] == ClusterDelivery("east", True, 4, "yes", 3, "OK", "", waits)
    refusal = "admission webhook denied the request"
    absent = Progress(2, 0, 0, 0, "it has no object yet")
    assert rows["west"] == ClusterDelivery("west", True, 2, "no", None, "CreationFailed", refusal, absent)


def test_fields_of_others_are_named_where_the_newest_version_is_applied() -> None:
    federated = _federated(("east",), {"cluster": "east", "status": "OK"}, east=4)
    live = _live(federated, "east", readyReplicas=3)
    paused = {**live, "spec": {**live["spec"], "paused": True}}
    assert _rows(federated, {"east": paused})["east"].foreign == ("spec.paused",)
    earlier = {**paused, "metadata": {**live["metadata"], "annotations": {}}}
    assert _rows(federated, {"east": earlier})["east"].foreign == (), "it may be a field of an earlier version"
    (row,) = delivery_to_json(federated, DEPLOYMENT, list(_rows(federated, {"east": paused}).values()), {}, {}, {})[
        "clusters"
    ]
    assert row["foreign"] == ("spec.paused",)


def test_an_earlier_version_is_outdated_and_no_cache_is_unknown() -> None:
    federated = _federated(("east", "west"), {"cluster": "east", "status": "UpdateTimedOut"}, east=4, west=2)
    live = _live(federated, "east")
    live["metadata"]["annotations"][names.TEMPLATE_HASH] = "of an earlier version"
    rows = _rows(federated, {"east": live})
    assert (rows["east"].applied, rows["east"].ready) == ("outdated", 0)
    assert (rows["west"].applied, rows["west"].ready) == ("unknown", None)
    assert rows["west"].message == "not delivered yet"


@pytest.mark.parametrize(
    ("cluster", "observed", "message"),
    [
        (None, {}, "the cluster has not joined the federation"),
        ({}, {}, "the cluster has not joined the federation"),
        (_cluster(Joined="False"), {}, "the cluster has not joined the federation (JoinedIsFalse)"),
        (_cluster(Joined="True", Ready="Unknown"), {}, "the cluster is not ready (ReadyIsUnknown)"),
        (_cluster(Joined="True", Ready="True", Authorized="False"), {}, "no rights for things.example.com"),
        (_cluster(Joined="True", Ready="True", Authorized="False"), {"east": None}, "not delivered yet"),
        (_cluster(Joined="True", Ready="True"), {}, "not delivered yet"),
    ],
)
def test_the_condition_that_hinders_the_first_delivery_is_named(
    cluster: dict[str, Any] | None, observed: dict[str, Any], message: str
) -> None:
    clusters = {"east": cluster} if cluster is not None else {}
    (row,) = deliveries_of(_federated(("east",), east=1), DEPLOYMENT, observed, clusters)
    assert row.message == message


def test_an_object_that_leaves_a_cluster_is_not_wanted_there() -> None:
    federated = _federated(("east",), {"cluster": "west", "status": "WaitingForRemoval"}, east=1)
    row = _rows(federated, {"east": None, "west": _live(federated, "east", readyReplicas=1)})["west"]
    assert (row.is_placed, row.wanted, row.applied, row.ready) == (False, None, "outdated", 1)


def test_pending_steps_and_failed_overrides_are_named() -> None:
    federated = _federated(("east", "west"))
    federated["metadata"]["annotations"] |= {
        names.PENDING_CONTROLLERS: f'[["{names.OVERRIDE_CONTROLLER}"]]',
        names.FAILED_OVERRIDES: '{"west":"path /spec/nothing does not exist"}',
    }
    rows = _rows(federated, {})
    assert rows["east"].message == "earlier steps are pending"
    assert rows["west"].message == "path /spec/nothing does not exist"


def test_what_a_member_writes_into_a_status_cannot_break_the_answer() -> None:
    federated = _federated(("a", "b", "c"), a=1, b=1, c=1)
    hostile = {
        "a": {"metadata": {"annotations": ["x"]}, "status": "ready"},
        "b": {"metadata": {"annotations": {names.TEMPLATE_HASH: 7}}, "status": {"readyReplicas": "many"}},
        "c": {"metadata": {}, "status": {"readyReplicas": True}},
    }
    rows = _rows(federated, hostile)
    assert {row.applied for row in rows.values()} == {"outdated"}
    assert [row.ready for row in rows.values()] == [None, 0, 0]


def test_the_document_has_the_conditions_of_delivery_only() -> None:
    federated = _federated(("east",), east=1)
    federated["status"]["conditions"] = [{"type": "Propagated", "status": "True"}, {"type": "Other", "status": "True"}]
    rows = deliveries_of(federated, DEPLOYMENT, {"east": None}, CLUSTERS)
    document = delivery_to_json(federated, DEPLOYMENT, rows, {}, {}, {})
    assert [condition["type"] for condition in document["conditions"]] == ["Propagated"]
    assert document["clusters"][0]["placed"] is True
    assert document["clusters"][0]["rollout"]["problem"] == "it has no object yet"
    assert document["budget"] == {"replicas": 6, "maxSurge": 2, "maxUnavailable": 1}
    copied = _federated(("east",))
    assert "budget" not in delivery_to_json(copied, DEPLOYMENT, [], {}, {}, {})
