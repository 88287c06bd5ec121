"""Unplaced replicas are placed after a matching change, whatever the policy follows, and no others move."""

import json
from datetime import timedelta
from typing import Any

from tests.support.schedule_harness import Harness, schedule_harness

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.clock import ManualClock


def limits(**values: int) -> list[dict[str, Any]]:
    """Return placements with equal weights and these maximums."""
    return [{"cluster": c, "preferences": {"weight": 1, "maxReplicas": most}} for c, most in values.items()]


STAYS = {"rescheduleWhen": {"policyContentChanged": False}, "replicaRescheduling": {"avoidDisruption": False}}
"""No change is followed, but each decision may move all replicas."""


async def test_missing_replicas_get_a_place_when_something_helps_and_nothing_else_moves(
    harness: Harness,
) -> None:
    await harness.cluster_status("west", ready=False)
    placement = limits(east=4, north=1, west=5)
    await harness.policy("p", schedulingMode="Divide", placement=placement, reschedulePolicy=STAYS)
    await harness.deployment(policy="p", replicas=7)
    await harness.becomes({"east": 4, "north": 1})
    await harness.idle()
    await harness.cluster_status("north", cpu="7")
    await harness.idle()
    assert len(await harness.journaled()) == 1, "more free resources do not help"
    # The policy now prefers other clusters, and changes of it are not followed.
    placement[1]["preferences"] = {"weight": 6}
    await harness.patch(PROPAGATION_POLICIES, "p", {"spec": {"placement": placement}}, namespace="default")
    await harness.becomes({"east": 4, "north": 3})
    await harness.cluster_status("west", ready=True)
    await harness.idle()
    assert await harness.placed() == {"east": 4, "north": 3}


async def test_running_replicas_stay_in_clusters_that_the_policy_now_rejects(harness: Harness) -> None:
    await harness.cluster_status("west", ready=False)
    await harness.policy(
        "p", schedulingMode="Divide", placement=limits(east=3, north=3, west=3), reschedulePolicy=STAYS
    )
    await harness.deployment(policy="p", replicas=8)
    await harness.becomes({"east": 3, "north": 3})
    selector = {"clusterSelector": {"region": "moon"}}
    await harness.patch(PROPAGATION_POLICIES, "p", {"spec": selector}, namespace="default")
    await harness.idle()
    (record, *_) = await harness.journaled()
    assert record.outcome == "Scheduled"
    assert json.loads(record.explanation)["unplaced"] == 2
    await harness.patch(FEDERATED_CLUSTERS, "west", {"metadata": {"labels": {"region": "moon"}}})
    await harness.cluster_status("west", ready=True)
    federated = await harness.becomes({"east": 3, "north": 3, "west": 2})
    assert federated["metadata"]["annotations"][names.SCHEDULING_DEFERRED_REASONS] == (
        "policyContentChanged:false; clusterLabelsChanged:false; clusterJoined:false"
    )
    await harness.idle()
    assert len(harness.schedule.cache.unplaced) == 0


async def test_with_sums_only_resource_reports_retry_unplaced_replicas(harness: Harness) -> None:
    await harness.cluster_status("west", cpu="0")
    clusters = [{"cluster": "east", "preferences": {"maxReplicas": 4}}, {"cluster": "west"}]
    await harness.policy("p", schedulingMode="Divide", placement=clusters)
    await harness.deployment(policy="p", replicas=9)
    await harness.becomes({"east": 4})
    await harness.idle()
    for cpu in ("50", "51", "52"):
        await harness.cluster_status("west", cpu=cpu)
    await harness.becomes({"east": 4, "west": 5})
    await harness.idle()
    assert len(await harness.journaled()) == 2, "all reports together lead to one decision"


async def test_unplaced_replicas_are_retried_at_the_hinted_time() -> None:
    clock = ManualClock()
    async with schedule_harness(clock=clock) as harness:
        for name in ("east", "north", "west"):
            await harness.cluster(name)
        closed = [{"cluster": "west", "validUntil": (clock.now() + timedelta(hours=1)).isoformat()}]
        request = {names.MIGRATION_CONFIGURATION: json.dumps({"workloadMigrations": closed})}
        await harness.policy("p", schedulingMode="Divide", placement=limits(east=3, north=3, west=3))
        await harness.deployment(policy="p", replicas=9, annotations=request)
        await harness.becomes({"east": 3, "north": 3})
        await harness.idle()
        await clock.advance(3599)
        await harness.idle()
        assert await harness.placed() == {"east": 3, "north": 3}
        await clock.advance(1)
        await harness.becomes({"east": 3, "north": 3, "west": 3})


async def test_time_is_not_missed_when_reports_come_before_it() -> None:
    clock = ManualClock()
    async with schedule_harness(clock=clock) as harness:
        await harness.cluster("east")
        await harness.cluster("west")
        closed = [{"cluster": "west", "validUntil": (clock.now() + timedelta(hours=1)).isoformat()}]
        request = {names.MIGRATION_CONFIGURATION: json.dumps({"workloadMigrations": closed})}
        clusters = [{"cluster": "east", "preferences": {"maxReplicas": 4}}, {"cluster": "west"}]
        await harness.policy("p", schedulingMode="Divide", placement=clusters)
        await harness.deployment(policy="p", replicas=9, annotations=request)
        await harness.becomes({"east": 4})
        await harness.idle()
        await harness.cluster_status("east", cpu="50")
        await harness.idle()
        # A reconcile for another reason comes before the one for the report, which then finds no change.
        await harness.patch_object("web", {"metadata": {"annotations": {"somebody": "else"}}})
        await harness.idle()
        await clock.advance(60)
        await harness.idle()
        await clock.advance(3600)
        await harness.becomes({"east": 4, "west": 5})


async def test_retries_without_effect_are_counted_and_displace_no_record(harness: Harness) -> None:
    await harness.cluster_status("west", cpu="0")
    clusters = [{"cluster": "east", "preferences": {"maxReplicas": 4}}, {"cluster": "west"}]
    await harness.policy("p", schedulingMode="Divide", placement=clusters)
    await harness.deployment(policy="p", replicas=9)
    await harness.becomes({"east": 4})
    for attempt in range(4):
        await harness.cluster_status("east", cpu=str(50 + attempt))

        async def is_told(most: int = attempt) -> bool:
            return sum(record.repeats + 1 for record in await harness.journaled()) > most + 1

        await harness.until(is_told, "another decision")
    placed, *again = reversed(await harness.journaled())
    assert json.loads(placed.explanation)["isChanged"]
    assert len(again) <= 1
