"""The last known status of an unreachable member still counts and is marked: a lost connection is no lost workload."""

import json

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import COLLECTED_STATUSES, FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS
from federation.planning.federatedobject.naming import federated_object_name


async def _collected(world: World) -> dict[str, int]:
    name = federated_object_name("web", "deployments.apps")
    found = await world.find(COLLECTED_STATUSES, name) or {"clusters": []}
    return {
        entry["cluster"]: entry["collectedFields"]["status"].get("availableReplicas", 0) for entry in found["clusters"]
    }


async def _condition(world: World, type_: str) -> tuple[str, str]:
    found = conditions.find((await world.status("web")).get("conditions"), type_) or {}
    return found.get("status", ""), found.get("message", "")


async def _stale(world: World) -> list[str]:
    name = federated_object_name("web", "deployments.apps")
    found = await world.find(COLLECTED_STATUSES, name) or {"clusters": []}
    return [entry["cluster"] for entry in found["clusters"] if entry.get("stale")]


async def test_a_cluster_that_leaves_takes_its_entry_with_it() -> None:
    """Also when nothing changes in the others, as with a workload of copies."""
    async with a_world(has_workloads=False, has_reports=True) as world:
        policy = a_policy({"east": 1, "north": 1})
        policy["spec"]["schedulingMode"] = "Duplicate"
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_equal(lambda: _collected(world), {"east": 2, "north": 2})
        await world.settle()
        await world.user.delete(FEDERATED_CLUSTERS, "north")
        await world.until_equal(lambda: _collected(world), {"east": 2})
        del world.members["north"]


async def test_the_last_known_status_counts_while_the_member_is_unreachable() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        await world.until_equal(lambda: _collected(world), {"east": 2, "north": 1, "west": 1})

        world.members["west"].line.mode = "down"
        await world.until_ready("west", status="Unknown")
        await world.pass_time(30)
        assert (await world.status("web"))["availableReplicas"] == 4
        assert await _collected(world) == {"east": 2, "north": 1, "west": 1}
        assert await _stale(world) == ["west"]
        assert (await _condition(world, names.STATUS_STALE))[1].startswith("clusters [west] do not answer")
        available = await _condition(world, names.DEPLOYMENT_AVAILABLE)
        assert available == ("True", "Deployment has minimum availability in clusters [east,north].")

        # A restarted control plane has never reached the member and uses the stored status.
        await world.restart()
        await world.pass_time(60)
        assert (await world.status("web"))["availableReplicas"] == 4
        assert await _collected(world) == {"east": 2, "north": 1, "west": 1}

        # Changes in other members are still merged. The workload stays in this one, which gets no new replicas.
        await world.scale("web", 8)
        await world.until_equal(lambda: world.replicas("web"), {"east": 5, "north": 2, "west": 1})
        placement = json.loads((await world.federated("web"))["metadata"]["annotations"][names.SCHEDULING])["placement"]
        assert placement == {"east": 5, "north": 2, "west": 1}

        async def available() -> int:
            return int((await world.status("web")).get("availableReplicas", 0))

        await world.until_equal(available, 5 + 2 + 1)

        world.members["west"].line.mend()
        await world.until_ready("west")
        await world.until_replicas("web", {"east": 5, "north": 2, "west": 1})
        await world.until_available("web", 8)
        assert await _condition(world, names.STATUS_STALE) == ("", "")
        await world.until_equal(lambda: _stale(world), [])


@pytest.mark.parametrize("is_late", [False, True], ids=["at-start", "late"])
async def test_what_a_member_lost_while_the_control_plane_was_down_is_not_collected_any_more(is_late: bool) -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_equal(lambda: _collected(world), {"east": 1, "north": 1})
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": a_policy({"north": 1})["spec"]})
        await world.until(lambda: _is_only_in(world, "north"))
        await world.stop()  # before the change is collected
        assert set(await _collected(world)) == {"east", "north"}
        if is_late:
            world.members["east"].line.mode = "down"
        await world.restart()
        if is_late:
            await world.pass_time(30)
            assert set(await _collected(world)) == {"east", "north"}
            world.members["east"].line.mend()
            await world.until_ready("east")
        await world.until_equal(lambda: _collected(world), {"north": 2})


async def _is_only_in(world: World, cluster: str) -> bool:
    return set(await world.replicas("web")) == {cluster}


async def test_no_more_replicas_are_ready_than_wanted_while_a_member_does_not_answer() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        deployment = a_deployment("web", replicas=8)
        deployment["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": "50%"}}
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 8)
        east = world.members["east"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.scale("web", 4)
        await world.until_replicas("web", {"east": 4, "north": 1, "west": 1})
        await world.pass_time(20)
        status = await world.status("web")
        assert status["readyReplicas"] == status["availableReplicas"] == 4
        for name in ("north", "west"):
            world.members[name].line.mode = "down"
        await world.until_ready("north", "west", status="Unknown")
        await world.pass_time(10)
        assert (await _condition(world, names.DEPLOYMENT_AVAILABLE))[0] == "Unknown"
        for member in world.members.values():
            member.line.mend()
        await world.until_replicas("web", {"east": 2, "north": 1, "west": 1})


async def test_changes_in_an_unreachable_member_are_collected_when_it_responds() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_available("web", 3)
        west = world.members["west"]
        west.line.mode = "down"
        await world.until_ready("west", status="Unknown")
        await west.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})  # a manual change
        await world.pass_time(10)
        assert (await world.status("web"))["availableReplicas"] == 3

        west.line.mend()
        await world.until_ready("west")
        await world.until_replicas("web", {"east": 1, "north": 1, "west": 1})
        await world.until_available("web", 3)
