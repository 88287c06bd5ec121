"""The v1beta1 protocol: requests, responses, and invalid responses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.migrations import CustomMigration
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit
from federation.scheduling.framework.types import (
    SUCCESS,
    ClusterScore,
    Code,
    Division,
    GroupVersionKind,
    PluginRequest,
    PluginResponse,
    Status,
)
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.webhooks.configuration import CLUSTER_FIELDS, POINTS, UNIT_FIELDS, WebhookOptions
from federation.scheduling.webhooks.responses import REASON_CHARS_MAX, REASONS_MAX
from federation.scheduling.webhooks.v1beta1 import HEADERS, RETRIES_MAX, Webhook

VERSION = "federation.kubeadmiral.io/v1beta1"
URLS = {point: f"http://p/{point}" for point in POINTS}
WEBHOOK = Webhook(WebhookOptions("p", "v1beta1", URLS, timeout_s=3.0))
EAST, WEST = a_cluster("east").built(), a_cluster("west").built()
UNIT = a_divided_unit(6, max_replicas={"east": 4}, min_replicas={"east": 1})


def start(point: str, unit: Any = UNIT, webhook: Webhook = WEBHOOK, clusters: Any = (EAST, WEST)) -> Any:
    """Return the generator, its only request, the request's body and the state."""
    state = CycleState(NOW)
    if point == "select":
        run: Any = webhook.select_clusters(unit, [ClusterScore(cluster, 7) for cluster in clusters], state)
    else:
        name = "replicas_of_clusters" if point == "replicas" else f"{point}_clusters"
        run = getattr(webhook, name)(unit, clusters, state)
    (request,) = next(run)
    return run, request, orjson.loads(request.body), state


def finish(run: Any, response: PluginResponse) -> Any:
    with pytest.raises(StopIteration) as stop:
        run.send([response])
    return stop.value.value


def answer(point: str, clusters: Any, unit: Any = UNIT, **more: Any) -> tuple[Any, CycleState]:
    run, _, asked, state = start(point, unit)
    said = {"apiVersion": VERSION, "kind": "PluginResponse", "uid": asked["uid"], "clusters": clusters, **more}
    return finish(run, PluginResponse(200, orjson.dumps(said))), state


def reason_of(result: Any) -> str:
    status = result[0] if isinstance(result, list) else result
    assert isinstance(status, Status)
    assert status.code is Code.ERROR
    return "; ".join(status.reasons)


def test_one_request_carries_all_clusters_in_a_versioned_envelope() -> None:
    _, request, body, _ = start("filter")
    assert (request.url, request.headers, request.timeout_s) == ("http://p/filter", HEADERS, 3.0)
    assert (request.plugin, request.retries_max) == ("p", RETRIES_MAX)
    assert list(body) == ["apiVersion", "kind", "uid", "extensionPoint", "unit", "clusters"]
    assert (body["apiVersion"], body["kind"], body["extensionPoint"]) == (VERSION, "PluginRequest", "filter")
    assert body["clusters"] == [{"name": "east"}, {"name": "west"}]
    assert set(body["unit"]) == {"apiVersion", "kind", "namespace", "name", "schedulingMode", "desiredReplicas"}


def test_retries_of_a_request_have_the_same_uid() -> None:
    uids = [start(point)[2]["uid"] for point in POINTS]
    assert len(set(uids)) == len(POINTS)
    assert uids == [start(point)[2]["uid"] for point in POINTS]


def test_a_select_request_has_scores_and_a_replicas_request_limits() -> None:
    assert start("select")[2]["clusters"] == [{"name": "east", "score": 7}, {"name": "west", "score": 7}]
    moved = a_divided_unit(
        6, max_replicas={"east": 4}, custom_migration=CustomMigration(limited_capacity={"east": 2, "west": 5})
    )
    assert start("replicas")[2]["clusters"] == [{"name": "east", "minReplicas": 1, "maxReplicas": 4}, {"name": "west"}]
    roomy = a_cluster("east").with_nodes(3, cpu="1", pods="10").built()
    told = start("replicas", a_divided_unit(6, request={"cpu": 500}), clusters=(roomy, WEST))[2]["clusters"]
    assert told == [{"name": "east", "room": 6}, {"name": "west"}]
    limited = [{"name": "east", "maxReplicas": 2}, {"name": "west", "maxReplicas": 5}]
    assert start("replicas", moved)[2]["clusters"] == limited


