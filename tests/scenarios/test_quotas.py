"""A quota of a namespace over all clusters: workloads wait for it, go on when it has room, and its status says who uses it."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.tenants import admitted_by_hand, federated
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    FEDERATED_OBJECTS,
    FEDERATED_RESOURCE_QUOTAS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.planning.accounts.claim import CLAIM


def a_quota(**overall: str) -> Object:
    return {
        "apiVersion": FEDERATED_RESOURCE_QUOTAS.api_version,
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"overall": overall},
    }


def a_web(name: str, replicas: int) -> Object:
    deployment = a_deployment(name, replicas)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "500m"}}
    return deployment


async def scheduled(world: World, name: str) -> Any:
    await world.settle()
    deployment = await world.user.get(DEPLOYMENTS, name, "default")
    return conditions.find((deployment.get("status") or {}).get("conditions"), names.SCHEDULED) or {}


async def test_a_quota_of_either_version_is_in_force_and_is_read_in_both() -> None:
    beta = FEDERATED_RESOURCE_QUOTAS._replace(version="v1beta1")
    async with a_world(members=("east",)) as world:
        await world.create(beta, a_quota(cpu="1") | {"apiVersion": beta.api_version})
        await world.settle()  # its status says that nothing is used
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_web("web", 2))
        await world.until_replicas("web", {"east": 2})
        await world.settle()
        for version in (beta, FEDERATED_RESOURCE_QUOTAS):
            quota = await world.user.get(version, "team", "default")
            assert quota["apiVersion"] == version.api_version
            assert quota["status"]["overallUsed"] == {"cpu": "1"}


async def test_a_resource_that_is_not_counted_is_refused() -> None:
    uncounted = ("count/jobs.batch", "limits.nvidia.com/gpu", "gold.storageclass.storage.k8s.io/requests.storage")
    async with a_world(members=("east",)) as world:
        for name in uncounted:
            with pytest.raises(Invalid, match="are not counted over clusters"):
                await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(**{name: "1"}))
        counted = {"requests.nvidia.com/gpu": "1", "gpu.deviceclass.resource.k8s.io/devices": "1"}
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(**counted))


async def test_a_quota_holds_when_answers_of_the_host_are_lost() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="2"))
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_web("first", 4))
        await world.until_replicas("first", {"east": 4})
        others = ("second", "third", "fourth")
        for name in others:
            await world.create(DEPLOYMENTS, a_web(name, 4))
        await world.settle()
        world.host_line.hold("federatedobjects")
        await world.merge(FEDERATED_RESOURCE_QUOTAS, "team", {"spec": {"overall": {"cpu": "4"}}})
        await world.pass_time(5)
        assert world.host_line.lost
        world.host_line.release()
        await world.settle()
        placed = [sum((await world.replicas(name)).values()) for name in ("first", *others)]
        assert sum(placed) == 8, "4 cpu"
        quota = await world.user.get(FEDERATED_RESOURCE_QUOTAS, "team", "default")
        assert quota["status"]["overallUsed"] == {"cpu": "4"}


async def test_workloads_share_a_quota_over_all_clusters() -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="3"))
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_web("first", 4))
        await world.until_replicas("first", {"east": 2, "west": 2})
        await world.create(DEPLOYMENTS, a_web("second", 6))
        await world.until_replicas("second", {"east": 1, "west": 1})
        condition = await scheduled(world, "second")
        assert (condition["status"], condition["reason"]) == ("False", "QuotaExceeded")
        assert condition["message"] == (
            "4 of 6 replicas have no place within FederatedResourceQuota team: 3 cpu, of which other workloads use 2"
        )
        quota = await world.user.get(FEDERATED_RESOURCE_QUOTAS, "team", "default")
        assert quota["status"] == {
            "overall": {"cpu": "3"},
            "overallUsed": {"cpu": "3"},
            "aggregatedStatus": [
                {"clusterName": "east", "used": {"cpu": "1500m"}},
                {"clusterName": "west", "used": {"cpu": "1500m"}},
            ],
        }

        await world.merge(DEPLOYMENTS, "first", {"spec": {"replicas": 2}})
        await world.until_replicas("second", {"east": 2, "west": 2})
        await world.restart()
        await world.settle()
        assert (await scheduled(world, "second"))["reason"] == "QuotaExceeded"
        await world.merge(FEDERATED_RESOURCE_QUOTAS, "team", {"spec": {"overall": {"cpu": "5"}}})
        await world.until_replicas("second", {"east": 3, "west": 3})
        assert (await scheduled(world, "second")).get("status") != "False"


async def withheld(world: World, name: str) -> list[tuple[str, str]]:
    """Return cluster and message where a quota keeps content from being delivered."""
    entries = ((await world.federated(name)).get("status") or {}).get("clusters") or ()
    return [(each["cluster"], each["message"]) for each in entries if each["status"] == "QuotaExceeded"]


async def used(world: World) -> Any:
    quota = await world.user.get(FEDERATED_RESOURCE_QUOTAS, "team", "default")
    return ((quota.get("status") or {}).get("overallUsed") or {}).get("cpu")


async def cpu_in(world: World, member: str, name: str) -> Any:
    found = await world.members[member].admin.get(DEPLOYMENTS, name, "default")
    return found["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]


def with_cpu(cpu: str) -> Object:
    container = {"name": "main", "image": "registry.example.com/web:1", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_copies_that_grow_beyond_a_quota_stay_as_they_are_until_there_is_room(is_restarted: bool) -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="5"))
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, schedulingMode="Duplicate"))
        await world.create(DEPLOYMENTS, a_web("web", 1))
        await world.until_replicas("web", {"east": 1, "west": 1})
        if is_restarted:
            await world.restart()
        await world.scale("web", 30)
        because = "it would use more cpu, pods than the quotas allow"
        await world.until_equal(lambda: withheld(world, "web"), [("east", because), ("west", because)])
        assert (await scheduled(world, "web"))["reason"] == "QuotaExceeded"
        assert await world.replicas("web") == {"east": 1, "west": 1}
        await world.scale("web", 5)
        await world.until_replicas("web", {"east": 5, "west": 5})
        await world.until_equal(lambda: used(world), "5")
        await world.scale("web", 2)
        await world.until_equal(lambda: used(world), "2")
        assert (await scheduled(world, "web")).get("status") != "False"


async def test_higher_requests_wait_for_the_quota_in_the_template_and_in_overrides() -> None:
    path = "/spec/template/spec/containers/0/resources/requests/cpu"
    async with a_world(members=("east", "west")) as world:
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="4"))
        labels = {names.OVERRIDE_POLICY_LABEL: "special"}
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        web = a_web("web", 4)
        web["metadata"]["labels"] = labels
        await world.create(OVERRIDE_POLICIES, an_override("east", path, "1"))
        await world.create(DEPLOYMENTS, web)
        await world.until_replicas("web", {"east": 2, "west": 2})
        await world.until_equal(lambda: used(world), "3")
        await world.merge(OVERRIDE_POLICIES, "special", an_override("east", path, "4"))
        await world.until_equal(
            lambda: withheld(world, "web"), [("east", "it would use more cpu than the quotas allow")]
        )
        assert (await cpu_in(world, "east", "web"), await used(world)) == ("1", "3")
        condition = await scheduled(world, "web")
        assert condition["message"] == (
            "its content is not delivered, because it does not fit within FederatedResourceQuota team: 4 cpu"
        )
        await world.merge(FEDERATED_RESOURCE_QUOTAS, "team", {"spec": {"overall": {"cpu": "9"}}})
        await world.until_equal(lambda: cpu_in(world, "east", "web"), "4")
        await world.until_equal(lambda: used(world), "9")
        await world.merge(DEPLOYMENTS, "web", with_cpu("2"))
        await world.until_equal(
            lambda: withheld(world, "web"), [("west", "it would use more cpu than the quotas allow")]
        )
        assert await cpu_in(world, "west", "web") == "500m"
        await world.user.delete(FEDERATED_RESOURCE_QUOTAS, "team", "default")
        await world.until_equal(lambda: cpu_in(world, "west", "web"), "2")
        await world.settle()
        assert CLAIM.name not in (await world.federated("web"))["metadata"]["annotations"]


async def test_what_a_user_writes_with_a_placement_is_within_the_quota_or_waits() -> None:
    def by_hand(name: str, replicas: int) -> Object:
        return admitted_by_hand(federated(a_web(name, replicas), f"{name}-deployments.apps", "east"))

    async with a_world(members=("east",)) as world:
        await world.create(FEDERATED_OBJECTS, by_hand("early", 6))
        await world.until_replicas("early", {"east": 6})
        await world.settle()
        assert CLAIM.name not in (await world.federated("early"))["metadata"]["annotations"], "there is no quota"
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="2"))
        await world.until_equal(lambda: used(world), "3")
        await world.create(FEDERATED_OBJECTS, by_hand("late", 2))
        because = "it would use more cpu, pods than the quotas allow"
        await world.until_equal(lambda: withheld(world, "late"), [("east", because)])
        assert await world.replicas("late") == {}
        assert await world.replicas("early") == {"east": 6}, "what ran before stays"
        await world.merge(FEDERATED_RESOURCE_QUOTAS, "team", {"spec": {"overall": {"cpu": "4"}}})
        await world.until_replicas("late", {"east": 2})
        await world.until_equal(lambda: used(world), "4")
