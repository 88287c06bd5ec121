"""A member is lost and recovers: replicas stay until a taint moves them; leftovers are cleaned up afterwards.

A taint of a user acts at once, those of the control plane when the policy's toleration of them ends.
"""

from datetime import timedelta
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.controller import Key

WEB = Key("default", "web-deployments.apps")
LOST = {"taints": [{"key": "lost", "effect": "NoExecute"}]}


async def test_a_lost_cluster_keeps_its_replicas_until_it_is_tainted() -> None:
    async with a_world() as world:
        east = world.members["east"]
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
        await world.until_available("web", 6)

        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=4))
        await world.until_replicas("new", {"north": 2, "west": 2})
        await world.pass_time(60)
        assert await world.replicas("web") == {"east": 2, "north": 2, "west": 2}

        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": LOST})
        await world.until_replicas("web", {"east": 2, "north": 3, "west": 3})
        await world.pass_time(60)
        assert await east.replicas("web") == 2  # unreachable, so not cleaned up yet

        east.line.mode = "up"
        await world.until_ready("east")
        await world.until_replicas("web", {"north": 3, "west": 3})

        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": None}})
        await world.pass_time(20)
        assert await world.replicas("web") == {"north": 3, "west": 3}  # running replicas are not moved
        await world.scale("web", 9)
        await world.until_replicas("web", {"east": 3, "north": 3, "west": 3})
        await world.until_available("web", 9)


async def _taints(world: World, cluster: str) -> list[str]:
    spec = (await world.user.get(FEDERATED_CLUSTERS, cluster))["spec"]
    return [f"{taint['key']}:{taint['effect']}" for taint in spec.get("taints") or ()]


async def test_replicas_leave_a_lost_cluster_when_their_toleration_ends_and_not_before() -> None:
    async with a_world(guard_share=1.0) as world:
        east = world.members["east"]
        await world.merge(
            FEDERATED_CLUSTERS, "east", {"spec": {"taints": [{"key": "own", "effect": "PreferNoSchedule"}]}}
        )
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
        await world.until_available("web", 6)

        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        key = names.TAINT_UNREACHABLE
        await world.until_equal(
            lambda: _taints(world, "east"), ["own:PreferNoSchedule", f"{key}:NoSchedule", f"{key}:NoExecute"]
        )
        tainted_s = world.clock.monotonic()
        await world.pass_time(290)
        assert await world.replicas("web") == {"east": 2, "north": 2, "west": 2}
        await world.until_replicas("web", {"east": 2, "north": 3, "west": 3})  # east does not answer yet
        assert world.clock.monotonic() - tainted_s <= 302

        east.line.mode = "up"
        await world.until_ready("east")
        await world.until_equal(lambda: _taints(world, "east"), ["own:PreferNoSchedule"])
        await world.until_replicas("web", {"north": 3, "west": 3})


async def test_a_policy_decides_how_long_its_objects_stay_in_a_lost_cluster() -> None:
    async with a_world(guard_share=1.0) as world:
        policy = a_policy({}, tolerations=[_toleration(names.TAINT_UNREACHABLE, 20), _toleration("maintenance", 40)])
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_available("web", 6)

        east, north = world.members["east"], world.members["north"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.pass_time(15)
        assert await world.replicas("web") == {"east": 2, "north": 2, "west": 2}
        await world.until_replicas("web", {"east": 2, "north": 3, "west": 3})
        east.line.mode = "up"
        await world.until_ready("east")
        await world.until_replicas("web", {"north": 3, "west": 3})

        added = to_rfc3339(world.plane_clock.now())
        taint = {"key": "maintenance", "effect": "NoExecute", "timeAdded": added}
        await world.merge(FEDERATED_CLUSTERS, "north", {"spec": {"taints": [taint]}})
        await world.pass_time(35)
        assert await north.replicas("web") == 3
        assert world.plane.tolerated.find(WEB) == {"north": from_rfc3339(added) + timedelta(seconds=40)}
        await world.pass_time(10)
        assert await north.replicas("web") is None


async def test_copies_return_to_a_cluster_that_is_back() -> None:
    async with a_world(guard_share=1.0) as world:
        policy = a_policy({}, schedulingMode="Duplicate", tolerations=[_toleration(names.TAINT_UNREACHABLE, 5)])
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=1))
        everywhere = {"east": 1, "north": 1, "west": 1}
        await world.until_replicas("web", everywhere)
        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.until_equal(lambda: _placement(world), {"north", "west"})
        await world.restart()
        await world.pass_time(10)
        assert await _placement(world) == {"north", "west"}
        world.members["east"].line.mode = "up"
        await world.until_ready("east")
        await world.until_equal(lambda: _placement(world), set(everywhere))


async def test_a_short_outage_writes_no_federated_object_twice() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        for number in range(20):
            await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=3))
        for number in range(20):
            await world.until_available(f"web-{number}", 3)
        await world.settle()
        before = await _versions(world)
        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.pass_time(30)
        world.members["east"].line.mode = "up"
        await world.until_ready("east")
        await world.settle()
        after = await _versions(world)
        assert after.keys() == before.keys()
        assert [name for name in after if after[name] != before[name]] == []


def _toleration(key: str, seconds: int) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


async def _placement(world: World) -> frozenset[str]:
    return effective_placement(await world.user.get(FEDERATED_OBJECTS, WEB.name, WEB.namespace))


async def _versions(world: World) -> dict[str, int]:
    """Return the generations of the federated objects: their status may change, their placement does not."""
    items = (await world.user.list(FEDERATED_OBJECTS, "default")).items
    return {item["metadata"]["name"]: item["metadata"]["generation"] for item in items}
