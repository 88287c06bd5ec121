"""StatefulSets in a simulated member."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.simulatedmember import LABELS, Member, a_member, a_template, a_workload

from federation.api.crds import crd_manifests
from federation.api.resources import ADVANCED_STATEFUL_SETS
from federation.apimachinery.resources import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    Object,
)

CLAIM: Object = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def a_stateful_set(replicas: int = 3, **spec: Any) -> Object:
    return a_workload(STATEFUL_SETS, "db", replicas=replicas, serviceName="db", **spec)


async def until_ready(member: Member, count: int) -> Object:
    async def look() -> Object | None:
        found = await member.get(STATEFUL_SETS, "db")
        status = found.get("status") or {}
        is_newest = status.get("observedGeneration") == found["metadata"]["generation"]
        done = is_newest and status.get("readyReplicas", 0) == status["replicas"] == count
        return found if done and status.get("updatedReplicas", 0) == count else None

    return await member.until(look) or {}


async def images(member: Member) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in await member.all(PODS)}


def an_image(image: str) -> Object:
    template = a_template()
    template["spec"]["containers"][0]["image"] = image
    return {"spec": {"template": template}}


async def test_pods_start_in_order_and_have_names_and_labels_of_their_own() -> None:
    async with a_member() as member:
        await member.create(STATEFUL_SETS, a_stateful_set(3))
        seen: list[list[str]] = []

        async def watch() -> bool:
            names = await member.names(PODS)
            if not seen or seen[-1] != names:
                seen.append(names)
                assert len(names) - len(await member.ready_pods()) <= 1
            return len(await member.ready_pods()) == 3

        await member.until(watch)
        found = await until_ready(member, 3)
        (pod, *_) = await member.all(PODS)

    assert [names for names in seen if names] == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]]
    revision = found["status"]["updateRevision"]
    assert found["status"] == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
        "availableReplicas": 3,
    }
    assert pod["metadata"]["labels"] == {
        **LABELS,
        "statefulset.kubernetes.io/pod-name": "db-0",
        "apps.kubernetes.io/pod-index": "0",
        "controller-revision-hash": revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")


async def test_ordinals_start_where_the_spec_says() -> None:
    async with a_member() as member:
        await member.create(STATEFUL_SETS, a_stateful_set(2, ordinals={"start": 5}))
        await until_ready(member, 2)
        assert await member.names(PODS) == ["db-5", "db-6"]
        await member.merge(STATEFUL_SETS, "db", {"spec": {"ordinals": {"start": 6}}})
        await until_ready(member, 2)
        await member.until_equal(lambda: member.names(PODS), ["db-6", "db-7"])


async def test_a_scale_down_removes_the_highest_ordinal_first_and_keeps_claims() -> None:
    async with a_member() as member:
        await member.create(STATEFUL_SETS, a_stateful_set(3, volumeClaimTemplates=[CLAIM]))
        await until_ready(member, 3)
        await member.merge(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        seen = [await member.names(PODS)]

        async def watch() -> bool:
            names = await member.names(PODS)
            if seen[-1] != names:
                seen.append(names)
            return len(names) == 1

        await member.until(watch)
        assert seen == [["db-0", "db-1", "db-2"], ["db-0", "db-1"], ["db-0"]]
        assert await member.names(PERSISTENT_VOLUME_CLAIMS) == ["data-db-0", "data-db-1", "data-db-2"]
        (pod,) = await member.all(PODS)
        assert pod["spec"]["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}


async def test_claims_go_with_a_scale_down_or_a_deletion_that_says_so() -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    async with a_member() as member:
        body = a_stateful_set(2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
        await member.create(STATEFUL_SETS, body)
        await until_ready(member, 2)
        await member.merge(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await member.until_equal(lambda: member.names(PERSISTENT_VOLUME_CLAIMS), ["data-db-0"])
        await member.delete(STATEFUL_SETS, "db", propagation_policy="Background")
        await member.until_equal(lambda: member.names(PERSISTENT_VOLUME_CLAIMS), [])


async def test_a_rolling_update_replaces_pods_from_the_highest_ordinal_down_to_the_partition() -> None:
    async with a_member() as member:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        await member.create(STATEFUL_SETS, a_stateful_set(3, updateStrategy=strategy))
        first = (await until_ready(member, 3))["status"]["updateRevision"]
        await member.merge(STATEFUL_SETS, "db", an_image("nginx:2"))

        async def is_partly_updated() -> bool:
            status = await member.status(STATEFUL_SETS, "db")
            assert status.get("readyReplicas", 0) >= 2
            return status.get("updatedReplicas") == 2 and status.get("readyReplicas") == 3

        await member.until(is_partly_updated)
        await member.pass_time(5)
        assert await images(member) == {"db-0": "nginx:1", "db-1": "nginx:2", "db-2": "nginx:2"}
        status = await member.status(STATEFUL_SETS, "db")
        assert (status["currentRevision"], status["currentReplicas"]) == (first, 1)
        assert status["updateRevision"] != first

        await member.delete(PODS, "db-0")  # below the partition: it comes back with the old image
        await member.until(member.ready_pods)
        await member.until_equal(member.ready_pods, ["db-0", "db-1", "db-2"])
        assert (await images(member))["db-0"] == "nginx:1"

        await member.merge(STATEFUL_SETS, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        status = (await until_ready(member, 3))["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert set((await images(member)).values()) == {"nginx:2"}
        assert [each["revision"] for each in await member.all(CONTROLLER_REVISIONS)] in ([1, 2], [2, 1])


async def test_on_delete_waits_for_the_user() -> None:
    async with a_member() as member:
        await member.create(STATEFUL_SETS, a_stateful_set(2, updateStrategy={"type": "OnDelete"}))
        await until_ready(member, 2)
        await member.merge(STATEFUL_SETS, "db", an_image("nginx:2"))
        await member.pass_time(5)
        assert set((await images(member)).values()) == {"nginx:1"}
        await member.delete(PODS, "db-0")

        async def is_replaced() -> bool:
            return (await images(member)).get("db-0") == "nginx:2"

        await member.until(is_replaced)
        assert (await images(member))["db-1"] == "nginx:1"


async def test_a_parallel_set_starts_all_pods_at_once() -> None:
    async with a_member() as member:
        await member.create(STATEFUL_SETS, a_stateful_set(4, podManagementPolicy="Parallel"))
        await member.until(lambda: member.names(PODS))
        assert await member.names(PODS) == ["db-0", "db-1", "db-2", "db-3"]
        assert await member.ready_pods() == []
        await until_ready(member, 4)
        await member.merge(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await until_ready(member, 1)


async def test_an_idle_set_costs_no_writes_and_a_rollback_reuses_its_revision() -> None:
    async with a_member() as member:
        await member.create(STATEFUL_SETS, a_stateful_set(2))
        first = (await until_ready(member, 2))["status"]["updateRevision"]
        await member.merge(STATEFUL_SETS, "db", an_image("nginx:2"))
        await until_ready(member, 2)
        await member.merge(STATEFUL_SETS, "db", an_image("nginx:1"))
        assert (await until_ready(member, 2))["status"]["updateRevision"] == first
        await member.pass_time(2)
        before = await member.revision()
        await member.pass_time(60)
        assert await member.revision() == before


# -- StatefulSets of apps.kruise.io


@asynccontextmanager
async def an_advanced_member() -> AsyncIterator[Member]:
    name = ADVANCED_STATEFUL_SETS.group_resource
    async with a_member() as member:
        await member.registry.install_crds([crd for crd in crd_manifests() if crd["metadata"]["name"] == name])
        yield member


def an_advanced_one(replicas: int = 3, rolling: dict[str, Any] | None = None, **spec: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling or {}}
    parallel = {"podManagementPolicy": "Parallel", "updateStrategy": strategy}
    return a_workload(ADVANCED_STATEFUL_SETS, "db", replicas=replicas, serviceName="db", **parallel, **spec)


async def until_updated(member: Member, count: int, updated: int) -> Object:
    async def look() -> Object | None:
        found = await member.get(ADVANCED_STATEFUL_SETS, "db")
        status = found.get("status") or {}
        is_newest = status.get("observedGeneration") == found["metadata"]["generation"]
        is_done = is_newest and status.get("availableReplicas") == status["replicas"] == count
        return status if is_done and status.get("updatedReadyReplicas", 0) == updated else None

    return await member.until(look) or {}


async def test_reserved_ordinals_are_left_out() -> None:
    async with an_advanced_member() as member:
        await member.create(ADVANCED_STATEFUL_SETS, an_advanced_one(3, reserveOrdinals=[1, "3-4"]))
        await until_updated(member, 3, 3)
        assert await member.names(PODS) == ["db-0", "db-2", "db-5"]
        # A pod whose ordinal is reserved moves to the next one.
        await member.merge(ADVANCED_STATEFUL_SETS, "db", {"spec": {"reserveOrdinals": [0]}})
        await member.until_equal(lambda: member.names(PODS), ["db-1", "db-2", "db-3"])


async def test_several_pods_are_updated_at_once_and_in_place() -> None:
    rolling = {"maxUnavailable": "50%", "podUpdatePolicy": "InPlaceIfPossible", "partition": 1}
    async with an_advanced_member() as member:
        await member.create(ADVANCED_STATEFUL_SETS, an_advanced_one(5, rolling))
        await until_updated(member, 5, 5)
        before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await member.all(PODS)}
        await member.merge(ADVANCED_STATEFUL_SETS, "db", an_image("nginx:2"))
        fewest = 5

        async def look() -> bool:
            nonlocal fewest
            fewest = min(fewest, len(await member.ready_pods()))
            return sorted((await images(member)).values()) == ["nginx:1"] + ["nginx:2"] * 4

        await member.until(look)
        await until_updated(member, 5, 4)
        assert fewest == 3
        assert {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await member.all(PODS)} == before
        assert (await images(member))["db-0"] == "nginx:1"


async def test_a_pause_stops_updates_and_a_change_that_is_not_an_image_replaces_pods() -> None:
    rolling = {"podUpdatePolicy": "InPlaceIfPossible", "paused": True}
    async with an_advanced_member() as member:
        await member.create(ADVANCED_STATEFUL_SETS, an_advanced_one(2, rolling))
        await until_updated(member, 2, 2)
        before = {pod["metadata"]["uid"] for pod in await member.all(PODS)}
        await member.merge(ADVANCED_STATEFUL_SETS, "db", {"spec": {"template": a_template(cpu="200m")}})
        await until_updated(member, 2, 0)
        await member.pass_time(5)
        assert {pod["metadata"]["uid"] for pod in await member.all(PODS)} == before
        resume = {"spec": {"updateStrategy": {"rollingUpdate": {"paused": False}}}}
        await member.merge(ADVANCED_STATEFUL_SETS, "db", resume)
        await until_updated(member, 2, 2)
        assert not before & {pod["metadata"]["uid"] for pod in await member.all(PODS)}
