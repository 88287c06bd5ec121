"""LeaderWorkerSets over clusters: each group is whole in one cluster, and the groups are divided like replicas."""

from typing import Any

import pytest
from tests.scenarios.test_gangs import a_definition, everywhere, nodes, waits
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import CRDS, Object, Resource

SETS = Resource("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")


def a_set(replicas: int, size: int = 4, cpu: str = "8") -> Object:
    container = {"name": "serve", "image": "serve:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": SETS.api_version,
        "kind": SETS.kind,
        "metadata": {"name": "serve", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": {"spec": {"containers": [container]}}},
            "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 3}},
        },
    }


def a_scaled_definition() -> Object:
    definition = a_definition(SETS)
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    definition["spec"]["versions"][0]["subresources"] = {"status": {}, "scale": paths}
    return definition


async def groups(world: World, field: Any = lambda spec: spec["replicas"]) -> dict[str, int]:
    """Return the groups of each member that has the set."""
    found = {name: await member.find(SETS, "serve") for name, member in world.members.items()}
    return {name: field(each["spec"]) for name, each in found.items() if each is not None}


@pytest.mark.slow("definitions in three members, and a world of its own")
async def test_groups_are_divided_whole_and_those_without_room_are_in_no_member() -> None:
    # 32 cores for each group: 5, 2 and 1 of them have room, though the last cluster has 60 cores on three nodes.
    rooms = {"large": nodes(160, 16), "medium": nodes(64, 32), "small": nodes(60, 20)}
    async with a_world(members=tuple(rooms), nodes=rooms) as world:
        await world.create(CRDS, a_scaled_definition())
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        await world.until(lambda: world.members["small"].find(CRDS, SETS.group_resource, ""))
        await world.settle()
        selectors = [{"apiVersion": SETS.api_version, "kind": SETS.kind}]
        await world.create(PROPAGATION_POLICIES, a_policy({}, name="sets", resourceSelectors=selectors, placement=[]))

        await world.create(SETS, a_set(4))
        await world.until(lambda: groups(world))
        await world.settle()
        found = await groups(world)
        assert sum(found.values()) == 4
        assert found["medium"] <= 2
        assert found.get("small", 0) <= 1
        partitions = await groups(
            world, lambda spec: spec["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"]
        )
        assert sum(partitions.values()) == 3, "three groups of all keep the earlier template"

        await world.merge(SETS, "serve", {"spec": {"replicas": 20}})
        await world.settle()
        found = await groups(world)
        assert found == {"large": 5, "medium": 2, "small": 1}
        assert await waits(world, "serve", SETS.group_resource) == ""
