"""The status of a federated object in KubeFed's form."""

from datetime import UTC, datetime
from typing import Any

from federation.apimachinery.resources import Object
from federation.features.kubefed.rules import Problem, plan_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FEDERATED: Object = {"metadata": {"name": "web", "generation": 3}}
PROPAGATED = {"type": "Propagated", "status": "True"}


def propagated(*conditions: Object, **clusters: str) -> Object:
    entries = [{"cluster": name, "status": status} for name, status in clusters.items()]
    return {"status": {"clusters": entries, "conditions": list(conditions)}}


def condition(status: Any) -> tuple[str, str, str]:
    (found,) = status["conditions"]
    return found["status"], found["reason"], found.get("message", "")


def test_a_cluster_that_is_as_desired_has_no_status() -> None:
    status = plan_status(FEDERATED, propagated(PROPAGATED, east="OK", west="ClusterNotReady"), None, NOW)
    assert status is not None
    assert status["clusters"] == [{"name": "east"}, {"name": "west", "status": "ClusterNotReady"}]
    assert status["observedGeneration"] == 3
    assert condition(status) == ("True", "", "")


def test_an_equal_status_is_not_written_again() -> None:
    status = plan_status(FEDERATED, propagated(PROPAGATED, east="OK"), None, NOW)
    later = datetime(2026, 1, 2, tzinfo=UTC)
    assert plan_status({**FEDERATED, "status": status}, propagated(PROPAGATED, east="OK"), None, later) is None
    newer = {"metadata": {"name": "web", "generation": 4}, "status": status}
    assert plan_status(newer, propagated(PROPAGATED, east="OK"), None, later) is not None


def test_what_is_wrong_is_the_reason() -> None:
    waiting = {"type": "Propagated", "status": "False", "message": "east waits"}
    assert condition(plan_status(FEDERATED, propagated(waiting), None, NOW)) == ("False", "CheckClusters", "east waits")
    assert condition(plan_status(FEDERATED, None, None, NOW)) == ("False", "CheckClusters", "")
    nowhere = {"type": "Scheduled", "status": "False", "reason": "NoFeasibleCluster"}
    found = condition(plan_status(FEDERATED, propagated(PROPAGATED, nowhere), None, NOW))
    assert found == ("False", "ComputePlacementFailed", "NoFeasibleCluster")
    refused = Problem("TemplateRefused", "spec.selector is missing")
    assert condition(plan_status(FEDERATED, None, refused, NOW)) == ("False", "TemplateRefused", refused.message)
