"""Groups, workloads together, a freeze, and an application that fails over with its state, with real members."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import (
    RealFederation,
    a_labelled_policy,
    ready_in,
    real_federation,
    scheduled,
    until_ready_in,
)
from tests.support.federation import eventually
from tests.support.manifests import a_deployment

pytestmark = pytest.mark.real_time
OWN, RENTED = "member-1", "member-2"
STATE = "state.example.com/generation"
DRAINED = {"spec": {"taints": [{"key": "test", "effect": "NoExecute"}]}}


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip((OWN, RENTED), real, strict=False))
    with real_federation(tmp_path_factory.mktemp("relation"), members) as running:
        yield running


def taint(fed: RealFederation, member: str, body: dict[str, Any]) -> None:
    fed.kubectl("patch", "federatedcluster", member, "--type=merge", "-p", json.dumps(body))


def test_a_group_is_left_together_and_a_freeze_holds_the_way_back(fed: RealFederation) -> None:
    groups = [{"name": "own", "clusters": [OWN]}, {"name": "rented"}]
    together = {"required": [{"labelSelector": {"matchLabels": {"app": "web"}}}]}
    fed.kubectl.apply(
        a_labelled_policy("grouped", clusterGroups=groups),
        a_labelled_policy("beside", workloadAffinity=together, maxClusters=1),
        a_deployment("web", 2, policy="grouped"),
    )
    until_ready_in(fed, "web", OWN)
    fed.kubectl.apply(a_deployment("cache", 1, policy="beside"))
    until_ready_in(fed, "cache", OWN)

    taint(fed, OWN, DRAINED)
    until_ready_in(fed, "web", RENTED)
    until_ready_in(fed, "cache", RENTED)

    taint(fed, OWN, {"spec": {"taints": None}})
    now = datetime.now(UTC)
    times = {"start": now - timedelta(minutes=1), "end": now + timedelta(seconds=25)}
    window = {key: time.strftime("%Y-%m-%dT%H:%M:%SZ") for key, time in times.items()}
    kind = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "ChangeFreeze", "metadata": {"name": "sale"}}
    fed.kubectl.apply({**kind, "spec": {"reason": "the sale", "windows": [window]}})
    taint(fed, RENTED, DRAINED)
    held = eventually(
        lambda: scheduled(fed, "web"), lambda seen: seen.get("reason") == "Frozen", what="the freeze holds the move"
    )
    assert "ChangeFreeze sale holds until" in held["message"]
    assert ready_in(fed, "web") == [RENTED]
    assert "ChangeFreeze sale" in fed.fedctl("why", "deployment/web")
    until_ready_in(fed, "web", OWN)
    assert datetime.now(UTC) >= times["end"] - timedelta(seconds=1)
    until_ready_in(fed, "cache", OWN)
    taint(fed, RENTED, {"spec": {"taints": None}})
    fed.kubectl("delete", "changefreeze", "sale")


def test_an_unhealthy_application_moves_and_hands_its_state_over(fed: RealFederation) -> None:
    rules = [{"aliasLabelName": STATE, "jsonPath": "{.observedGeneration}"}]
    application = {"tolerationSeconds": 5, "statePreservation": {"rules": rules}}
    moving = a_labelled_policy(
        "moving", schedulingMode="Duplicate", maxClusters=1, failover={"application": application}
    )
    app = a_deployment("app", 1, policy="moving")
    fed.kubectl.apply(moving, app)
    [home] = eventually(lambda: ready_in(fed, "app"), bool, what="the application runs")
    record = r"jsonpath={.metadata.annotations.federation\.kubeadmiral\.io/application-failover}"
    eventually(
        lambda: fed.kubectl("get", "fo", "app-deployments.apps", "-o", record),
        lambda seen: "wasHealthy" in seen,
        what="known as healthy for a while",
    )
    elsewhere = RENTED if home == OWN else OWN

    pods = fed.member(home)("get", "pods", "-l", "app=app", "-o", "jsonpath={.items[*].metadata.name}").split()
    conditions = [{"type": each, "status": "False"} for each in ("Ready", "ContainersReady")]
    patch = json.dumps({"status": {"conditions": conditions}})
    for pod in pods:
        fed.member(home)("patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", patch)
    until_ready_in(fed, "app", elsewhere)
    copy = fed.in_members("deployments", "app")[elsewhere]
    assert copy["metadata"]["labels"][STATE] == "1", "the state of the old copy"
    eventually(lambda: list(fed.in_members("deployments", "app")), lambda seen: seen == [elsewhere], what="one copy")
