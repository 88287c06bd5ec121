"""A StatefulSet of three moves with its volumes, and is interrupted at every step.

The kinds are those of the snapshot controller and VolSync, and their controllers are simulated (`movingvolumes.py`).
`VOLUME_MOVES=all` runs every step with every fault and both ways to copy; else there are some of each.
"""

import itertools
import os

import pytest
from tests.support.movingvolumes import CLAIMS, OF_SNAPSHOTS, OF_VOLSYNC, Scene, a_scene

from federation.features.volumemoves.rules.moverecord import Phase

WAYS = {"snapshots": OF_SNAPSHOTS, "volsync": OF_VOLSYNC}


STEPS = (Phase.PREPARE, Phase.QUIESCE, Phase.COPY, Phase.STOP, Phase.VERIFY, Phase.READY, Phase.SWITCHED)
FAULTS = ("plane", "source", "target", "copy", "copy-for-long", "plane-at-once")
ALL = [*itertools.product(WAYS, STEPS, FAULTS)]
SOME = [
    ("snapshots", Phase.COPY, "plane"),
    ("volsync", Phase.COPY, "source"),
    ("volsync", Phase.SWITCHED, "target"),
    ("snapshots", Phase.COPY, "copy-for-long"),
]


async def interrupt(scene: Scene, fault: str) -> None:
    world = scene.world
    match fault:
        case "plane":
            world.kill()
            await world.clock.advance(20)
            await world.restart()
        case "plane-at-once":  # again and again, so that few steps are done between two restarts
            for _ in range(8):
                world.kill()
                await world.restart()
                await world.clock.advance(1.3)
        case "source" | "target":
            name = "east" if fault == "source" else "west"
            await world.lose(name)
            await world.pass_time(60)
            await world.bring_back(name)
        case "copy":
            scene.storage.errors = 4
        case "copy-for-long":
            scene.storage.is_stopped = True
            await world.pass_time(100)
            scene.storage.is_stopped = False


@pytest.mark.slow("a whole federation whose volumes are copied")
@pytest.mark.parametrize(("way", "step", "fault"), ALL if os.environ.get("VOLUME_MOVES") == "all" else SOME)
async def test_a_move_that_is_interrupted_at_a_step_ends_in_one_cluster_with_its_data(
    way: str, step: Phase, fault: str
) -> None:
    async with a_scene(*WAYS[way]) as scene:
        await scene.ask("west", timeoutSeconds=60)
        await scene.until_phase(*STEPS[STEPS.index(step) :], Phase.KEPT)
        await interrupt(scene, fault)
        move = await scene.until_phase(Phase.KEPT, Phase.FAILED)
        scene.check()
        if move.phase is Phase.FAILED:  # the workload runs as before, with nothing left in the other cluster
            await scene.until_serves("east")
            assert await scene.claims("west") == []
            await scene.world.until_equal(scene.made, [])
            await scene.ask("west", timeoutSeconds=600, requested="again")
            await scene.until_phase(Phase.KEPT)
        await scene.until_serves("west")
        assert await scene.claims("east") == await scene.claims("west") == CLAIMS
        assert await scene.made() == []
