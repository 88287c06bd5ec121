"""A change of a custom resource reaches the clusters wave by wave, waits for its health there, and goes back."""

from typing import Any

import pytest
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_ROLLOUTS,
    FEDERATED_TYPE_CONFIGS,
)
from federation.apimachinery.resources import CRDS, Object, Resource

QUEUES = Resource("example.com", "v1", "Queue", "queues")
CLUSTERS = ("east", "north", "west")
WAVES: Object = {
    "onFailure": "RollBack",
    "waves": [
        {"name": "canary", "clusters": ["east"], "gate": {"soakSeconds": 20}, "timeoutSeconds": 60},
        {"name": "second", "clusters": ["north"], "pause": True},
    ],
}


def a_definition() -> Object:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": scale},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
    }
    kind = {"plural": "queues", "singular": "queue", "kind": "Queue", "listKind": "QueueList"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": QUEUES.group_resource},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": [version]},
    }


def a_queue(**spec: Any) -> Object:
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": metadata, "spec": spec}


def a_cluster_policy(name: str, resource: Resource, *placed: str, **spec: Any) -> Object:
    selectors = [{"apiVersion": resource.api_version, "kind": resource.kind}]
    policy = a_policy({}, name=name, resourceSelectors=selectors, schedulingMode="Duplicate", **spec)
    policy["spec"]["placement"] = [{"cluster": cluster} for cluster in placed]
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


async def start(world: World, *placed: str, rollout: Object = WAVES) -> None:
    """Create the definition everywhere, the policy and a queue, and wait until its first content is everywhere."""
    definitions = a_cluster_policy("definitions", CRDS, *CLUSTERS)
    await world.create(CLUSTER_PROPAGATION_POLICIES, definitions)
    policy = a_cluster_policy("queues", QUEUES, *(placed or CLUSTERS), rollout=rollout)
    await world.create(CLUSTER_PROPAGATION_POLICIES, policy)
    await world.create(CRDS, a_definition())
    await world.until(lambda: world.find(FEDERATED_TYPE_CONFIGS, QUEUES.group_resource, ""), "a type")
    await world.create(QUEUES, a_queue(shards=1, mode="slow", replicas=2))
    await world.until_equal(lambda: shards(world), dict.fromkeys(placed or CLUSTERS, 1))
    await report(world, *(placed or CLUSTERS))
    await world.until_equal(lambda: state(world), "Complete")


async def content(world: World) -> dict[str, Object]:
    found = {name: await member.find(QUEUES, "q") for name, member in world.members.items()}
    return {name: obj["spec"] for name, obj in found.items() if obj is not None}


async def shards(world: World) -> dict[str, int]:
    return {name: spec["shards"] for name, spec in (await content(world)).items()}


async def report(world: World, *clusters: str, ready: str = "True") -> None:
    """Let the controllers in these clusters report what they have seen."""
    for name in clusters:
        obj = await world.members[name].find(QUEUES, "q")
        assert obj is not None
        seen = obj["metadata"]["generation"]
        ready_condition = {"type": "Ready", "status": ready, "reason": "R", "message": "two shards are lost"}
        ready_condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        status = {"observedGeneration": seen, "replicas": 2, "conditions": [ready_condition]}
        patch: Object = {"status": status}
        await world.members[name].admin.patch(QUEUES, "q", patch, namespace="default", subresource="status")


async def rollout(world: World) -> Object:
    found = await world.find(FEDERATED_ROLLOUTS, "q-queues.example.com")
    return (found or {}).get("status") or {}


async def state(world: World) -> str:
    return str((await rollout(world)).get("state"))


async def steer(world: World, **spec: Any) -> None:
    await world.merge(FEDERATED_ROLLOUTS, "q-queues.example.com", {"spec": spec})


async def change(world: World, **spec: Any) -> None:
    await world.merge(QUEUES, "q", {"spec": spec})


