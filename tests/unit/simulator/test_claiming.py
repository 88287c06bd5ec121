"""Workloads of a simulated member take orphans that their selector matches, and release what matches no more."""

from typing import Any

import pytest
from tests.unit.simulator.test_workloads import Member, a_deployment, a_member

from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)

KINDS = {
    resource.kind: resource
    for resource in (DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, DAEMON_SETS)
}


def a_workload(resource: Resource) -> dict[str, Any]:
    obj = {**a_deployment(2), "apiVersion": resource.api_version, "kind": resource.kind}
    if resource == REPLICATION_CONTROLLERS:
        obj["spec"]["selector"] = obj["spec"]["selector"]["matchLabels"]
    if resource == STATEFUL_SETS:
        obj["spec"]["serviceName"] = "web"
    if resource == DAEMON_SETS:
        obj["spec"].pop("replicas")
    return obj


async def pods(member: Member) -> dict[str, str]:
    """Return the owners of the running pods by their uid."""
    found = (await member.client.list(PODS, "default")).items
    running = [pod for pod in found if (pod.get("status") or {}).get("phase") == "Running"]
    return {pod["metadata"]["uid"]: (controller_of(pod) or {}).get("uid", "") for pod in running}


async def begin(member: Member, resource: Resource) -> dict[str, str]:
    await member.client.create(resource, a_workload(resource))
    wanted = 1 if resource == DAEMON_SETS else 2

    async def is_running() -> bool:
        return len(await pods(member)) == wanted

    await member.until(is_running)
    return await pods(member)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_workload_that_is_created_again_goes_on_with_its_pods(kind: str) -> None:
    resource = KINDS[kind]
    async with a_member() as member:
        before = await begin(member, resource)
        await member.client.delete(resource, "web", "default", propagation_policy="Orphan")

        async def is_gone() -> bool:
            return not (await member.client.list(resource, "default")).items

        await member.until(is_gone)
        await member.client.create(resource, a_workload(resource))

        async def is_ready() -> bool:
            status = (await member.client.get(resource, "web", "default")).get("status") or {}
            return (status.get("numberReady") or status.get("readyReplicas")) == len(before)

        await member.until(is_ready)
        after = await pods(member)
        assert after.keys() == before.keys()
        is_owned_by_it = resource != DEPLOYMENTS  # its ReplicaSet was the orphan
        assert all((after[uid] != owner) == is_owned_by_it for uid, owner in before.items())


async def test_a_pod_that_loses_its_label_is_released_and_replaced_and_one_that_gets_it_is_taken() -> None:
    async with a_member() as member:
        before = await begin(member, REPLICA_SETS)
        first = (await member.client.list(PODS, "default")).items[0]["metadata"]
        await member.client.patch(PODS, first["name"], {"metadata": {"labels": {"app": None}}}, namespace="default")

        async def are_three() -> bool:
            return len(await pods(member)) == 3

        await member.until(are_three)
        after = await pods(member)
        assert after.pop(first["uid"]) == ""
        assert set(after.values()) == set(before.values())
        await member.client.patch(PODS, first["name"], {"metadata": {"labels": {"app": "web"}}}, namespace="default")

        async def are_two() -> bool:
            return len(await pods(member)) == 2

        await member.until(are_two)
        assert set((await pods(member)).values()) == set(before.values())


async def test_a_stateful_set_takes_only_pods_with_names_of_its_own() -> None:
    async with a_member() as member:
        await begin(member, STATEFUL_SETS)
        spec = a_deployment(1)["spec"]["template"]["spec"]
        for name in ("web-7", "web-x", "other"):
            metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
            await member.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

        async def names() -> set[str]:
            return {pod["metadata"]["name"] for pod in (await member.client.list(PODS, "default")).items}

        async def is_condemned() -> bool:  # beyond the replicas, so the set deletes what it has taken
            return "web-7" not in await names()

        await member.until(is_condemned)
        assert await names() == {"web-0", "web-1", "web-x", "other"}
