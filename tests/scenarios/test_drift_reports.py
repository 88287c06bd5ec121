"""Events report drift in members: which field, by whom, how often.

If a field is changed back again and again, corrections in that cluster pause.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.metrics import sample_of
from tests.support.world import World, a_world, a_world_without_pods
from tests.unit.web.test_delivery import URL, served

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.delivery.rules.names import EVENT_CORRECTION_PAUSED, EVENT_DRIFT_CORRECTED

MINUTE_S = 60.0


async def running(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "west": 2}))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
    await world.until_available("web", 4)
    await world.settle()


async def messages_of(world: World, reason: str) -> list[str]:
    return [message for seen, message in await world.events() if seen == reason]


async def in_cluster(world: World, cluster: str) -> Object:
    clusters = (await world.federated("web"))["status"]["clusters"]
    (found,) = [entry for entry in clusters if entry["cluster"] == cluster]
    return dict(found)


def counted(metric: str, cluster: str) -> float:
    labels = {"cluster": cluster, "kind": "Deployment"}
    return sample_of(f"federation_dispatch_drift_{metric}_total", labels) or 0.0


async def edit(world: World, replicas: int, member: str = "east", **annotations: str) -> None:
    """Change the replicas in the member, and wait for the answer of the federation if it gives one at once."""
    patch: Object = {"spec": {"replicas": replicas}}
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    await world.members[member].merge(DEPLOYMENTS, "web", patch)
    await world.pass_time(1.0)


async def delivery(world: World, directory: Path) -> dict[str, Any]:
    """Return what `fedctl why` reads, by cluster."""
    async with served(world, directory) as (_, admin):
        return {row["cluster"]: row for row in (await admin.get(URL)).json()["clusters"]}


async def test_drift_is_counted_and_told_once_with_its_author(tmp_path: Path) -> None:
    async with a_world() as world:
        await running(world)
        before = counted("corrections", "east")
        for number in range(3):
            await edit(world, 9 + number)
            assert await world.replicas("web") == {"east": 2, "west": 2}
        assert counted("corrections", "east") == before + 3
        (message,) = await messages_of(world, EVENT_DRIFT_CORRECTED)
        assert message.startswith('cluster "east": spec.replicas was changed by "admin" (Update at 2')
        assert await messages_of(world, EVENT_CORRECTION_PAUSED) == []

        rows = await delivery(world, tmp_path)
        drift = rows["east"]["drift"]
        assert (drift["fields"], drift["manager"], drift["operation"]) == (["spec.replicas"], "admin", "Update")
        assert (drift["corrections"], drift["pausedUntil"]) == (3, "")
        assert "drift" not in rows["west"]

        await world.pass_time(11 * MINUTE_S)
        await edit(world, 9)
        assert len(await messages_of(world, EVENT_DRIFT_CORRECTED)) == 2


async def test_template_changes_and_fields_of_others_are_no_drift() -> None:
    async with a_world() as world:
        await running(world)
        before = counted("corrections", "east")
        for count in range(4, 14):
            await world.scale("web", count)
            await world.pass_time(1.0)
            await world.members["east"].merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {"n": str(count)}}})
        await world.settle()
        assert counted("corrections", "east") == before
        assert await messages_of(world, EVENT_DRIFT_CORRECTED) == []


async def test_a_fight_pauses_in_its_cluster_only(tmp_path: Path) -> None:
    async with a_world() as world:
        await running(world)
        for number in range(6):
            await edit(world, 9 + number)
        assert await world.replicas("web") == {"east": 2, "west": 2}, "the sixth correction is still made"
        await edit(world, 20)
        assert (await world.replicas("web"))["east"] == 20
        status = await in_cluster(world, "east")
        assert status["status"] == "CorrectionPaused"
        assert status["message"].startswith('spec.replicas was changed by "admin" (Update at ')
        propagated = await world.condition("web", names.PROPAGATED)
        assert (propagated["status"], propagated["reason"]) == ("False", names.REASON_CHECK_CLUSTERS)
        assert 'east: CorrectionPaused (spec.replicas was changed by "admin"' in propagated["message"]
        assert len(await messages_of(world, EVENT_CORRECTION_PAUSED)) == 2, "on the Deployment and its federated object"
        assert len(await messages_of(world, EVENT_DRIFT_CORRECTED)) == 1
        assert (await delivery(world, tmp_path))["east"]["drift"]["pausedUntil"]

        await edit(world, 7, "west")
        assert (await world.replicas("web"))["west"] == 2

        await world.scale("web", 8)
        await world.until_replicas("web", {"east": 4, "west": 4})
        await edit(world, 20)
        assert (await world.replicas("web"))["east"] == 20, "the pause goes on after a change of the template"

        await world.pass_time(MINUTE_S)
        assert await world.replicas("web") == {"east": 4, "west": 4}
        assert (await in_cluster(world, "east"))["status"] == "OK"


@pytest.mark.slow("forty minutes with a change every ten seconds")
async def test_an_opponent_that_never_rests_costs_a_few_writes_per_hour() -> None:
    async with a_world_without_pods() as world:
        await running(world)
        before = counted("corrections", "east")
        for number in range(240):
            await world.members["east"].merge(DEPLOYMENTS, "web", {"spec": {"replicas": 10 + number % 7}})
            await world.pass_time(10.0)
        made = counted("corrections", "east") - before
        assert 10 <= made <= 14
        assert counted("pauses", "east") >= 5
        assert len(await messages_of(world, EVENT_CORRECTION_PAUSED)) == 2
        await world.pass_time(10 * MINUTE_S)
        await world.until_replicas("web", {"east": 2, "west": 2})


async def test_a_restart_forgets_the_pause() -> None:
    async with a_world() as world:
        await running(world)
        for number in range(7):
            await edit(world, 9 + number)
        assert (await in_cluster(world, "east"))["status"] == "CorrectionPaused"
        await world.restart()
        await world.until_replicas("web", {"east": 2, "west": 2})
