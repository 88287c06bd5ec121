"""The HTTP plugin protocol v1alpha1 against the vectors: what is sent, and what an answer means."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from tests.support.scheduling import make_unit
from tests.support.vectors import each_case, filled, load

from federation.apimachinery import quantity
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.testing import NOW, a_cluster, a_unit
from federation.scheduling.framework.types import (
    SUCCESS,
    ClusterScore,
    PluginResponse,
    Status,
)
from federation.scheduling.webhooks.configuration import compile_webhook
from federation.scheduling.webhooks.v1alpha1 import HEADERS, Webhook
from federation.scheduling.webhooks.v1alpha1payload import unit_payload

WEBHOOK = Webhook(
    compile_webhook(
        {
            "metadata": {"name": "test"},
            "spec": {
                "payloadVersions": ["v9", "v1alpha1"],
                "urlPrefix": "http://plugin/base/",
                "filterPath": "/filter",
                "scorePath": "score",
                "selectPath": "/select",
            },
        }
    )
)


def without_nothing(expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Go writes of the fields: empty optional ones are left out, `currentClusters` never is."""
    said = {key: value for key, value in expected.items() if value not in (None, [], {})}
    return {"currentClusters": []} | said


@each_case(load("webhook_adapter"))
def test_the_unit_has_the_form_that_webhooks_expect(case: dict[str, Any]) -> None:
    unit = make_unit(case["input"].get("su") or {})
    assert unit is not None
    payload = orjson.loads(orjson.dumps(unit_payload(unit)))
    expected = without_nothing(case["expected"].get("schedulingUnit") or {})
    expected["currentClusters"].sort()
    expected["placements"] = sorted(expected.get("placements", ()), key=lambda each: each["cluster"])
    for placement in expected["placements"]:
        said = (placement.get("preferences") or {}).items()
        counting = {field: value for field, value in said if value is not None and (field, value) != ("minReplicas", 0)}
        placement["preferences"] = {field: value for field, value in counting.items() if field != "priority"}
    payload.setdefault("placements", [])
    for quantities in (payload["resourceRequest"], expected.setdefault("resourceRequest", {})):
        quantities.update({name: quantity.parse(text).nanos for name, text in quantities.items()})
    assert payload == expected


@each_case(load("webhook_plugin"))
def test_an_answer_means_what_the_protocol_says(case: dict[str, Any]) -> None:
    given = filled(case["input"], response={}, clusterScores=[])
    expected, answer = case["expected"], given["response"]
    body = "" if answer.get("body") is None else answer["body"]
    response = PluginResponse(
        answer.get("status") or 0,
        body.encode() if isinstance(body, str) else orjson.dumps(body),
        answer.get("transportError") or "",
    )
    state, unit = CycleState(NOW), a_unit()
    if given["op"] == "select":
        scored = [ClusterScore(a_cluster(s["cluster"]).built(), s.get("score") or 0) for s in given["clusterScores"]]
        asking: Any = WEBHOOK.select_clusters(unit, scored, state)
    else:
        ask = WEBHOOK.filter_clusters if given["op"] == "filter" else WEBHOOK.score_clusters
        asking = ask(unit, [a_cluster(given.get("cluster") or "cluster").built()], state)
    (request,) = next(asking)
    assert request.url == f"http://plugin/base/{given['op']}"
    assert request.headers == HEADERS
    with pytest.raises(StopIteration) as stop:
        asking.send([response])
    result = stop.value.value
    if isinstance(result, list) and given["op"] == "filter":
        (result,) = result
    message = expected.get("message")
    if expected["code"] != "Success":
        assert isinstance(result, Status)
        assert result.code == expected["code"]
        assert not message or result.reasons == (message,)
    elif given["op"] == "filter":
        assert result == SUCCESS
    elif given["op"] == "score":
        assert result == [expected.get("score") or 0]
    else:
        assert not isinstance(result, Status)
        assert [entry.cluster.name for entry in result] == (expected.get("selected") or [])
