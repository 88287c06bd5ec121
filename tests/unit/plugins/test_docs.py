"""The code of docs/plugins.md runs, in order and in one namespace; its manifests and JSON are valid."""

import json
import re
import tomllib
from typing import Any

import pytest
import yaml
from tests.support.vectors import ROOT
from tools.definitions import KINDS

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.limits import find_violation
from federation.scheduling.framework.registry import GROUP
from federation.scheduling.framework.testing import DEPLOYMENT, NOW, a_divided_unit
from federation.scheduling.framework.types import ClusterScore, PluginResponse
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.webhooks.configuration import POINTS, compile_webhook
from federation.scheduling.webhooks.v1beta1 import Webhook

GUIDE = (ROOT / "docs" / "plugins.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_code_of_the_guide_runs() -> None:
    namespace: dict[str, object] = {"__name__": "guide"}
    assert len(blocks("python")) == 5
    for block in blocks("python"):
        exec(compile(block, "docs/plugins.md", "exec"), namespace)  # the guide is ours


def test_the_manifests_of_the_guide_are_valid() -> None:
    models: dict[str, Any] = {kind.DEFINITION.resource.kind: kind for kind in KINDS}
    manifests = [manifest for block in blocks("yaml") for manifest in yaml.safe_load_all(block)]
    assert len(manifests) == 5
    for manifest in manifests:
        models[manifest["kind"]].model_validate(manifest)
    configurations = [m for m in manifests if m["kind"] == "SchedulerPluginWebhookConfiguration"]
    assert [compile_webhook(manifest).is_ignorable for manifest in configurations] == [True]
    (metadata,) = blocks("toml")
    assert GROUP in tomllib.loads(metadata)["project"]["entry-points"]


def test_the_files_that_the_guide_names_exist() -> None:
    for link in re.findall(r"\]\(\.\./([^)]+)\)", GUIDE):
        assert (ROOT / link).exists(), link


REQUEST, *RESPONSES = (json.loads(block) for block in blocks("json"))
UNIT = a_divided_unit(
    10,
    gvk=DEPLOYMENT,
    namespace="shop",
    name="web",
    labels={"team": "red"},
    request={"cpu": 250, "memory": 2**29},
    current={"east": 4, "west": 4},
    max_replicas={"west": 4},
)
CLUSTERS = [
    to_cluster(
        {"metadata": {"name": listed["name"], "labels": listed["labels"]}, "status": {"resources": listed["resources"]}}
    )
    for listed in REQUEST["clusters"]
]
CONFIGURATION: Any = {
    "metadata": {"name": "p"},
    "spec": {
        "payloadVersions": ["v1beta1"],
        "urlPrefix": "http://p",
        **{f"{point}Path": point for point in POINTS},
        "fields": {"unit": ["labels", "resourceRequest", "current"], "cluster": ["labels", "resources"]},
    },
}


def send(point: str) -> tuple[Any, dict[str, Any], CycleState]:
    webhook, state = Webhook(compile_webhook(CONFIGURATION)), CycleState(NOW)
    run: Any = {
        "filter": lambda: webhook.filter_clusters(UNIT, CLUSTERS, state),
        "score": lambda: webhook.score_clusters(UNIT, CLUSTERS, state),
        "select": lambda: webhook.select_clusters(UNIT, [ClusterScore(cluster, 1) for cluster in CLUSTERS], state),
        "replicas": lambda: webhook.replicas_of_clusters(UNIT, CLUSTERS, state),
    }[point]()
    (request,) = next(run)
    return run, json.loads(request.body), state


def result_of(point: str, response: dict[str, Any]) -> Any:
    run, body, _ = send(point)
    with pytest.raises(StopIteration) as stop:
        run.send([PluginResponse(200, json.dumps({**response, "uid": body["uid"]}).encode())])
    return stop.value.value


def test_the_request_of_the_guide_is_the_request_that_is_sent() -> None:
    _, body, _ = send("replicas")
    assert body == {**REQUEST, "uid": body["uid"]}
    assert list(body["unit"]) == list(REQUEST["unit"])


def test_the_responses_of_the_guide_are_accepted() -> None:
    assert {response["uid"] for response in RESPONSES} == {REQUEST["uid"]}
    filtered, scored, selected, divided, failed = RESPONSES
    assert [status.is_success for status in result_of("filter", filtered)] == [True, False]
    assert result_of("score", scored) == [100, 45]
    assert [entry.cluster.name for entry in result_of("select", selected)] == ["west", "east"]
    assert result_of("replicas", divided).replicas == {"east": 5, "west": 4}
    assert find_violation(UNIT, CLUSTERS, result_of("replicas", divided).replicas) == ""
    assert result_of("score", failed).reasons == ("the price list is older than a day",)


def test_the_plugin_of_the_guide_responds() -> None:
    namespace: dict[str, Any] = {}
    exec(compile(blocks("python")[-1], "docs/plugins.md", "exec"), namespace)
    _, body, _ = send("score")
    assert result_of("score", namespace["respond"](body)) == [100, 0]
