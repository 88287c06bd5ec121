"""Attack: a tenant writes a rule for clusters, makes clusters look full to others, or holds what all share.

A rule must not make the host call an address that it must not reach, either.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.tenants import OURS, tenants
from tests.unit.plugins.test_plugins import make

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.features.clusterrules.rules.matching import Verdict, compile_matching
from federation.planning.clusters.clusterresources import Collector
from federation.planning.failover.clusterbudgets import (
    DisruptionBudgets,
    budgeted_clusters,
    disruptions_of,
    find_blocked,
)
from federation.scheduling.framework.testing import a_cluster, a_unit, run_score

POLICIES, REMEDIES = f"{OURS}/clustertaintpolicies", f"{OURS}/remedies"
TAINT = {"key": "a", "effect": "NoSchedule"}


def a_policy(**spec: Any) -> Object:
    return {"metadata": {"name": "a"}, "kind": "ClusterTaintPolicy", "spec": {"taints": [TAINT], **spec}}


def a_remedy(*actions: Object) -> Object:
    return {"metadata": {"name": "a"}, "kind": "Remedy", "spec": {"actions": list(actions)}}


async def test_a_tenant_writes_no_rule(tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        root, editor = await host.root(), await host.client("editor")
        for path, body in ((POLICIES, a_policy()), (REMEDIES, a_remedy({"type": "Cordon"}))):
            manifest = {"apiVersion": OURS.removeprefix("/apis/"), **body}
            assert (await editor.post(path, json=manifest)).status_code == 403
            assert (await root.post(path, json=manifest)).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (a_policy(taints=[{**TAINT, "key": "federation.kubeadmiral.io/drain"}]), "spec.taints[0].key"),
        (a_policy(taints=[TAINT] * 9), "spec.taints"),
        (a_policy(when=[{}]), "spec.when[0]"),
        (a_policy(when=[{"metrics": [{"measure": "Free", "below": 1}]}]), "spec.when[0].metrics[0].resource"),
        (a_policy(when=[{"metrics": [{"measure": "Nodes", "below": 1, "above": 2}]}]), "give one of above and below"),
        (a_policy(when=[{"metrics": [{"measure": "Nodes", "below": "10%"}]}]), "spec.when[0]"),
        (a_policy(holdSeconds=-1), "spec.holdSeconds"),
        (a_policy(maxClusters="half"), "spec.maxClusters"),
        (a_remedy({"type": "Taint"}), "spec.actions[0].taint"),
        (a_remedy({"type": "Cordon", "taint": TAINT}), "spec.actions[0].taint"),
        (a_remedy({"type": "Webhook", "webhook": {"url": "file:///etc/passwd"}}), "spec.actions[0].webhook.url"),
        (
            a_remedy({"type": "Taint", "taint": {**TAINT, "key": "federation.kubeadmiral.io/x"}}),
            "spec.actions[0].taint.key",
        ),
    ],
)
async def test_a_rule_that_cannot_be_read_or_takes_a_taint_of_ours_is_refused(
    tmp_path: Path, body: Object, field: str
) -> None:
    path = REMEDIES if body["kind"] == "Remedy" else POLICIES
    async with tenants(tmp_path) as host:
        answer = await (await host.root()).post(path, json={"apiVersion": OURS.removeprefix("/apis/"), **body})
    assert answer.status_code == 422, answer.text
    assert field in answer.text


async def test_a_webhook_reaches_no_address_of_the_host() -> None:
    client = WebhookClient(WebhookClientOptions(is_public_only=True))
    try:
        answer = await client.post(Connection("http://127.0.0.1:1/hook"), b"{}", {}, timeout_s=5)
    finally:
        await client.close()
    assert answer.status == 0
    assert not answer.is_listed


NODES, CORES, USED = 4, 24, 20
"""Nodes of the cluster, cores of each, and cores that pods of others use."""
RULE = {"when": [{"metrics": [{"measure": "Free", "resource": "cpu", "below": "50%"}]}]}
WAITS = {"when": [{"metrics": [{"measure": "Waiting", "resource": "cpu", "above": "30%"}]}]}


def a_pod(cpu: str, node: str = "", namespace: str = "mine") -> dict[str, Any]:
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}], **({"nodeName": node} if node else {})}
    return {"metadata": {"namespace": namespace}, "spec": spec, "status": {"phase": "Pending"}}


def larger_than_a_node(collector: Collector) -> None:
    collector.set_pod("p", a_pod("10000"))


def many_that_wait(collector: Collector) -> None:
    for number in range(1000):
        collector.set_pod(number, a_pod("10"))


def many_that_wait_and_are_only_counted(collector: Collector) -> None:
    for _ in range(1000):
        collector.count_pod(a_pod("10"), 1)


def on_a_node_that_does_not_exist(collector: Collector) -> None:
    collector.set_pod("p", a_pod("10000", "nowhere"))


def more_than_its_node_has(collector: Collector) -> None:
    collector.set_pod("p", a_pod("10000", "node-0"))


ATTACKS = (
    larger_than_a_node,
    many_that_wait,
    many_that_wait_and_are_only_counted,
    on_a_node_that_does_not_exist,
    more_than_its_node_has,
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_one_namespace_does_not_decide_how_full_a_cluster_looks(attack: Callable[[Collector], None]) -> None:
    collector = Collector()
    for number in range(NODES):
        allocatable = {"cpu": str(CORES), "pods": "110"}
        collector.set_node(f"node-{number}", {"metadata": {}, "status": {"allocatable": allocatable}})
    collector.set_pod("other", a_pod(str(USED), "node-1", "theirs"))
    attack(collector)
    status = collector.resources().to_status()
    cluster = {"metadata": {"name": "east"}, "status": {"resources": status}}
    assert compile_matching(WAITS).judge(cluster) is not Verdict.HOLDS
    assert int(status["available"]["cpu"]) >= NODES * CORES * 3 / 4 - USED
    assert compile_matching(RULE).judge(cluster) is not Verdict.HOLDS
    cpu, free = status["allocatable"]["cpu"], status["available"]["cpu"]
    seen = a_cluster().offering(cpu=cpu, memory="1Gi").free(cpu=free).built()
    (score,) = run_score(make("ClusterResourcesLeastAllocated"), a_unit(request={"cpu": 1000}), [seen])
    assert score > 70


def test_namespaces_that_wait_together_are_seen_and_what_waits_in_one_too() -> None:
    collector = Collector()
    collector.set_node("node", {"metadata": {}, "status": {"allocatable": {"cpu": "24", "pods": "110"}}})
    collector.set_pod("p", a_pod("4", namespace="a"))
    assert collector.resources().to_status()["waiting"] == {"cpu": "4", "pods": "1"}
    for namespace in "bcd":
        collector.set_pod(namespace, a_pod("20", namespace=namespace))
    status = collector.resources().to_status()
    assert status["waiting"] == {"cpu": "22", "pods": "4"}
    assert status["available"]["cpu"] == "2"
    for key in ("p", *"bcd"):
        collector.set_pod(key, None)
    assert collector.resources().to_status()["available"]["cpu"] == "24"


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BUDGET: Object = {"metadata": {"name": "all"}, "spec": {"maxUnavailable": 1}}


def a_ready_cluster(name: str) -> Object:
    conditions = [
        {"type": "Joined", "status": "True"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def test_a_rollout_that_is_paused_holds_neither_a_drain_nor_the_wave_of_others_for_ever() -> None:
    clusters = [a_ready_cluster("east"), a_ready_cluster("west")]

    def ask(age_s: float) -> tuple[bool, bool]:
        since = to_rfc3339(NOW - timedelta(seconds=age_s))
        status = {"clusters": [{"name": "east", "disruptedSince": since}]}
        rollout = {"spec": {"paused": True}, "status": status}
        views = budgeted_clusters(clusters, [disruptions_of(rollout)], NOW)
        drain = find_blocked("west", views, [BUDGET], NOW)
        wave = DisruptionBudgets(views, [BUDGET], NOW).find_blocked("west")
        if wave is not None:
            assert wave.until == NOW + timedelta(seconds=3600 - age_s), "it is asked again when the hour is over"
        return drain is None, wave is None

    assert ask(60) == (False, False)
    assert ask(3599) == (False, False)
    assert ask(3600) == (True, True)
