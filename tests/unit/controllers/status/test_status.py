"""Status collection and aggregation on real registries and a virtual clock."""

from typing import Any

import orjson
from tests.support.member_world import World, member_world, placed

from federation.api import names
from federation.api.resources import COLLECTED_STATUSES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.client.client import PatchType

MERGE = PatchType.MERGE
_AVAILABLE = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "ok"}
_COMPLETE = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "ok"}


async def _run(world: World, member: str, replicas: int) -> None:
    await world.members[member].report(
        replicas=replicas,
        updatedReplicas=replicas,
        readyReplicas=replicas,
        availableReplicas=replicas,
        conditions=[_AVAILABLE, _COMPLETE],
    )


async def _status(world: World) -> dict[str, Any]:
    return (await world.source()).get("status") or {}


def _condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    return next((c for c in status.get("conditions") or () if c["type"] == type_), {})


async def _rolled_out(world: World) -> None:
    """Place three replicas in two members, and let them run."""
    await _placed(world, {"m1": 2, "m2": 1})
    await _run(world, "m1", 2)
    await _run(world, "m2", 1)
    await _until_available(world, 3)


async def _placed(world: World, placement: dict[str, int | None]) -> None:
    await world.place(placement=placement)
    await world.until_statuses(dict.fromkeys(placement, "OK"))


async def _until_available(world: World, replicas: int) -> dict[str, Any]:
    async def look() -> Any:
        status = await _status(world)
        return status if status.get("availableReplicas") == replicas else None

    found: dict[str, Any] = await world.until(look)
    return found


