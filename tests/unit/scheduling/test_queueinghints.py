"""Queueing hints: changes declared by rejecting filters, and any change where none is declared."""

from datetime import timedelta
from typing import Any

import pytest

from federation.scheduling.engine import Decision, Engine
from federation.scheduling.framework.migrations import CustomMigration
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, changed_unit
from federation.scheduling.framework.types import (
    Cluster,
    ClusterChange,
    GroupVersionKind,
    PodSet,
    SchedulingUnit,
    Taint,
    pod_shape,
)
from federation.scheduling.queueinghints import QueueingHint, queueing_hint_for
from federation.scheduling.snapshot import Snapshot

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
ENGINE = Engine(load_plugins())
UNIT = SchedulingUnit(gvk=DEPLOYMENT, name="web")


def a_cluster(name: str = "east", **more: Any) -> Cluster:
    return Cluster(name, **{"api_types": frozenset((DEPLOYMENT,)), "is_ready": True, **more})


def hint(unit: SchedulingUnit, *clusters: Cluster) -> QueueingHint:
    decision: Decision = ENGINE.decide(unit, Snapshot(1, clusters), DEFAULT_PROFILE, now=NOW)
    assert not decision.is_success
    return queueing_hint_for(decision, ENGINE.framework(DEFAULT_PROFILE), NOW)


@pytest.mark.parametrize(
    ("unit", "cluster", "change"),
    [
        ({}, {"api_types": frozenset()}, ClusterChange.API_TYPES),
        ({}, {"is_ready": False}, ClusterChange.READINESS),
        ({}, {"is_terminating": True}, ClusterChange.TERMINATION),
        ({}, {"taints": (Taint("a", "", "NoSchedule"),)}, ClusterChange.TAINTS | ClusterChange.READINESS),
        ({"cluster_selector": (("a", "b"),)}, {}, ClusterChange.LABELS),
        ({"cluster_names": frozenset(("west",))}, {}, ClusterChange.NOTHING),
    ],
)
def test_the_hint_of_a_rejection_has_the_filters_changes(
    unit: dict[str, Any], cluster: dict[str, Any], change: ClusterChange
) -> None:
    found = hint(changed_unit(UNIT, **unit), a_cluster(**cluster))
    assert found.clusters == {ClusterChange.MEMBERSHIP | change: {"east"}}
    for one in ClusterChange.ANY:
        assert found.matches("east", one) == bool(one & (ClusterChange.MEMBERSHIP | change))
        assert found.matches("elsewhere", one)


def test_the_hint_has_the_end_of_a_migration() -> None:
    until = {"east": NOW + timedelta(hours=2), "west": NOW + timedelta(hours=1), "north": NOW - timedelta(hours=1)}
    unit = changed_unit(UNIT, custom_migration=CustomMigration({}, until))
    assert hint(unit, a_cluster(), a_cluster("west")).at == NOW + timedelta(hours=1)


def test_a_failure_after_the_filters_is_requeued_on_any_change() -> None:
    unit = changed_unit(UNIT, max_clusters=0)
    found = hint(unit, a_cluster(), a_cluster("west", is_ready=False))
    assert found.matches("east", ClusterChange.RESOURCES)
    assert not found.matches("west", ClusterChange.RESOURCES)


def test_a_gang_that_waits_for_recent_decisions_is_tried_again_without_a_report() -> None:
    pods = (PodSet("pods", 4, 4, pod_shape((("cpu", 1000),))),)
    cluster = a_cluster(allocatable={"cpu": 8000}, available={"cpu": 8000})
    assumed = {"east": {(("cpu", 1000),): 5}}
    waiting = hint(changed_unit(UNIT, is_gang=True, sets=pods, assumed=assumed), cluster)
    assert waiting.at == NOW + timedelta(seconds=30)
    assert waiting.matches("east", ClusterChange.RESOURCES)
    small = hint(changed_unit(UNIT, is_gang=True, sets=pods), a_cluster(allocatable={"cpu": 2000}))
    assert small.at is None
