"""examples/gitops: the health checks for Argo CD run in Lua 5.1, the version that Argo CD embeds."""

from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime  # type: ignore[import-untyped]  # it has no stubs
from tests.support.sources import ROOT

FOLDER = ROOT / "examples" / "gitops"
PREFIX = "resource.customizations.health.core.kubeadmiral.io_"


def condition(type_: str, status: str) -> dict[str, str]:
    return {"type": type_, "status": status, "message": f"{type_} is {status}"}


def health(kind: str, status: dict[str, Any] | None) -> tuple[str, str]:
    """Return the health and the message that Argo CD shows for an object with this status."""
    data = yaml.safe_load((FOLDER / "argocd-cm.yaml").read_text())["data"]
    lua = LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = lua.table_from({"kind": kind, **({} if status is None else {"status": status})}, recursive=True)
    found = lua.execute(data[f"{PREFIX}{kind}"])
    return found["status"], found["message"]


def rollout(**conditions: str) -> dict[str, Any]:
    return {"conditions": [condition(type_, status) for type_, status in conditions.items()]}


def propagated(status: str, *clusters: str) -> dict[str, Any]:
    listed = [{"cluster": f"member-{number}", "status": each} for number, each in enumerate(clusters, 1)]
    return {"conditions": [condition("Propagated", status)], "clusters": listed}


HELD = {
    "conditions": [condition("Propagated", "True"), {**condition("Scheduled", "False"), "reason": "Held"}],
    "clusters": [{"cluster": "member-1", "status": "OK"}],
}
NO_POLICY = {"conditions": [{**condition("Propagated", "False"), "reason": "NoPolicy"}]}


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        pytest.param("FederatedCluster", None, "Progressing", id="a cluster that was not probed yet"),
        pytest.param("FederatedCluster", rollout(Joined="True", Ready="True"), "Healthy", id="a ready cluster"),
        pytest.param("FederatedCluster", rollout(Joined="True", Ready="Unknown"), "Degraded", id="a lost cluster"),
        pytest.param("FederatedObject", None, "Progressing", id="a new federated object"),
        pytest.param("FederatedObject", propagated("True", "OK", "OK"), "Healthy", id="delivered everywhere"),
        pytest.param("FederatedObject", propagated("False"), "Progressing", id="placed nowhere yet"),
        pytest.param("FederatedObject", propagated("False", "OK", "PendingCreate"), "Progressing", id="on its way"),
        pytest.param("FederatedObject", propagated("False", "OK", "CreationFailed"), "Degraded", id="refused by one"),
        pytest.param(
            "FederatedObject",
            rollout(Propagated="True", FollowersDelivered="False"),
            "Degraded",
            id="with another object's data",
        ),
        pytest.param(
            "FederatedObject", rollout(Propagated="True", FollowersDelivered="True"), "Healthy", id="resolved"
        ),
        pytest.param("FederatedObject", HELD, "Suspended", id="held by the guard"),
        pytest.param("FederatedObject", NO_POLICY, "Healthy", id="without a policy it stays on the host"),
        pytest.param("FederatedRollout", None, "Healthy", id="a rollout that never began"),
        pytest.param("FederatedRollout", rollout(Progressing="True", Healthy="True"), "Progressing", id="a wave"),
        pytest.param("FederatedRollout", rollout(Progressing="True", Paused="True"), "Suspended", id="a pause"),
        pytest.param("FederatedRollout", rollout(Progressing="True", Healthy="False"), "Degraded", id="a failed gate"),
        pytest.param("FederatedRollout", rollout(RolledBack="True"), "Degraded", id="a rollback"),
        pytest.param("FederatedRollout", rollout(Progressing="False", Healthy="True"), "Healthy", id="a finished one"),
    ],
)
def test_argo_cd_shows_the_health_of_our_kinds(kind: str, status: dict[str, Any] | None, expected: str) -> None:
    assert health(kind, status)[0] == expected


def test_the_message_is_that_of_the_condition_that_decides() -> None:
    assert health("FederatedCluster", rollout(Ready="False")) == ("Degraded", "Ready is False")
    assert health("FederatedRollout", rollout(Progressing="True", Paused="True"))[1] == "Paused is True"
