"""The scenarios of maintenance budgets: the control plane, plan, review, replay and twin do what the feature says.

`tests/scenarios/test_maintenance_budget.py` runs them in a process with the feature's line in the catalogue. Its
definition, which `make generate` writes for features of the product, is added here.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tools.definitions import to_crd

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.features.catalogue import decision_chain
from federation.journal.decisions import DecisionFilter
from federation.plans.review import Review
from federation.plans.reviewcomment import to_comment
from federation.scheduling.replay.otherworld import Changes, to_changed_object
from federation.settings import Settings
from federation.twin.fleetcopy import from_host
from federation.twin.twin import Twin
from tests.scenarios.test_plan_and_reality import documents, plan
from tests.support import maintenance
from tests.support.maintenance.budgets import MOVE
from tests.support.maintenance.model import MAINTENANCE_BUDGETS, MaintenanceBudget
from tests.support.maintenance.steps import CLOSED, USED_UP
from tests.support.manifests import a_deployment, a_policy
from tests.support.replays import elsewhere, replay
from tests.support.world import World, a_world

MEMBERS = ("east", "north", "west")
MOVABLE = {
    "reschedulePolicy": {
        "replicaRescheduling": {"avoidDisruption": False},
        "rescheduleWhen": {"policyContentChanged": True},
    }
}


@pytest.fixture(autouse=True)
def _with_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the definition with those of the product."""
    manifests = [*crd_manifests(), *(to_crd(kind) for kind in maintenance.FEATURE.kinds())]
    monkeypatch.setattr("tests.support.world.crd_manifests", lambda: manifests)


def a_budget(team: str = "shop", **spec: Any) -> Object:
    head = {"apiVersion": MAINTENANCE_BUDGETS.api_version, "kind": MAINTENANCE_BUDGETS.kind}
    return {**head, "metadata": {"name": team, "namespace": "default"}, "spec": {"replicas": 4, **spec}}


def of_team(name: str, replicas: int = 3, team: str = "shop") -> Object:
    made = a_deployment(name, replicas=replicas)
    made["metadata"]["labels"] = {"team": team}
    return made


async def why(world: World, name: str) -> tuple[Any, Any]:
    """Return reason and message of the condition that `fedctl why` prints."""
    condition = await world.condition(name, names.SCHEDULED)
    return condition.get("reason"), condition.get("message")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world(members=MEMBERS, is_new=True, guard_share=1.0, has_workloads=False, has_reports=True) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, **MOVABLE))
        await world.create(MAINTENANCE_BUDGETS, a_budget())
        yield world


async def test_a_closed_budget_holds_its_team_in_the_control_plane_and_in_plans(world: World) -> None:
    await world.merge(MAINTENANCE_BUDGETS, "shop", {"spec": {"closed": True}})
    await world.create(DEPLOYMENTS, of_team("web"))
    await world.create(DEPLOYMENTS, of_team("free", team="other"))
    await world.until_replicas("free", {"east": 3})
    expected = (CLOSED, "maintenance of team shop is closed")
    await world.until_equal(lambda: why(world, "web"), expected)
    result, _ = await plan(world, documents=documents(of_team("next")))
    assert [(each.name, each.waits) for each in result.objects] == [("next", expected[1])]
    opened, _ = await plan(world, documents=documents(a_budget(closed=False)))
    assert [(each.name, [row.cluster for row in each.rows]) for each in opened.changed] == [("web", ["east"])]
    await world.merge(MAINTENANCE_BUDGETS, "shop", {"spec": {"closed": False}})
    await world.until_replicas("web", {"east": 3})


async def test_moves_wait_for_each_other_and_an_amount_comes_back_when_members_have_reported(world: World) -> None:
    for name in ("a", "b", "c"):
        await world.create(DEPLOYMENTS, of_team(name))
        await world.until_replicas(name, {"east": 3})
    await world.settle()
    moved = a_policy({"west": 1}, **MOVABLE)
    result, _ = await plan(world, documents=documents(moved))
    held = {each.name: {row.held for row in each.rows if row.held} for each in result.changed}
    text = "it would move 3 replicas of team shop, and 3 of 4 are on their way"
    assert text in to_comment(Review("moves", result))
    assert held == {"a": set(), "b": {text}, "c": {text}}
    world.members["west"].line.mode = "down"  # it reports nothing
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": moved["spec"]})
    await world.until(lambda: _waiting(world, 2))
    assert sorted([await _has_move(world, name) for name in ("a", "b", "c")]) == [False, False, True]
    (waiting, *_) = [name for name in ("a", "b", "c") if (await why(world, name))[0] == USED_UP]
    assert text in (await why(world, waiting))[1]
    assert await world.replicas(waiting) == {"east": 3}
    await world.restart()  # what is used is in the objects
    await world.pass_time(5)
    assert await _waiting(world, 2)
    world.members["west"].line.mode = "up"
    for name in ("a", "b", "c"):
        await world.until_replicas(name, {"west": 3})


async def test_clusters_in_maintenance_are_chosen_last_and_replays_and_a_twin_do_the_same(world: World) -> None:
    one = a_policy({}, schedulingMode="Duplicate", maxClusters=1)
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {**one["spec"], "placement": None}})
    await world.create(DEPLOYMENTS, of_team("first"))
    await world.settle()
    (chosen,) = await world.replicas("first")
    await world.merge(MAINTENANCE_BUDGETS, "shop", {"spec": {"clusters": [chosen]}})
    result, _ = await plan(world, documents=documents(of_team("second")))
    (planned,) = [row.cluster for each in result.changed for row in each.rows]
    assert planned != chosen
    await world.create(DEPLOYMENTS, of_team("second"))
    await world.settle()
    (other,) = await world.replicas("second")
    assert other == planned
    (explained,) = await world.journal.query(DecisionFilter(namespace="default", name="second"))
    assert b'"Maintenance"' in explained.explanation

    verdict = await replay(world.journal)
    assert (verdict.equal, verdict.different) == (verdict.decisions, [])
    key, obj = to_changed_object(a_budget(clusters=[]), decision_chain())
    comparison = await elsewhere(world.journal, Changes({key: obj}))
    assert [(each.key[1], list(each.other_after)) for each in comparison.different] == [
        ("second-deployments.apps", [chosen])
    ]

    twin = Twin(await from_host(world.user, world.clock.now(), ()), Settings(Path("unused")))
    await twin.begin()
    try:
        assert [each["spec"]["clusters"] for each in (await twin.user.list(MAINTENANCE_BUDGETS)).items] == [[chosen]]
        await twin.user.create(DEPLOYMENTS, of_team("third"))
        await twin.settle()
        reason = await twin.user.get(DEPLOYMENTS, "third", "default")
        assert chosen not in reason["metadata"]["annotations"].get(names.SCHEDULING, "")
    finally:
        await twin.end()


async def _waiting(world: World, count: int) -> bool:
    return [(await why(world, name))[0] for name in ("a", "b", "c")].count(USED_UP) == count


async def _has_move(world: World, name: str) -> bool:
    return MOVE.of(await world.federated(name)) is not None


def test_the_feature_is_a_folder_and_a_line() -> None:
    assert maintenance.FEATURE.kinds() == (MaintenanceBudget,)
    listed = [step.name for step in (*decision_chain().gates, *decision_chain().shapes, *decision_chain().permits)]
    assert {"maintenance-open", "maintenance-score", "maintenance-budget"} <= set(listed)
