"""A move has a cause in its own cluster: what happens to other clusters moves nothing."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, STATEFUL_SETS, Object
from federation.planning.guard.record import held_move

KINDS = [{"apiVersion": "apps/v1", "kind": kind} for kind in ("Deployment", "StatefulSet")]


def a_database(name: str) -> Object:
    """Return a StatefulSet with a template of claims."""
    found = a_deployment(name, replicas=2)
    claim: Object = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    found["kind"] = "StatefulSet"
    found["spec"] |= {"serviceName": name, "volumeClaimTemplates": [claim]}
    return found


def one_cluster(*clusters: str, **spec: Any) -> Object:
    policy = a_policy({}, maxClusters=1, resourceSelectors=KINDS, **spec)
    policy["spec"]["placement"] = [{"cluster": name} for name in clusters]
    return policy


async def _federated(world: World, name: str) -> Object:
    """Return the federated object of a Deployment, or of the StatefulSet of this name."""
    found = await world.find(FEDERATED_OBJECTS, f"{name}-deployments.apps")
    return found or await world.user.get(FEDERATED_OBJECTS, f"{name}-statefulsets.apps", "default")


async def _placed(world: World, name: str) -> set[str]:
    federated = await _federated(world, name)
    placements = federated["spec"].get("placements") or ()
    return {entry["cluster"] for part in placements for entry in part["placement"]}


async def _taint(world: World, cluster: str, *taints: Object) -> None:
    await world.merge(FEDERATED_CLUSTERS, cluster, {"spec": {"taints": list(taints)}})


async def test_taints_of_empty_clusters_move_neither_a_database_nor_a_deployment() -> None:
    async with a_world() as world:
        taint = {"key": "a", "value": "b", "effect": "NoExecute"}
        await _taint(world, "east", taint)
        await world.settle()
        await world.create(PROPAGATION_POLICIES, one_cluster("east", "north", "west"))
        await world.create(STATEFUL_SETS, a_database("db"))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.settle()
        before = {name: await _placed(world, name) for name in ("db", "web")}
        assert before == {"db": {"north"}, "web": {"north"}}
        # Without its taint east would be chosen, as the first of equals, and left again when it is back.
        for cluster, taints in (("east", []), ("west", [taint]), ("east", [taint]), ("east", []), ("west", [])):
            await _taint(world, cluster, *taints)
            await world.pass_time(20)
            await world.settle()
            assert {name: await _placed(world, name) for name in ("db", "web")} == before


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
async def test_only_a_workload_with_volumes_waits_for_the_user_when_its_policy_names_another_cluster(kind: str) -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, one_cluster("east"))
        is_database = kind == "StatefulSet"
        await world.create(
            STATEFUL_SETS if is_database else DEPLOYMENTS,
            a_database("app") if is_database else a_deployment("app", replicas=2),
        )
        await world.settle()
        assert await _placed(world, "app") == {"east"}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.pass_time(60)
        await world.settle()
        assert await _placed(world, "app") == ({"east"} if is_database else {"west"})
        if is_database:
            held = held_move(await _federated(world, "app"))
            assert held is not None
            assert held.clusters == {"east"}
            status = (await _federated(world, "app"))["status"]
            scheduled = conditions.find(status["conditions"], names.SCHEDULED) or {}
            assert scheduled["reason"] == names.REASON_HELD
            assert "volumeClaimTemplates do not move with it" in scheduled["message"]


@pytest.mark.parametrize("returns", ["Always", None])
async def test_a_deployment_of_one_cluster_returns_home_after_a_failover_if_its_policy_says_so(
    returns: str | None,
) -> None:
    async with a_world(toleration_s=0) as world:
        policy = one_cluster("east", "north", "west")
        if returns:
            policy["spec"]["failover"] = {"returns": returns}
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_available("web", 2)
        await world.settle()
        (home,) = await _placed(world, "web")
        world.members[home].line.mode = "down"
        await world.until_ready(home, status="Unknown")
        await world.until_equal(lambda: _is_away(world, home), expected=True)
        away = await _placed(world, "web")
        world.members[home].line.mode = "up"
        await world.until_ready(home)
        await world.pass_time(200)
        assert await _placed(world, "web") == away
        if returns:
            await world.until_equal(lambda: _placed(world, "web"), {home})
        else:
            await world.pass_time(400)
            assert await _placed(world, "web") == away


async def _is_away(world: World, home: str) -> bool:
    return home not in await _placed(world, "web")