SOURCE = {
    "metadata": {"name": "east", "labels": {"region": "eu"}, "annotations": {"price": "3"}},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastProbeTime": "now"}],
        "apiResourceTypes": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
        "resources": {"allocatable": {"cpu": "8"}, "available": {"cpu": "2500m"}, "schedulableNodes": 3},
    },
}
TOLD_OF_CLUSTER = {
    "labels": {"region": "eu"},
    "annotations": {"price": "3"},
    "taints": [{"key": "a", "value": "", "effect": "NoSchedule"}],
    "conditions": [{"type": "Ready", "status": "True", "reason": "R"}],
    "apiResourceTypes": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
    "resources": {"allocatable": {"cpu": "8"}, "available": {"cpu": "2500m"}},
}
TOLD_OF_UNIT = {
    "labels": {"app": "web"},
    "annotations": {"budget": "3"},
    "resourceRequest": {"cpu": "250m", "ephemeral-storage": "0", "memory": "0"},
    "current": {"east": 4},
    "policy": {"replicasStrategy": "Spread", "maxClusters": 2},
    "template": {"kind": "Deployment", "spec": {"replicas": 6}},
}


@pytest.mark.parametrize("field", sorted(CLUSTER_FIELDS))
def test_clusters_have_only_declared_fields(field: str) -> None:
    webhook = Webhook(WebhookOptions("p", "v1beta1", URLS, cluster_fields=frozenset({field})))
    body = start("filter", webhook=webhook, clusters=(to_cluster(SOURCE),))[2]
    assert body["clusters"] == [{"name": "east", field: TOLD_OF_CLUSTER[field]}]


@pytest.mark.parametrize("field", sorted(UNIT_FIELDS))
def test_the_unit_has_only_declared_fields(field: str) -> None:
    unit = a_divided_unit(
        6,
        gvk=GroupVersionKind("apps", "v1", "Deployment"),
        labels={"app": "web"},
        annotations={"budget": "3"},
        request={"cpu": 250},
        current={"east": 4},
        max_clusters=2,
        template=TOLD_OF_UNIT["template"],
    )
    webhook = Webhook(WebhookOptions("p", "v1beta1", URLS, unit_fields=frozenset({field})))
    told = start("filter", unit, webhook)[2]["unit"]
    assert told.pop(field) == TOLD_OF_UNIT[field]
    assert not set(told) & UNIT_FIELDS


def test_a_thousand_clusters_are_a_small_body() -> None:
    clusters = tuple(to_cluster({**SOURCE, "metadata": {"name": f"member-{number:04}"}}) for number in range(1000))
    assert len(start("filter", clusters=clusters)[1].body) < 25_000


def test_the_payload_of_a_changed_cluster_is_recomputed() -> None:
    webhook = Webhook(WebhookOptions("p", "v1beta1", URLS, cluster_fields=frozenset({"labels"})))
    for region in ("eu", "us"):
        changed = to_cluster({"metadata": {"name": "east", "labels": {"region": region}}})
        told = start("filter", webhook=webhook, clusters=(changed,))[2]["clusters"]
        assert told == [{"name": "east", "labels": {"region": region}}]


def test_arguments_of_the_profile_reach_the_plugin() -> None:
    webhook = Webhook(WebhookOptions("p", "v1beta1", URLS), {"budget": 3})
    assert start("filter", webhook=webhook)[2]["arguments"] == {"budget": 3}


