"""The control plane is killed at every await point of a sync and starts again: the result is that of an undisturbed run.

Each history begins from one converged federation. A user creates, updates, moves or deletes a Deployment. The first run
counts the await points of sync until the federation has converged; then, for each of them, one run is killed there.
`make test` kills at every fourth point, at others for each action; the rest is nightly.
Once the CollectedStatus has the last change, which it gets up to 15 s later, a further restart writes nothing at all.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.awaits import AwaitPoints
from tests.support.invariants import violations, violations_meanwhile
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import NAMES, Base, World, a_base, a_world

from federation.api import names
from federation.api.resources import COLLECTED_STATUSES, LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object

Action = Callable[[World], Awaitable[object]]


async def _create(world: World) -> None:
    await world.create(DEPLOYMENTS, a_deployment("new", replicas=3))


async def _update(world: World) -> None:
    containers = [{"name": "web", "image": "nginx:2"}]
    await world.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 4, "template": {"spec": {"containers": containers}}}})


async def _move(world: World) -> None:
    policy = a_policy({"north": 1, "west": 1})
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})


async def _delete(world: World) -> None:
    await world.user.delete(DEPLOYMENTS, "web", "default")


_placed: list[Base] = []
_COLLECTION_S = 20.0
"""Longer than a CollectedStatus waits for a pause between changes, and than the interval of its writes."""


async def _with_a_deployment() -> Base:
    """Return a federation whose members east and north run the Deployment `web`."""
    if not _placed:
        async with a_world(seed=0, base=await a_base(*NAMES), has_workloads=False, has_reports=True) as world:
            await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
            await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
            await world.until_replicas("web", {"east": 1, "north": 1})
            await world.settle()
            _placed.append(world.copy())
    return _placed[0]


@asynccontextmanager
async def _a_run(points: AwaitPoints) -> AsyncIterator[World]:
    loop = asyncio.get_running_loop()
    base = await _with_a_deployment()
    loop.set_task_factory(points)
    try:
        async with a_world(seed=1, base=base, has_workloads=False, has_reports=True) as world:
            for cable in world.cables:
                cable.has_round_trips = True
            yield world
    finally:
        loop.set_task_factory(None)


async def _result(world: World) -> dict[str, Any]:
    """Return what users and members have, without uids, times and revisions."""
    found: dict[str, Any] = {}
    for name, client in [("host", world.user), *((name, m.admin) for name, m in world.members.items())]:
        for deployment in (await client.list(DEPLOYMENTS, "default")).items:
            found[f"{name} {deployment['metadata']['name']}"] = _content(deployment)
    found["leftovers"] = sorted(leftover["metadata"]["name"] for leftover in (await world.user.list(LEFTOVERS)).items)
    return found


def _content(deployment: Object) -> Object:
    metadata = deployment["metadata"]
    kept = {key: metadata.get(key) for key in ("labels", "annotations", "finalizers")}
    annotations = dict(kept["annotations"] or {})
    annotations.pop(names.SOURCE_GENERATION, None)
    status = deployment.get("status") or {}
    return {
        **kept,
        "annotations": annotations,
        "spec": deployment["spec"],
        # A kill may change the number of steps, and so of generations.
        "isObserved": status.get("observedGeneration") == metadata["generation"],
    }


async def _uids(world: World) -> dict[tuple[str, str], str]:
    return {
        (member.name, obj["metadata"]["name"]): obj["metadata"]["uid"]
        for member in world.members.values()
        for obj in (await member.admin.list(DEPLOYMENTS, "default")).items
    }


async def _generations(world: World) -> dict[tuple[str, str], int]:
    """Return the generations of the members' Deployments, by name and member."""
    return {
        (obj["metadata"]["name"], member.name): obj["metadata"]["generation"]
        for member in world.members.values()
        for obj in (await member.admin.list(DEPLOYMENTS, "default")).items
    }


async def _collected(world: World) -> dict[tuple[str, str], int]:
    """Return the generations that the host's CollectedStatuses show, by name and member."""
    return {
        (collected["metadata"]["name"].removesuffix("-deployments.apps"), entry["cluster"]): entry["collectedFields"][
            "metadata"
        ]["generation"]
        for collected in (await world.user.list(COLLECTED_STATUSES, "default")).items
        for entry in collected["clusters"]
    }


async def _undisturbed(action: Action) -> tuple[int, dict[str, Any]]:
    """Return the number of await points until the federation has converged, and its state then."""
    points = AwaitPoints()
    async with _a_run(points) as world:
        points.is_armed = True
        await action(world)
        await world.settle()
        points.is_armed = False
        return points.count, await _result(world)


ACTIONS = (_create, _update, _move, _delete)


def _name(action: Action) -> str:
    return action.__name__.strip("_")


@pytest.mark.slow("one history for each point")
@pytest.mark.parametrize("action", ACTIONS, ids=_name)
async def test_a_control_plane_that_dies_at_an_await_point_of_a_sync_loses_nothing(action: Action) -> None:
    await _killed_at(action, start=1 + ACTIONS.index(action), step=len(ACTIONS))


@pytest.mark.nightly
@pytest.mark.parametrize("action", ACTIONS, ids=_name)
async def test_a_control_plane_that_dies_at_any_await_point_of_a_sync_loses_nothing(action: Action) -> None:
    await _killed_at(action, start=1, step=1)


async def _killed_at(action: Action, *, start: int, step: int) -> None:
    count, expected = await _undisturbed(action)
    assert count >= 8  # each operation of a member suspends before and after its effect
    for number in range(start, count + 1, step):
        await _killed(action, number, expected)


async def _killed(action: Action, number: int, expected: dict[str, Any]) -> None:
    points = AwaitPoints()
    points.stop_at = number
    async with _a_run(points) as world:
        world.notes.append(f"killed at await point {number} of the sync of {_name(action)}")
        points.on_reached = world.kill
        before = await _uids(world)
        points.is_armed = True
        await action(world)
        acknowledged = {obj["metadata"]["name"]: obj["spec"] for obj in (await world.user.list(DEPLOYMENTS)).items}
        if action is _delete:
            del acknowledged["web"]
        while points.is_armed:
            assert world.clock.monotonic() < 600, "the await point is never reached"
            await world.clock.advance(0.05)
        assert not await violations_meanwhile(world, acknowledged)
        await world.restart()
        await world.pass_time(1)
        await world.settle()
        assert await _result(world) == expected
        after = await _uids(world)
        assert {key: before[key] for key in before.keys() & after.keys()} == {
            key: after[key] for key in before.keys() & after.keys()
        }
        assert not await violations(world)
        await world.pass_time(_COLLECTION_S)
        assert await _collected(world) == await _generations(world)
        settled = await world.revisions()
        await world.restart()
        await world.pass_time(_COLLECTION_S)
        assert await world.revisions() == settled, world.changes("", settled[""])
