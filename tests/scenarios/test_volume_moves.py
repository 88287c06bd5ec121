"""Volumes move with their workload: by whose word, by which way, and what stays until somebody agrees."""

from collections.abc import Mapping

import orjson
import pytest
from tests.support.movingvolumes import CLAIMS, OF_SNAPSHOTS, OF_VOLSYNC, Scene, a_scene, install

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PLACEMENT_HOLDS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import STATEFUL_SETS
from federation.apimachinery.webhookclient import WebhookResponse
from federation.features.volumemoves.rules.moverecord import Phase

WAYS = {"snapshots": OF_SNAPSHOTS, "volsync": OF_VOLSYNC}


async def scheduled(scene: Scene) -> str:
    """Return the message of the condition Scheduled."""
    found = await scene.world.user.get(STATEFUL_SETS, "db", "default")
    return str((conditions.find((found.get("status") or {}).get("conditions"), names.SCHEDULED) or {}).get("message"))


async def drain(scene: Scene, cluster: str) -> None:
    taint = {"key": names.TAINT_DRAIN, "effect": "NoExecute"}
    await scene.world.merge(FEDERATED_CLUSTERS, cluster, {"spec": {"taints": [taint]}}, "")


async def let_it_run_anywhere(scene: Scene) -> None:
    await scene.world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": None}})
    await scene.world.merge(STATEFUL_SETS, "db", {"metadata": {"annotations": {names.MOVE_VOLUMES: "{}"}}})
    await scene.world.settle()


@pytest.mark.slow("a whole federation whose volumes are copied")
@pytest.mark.parametrize("way", WAYS)
async def test_a_database_moves_with_its_volumes_and_the_old_ones_stay_until_somebody_agrees(way: str) -> None:
    async with a_scene(*WAYS[way]) as scene:
        await scene.ask("west")
        await scene.until_phase(Phase.KEPT)
        await scene.until_serves("west")
        assert await scene.claims("east") == await scene.claims("west") == CLAIMS
        assert await scene.made() == []
        (hold,) = (await scene.world.user.list(PLACEMENT_HOLDS)).items
        assert hold["spec"]["cause"] == "Deletion default/old volumes of db"
        await scene.world.restart()
        await scene.world.pass_time(60)
        assert await scene.claims("east") == CLAIMS
        await scene.approve()
        await scene.world.until_equal(lambda: scene.claims("east"), [])
        await scene.world.until_equal(scene.move, None)
        assert await scene.claims("west") == CLAIMS
        await scene.until_serves("west")


@pytest.mark.slow("a whole federation whose volumes are copied")
async def test_an_approved_drain_copies_the_volumes_first() -> None:
    async with a_scene(*OF_VOLSYNC) as scene:
        await let_it_run_anywhere(scene)
        await drain(scene, "east")
        await scene.world.pass_time(30)
        (hold,) = (await scene.world.user.list(PLACEMENT_HOLDS)).items
        assert hold["spec"]["cause"] == "FederatedCluster east"
        assert await scene.move() is None, "nothing is stopped without an approval"
        await scene.approve()
        await scene.until_phase(Phase.KEPT)
        await scene.until_serves("west")
        assert await scene.claims("west") == CLAIMS


@pytest.mark.slow("a whole federation whose volumes are copied")
async def test_a_planned_failover_copies_the_volumes_first() -> None:
    async with a_scene(*OF_SNAPSHOTS, failover={"mode": "Auto"}) as scene:
        await let_it_run_anywhere(scene)
        await drain(scene, "east")
        await scene.until_phase(Phase.KEPT)
        await scene.until_serves("west")


async def test_without_a_way_to_copy_the_workload_runs_on_and_what_is_missing_is_named() -> None:
    async with a_scene(*OF_SNAPSHOTS[:1]) as scene:
        await install([scene.world.members["west"]], *OF_VOLSYNC)
        await scene.ask("west")
        await scene.world.pass_time(40)
        text = await scheduled(scene)
        assert "east does not serve ReplicationSource.volsync.backube" in text
        assert "west does not serve VolumeSnapshot.snapshot.storage.k8s.io and VolumeSnapshotContent.snapshot" in text
        await scene.until_serves("east")


@pytest.mark.slow("a whole federation whose volumes are copied")
async def test_a_move_that_is_taken_back_while_it_copies_leaves_nothing_behind() -> None:
    async with a_scene(*OF_VOLSYNC) as scene:
        scene.storage.is_stopped = True
        await scene.ask("west")
        await scene.until_phase(Phase.COPY)
        await scene.world.pass_time(20)
        annotations = {names.PLACEMENTS: None}
        await scene.world.merge(STATEFUL_SETS, "db", {"metadata": {"annotations": annotations}})
        await scene.world.until_equal(scene.move, None)
        await scene.until_serves("east")
        assert await scene.claims("west") == []
        assert await scene.made() == []


@pytest.mark.slow("a whole federation whose volumes are copied")
async def test_a_user_goes_back_to_the_old_volumes_and_their_deletion_is_not_held_any_more() -> None:
    async with a_scene(*OF_VOLSYNC) as scene:
        await scene.ask("west")
        await scene.until_phase(Phase.KEPT)
        await scene.until_serves("west")
        await scene.ask("east")
        await scene.world.pass_time(40)
        assert "east has claims of these names: data-db-0" in await scheduled(scene)
        await scene.until_serves("west")
        scene.writer.is_allowed_to_start_old = True
        await scene.ask("east", method="Old")
        await scene.until_phase(Phase.SWITCHED)
        await scene.until_phase(Phase.KEPT)
        await scene.until_serves("east")
        assert await scene.claims("east") == await scene.claims("west") == CLAIMS
        await scene.approve()
        await scene.world.until_equal(lambda: scene.claims("west"), [])
        await scene.until_serves("east")
        assert await scene.claims("east") == CLAIMS


class Hook:
    """The application's hook: from `Quiesce` on the application writes nothing."""

    def __init__(self) -> None:
        self.scene: Scene | None = None
        self.phases: list[str] = []

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        del connection, headers, timeout_s
        raise AssertionError("the hook is posted to")

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        del headers, timeout_s
        assert connection.server == "https://db.example.com/quiesce"
        self.phases.append(orjson.loads(body)["phase"])
        if len(self.phases) < 3:
            return WebhookResponse(503)
        assert self.scene is not None
        self.scene.writer.is_quiet = True
        return WebhookResponse(200)


@pytest.mark.slow("a whole federation whose volumes are copied")
async def test_a_hook_quiesces_a_workload_that_runs_while_it_is_copied() -> None:
    hook = Hook()
    async with a_scene(*OF_VOLSYNC, gates=hook) as scene:
        hook.scene = scene
        await scene.ask("west", quiesceURL="https://db.example.com/quiesce")
        await scene.until_phase(Phase.COPY)
        found = await scene.world.members["east"].find(STATEFUL_SETS, "db")
        assert found is not None
        assert found["spec"]["replicas"] == 3
        await scene.until_phase(Phase.KEPT)
        scene.writer.is_quiet = False
        await scene.until_serves("west")
        assert hook.phases == ["Quiesce"] * 3
