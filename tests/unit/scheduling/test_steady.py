"""Selection is steady: scores choose clusters for what has none, and move nothing that runs."""

import json
import re
from typing import Any

import pytest

from federation.scheduling.decisiontext import reason_text, verdict, weights_of
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.explain import to_json
from federation.scheduling.explanations import rows
from federation.scheduling.framework.migrations import AutoMigration, CustomMigration
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.types import Cluster, SchedulingUnit
from federation.scheduling.snapshot import Snapshot

BUSY = a_cluster("busy").offering(cpu="10", memory="10Gi").free(cpu="1", memory="1Gi").built()
HALF = a_cluster("half").offering(cpu="10", memory="10Gi").free(cpu="5", memory="5Gi").built()
IDLE = a_cluster("idle").offering(cpu="10", memory="10Gi").built()


def decide(unit: SchedulingUnit, *clusters: Cluster) -> Decision:
    return Engine(load_plugins()).decide(unit, Snapshot(1, clusters or (BUSY, HALF, IDLE)), DEFAULT_PROFILE, now=NOW)


def one_cluster(**fields: Any) -> SchedulingUnit:
    return a_divided_unit(2, max_clusters=1, **fields)


def test_scores_choose_the_cluster_of_what_has_none() -> None:
    assert decide(one_cluster()).placements == {"idle": 2}


def test_what_runs_in_a_feasible_cluster_stays_there_and_the_decision_says_what_a_move_would_gain() -> None:
    decision = decide(one_cluster(current={"busy": 2}))
    assert decision.placements == {"busy": 2}
    scores = dict(zip(decision.scored.totals.names, decision.scored.totals.scores, strict=True))  # type: ignore[union-attr]  # it was scored
    gain = scores["idle"] - scores["busy"]
    assert gain > 0
    assert decision.remarks == {"stayed": {"busy": (f"a move to idle would gain {gain} in score",)}}
    assert decision.selections[-1].plugin == "stayed"


def test_why_prints_stayed_with_what_a_move_would_have_gained() -> None:
    explanation = json.loads(to_json(decide(one_cluster(current={"busy": 2}))))
    row = next(each for each in rows(explanation) if each.name == "busy")
    text = reason_text(row, verdict(row, {}, weights_of(explanation), is_over=True), is_kept=False)
    assert re.search(r"stayed: a move to idle would gain \d+ in score", text)


def test_copies_stay_too() -> None:
    assert decide(a_unit(max_clusters=1, current={"busy": None})).placements == {"busy": None}
    two = decide(a_unit(max_clusters=2, current={"busy": None}))
    assert two.placements == {"busy": None, "idle": None}


def test_with_a_lower_maximum_the_best_current_clusters_stay() -> None:
    assert decide(one_cluster(current={"busy": 1, "half": 1})).placements == {"half": 2}


@pytest.mark.parametrize("effect", ["NoExecute"])
def test_a_cluster_that_is_not_feasible_any_more_is_left_for_the_best_one(effect: str) -> None:
    tainted = a_cluster("busy").offering(cpu="10", memory="10Gi").tainted("a", "b", effect).built()
    assert decide(one_cluster(current={"busy": 2}), tainted, HALF, IDLE).placements == {"idle": 2}


def test_a_taint_of_another_cluster_moves_nothing() -> None:
    tainted = a_cluster("idle").offering(cpu="10", memory="10Gi").tainted("a", "b", "NoExecute").built()
    assert decide(one_cluster(current={"busy": 2}), BUSY, HALF, tainted).placements == {"busy": 2}


@pytest.mark.parametrize(
    "fields",
    [
        {"chooses_anew": True},
        {"auto_migration": AutoMigration(estimated_capacity={"busy": 1})},
        {"custom_migration": CustomMigration(limited_capacity={"busy": 0})},
    ],
    ids=["what it asks for changed", "a member cannot run it", "the user asked"],
)
def test_it_moves_for_a_cause_of_its_own(fields: dict[str, Any]) -> None:
    decision = decide(one_cluster(current={"busy": 2}, **fields))
    assert decision.outcome is Outcome.SCHEDULED
    assert decision.placements == {"idle": 2}
    assert "stayed" not in decision.remarks


def test_unknown_capacity_is_no_cause() -> None:
    migration = AutoMigration(estimated_capacity={"busy": -1})
    assert decide(one_cluster(current={"busy": 2}, auto_migration=migration)).placements == {"busy": 2}


def test_it_returns_home_and_to_no_third_cluster() -> None:
    away = one_cluster(current={"half": 2}, avoid_disruption=False, homes=frozenset({"busy"}))
    assert decide(away).placements == {"busy": 2}
