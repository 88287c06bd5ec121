"""KubeAdmiral's protocol: requests byte by byte, and responses parsed as leniently as its Go client does."""

from typing import Any

import orjson
import pytest

from federation.api.selectors import compile_cluster_terms
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.testing import NOW, a_cluster, a_unit
from federation.scheduling.framework.types import (
    SUCCESS,
    ClusterScore,
    GroupVersionKind,
    PluginResponse,
    SchedulingMode,
    Toleration,
)
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.webhooks.configuration import WebhookOptions
from federation.scheduling.webhooks.v1alpha1 import Webhook
from federation.scheduling.webhooks.v1alpha1payload import cluster_bodies, unit_payload

URLS = {point: f"http://p/{point}" for point in ("filter", "score", "select")}
WEBHOOK = Webhook(WebhookOptions("p", urls=URLS))
EAST, WEST = a_cluster("east").built(), a_cluster("west").built()

FULL = (
    b'{"apiVersion":"apps/v1","kind":"Deployment","resource":"deployments","namespace":"shop","name":"web",'
    b'"labels":{"app":"web","team":"red"},"annotations":{"a":"1","b":"2"},"schedulingMode":"Divide",'
    b'"desiredReplicas":6,"resourceRequest":{"cpu":"250m","ephemeral-storage":"0","memory":"1Gi","nvidia.com/gpu":"1"},'
    b'"currentClusters":["east","west"],"currentReplicaDistribution":{"east":4,"west":0},'
    b'"clusterSelector":{"region":"eu"},'
    b'"clusterAffinity":[{"matchExpressions":[{"key":"gpu","operator":"Exists","values":null}]}],'
    b'"tolerations":[{"key":"dedicated","operator":"Exists"},'
    b'{"key":"a","value":"b","effect":"NoExecute","tolerationSeconds":0}],"maxClusters":2,'
    b'"placements":[{"cluster":"east","preferences":{"minReplicas":1,"maxReplicas":5,"weight":0}},'
    b'{"cluster":"west","preferences":{}}]}'
)
LEAST = (
    b'{"apiVersion":"v1","kind":"ConfigMap","resource":"configmaps","name":"c","schedulingMode":"Duplicate",'
    b'"resourceRequest":{"cpu":"0","ephemeral-storage":"0","memory":"0"},"currentClusters":[]}'
)


def test_the_unit_has_the_order_and_form_of_kubeadmirals_types() -> None:
    unit = a_unit(
        gvk=GroupVersionKind("apps", "v1", "Deployment"),
        plural="deployments",
        namespace="shop",
        name="web",
        labels={"team": "red", "app": "web"},
        annotations={"b": "2", "a": "1"},
        mode=SchedulingMode.DIVIDE,
        desired_replicas=6,
        request={"memory": 2**30, "cpu": 250, "nvidia.com/gpu": 1},
        current={"west": None, "east": 4},
        cluster_selector=(("region", "eu"),),
        required=compile_cluster_terms([{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]),
        tolerations=(Toleration("dedicated", "Exists"), Toleration("a", "", "b", "NoExecute", 0)),
        max_clusters=2,
        cluster_names=frozenset({"west", "east"}),
        min_replicas={"east": 1, "west": 0},
        max_replicas={"east": 5},
        weights={"east": 0},
    )
    assert orjson.dumps(unit_payload(unit)) == FULL


def test_only_fields_with_omitempty_are_omitted() -> None:
    unit = a_unit(gvk=GroupVersionKind("", "v1", "ConfigMap"), plural="configmaps", namespace="", name="c")
    assert orjson.dumps(unit_payload(unit)) == LEAST
    source = {"apiVersion": "x", "kind": "FederatedCluster", "metadata": {"name": "east"}, "spec": {"insecure": True}}
    (body,) = cluster_bodies(unit, [to_cluster(source)])
    assert body == b'{"schedulingUnit":' + LEAST + b',"cluster":' + orjson.dumps(source) + b"}"


def answered(point: str, *bodies: Any) -> Any:
    state, unit = CycleState(NOW), a_unit()
    if point == "select":
        asking: Any = WEBHOOK.select_clusters(unit, [ClusterScore(EAST, 1), ClusterScore(WEST, 2)], state)
    else:
        asking = getattr(WEBHOOK, f"{point}_clusters")(unit, [EAST, WEST], state)
    requests = next(asking)
    assert {request.plugin for request in requests} == {"p"}
    assert {request.retries_max for request in requests} == {0}
    with pytest.raises(StopIteration) as stop:
        asking.send([PluginResponse(200, orjson.dumps(body)) for body in bodies])
    return stop.value.value


def test_field_names_count_in_any_case_and_absent_means_zero() -> None:
    filtered = answered("filter", {"Selected": True, "Error": ""}, {})
    assert filtered[0] == SUCCESS
    assert filtered[1].reasons == ("cluster(s) were filtered by webhookPlugin(p)",)
    assert answered("score", {"SCORE": 3}, {"score": None}) == [3, 0]


def test_negative_scores_keep_their_order() -> None:
    raw = answered("score", {"score": -10}, {"score": 10})
    assert raw == [-10, 10]
    assert list(WEBHOOK.normalise(a_unit(), raw, None)) == [0, 100]


@pytest.mark.parametrize("score", [2**63, 1.0, True, "7", 1e40])
def test_a_score_that_is_no_64_bit_integer_fails(score: Any) -> None:
    assert not answered("score", {"score": 1}, {"score": score}).is_success


def test_a_cluster_that_is_selected_twice_counts_once() -> None:
    selected = answered("select", {"selectedClusterNames": ["west", "east", "west"]})
    assert [entry.cluster.name for entry in selected] == ["west", "east"]
    unknown = 'cluster "mars" was not in the request sent to the webhook'
    assert answered("select", {"selectedClusterNames": ["mars"]}).reasons == (unknown,)


def test_a_point_without_a_path_is_not_supported() -> None:
    bare = Webhook(WebhookOptions("p"))
    for asking in (bare.filter_clusters(a_unit(), [EAST], None), bare.score_clusters(a_unit(), [EAST], None)):
        with pytest.raises(StopIteration) as stop:
            next(asking)
        result = stop.value.value
        assert "is not supported by the webhook" in (result[0] if isinstance(result, list) else result).reasons[0]
