"""Members appear as ClusterProfiles, for tools that read the inventory of Kubernetes' multicluster group."""

from collections import Counter
from typing import Any

from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.conditions import find
from federation.features.clusterprofiles.names import (
    CLUSTER_PROFILES,
    CONTROL_PLANE_HEALTHY,
    EVENT_PROFILE_TAKEN,
    MANAGER_LABEL,
)


async def profile(world: World, name: str) -> Any:
    return await world.find(CLUSTER_PROFILES, name, names.SYSTEM_NAMESPACE) or {}


async def health(world: World, name: str) -> str:
    conditions = ((await profile(world, name)).get("status") or {}).get("conditions") or []
    return str((find(conditions, CONTROL_PLANE_HEALTHY) or {}).get("status"))


async def test_a_profile_follows_its_cluster_from_the_join_to_the_end() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        await world.until_equal(lambda: health(world, "east"), "True")
        east = await profile(world, "east")
        assert east["spec"] == {"clusterManager": {"name": "federation"}, "displayName": "east"}
        assert east["metadata"]["labels"] == {MANAGER_LABEL: "federation"}
        properties = {each["name"]: each["value"] for each in east["status"]["properties"]}
        assert properties["cluster.clusterset.k8s.io"] == "east"
        cluster = await world.user.get(FEDERATED_CLUSTERS, "east")
        allocatable = cluster["status"]["resources"]["allocatable"]
        assert properties["federation.kubeadmiral.io/allocatable-cpu"] == str(allocatable["cpu"])

        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "gold"}}}, "")
        await world.until_equal(lambda: _labels(world, "east"), {"tier": "gold", MANAGER_LABEL: "federation"})
        await world.lose("east")
        await world.until_equal(lambda: health(world, "east"), "Unknown")
        assert await health(world, "west") == "True"
        await world.bring_back("east")
        await world.until_equal(lambda: health(world, "east"), "True")

        await world.user.delete(FEDERATED_CLUSTERS, "west")
        await world.until_gone(CLUSTER_PROFILES, "west", names.SYSTEM_NAMESPACE)


async def test_a_join_is_four_writes_of_the_cluster_and_two_of_its_profile() -> None:
    async with a_world_without_pods(members=("west",)) as world:
        await world.until_equal(lambda: health(world, "west"), "True")
        await world.add_member("east", {})
        since = await world.store.revision()
        await world.join("east")
        await world.until_equal(lambda: health(world, "east"), "True")
        await world.pass_time(10)
        changes = world.store.watch("/", since)
        keys = [event.key.split("/") for event in await anext(changes)]
        await changes.aclose()
        writes = Counter(key[2] for key in keys if key[-1] == "east")
        assert writes["federatedclusters"] <= 4, writes  # created, finalizers, joined, ready with its resources
        assert writes["clusterprofiles"] == 2, writes  # created, status


async def _labels(world: World, name: str) -> Any:
    return (await profile(world, name))["metadata"]["labels"]


async def test_a_profile_of_another_manager_is_left_alone() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        await world.until_equal(lambda: health(world, "east"), "True")
        await world.user.delete(CLUSTER_PROFILES, "east", names.SYSTEM_NAMESPACE)
        await world.until_equal(lambda: health(world, "east"), "True")  # ours comes back

        await world.stop()
        await world.user.delete(CLUSTER_PROFILES, "east", names.SYSTEM_NAMESPACE)
        spec = {"clusterManager": {"name": "other"}, "displayName": "theirs"}
        metadata = {"name": "east", "namespace": names.SYSTEM_NAMESPACE}
        theirs = await world.create(CLUSTER_PROFILES, {"metadata": metadata, "spec": spec})
        await world.restart()

        async def is_told() -> bool:
            return any(reason == EVENT_PROFILE_TAKEN for reason, _ in await world.events())

        await world.until(is_told)
        assert (await profile(world, "east"))["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
