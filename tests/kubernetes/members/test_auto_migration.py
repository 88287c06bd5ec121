"""Auto-migration with the real scheduler: replicas that it finds no node for move to another member, and return."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, apply, real_federation
from tests.support.federation import eventually

pytestmark = pytest.mark.real_time
NODES = ("node-1", "node-2")


@pytest.fixture
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip(REGIONS, real, strict=True))
    with real_federation(tmp_path_factory.mktemp("migration"), members) as running:
        set_cpu(running, "member-3", "1")
        try:
            yield running
        finally:
            set_cpu(running, "member-3", "64")


def set_cpu(fed: RealFederation, member: str, cpu: str) -> None:
    """Give each node of a member this much CPU."""
    for node in NODES:
        patch = json.dumps({"status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}})
        fed.member(member)("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)


def replicas(fed: RealFederation) -> dict[str, int]:
    found = {}
    for name in fed.members:
        text = fed.member(name)("get", "deploy", "web", "--ignore-not-found", "-o", "jsonpath={.spec.replicas}")
        if text:
            found[name] = int(text)
    return found


def migration_info(fed: RealFederation) -> str:
    """Return the estimates of the auto-migration controller."""
    path = r"jsonpath={.metadata.annotations.kubeadmiral\.io/auto-migration-info}"
    return fed.kubectl("get", "fo", "web-deployments.apps", "-o", path)


def test_a_replica_that_fits_no_node_moves_and_returns_when_it_fits(fed: RealFederation) -> None:
    """Two nodes of one CPU have room for three pods of 0.6 CPUs in total, but each node has room for one only."""
    container = {"name": "web", "image": "nginx:1.27", "resources": {"requests": {"cpu": "600m"}}}
    deployment: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 9,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    policy: dict[str, Any] = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "even", "namespace": "default"},
        "spec": {
            "schedulingMode": "Divide",
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": [{"cluster": name, "preferences": {"weight": 1}} for name in fed.members],
            "autoMigration": {
                "when": {"podUnschedulableFor": "3s"},
                "failback": {"stableFor": "3s", "batchSize": 1},
            },
        },
    }
    apply(fed.kubectl, policy, deployment)
    even = dict.fromkeys(fed.members, 3)
    eventually(lambda: replicas(fed), lambda seen: seen == even, what="an even division")
    path = "{.items[*].status.conditions[?(@.type=='PodScheduled')].message}"
    pending = ("get", "pods", "--field-selector", "status.phase=Pending", "-o", f"jsonpath={path}")
    message = eventually(lambda: fed.member("member-3")(*pending), bool, what="a pending pod")
    assert "2 Insufficient cpu" in message
    eventually(lambda: replicas(fed), lambda seen: seen.get("member-3") == 2, timeout_s=60, what="the migration")
    fed.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    moved = replicas(fed)
    assert sorted((moved["member-1"], moved["member-2"])) == [3, 4]

    set_cpu(fed, "member-3", "64")
    eventually(
        lambda: (replicas(fed), migration_info(fed)), lambda seen: seen[0] == even, timeout_s=90, what="the return"
    )
    fed.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