def test_a_filter_response_may_have_reasons() -> None:
    clusters = [
        {"name": "west", "selected": False, "reasons": ["too dear", " "]},
        {"name": "east", "selected": True, "reasons": ["cheap"]},
    ]
    statuses, state = answer("filter", clusters)
    assert statuses == [SUCCESS, Status(Code.UNSCHEDULABLE, ("too dear",))]
    assert state.remarks == {"p": {"east": ("cheap",)}}
    statuses, _ = answer("filter", [{"name": "east", "selected": False}, {"name": "west", "selected": True}])
    assert statuses[0].reasons == ("cluster(s) were filtered by plugin p",)


def test_scores_count_as_they_are() -> None:
    scores, state = answer("score", [{"name": "west", "score": 100}, {"name": "east", "score": 0, "reasons": ["3 ct"]}])
    assert scores == [0, 100]
    assert state.remarks == {"p": {"east": ("3 ct",)}}


def test_a_selection_has_the_order_of_the_response() -> None:
    selected, _ = answer("select", [{"name": "west", "selected": True}, {"name": "east", "selected": True}])
    assert [entry.cluster.name for entry in selected] == ["west", "east"]
    selected, _ = answer("select", [{"name": "west", "selected": False}, {"name": "east", "selected": True}])
    assert [entry.cluster.name for entry in selected] == ["east"]


def test_replicas_are_divided_by_the_plugin() -> None:
    division, _ = answer("replicas", [{"name": "east", "replicas": 4}, {"name": "west", "replicas": 1}], unplaced=1)
    assert isinstance(division, Division)
    assert division.replicas == {"east": 4, "west": 1}
    assert division.explanation["steps"][0]["unplaced"] == 1


BOTH: list[dict[str, Any]] = [{"name": "east", "replicas": 2}, {"name": "west", "replicas": 4}]
GOOD: Mapping[str, list[dict[str, Any]]] = {
    "filter": [{"name": "east", "selected": True}, {"name": "west", "selected": True}],
    "select": [{"name": "east", "selected": True}, {"name": "west", "selected": True}],
    "score": [{"name": "east", "score": 1}, {"name": "west", "score": 2}],
    "replicas": BOTH,
}


@pytest.mark.parametrize(
    ("point", "clusters", "more", "reason"),
    [
        ("filter", GOOD["filter"], {"uid": "x"}, r"uid is 'x', not '"),
        ("filter", GOOD["filter"], {"apiVersion": "v1"}, "apiVersion is 'v1', not 'federation.kubeadmiral.io/v1beta1'"),
        ("filter", GOOD["filter"], {"kind": None}, "kind is None, not 'PluginResponse'"),
        ("filter", GOOD["filter"], {"error": "the price list\n is gone"}, "the price list  is gone"),
        ("filter", None, {}, "clusters is not a list"),
        ("filter", [1], {}, "clusters[0] is not an object with a name"),
        ("filter", [{"selected": True}], {}, "clusters[0] is not an object with a name"),
        ("filter", [{"name": "mars", "selected": True}], {}, "clusters[0] is 'mars', which was not offered"),
        ("filter", [GOOD["filter"][0]] * 2, {}, "clusters[1] is 'east' for the second time"),
        ("filter", [GOOD["filter"][0]], {}, "clusters says nothing about west"),
        ("filter", [{"name": "east"}, GOOD["filter"][1]], {}, "selected of east is None, not true or false"),
        ("select", [{"name": "east", "selected": 1}, GOOD["filter"][1]], {}, "selected of east is 1, not true or"),
        ("score", [{"name": "east", "score": 101}, GOOD["score"][1]], {}, "score of east is 101, not an integer from"),
        ("score", [{"name": "east", "score": -1}, GOOD["score"][1]], {}, "score of east is -1, not an integer from"),
        ("score", [{"name": "east", "score": 5.0}, GOOD["score"][1]], {}, "score of east is 5.0, not an integer"),
        ("score", [{"name": "east", "score": True}, GOOD["score"][1]], {}, "score of east is True, not an integer"),
        (
            "score",
            [{"name": "east", "score": 1, "reasons": "x"}, GOOD["score"][1]],
            {},
            "reasons of east is not a list",
        ),
        (
            "replicas",
            [{"name": "east", "replicas": True}, BOTH[1]],
            {},
            "replicas of east is True, not an integer from",
        ),
        ("replicas", [BOTH[0], {"name": "west", "replicas": 10**12}], {}, "replicas of west is 1000000000000, not an"),
        (
            "replicas",
            [BOTH[0], {"name": "west", "replicas": 3}],
            {},
            "replicas add up to 5, with unplaced 0, not to the 6",
        ),
        ("replicas", BOTH, {"unplaced": 1}, "replicas add up to 6, with unplaced 1, not to the 6 that are wanted"),
        ("replicas", BOTH, {"unplaced": -1}, "unplaced is -1, not an integer from 0"),
    ],
)
def test_an_invalid_response_names_the_field(point: str, clusters: Any, more: dict[str, Any], reason: str) -> None:
    assert reason in reason_of(answer(point, clusters, **more)[0])


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (PluginResponse(0, error="refused"), "request failed: refused"),
        (PluginResponse(503, b"busy"), "unexpected status code: 503, body: busy"),
        (PluginResponse(200, b"<html>"), "the response is not JSON"),
        (PluginResponse(200, b"[" * 100_000), "the response is not JSON"),
        (PluginResponse(200, b'{"score": NaN}'), "the response is not JSON"),
        (PluginResponse(200, b"[]"), "the response is not a JSON object"),
        (PluginResponse(200, b'{"apiVersion":' + b"[" * 1000 + b"]" * 1000 + b"}"), "apiVersion is a list, not"),
    ],
)
def test_a_missing_response_is_reported(response: PluginResponse, reason: str) -> None:
    for point in POINTS:
        assert reason in reason_of(finish(start(point)[0], response))