async def test_a_change_goes_out_in_waves_with_gates_pause_and_approval() -> None:
    async with a_world(members=list(CLUSTERS)) as world:
        await start(world)
        await change(world, shards=4, mode=None, colour="red")
        await world.until_equal(lambda: shards(world), {"east": 4, "north": 1, "west": 1})
        await world.pass_time(50)  # its controller has not observed the change
        assert "has not observed" in (await rollout(world))["message"]
        await report(world, "east", ready="False")
        await world.pass_time(5)
        assert "Ready is False: two shards are lost" in (await rollout(world))["message"]
        # What is no part of the rollout does not wait for it: replicas and labels.
        await world.merge(QUEUES, "q", {"metadata": {"labels": {"team": "a"}}, "spec": {"replicas": 3}})
        await world.until_equal(lambda: replicas(world), dict.fromkeys(CLUSTERS, 3))
        assert await shards(world) == {"east": 4, "north": 1, "west": 1}
        await report(world, "east")
        await world.until_equal(lambda: waits(world), "wave second waits for approval")
        await world.restart()
        assert await shards(world) == {"east": 4, "north": 1, "west": 1}
        await steer(world, approvedWave={"revision": (await rollout(world))["revision"], "wave": "second"})
        await world.until_equal(lambda: shards(world), {"east": 4, "north": 4, "west": 1})
        await report(world, "north")
        await world.until_equal(lambda: shards(world), dict.fromkeys(CLUSTERS, 4))
        await report(world, "west")
        await world.until_equal(lambda: state(world), "Complete")
        assert (await content(world))["west"] == {"shards": 4, "colour": "red", "replicas": 3}


async def replicas(world: World) -> dict[str, int]:
    return {name: spec["replicas"] for name, spec in (await content(world)).items()}


async def waits(world: World) -> str:
    return str((await rollout(world)).get("message"))


@pytest.mark.parametrize("is_aborted", [True, False], ids=["aborted by a user", "a gate that never holds"])
async def test_what_a_failed_wave_changed_goes_back_and_clusters_that_come_never_get_it(*, is_aborted: bool) -> None:
    async with a_world(members=list(CLUSTERS)) as world:
        await start(world, "east", "west")
        await change(world, shards=4, mode=None, colour="red")
        await world.until_equal(lambda: shards(world), {"east": 4, "west": 1})
        await world.merge(QUEUES, "q", {"spec": {"replicas": 5}})
        if is_aborted:
            await steer(world, abort=(await rollout(world))["revision"])
        else:
            await report(world, "east", ready="False")
        await world.until_equal(lambda: state(world), "RolledBack")
        before = {"shards": 1, "mode": "slow", "replicas": 5}
        assert await content(world) == {"east": before, "west": before}
        # Another cluster gets the last content that succeeded, also after a restart.
        await world.restart()
        policy = {"spec": {"placement": [{"cluster": name} for name in CLUSTERS]}}
        await world.merge(CLUSTER_PROPAGATION_POLICIES, "queues", policy, namespace="")
        await world.until_equal(lambda: content(world), dict.fromkeys(CLUSTERS, before))
        await world.merge(QUEUES, "q", {"spec": {"replicas": 6}})
        await world.until_equal(lambda: replicas(world), dict.fromkeys(CLUSTERS, 6))
        assert set((await shards(world)).values()) == {1}
        # The next change begins a new rollout.
        await change(world, shards=8)
        await world.until_equal(lambda: shards(world), {"east": 8, "north": 1, "west": 1})
        await end_waves(world)
        await world.until_equal(lambda: shards(world), dict.fromkeys(CLUSTERS, 8))


async def test_a_health_expression_decides_and_a_lost_cluster_waits() -> None:
    async with a_world(members=list(CLUSTERS)) as world:
        await start(world)
        health = {"health": {"expression": "object.status.shards == object.spec.shards"}}
        await world.merge(FEDERATED_TYPE_CONFIGS, QUEUES.group_resource, {"spec": health}, namespace="")
        await world.lose("east")
        await world.until_ready("east", status="Unknown")
        await change(world, shards=4)
        await world.pass_time(30)
        assert await shards(world) == dict.fromkeys(CLUSTERS, 1)
        await world.bring_back("east")
        await world.until_equal(lambda: shards(world), {"east": 4, "north": 1, "west": 1})
        await report(world, "east")
        await world.pass_time(30)
        assert "its health is not known yet" in await waits(world)
        status: Object = {"status": {"shards": 4}}
        await world.members["east"].admin.patch(QUEUES, "q", status, namespace="default", subresource="status")
        await world.until_equal(lambda: waits(world), "wave second waits for approval")
        await end_waves(world)
        await world.until_equal(lambda: shards(world), dict.fromkeys(CLUSTERS, 4))


async def end_waves(world: World) -> None:
    """Take the waves out of the policy."""
    await world.merge(CLUSTER_PROPAGATION_POLICIES, "queues", {"spec": {"rollout": None}}, namespace="")
