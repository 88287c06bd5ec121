"""Events of pods and workloads that lead to a reconcile."""

from typing import Any

import pytest
from tests.support.spreads import REPLICA_SET, a_pod, a_spread

from federation.features.workloadspread.rules.watchevents import (
    has_workload_changed,
    is_adoptable,
    spread_of_pod,
    spread_of_workload,
)

RUNNING = a_pod("pod-0", "a", phase="Running")
SCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def _versioned(version: str) -> dict[str, Any]:
    labels = {"labels": {"pod-template-hash": version}, "ownerReferences": [REPLICA_SET]}
    return {**RUNNING, "metadata": RUNNING["metadata"] | labels}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (None, RUNNING, "ws"),
        (RUNNING, None, "ws"),
        (RUNNING, RUNNING, None),
        (RUNNING, {**RUNNING, "status": {"phase": "Failed"}}, "ws"),
        (RUNNING, {**RUNNING, "status": {"phase": "Running", "conditions": [SCHEDULED]}}, "ws"),
        (_versioned("v1"), _versioned("v2"), "ws"),
        (None, None, None),
        (None, a_pod("pod-0"), None),
    ],
    ids=["created", "deleted", "same", "ended", "unschedulable", "new version", "nothing", "unmanaged"],
)
def test_changes_of_managed_pods_count(old: Any, new: Any, found: str | None) -> None:
    assert spread_of_pod(old, new) == found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (a_pod("pod-0"), a_pod("pod-0", node="node-1"), True),
        (None, a_pod("pod-0", node="node-1"), True),
        (a_pod("pod-0", node="node-1"), a_pod("pod-0", node="node-1"), False),
        (None, a_pod("pod-0"), False),
        (None, a_pod("pod-0", "a", node="node-1"), False),
        (None, a_pod("pod-0", node="node-1", phase="Failed"), False),
        (a_pod("pod-0"), None, False),
    ],
    ids=["assigned", "created with node", "same", "no node", "managed", "ended", "deleted"],
)
def test_a_pod_can_be_adopted_when_it_gets_its_node(old: Any, new: Any, expected: bool) -> None:
    assert is_adoptable(old, new) is expected


def test_a_workload_concerns_the_living_spread_with_its_group_kind_and_name() -> None:
    spread = a_spread([{"name": "a"}], "Deployment")
    dying = {**spread, "metadata": {"name": "old", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    workload = {"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": {"name": "web"}}
    assert spread_of_workload([dying, spread], workload) is spread
    assert spread_of_workload([dying, spread], {**workload, "metadata": {"name": "db"}}) is None
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1"}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    assert spread_of_workload([spread], replica_set) is None
    owned = {**replica_set, "metadata": {"name": "web-1", "ownerReferences": [owner]}}
    assert spread_of_workload([dying, spread], owned) is spread
    assert has_workload_changed(None, workload)
    assert has_workload_changed(workload, None)


def _deployment(revision: str, replicas: int = 1) -> dict[str, Any]:
    annotations = {"deployment.kubernetes.io/revision": revision}
    return {"kind": "Deployment", "metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}


def _clone_set(update: str, current: str) -> dict[str, Any]:
    return {"kind": "CloneSet", "status": {"updateRevision": update, "currentRevision": current}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (_deployment("1"), _deployment("1"), False),
        (_deployment("1"), _deployment("2"), True),
        (_deployment("1"), _deployment("1", 2), True),
        (_clone_set("a", "a"), _clone_set("a", "a"), False),
        (_clone_set("a", "a"), _clone_set("b", "a"), True),
        ({}, {"metadata": None, "spec": None}, False),
    ],
)
def test_changes_of_replicas_and_revisions_of_workloads_count(old: Any, new: Any, expected: bool) -> None:
    assert has_workload_changed(old, new) is expected
