"""Which clusters a placement lacks because they were not healthy when it was made."""

from dataclasses import replace
from typing import Any

import pytest

from federation.api import names
from federation.api.selectors import compile_cluster_terms
from federation.scheduling.engine import Decision, Outcome, Placements
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.testing import a_divided_unit, changed_unit
from federation.scheduling.framework.types import (
    Cluster,
    Effect,
    GroupVersionKind,
    SchedulingMode,
    Taint,
    Toleration,
    unschedulable,
)
from federation.scheduling.healthgaps import describe, gaps_of, plan_marks
from federation.scheduling.snapshot import Snapshot

UNREACHABLE = Taint(names.TAINT_UNREACHABLE, "", Effect.NO_SCHEDULE)
WIDGETS = GroupVersionKind("example.com", "v1", "Widget")
OTHER = Taint("gpu", "", Effect.NO_SCHEDULE)
LOST = Cluster("lost", labels={"tier": "prod"}, taints=(UNREACHABLE,))
FINE = Cluster("fine", labels={"tier": "prod"})


def a_decision(lost: Cluster = LOST, placements: Placements | None = None, **unit: Any) -> Decision:
    filtered = FilterResult(ClusterGroup.of([FINE]), {"lost": unschedulable("tainted")})
    return Decision(
        Outcome.SCHEDULED,
        "",
        changed_unit(a_divided_unit(9), **unit),
        Snapshot(1, (FINE, lost)),
        placements={"fine": 9} if placements is None else placements,
        filtered=filtered,
    )


@pytest.mark.parametrize(
    ("lost", "unit", "is_gap"),
    [
        (LOST, {}, True),
        (Cluster("lost", is_ready=False), {}, True),
        (Cluster("lost"), {}, False),
        (replace(LOST, is_terminating=True), {}, False),
        (replace(LOST, taints=(UNREACHABLE, OTHER)), {}, False),
        (replace(LOST, taints=(UNREACHABLE, OTHER)), {"tolerations": (Toleration("gpu", "Exists", "", ""),)}, True),
        (LOST, {"cluster_names": frozenset({"fine"})}, False),
        (LOST, {"cluster_selector": (("tier", "test"),)}, False),
        (LOST, {"cluster_selector": (("tier", "prod"),)}, True),
        (
            LOST,
            {"required": compile_cluster_terms([{"matchExpressions": [{"key": "x", "operator": "Exists"}]}])},
            False,
        ),
        (LOST, {"max_clusters": 1}, False),
        (LOST, {"max_clusters": 2}, True),
        (LOST, {"sticky": True}, False),
    ],
)
def test_a_gap_is_an_unhealthy_cluster_that_the_policy_admits(
    lost: Cluster, unit: dict[str, Any], is_gap: bool
) -> None:
    assert gaps_of(a_decision(lost, **unit)) == (frozenset({"lost"}) if is_gap else frozenset())


@pytest.mark.parametrize(
    ("before", "marks", "is_ended", "completes", "expected"),
    [
        ({}, "", False, False, "lost"),
        ({"fine": 3}, "", False, False, "lost"),
        ({"fine": 9}, "", False, False, ""),
        ({"fine": 5, "lost": 4}, "", True, False, ""),
        ({"fine": 6}, "", True, False, "lost"),
        ({"other": 9}, "", False, False, "lost"),
        ({"fine": 9}, "third", False, False, "third"),
        ({"fine": 9}, "lost,third", True, True, "lost"),
        ({"fine": 9}, "fine", False, False, ""),
    ],
    ids=[
        "new",
        "scaled up",
        "unchanged",
        "failover, which has its own way back",
        "scaled up after a failover",
        "changed",
        "an earlier mark stays",
        "completed: only what is still away",
        "placed meanwhile",
    ],
)
def test_marks(before: Placements, marks: str, is_ended: bool, completes: bool, expected: str) -> None:
    federated = {"metadata": {"annotations": {names.PLACED_WITHOUT: marks}}}
    decision = a_decision(ended_tolerations={"lost": UNREACHABLE} if is_ended else {})
    found = plan_marks(federated, decision, before, completes=completes)
    assert ",".join(sorted(found)) == expected


def test_marks_are_told() -> None:
    decision = a_decision()
    assert describe(frozenset({"b", "a"}), decision) == "placed without a, b, not healthy; completed when stable"
    assert describe(frozenset(), decision) == ""


SERVED = Cluster("lost", labels={"tier": "prod"}, api_types=frozenset({WIDGETS}))


@pytest.mark.parametrize(
    ("cluster", "unit", "is_gap"),
    [
        (Cluster("lost"), {}, True),
        (SERVED, {}, False),
        (replace(SERVED, is_ready=False), {}, True),
        (Cluster("lost"), {"mode": SchedulingMode.DIVIDE}, False),
        (Cluster("lost"), {"max_clusters": 1}, False),
        (Cluster("lost"), {"cluster_names": frozenset({"fine"})}, False),
        (Cluster("lost"), {"cluster_selector": (("tier", "prod"),)}, False),
        (Cluster("lost", taints=(OTHER,)), {}, False),
    ],
)
def test_a_copy_lacks_clusters_that_do_not_serve_its_kind(cluster: Cluster, unit: dict[str, Any], is_gap: bool) -> None:
    copied = {"mode": SchedulingMode.DUPLICATE, "gvk": WIDGETS, **unit}
    decision = a_decision(cluster, placements={"fine": None}, **copied)
    assert gaps_of(decision) == (frozenset({"lost"}) if is_gap else frozenset())


def test_marks_of_kinds_that_are_not_served_are_told() -> None:
    decision = a_decision(Cluster("lost"), mode=SchedulingMode.DUPLICATE, gvk=WIDGETS)
    lacking = "placed without lost, where example.com/v1 Widget is not served; completed when it is"
    assert describe(frozenset({"lost"}), decision) == lacking
    away = "placed without gone, not healthy; completed when stable"
    assert describe(frozenset({"lost", "gone"}), decision) == f"{away}; {lacking}"
