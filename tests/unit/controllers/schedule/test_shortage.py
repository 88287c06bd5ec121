"""Replicas without a place are given one when something helps; policies need not allow it, and nothing else moves."""

import json
from datetime import timedelta
from typing import Any

from tests.support.schedule_world import World, schedule_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.base.clock import ManualClock


def limits(**values: int) -> list[dict[str, Any]]:
    """At most so many replicas per cluster, all of the same weight."""
    return [{"cluster": c, "preferences": {"weight": 1, "maxReplicas": most}} for c, most in values.items()]


STAYS = {"rescheduleWhen": {"policyContentChanged": False}, "replicaRescheduling": {"avoidDisruption": False}}
"""Nothing is followed, but whatever is decided may move everything."""


async def test_missing_replicas_get_a_place_when_something_helps_and_nothing_else_moves(world: World) -> None:
    await world.cluster_status("west", ready=False)
    placement = limits(east=4, north=1, west=5)
    await world.policy("p", schedulingMode="Divide", placement=placement, reschedulePolicy=STAYS)
    await world.deployment(policy="p", replicas=7)
    await world.becomes({"east": 4, "north": 1})
    await world.idle()
    await world.cluster_status("north", cpu="7")
    await world.idle()
    assert len(await world.journaled()) == 1, "more room does not help"
    # By now the policy would have them elsewhere, and it says that it is not to be followed.
    placement[1]["preferences"] = {"weight": 6}
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"placement": placement}}, namespace="default")
    await world.becomes({"east": 4, "north": 3})
    await world.cluster_status("west", ready=True)
    await world.idle()
    assert await world.placed() == {"east": 4, "north": 3}


async def test_what_runs_stays_also_where_the_policy_would_not_have_it_now(world: World) -> None:
    await world.cluster_status("west", ready=False)
    await world.policy("p", schedulingMode="Divide", placement=limits(east=3, north=3, west=3), reschedulePolicy=STAYS)
    await world.deployment(policy="p", replicas=8)
    await world.becomes({"east": 3, "north": 3})
    selector = {"clusterSelector": {"region": "moon"}}
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": selector}, namespace="default")
    await world.idle()
    (record, *_) = await world.journaled()
    assert record.outcome == "Scheduled"
    assert json.loads(record.explanation)["unplaced"] == 2
    await world.patch(FEDERATED_CLUSTERS, "west", {"metadata": {"labels": {"region": "moon"}}})
    await world.cluster_status("west", ready=True)
    fed_object = await world.becomes({"east": 3, "north": 3, "west": 2})
    assert fed_object["metadata"]["annotations"][names.SCHEDULING_DEFERRED_REASONS] == (
        "policyContentChanged:false; clusterLabelsChanged:false; clusterJoined:false"
    )
    await world.idle()
    assert len(world.schedule._facts.short) == 0


async def test_where_only_sums_are_known_reports_of_what_is_free_help(world: World) -> None:
    await world.cluster_status("west", cpu="0")
    clusters = [{"cluster": "east", "preferences": {"maxReplicas": 4}}, {"cluster": "west"}]
    await world.policy("p", schedulingMode="Divide", placement=clusters)
    await world.deployment(policy="p", replicas=9)
    await world.becomes({"east": 4})
    await world.idle()
    for cpu in ("50", "51", "52"):
        await world.cluster_status("west", cpu=cpu)
    await world.becomes({"east": 4, "west": 5})
    await world.idle()
    assert len(await world.journaled()) == 2, "all reports together lead to one decision"


async def test_time_gives_missing_replicas_a_place() -> None:
    clock = ManualClock()
    async with schedule_world(clock=clock) as world:
        for name in ("east", "north", "west"):
            await world.cluster(name)
        closed = [{"cluster": "west", "validUntil": (clock.now() + timedelta(hours=1)).isoformat()}]
        request = {names.MIGRATION_CONFIGURATION: json.dumps({"workloadMigrations": closed})}
        await world.policy("p", schedulingMode="Divide", placement=limits(east=3, north=3, west=3))
        await world.deployment(policy="p", replicas=9, annotations=request)
        await world.becomes({"east": 3, "north": 3})
        await world.idle()
        await clock.advance(3599)
        await world.idle()
        assert await world.placed() == {"east": 3, "north": 3}
        await clock.advance(1)
        await world.becomes({"east": 3, "north": 3, "west": 3})


async def test_time_is_not_missed_when_reports_come_before_it() -> None:
    clock = ManualClock()
    async with schedule_world(clock=clock) as world:
        await world.cluster("east")
        await world.cluster("west")
        closed = [{"cluster": "west", "validUntil": (clock.now() + timedelta(hours=1)).isoformat()}]
        request = {names.MIGRATION_CONFIGURATION: json.dumps({"workloadMigrations": closed})}
        clusters = [{"cluster": "east", "preferences": {"maxReplicas": 4}}, {"cluster": "west"}]
        await world.policy("p", schedulingMode="Divide", placement=clusters)
        await world.deployment(policy="p", replicas=9, annotations=request)
        await world.becomes({"east": 4})
        await world.idle()
        await world.cluster_status("east", cpu="50")
        await world.idle()
        # It is looked at for another reason before the report's turn comes, which then finds nothing new.
        await world.patch_object("web", {"metadata": {"annotations": {"somebody": "else"}}})
        await world.idle()
        await clock.advance(60)
        await world.idle()
        await clock.advance(3600)
        await world.becomes({"east": 4, "west": 5})


async def test_reports_that_do_not_help_are_counted_and_do_not_displace_what_was_decided_before(world: World) -> None:
    await world.cluster_status("west", cpu="0")
    clusters = [{"cluster": "east", "preferences": {"maxReplicas": 4}}, {"cluster": "west"}]
    await world.policy("p", schedulingMode="Divide", placement=clusters)
    await world.deployment(policy="p", replicas=9)
    await world.becomes({"east": 4})
    for attempt in range(4):
        await world.cluster_status("east", cpu=str(50 + attempt))

        async def is_told(most: int = attempt) -> bool:
            return sum(record.repeats + 1 for record in await world.journaled()) > most + 1

        await world.until(is_told, "another decision")
    placed, *again = reversed(await world.journaled())
    assert json.loads(placed.explanation)["isChanged"]
    assert len(again) <= 1
