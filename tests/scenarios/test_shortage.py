"""Replicas unplaced because of the policy's limits are placed when a cluster is ready, joins or is uncordoned.

The policy allows no rescheduling, so running replicas must not move.
"""

import pytest
from tests.support.manifests import a_deployment
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.controllers.schedule.names import EVENT_SCHEDULED
from federation.journal.decisions import DecisionFilter

LIMITS = {"east": 2, "north": 3, "west": 4}


def a_limited_policy() -> Object:
    placement = [{"cluster": name, "preferences": {"maxReplicas": most}} for name, most in LIMITS.items()]
    return {
        "apiVersion": PROPAGATION_POLICIES.api_version,
        "kind": "PropagationPolicy",
        "metadata": {"name": "limited", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "schedulingMode": "Divide",
            "placement": placement,
            "reschedulePolicy": {
                "replicaRescheduling": {"avoidDisruption": False},
                "rescheduleWhen": {"policyContentChanged": False},
            },
        },
    }


async def taint(world: World, name: str, *effects: str) -> None:
    taints = [{"key": "cordon", "effect": effect} for effect in effects]
    await world.merge(FEDERATED_CLUSTERS, name, {"spec": {"taints": taints}}, namespace="")


async def decisions(world: World) -> int:
    return len(await world.journal.query(DecisionFilter(name="web"), limit=50))


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_unplaced_replicas_use_a_new_cluster_and_no_other_replica_moves(is_restarted: bool) -> None:
    async with a_world(members=("east", "north")) as world:
        await taint(world, "east", "NoSchedule")
        await world.create(PROPAGATION_POLICIES, a_limited_policy())
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        await world.until_replicas("web", {"north": 3})
        messages = [message for reason, message in await world.events() if reason == EVENT_SCHEDULED]
        limited = "6 of 9 replicas have no place within the limits"
        assert [message for message in messages if message.endswith(limited)]
        if is_restarted:
            await world.restart()
        await world.settle()
        await world.pass_time(30)  # Capacity reports do not help, but may cause one attempt after a start.
        assert await decisions(world) <= 1 + is_restarted

        await taint(world, "east")
        await world.until_replicas("web", {"east": 2, "north": 3})
        north = world.members["north"].line
        north.mode = "down"
        await world.until_ready("north", status="Unknown")
        await world.add_member("west", {})
        await world.join("west")
        await world.until_replicas("web", {"east": 2, "north": 3, "west": 4})
        north.mend()
        await world.until_ready("north")
        await world.until_available("web", 9)


async def test_unplaced_replicas_use_a_recovered_cluster() -> None:
    async with a_world() as world:
        west = world.members["west"].line
        west.mode = "down"
        await world.until_ready("west", status="Unknown")
        await world.create(PROPAGATION_POLICIES, a_limited_policy())
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))
        await world.until_replicas("web", {"east": 2, "north": 3})
        await world.settle()
        west.mend()
        await world.until_replicas("web", {"east": 2, "north": 3, "west": 3})
        await world.settle()
        assert await decisions(world) == 2
