"""Workloads with rules about each other: together, apart, first of a group, followed when a partner moves."""

import re
from functools import partial
from typing import Any

import yaml
from tests.support.manifests import a_deployment, a_policy
from tests.support.sources import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.planning.federatedobject.placements import placement_of


def policy(name: str, app: str, **spec: Any) -> Object:
    """Return a policy that puts the Deployment of an app into one cluster."""
    made = a_policy({}, name=name, maxClusters=1, **spec)
    made["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchLabels": {"app": app}}
    if "placement" not in spec:
        del made["spec"]["placement"]
    return made


def about(app: str, **more: Any) -> Object:
    return {"labelSelector": {"matchLabels": {"app": app}}, **more}


async def place(world: World, app: str, replicas: int = 2, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, policy(app, app, **spec))
    await world.create(DEPLOYMENTS, a_deployment(app, replicas))


async def move_to(world: World, app: str, cluster: str) -> None:
    """Let the user's policy name the only cluster that the app may be in."""
    await world.merge(PROPAGATION_POLICIES, app, {"spec": {"placement": [{"cluster": cluster}]}})


async def until_scheduled(world: World, app: str, status: str) -> None:
    async def look() -> str:
        found = await world.find(FEDERATED_OBJECTS, f"{app}-deployments.apps")
        held = conditions.find(((found or {}).get("status") or {}).get("conditions"), names.SCHEDULED)
        return str((held or {}).get("status"))

    await world.until_equal(look, status)


async def placed(world: World, app: str) -> set[str]:
    """Return the clusters that the scheduler wants for an app."""
    return set(placement_of(await world.federated(app), names.GLOBAL_SCHEDULER))


async def running(world: World, app: str) -> int:
    """Return the available replicas in the members, which the merged status follows."""
    copies = [await member.find(DEPLOYMENTS, app) for member in world.members.values()]
    return sum(((copy or {}).get("status") or {}).get("availableReplicas", 0) for copy in copies)


async def until_placed(world: World, expected: set[str], *apps: str) -> None:
    for app in apps:
        await world.until_equal(partial(placed, world, app), expected)


async def test_a_workload_waits_for_its_partner_and_follows_it_without_a_missing_replica() -> None:
    async with a_world(members=("east", "west")) as world:
        await place(world, "web", workloadAffinity={"required": [about("db")]})
        await until_scheduled(world, "web", "False")
        assert await world.replicas("web") == {}
        await place(world, "db", placement=[{"cluster": "west"}])
        await world.until_available("web", 2)
        assert await world.replicas("web") == {"west": 2}
        await world.restart()
        await move_to(world, "db", "east")
        least = 2
        while await world.replicas("web") != {"east": 2}:
            await world.pass_time(0.5)
            least = min(least, await running(world, "web"))
        assert least == 2


async def test_the_policy_of_the_guide_follows_the_region_of_the_database() -> None:
    guide = (ROOT / "docs" / "scheduling.md").read_text()
    [example] = re.findall(r"```yaml\n([^`]*near-the-database[^`]*)```", guide)
    region = "topology.kubernetes.io/region"
    regions = {"north": "eu", "south": "eu", "west": "us"}
    async with a_world(
        members=tuple(regions), labels={name: {region: value} for name, value in regions.items()}
    ) as world:
        await world.create(PROPAGATION_POLICIES, yaml.safe_load(example))
        await world.create(DEPLOYMENTS, a_deployment("web", 4))
        await until_scheduled(world, "web", "False")
        await place(world, "db", placement=[{"cluster": "north"}])
        await world.until_available("web", 4)
        assert await placed(world, "web") == {"north", "south"}
        await move_to(world, "db", "south")  # in the same region
        await world.until_available("db", 2)
        assert await placed(world, "web") == {"north", "south"}
        await move_to(world, "db", "west")
        await until_placed(world, {"west"}, "web")
        await world.until_available("web", 4)


async def test_two_that_name_each_other_are_placed_and_leave_a_lost_cluster_together() -> None:
    async with a_world(members=("east", "west"), toleration_s=0) as world:
        await place(world, "one", workloadAffinity={"required": [about("two")]})
        await until_scheduled(world, "one", "False")
        await place(world, "two", workloadAffinity={"required": [about("one")]})
        for app in ("one", "two"):
            await world.until_available(app, 2)
        [home] = await world.replicas("one")
        assert await world.replicas("two") == {home: 2}
        await world.lose(home)
        [other] = {"east", "west"} - {home}
        await until_placed(world, {other}, "one", "two")
        await world.bring_back(home)
        await world.pass_time(120)
        for app in ("one", "two"):
            await world.until_replicas(app, {other: 2})


async def test_copies_of_a_service_keep_apart_and_one_that_waits_is_placed_when_a_place_is_free() -> None:
    async with a_world(members=("east", "west"), toleration_s=0) as world:
        rule = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b", "c"]}]}}
        for app in ("a", "b", "c"):
            await place(world, app, workloadAntiAffinity={"required": [rule]})
        await until_scheduled(world, "c", "False")
        found = {app: tuple(await world.replicas(app)) for app in ("a", "b")}
        assert sorted(found.values()) == [("east",), ("west",)]
        await world.restart()
        await world.user.delete(DEPLOYMENTS, "a", "default")
        await world.until_available("c", 2)
        assert tuple(await world.replicas("c")) == found["a"]
        assert tuple(await world.replicas("b")) == found["b"]


async def test_a_partner_in_a_lost_cluster_is_followed_once_it_has_left() -> None:
    async with a_world(members=("east", "west"), toleration_s=0) as world:
        await place(world, "db")
        await world.until_available("db", 2)
        await place(world, "web", workloadAffinity={"required": [about("db")]})
        await world.until_available("web", 2)
        [home] = await world.replicas("db")
        await world.lose(home)
        [other] = {"east", "west"} - {home}
        await world.restart()
        await until_placed(world, {other}, "db", "web")
        await world.bring_back(home)
        for app in ("db", "web"):
            await world.until_available(app, 2)