async def test_the_users_deployment_shows_the_sum_and_correct_conditions() -> None:
    async with member_world(2) as world:
        await _placed(world, {"m1": 2, "m2": 1})
        await _run(world, "m1", 2)
        status = await _until_available(world, 2)
        assert _condition(status, "Available")["status"] == "False"
        assert "m2" in _condition(status, "Available")["message"]
        assert "observedGeneration" not in status
        await _run(world, "m2", 1)
        status = await _until_available(world, 3)
        assert status["observedGeneration"] == (await world.source())["metadata"]["generation"]
        assert _condition(status, "Available")["status"] == "True"
        assert _condition(status, "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_a_burst_of_changes_is_one_write_and_no_change_is_none() -> None:
    async with member_world(2) as world:
        await _placed(world, {"m1": 2, "m2": 1})
        await world.pass_time(15)
        world.plane.line.calls.clear()
        for replicas in (1, 2):
            await _run(world, "m1", replicas)
        await _run(world, "m2", 1)
        await _until_available(world, 3)
        await world.pass_time(15)
        assert len(world.plane.line.writes("deployments")) == 1
        assert len(world.plane.line.writes("collectedstatuses")) == 1
        world.plane.line.calls.clear()
        await world.restart()
        await world.pass_time(15)
        assert world.plane.line.writes() == []


async def _delay_s(world: World, report: Any, available: int) -> float:
    """Return the virtual seconds until the host's object shows the number after the report of a member."""
    began_s = world.clock.monotonic()
    await report
    await world.until(lambda: _is_available(world, available), step_s=0.001)
    return world.clock.monotonic() - began_s


async def _is_available(world: World, replicas: int) -> bool:
    return (await _status(world)).get("availableReplicas", 0) == replicas


async def test_a_lost_and_a_recovered_replica_are_shown_without_a_wait() -> None:
    async with member_world(2) as world:
        await _placed(world, {"m1": 2, "m2": 1})
        await _run(world, "m1", 2)
        assert await _delay_s(world, _run(world, "m2", 1), 3) < 0.01, "the rollout is complete"
        for _ in range(3):
            await world.pass_time(1)
            assert await _delay_s(world, _run(world, "m1", 1), 2) < 0.01
            await world.pass_time(1)
            assert await _delay_s(world, _run(world, "m1", 2), 3) < 0.01


async def test_a_change_soon_after_a_restart_is_shown_without_a_wait() -> None:
    async with member_world(2) as world:
        await _rolled_out(world)
        await world.restart()
        await world.pass_time(15)
        assert await _delay_s(world, _run(world, "m1", 1), 2) < 0.01


async def test_replicas_that_are_lost_one_after_the_other_are_shown_within_a_tenth_of_a_second() -> None:
    async with member_world(2) as world:
        await _rolled_out(world)
        await world.pass_time(6)
        for left, member, replicas in ((2, "m1", 1), (1, "m2", 0), (0, "m1", 0)):
            assert await _delay_s(world, _run(world, member, replicas), left) <= 0.11


async def test_a_cluster_that_does_not_answer_counts_with_its_last_status() -> None:
    async with member_world(2) as world:
        await _rolled_out(world)
        await world.pass_time(3)
        world.members["m2"].line.mode = "down"
        await world.until_condition("m2", names.CLUSTER_READY, "Unknown")
        assert (await _status(world))["availableReplicas"] == 3
        await world.restart()
        await world.pass_time(5)
        assert (await _status(world))["availableReplicas"] == 3, "from the CollectedStatus"
        collected = await world.host.get(COLLECTED_STATUSES, "web-deployments.apps", "default")
        assert [entry["cluster"] for entry in collected["clusters"]] == ["m1", "m2"]


async def test_a_restart_writes_no_old_status_while_caches_are_incomplete() -> None:
    async with member_world(2) as world:
        await _rolled_out(world)
        await world.pass_time(15)
        await world.stop()
        # The CollectedStatus is written less often: this one was not up to date when the process ended.
        collected = await world.host.get(COLLECTED_STATUSES, "web-deployments.apps", "default")
        stale = [{"cluster": entry["cluster"], "collectedFields": {}} for entry in collected["clusters"]]
        await world.host.patch(
            COLLECTED_STATUSES, "web-deployments.apps", {"clusters": stale}, patch_type=MERGE, namespace="default"
        )
        world.members["m2"].line.mode = "hang"
        await world.restart()
        await world.pass_time(2)
        world.members["m2"].line.mend()
        await world.pass_time(10)
        assert world.plane.line.writes("deployments") == []
        assert (await _status(world))["availableReplicas"] == 3


async def test_the_collected_status_shows_the_configured_fields() -> None:
    async with member_world(1) as world:
        await _placed(world, {"m1": 2})
        await _run(world, "m1", 2)

        async def look() -> Any:
            found = (await world.host.list(COLLECTED_STATUSES, "default")).items
            return found[0] if found and found[0]["clusters"][0]["collectedFields"].get("status") else None

        collected: Object = await world.until(look)
        entry = collected["clusters"][0]
        assert entry["collectedFields"]["status"]["readyReplicas"] == 2
        assert entry["collectedFields"]["spec"] == {"replicas": 2}
        assert "error" not in entry
        assert collected["metadata"]["ownerReferences"][0]["kind"] == "FederatedObject"
        first = collected["lastUpdateTime"]
        await _run(world, "m1", 1)

        async def newer() -> bool:
            return bool((await look())["lastUpdateTime"] > first)

        await world.until(newer)


async def test_the_placement_is_written_to_the_source() -> None:
    async with member_world(1) as world:
        feedback = orjson.dumps({"placement": {"m1": 2}}).decode()
        summary = {names.SCHEDULING: feedback, names.SCHEDULING_SUMMARY: "1/1 clusters are available"}
        await world.place(placement={"m1": 2}, annotations=summary)
        await world.until_statuses({"m1": "OK"})
        await _run(world, "m1", 2)
        status = await _until_available(world, 2)
        condition = _condition(status, names.SCHEDULED)
        assert (condition["status"], condition["message"]) == ("True", "1/1 clusters are available; m1 2")

        async def is_reported() -> bool:
            return (await world.source())["metadata"].get("annotations", {}).get(names.SCHEDULING) == feedback

        await world.until(is_reported)


async def test_scaling_is_observed_only_when_all_members_have_seen_it() -> None:
    async with member_world(1) as world:
        await _placed(world, {"m1": 2})
        await _run(world, "m1", 2)
        first = (await _until_available(world, 2))["observedGeneration"]
        from federation.client.client import PatchType

        await world.host.patch(
            DEPLOYMENTS, "web", {"spec": {"replicas": 9}}, patch_type=PatchType.MERGE, namespace="default"
        )
        generation = (await world.source())["metadata"]["generation"]
        template = {"metadata": {"generation": generation}, "spec": {"replicas": 9}}
        await world.patch({"spec": {"template": template, **placed({"m1": 9})}})
        await world.pass_time(3)
        assert (await _status(world))["observedGeneration"] == first
        await _run(world, "m1", 9)
        assert (await _until_available(world, 9))["observedGeneration"] == generation
