"""What can help a unit without a place: what its rejections depend on, and whatever is not known."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from federation.scheduling.engine import Decision, Engine
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW
from federation.scheduling.framework.types import (
    Change,
    Cluster,
    CustomMigration,
    GroupVersionKind,
    SchedulingUnit,
    Taint,
)
from federation.scheduling.hope import Hope, hope_of
from federation.scheduling.snapshot import Snapshot

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
ENGINE = Engine(load_plugins())
UNIT = SchedulingUnit(gvk=DEPLOYMENT, name="web")


def a_cluster(name: str = "east", **more: Any) -> Cluster:
    return Cluster(name, **{"api_types": frozenset((DEPLOYMENT,)), "is_ready": True, **more})


def hope(unit: SchedulingUnit, *clusters: Cluster) -> Hope:
    decision: Decision = ENGINE.decide(unit, Snapshot(1, clusters), DEFAULT_PROFILE, now=NOW)
    assert not decision.is_success
    return hope_of(decision, ENGINE.framework(DEFAULT_PROFILE), NOW)


@pytest.mark.parametrize(
    ("unit", "cluster", "change"),
    [
        ({}, {"api_types": frozenset()}, Change.API_TYPES),
        ({}, {"is_ready": False}, Change.READINESS),
        ({}, {"is_terminating": True}, Change.TERMINATION),
        ({}, {"taints": (Taint("a", "", "NoSchedule"),)}, Change.TAINTS),
        ({"cluster_selector": (("a", "b"),)}, {}, Change.LABELS),
        ({"cluster_names": frozenset(("west",))}, {}, Change.NOTHING),
    ],
)
def test_a_rejection_hopes_for_what_it_depends_on(
    unit: dict[str, Any], cluster: dict[str, Any], change: Change
) -> None:
    found = hope(replace(UNIT, **unit), a_cluster(**cluster))
    assert found.awaited == {Change.MEMBERSHIP | change: {"east"}}
    for one in Change.ANY:
        assert found.is_helped_by("east", one) == (one in (Change.MEMBERSHIP, change))
        assert found.is_helped_by("elsewhere", one)


def test_what_time_closed_time_opens() -> None:
    until = {"east": NOW + timedelta(hours=2), "west": NOW + timedelta(hours=1), "north": NOW - timedelta(hours=1)}
    unit = replace(UNIT, custom_migration=CustomMigration({}, until))
    assert hope(unit, a_cluster(), a_cluster("west")).at == NOW + timedelta(hours=1)


def test_what_failed_behind_the_filters_hopes_for_anything() -> None:
    unit = replace(UNIT, max_clusters=0)
    found = hope(unit, a_cluster(), a_cluster("west", is_ready=False))
    assert found.is_helped_by("east", Change.RESOURCES)
    assert not found.is_helped_by("west", Change.RESOURCES)