def test_texts_are_cut_and_cleaned() -> None:
    shouting = ["\x1b[31mred\u202e\n" + "x" * 1000] * 50
    statuses, _ = answer("filter", [{"name": "east", "selected": False, "reasons": shouting}, GOOD["filter"][1]])
    assert len(statuses[0].reasons) == REASONS_MAX
    assert all(reason.isprintable() and len(reason) <= REASON_CHARS_MAX for reason in statuses[0].reasons)


def test_a_point_without_a_path_fails() -> None:
    bare = Webhook(WebhookOptions("p", "v1beta1"))
    with pytest.raises(StopIteration) as stop:
        next(bare.filter_clusters(UNIT, [EAST], CycleState(NOW)))
    assert reason_of(stop.value.value) == "the configuration has no filterPath"


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
an_entry = st.fixed_dictionaries(
    {"name": st.sampled_from(["east", "west", "mars"]) | anything},
    optional={"selected": anything, "score": anything, "replicas": anything, "reasons": anything},
)


@examples(200)
@given(point=st.sampled_from(POINTS), clusters=st.lists(an_entry, max_size=3) | anything, unplaced=anything)
def test_every_response_is_a_failure_or_a_valid_result(point: str, clusters: Any, unplaced: Any) -> None:
    """Every response yields a failure or a result that is valid for the extension point."""
    result, _ = answer(point, clusters, unplaced=unplaced)
    if isinstance(result, Status):
        assert result.code is Code.ERROR
    elif point == "filter":
        assert len(result) == 2
    elif point == "score":
        assert all(type(score) is int and 0 <= score <= 100 for score in result)
    elif point == "select":
        assert len({entry.cluster.name for entry in result}) == len(result)
    else:
        assert set(result.replicas) == {"east", "west"}
        assert sum(result.replicas.values()) <= 6


def test_requests_do_not_show_credentials() -> None:
    assert "key_data" not in repr(PluginRequest("http://p", b"").tls)


def test_without_a_number_of_replicas_none_may_be_placed() -> None:
    unit = replace(UNIT, desired_replicas=None)
    none = [{"name": "east", "replicas": 0}, {"name": "west", "replicas": 0}]
    division, _ = answer("replicas", none, unit)
    assert isinstance(division, Division)
    assert division.replicas == {"east": 0, "west": 0}
    assert "add up to 6, with unplaced 0, not to the 0 that are wanted" in reason_of(answer("replicas", BOTH, unit)[0])
