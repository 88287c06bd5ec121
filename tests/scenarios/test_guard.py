"""What one mistake can delete or move: a change that moves many objects is held, a deleted federated object restarts no pod."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PLACEMENT_HOLDS, PROPAGATION_POLICIES
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Object
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.guard.record import past_move

EVERYWHERE = {"east": 1, "north": 1, "west": 1}
FEDERATED = "web-deployments.apps"


async def _member_uids(world: World) -> dict[str, str]:
    """Return the uids of the members' Deployment web and of its ConfigMap, by member and name."""
    found = {}
    for member in world.members.values():
        for resource, name in ((DEPLOYMENTS, "web"), (CONFIGMAPS, "settings")):
            obj = await member.find(resource, name)
            if obj is not None:
                found[f"{member.name} {name}"] = obj["metadata"]["uid"]
    return found


def _with_settings(deployment: Object) -> Object:
    """Return the Deployment with a reference to the ConfigMap settings."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    return deployment


async def _running(world: World, weights: Mapping[str, int] = EVERYWHERE) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}
    await world.create(CONFIGMAPS, settings)
    await world.create(PROPAGATION_POLICIES, a_policy(weights))
    await world.create(DEPLOYMENTS, _with_settings(a_deployment("web", replicas=6)))
    await world.until_available("web", 6)
    await world.settle()


async def _replacement(world: World, uid: str) -> Object | None:
    found = await world.find(FEDERATED_OBJECTS, FEDERATED)
    return found if found is not None and found["metadata"]["uid"] != uid else None


@pytest.mark.parametrize("cascade", ["Background", "Foreground", "Orphan"])
async def test_a_deleted_federated_object_is_written_again_and_restarts_no_pod(cascade: str) -> None:
    async with a_world() as world:
        await _running(world)
        before, uids = await world.federated("web"), await _member_uids(world)
        assert len(uids) == 6
        for member in world.members.values():
            member.line.calls.clear()

        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default", propagation_policy=cascade)
        after = await world.until(lambda: _replacement(world, before["metadata"]["uid"]))
        assert after["spec"]["placements"] == before["spec"]["placements"]
        assert after["spec"]["overrides"] == before["spec"]["overrides"]
        await world.settle()
        assert await _member_uids(world) == uids
        assert not [
            call for member in world.members.values() for call in member.line.calls if call[0] in ("delete", "apply")
        ]
        assert "FederatedObjectWrittenAgain" in [reason for reason, _ in await world.events()]
        assert (await world.condition("web", "Propagated"))["status"] == "True"


async def test_the_replacement_keeps_a_placement_that_the_policy_would_not_choose_today() -> None:
    async with a_world() as world:
        await _running(world, {"east": 1})
        policy = a_policy({"west": 1}, reschedulePolicy={"rescheduleWhen": {"policyContentChanged": False}})
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})
        await world.settle()
        before, uids = await world.federated("web"), await _member_uids(world)
        assert effective_placement(before) == {"east"}

        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.until(lambda: _replacement(world, before["metadata"]["uid"]))
        await world.settle()
        assert await world.replicas("web") == {"east": 6}
        assert await _member_uids(world) == uids


async def test_a_federated_object_that_is_deleted_just_before_a_restart_is_written_again() -> None:
    async with a_world() as world:
        await _running(world)
        before, uids = await world.federated("web"), await _member_uids(world)
        await world.stop()
        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.restart()
        await world.until(lambda: _replacement(world, before["metadata"]["uid"]))
        await world.settle()
        assert await _member_uids(world) == uids


async def test_a_source_that_is_deleted_after_its_federated_object_leaves_no_member_object() -> None:
    async with a_world() as world:
        await _running(world)
        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.settle()
        assert await world.replicas("web") == {}


async def test_the_deletion_of_a_namespace_deletes_what_is_in_it() -> None:
    async with a_world() as world:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        await world.create(NAMESPACES, namespace)
        policy = a_policy(EVERYWHERE)
        policy["metadata"]["namespace"] = "shop"
        await world.create(PROPAGATION_POLICIES, policy)
        web = a_deployment("web", replicas=3)
        web["metadata"]["namespace"] = "shop"
        await world.create(DEPLOYMENTS, web)
        east = world.members["east"]
        await world.until(lambda: east.find(DEPLOYMENTS, "web", "shop"))
        await world.settle()

        await world.user.delete(NAMESPACES, "shop", "")
        await world.until_gone(NAMESPACES, "shop", "")
        await world.settle()
        for member in world.members.values():
            assert await member.find(DEPLOYMENTS, "web", "shop") is None


async def test_a_source_that_is_excluded_first_leaves_the_members_with_its_federated_object() -> None:
    async with a_world() as world:
        await _running(world)
        excluded = {"metadata": {"annotations": {"kubeadmiral.io/no-federated-resource": "true"}}}
        await world.merge(DEPLOYMENTS, "web", excluded)
        await world.settle()
        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.until_gone(FEDERATED_OBJECTS, FEDERATED)
        assert await world.replicas("web") == {}
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")


# -- the guard


def _copies(*clusters: str, **spec: Any) -> Object:
    """Return a policy that runs every Deployment of the namespace in each of the clusters."""
    policy = a_policy({}, name="copies", schedulingMode="Duplicate", **spec)
    return {**policy, "spec": {**policy["spec"], "placement": [{"cluster": name} for name in clusters]}}


async def _fleet(world: World, policy: Object, *, count: int = 60, sticky: int = 0) -> None:
    """Create Deployments, the first ones of which stay in their clusters whatever the policy says."""
    await world.create(PROPAGATION_POLICIES, policy)
    for number in range(count):
        deployment = a_deployment(f"app-{number:02}", replicas=4)
        if number < sticky:
            deployment["metadata"]["annotations"] = {names.STICKY_CLUSTER: "true"}
        await world.create(DEPLOYMENTS, deployment)
    await world.settle()


async def _count(world: World, member: str) -> int:
    """Return how many Deployments the member has."""
    return len((await world.members[member].admin.list(DEPLOYMENTS)).items)


async def _held_condition(world: World, name: str) -> tuple[Any, Any]:
    condition = await world.condition(name, names.SCHEDULED)
    return condition.get("status"), condition.get("reason")


async def _holds(world: World) -> list[Object]:
    return (await world.user.list(PLACEMENT_HOLDS)).items


async def _approve(world: World, hold: Object) -> None:
    """Approve as `fedctl approve` does; the API server's stamp is added here, as no API server runs."""
    await world.pass_time(1)
    approval = {"reason": "planned", "by": "admin", "at": to_rfc3339(world.clock.now())}
    await world.merge(PLACEMENT_HOLDS, hold["metadata"]["name"], {"spec": {"approval": approval}}, "")


async def test_a_policy_that_would_empty_a_cluster_is_held_until_somebody_approves() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, _copies("east", "west"), sticky=10)
        assert await _count(world, "east") == 60
        await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.settle()

        assert await _count(world, "east") == 60, "nothing was deleted"
        (hold,) = await _holds(world)
        assert hold["spec"]["cause"] == "PropagationPolicy default/copies"
        assert hold["spec"]["count"] == 50
        assert await _held_condition(world, "app-30") == ("False", "Held")
        source = await world.status("app-30")
        shown = next(entry for entry in source["conditions"] if entry["type"] == "Scheduled")
        assert shown["reason"] == "Held"
        assert f"fedctl approve {hold['metadata']['name']}" in shown["message"]
        assert "PlacementHeld" in [reason for reason, _ in await world.events()]

        # The rest goes on: updates, and scaling.
        await world.scale("app-30", 7)
        await world.until_equal(lambda: world.members["east"].replicas("app-30"), 7)

        await _approve(world, hold)
        await world.until_equal(lambda: _count(world, "east"), 10)
        await world.settle()
        assert await _count(world, "west") == 60
        assert await _held_condition(world, "app-30") == ("True", "Scheduled")


async def test_a_policy_that_moves_few_objects_acts_at_once() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, _copies("east", "west"), sticky=52)
        await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}]}})
        changed_s = world.clock.monotonic()
        await world.until_equal(lambda: _count(world, "east"), 52)
        assert world.clock.monotonic() - changed_s < 5
        assert not await _holds(world)


async def test_moves_before_a_restart_count_after_it() -> None:
    first, second = ({"key": key, "operator": "Exists"} for key in ("first", "second"))
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await world.create(PROPAGATION_POLICIES, _copies("east", "west"))
        for number in range(60):
            tolerated = [second] if number < 8 else [first] if number < 16 else [first, second]
            deployment = a_deployment(f"app-{number:02}", replicas=4)
            deployment["metadata"]["annotations"] = {names.TOLERATIONS: json.dumps(tolerated)}
            await world.create(DEPLOYMENTS, deployment)
        await world.settle()
        taints = [{"key": key, "effect": "NoExecute"} for key in ("first", "second")]
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": taints[:1]}}, "")
        await world.until_equal(lambda: _count(world, "east"), 52)
        await world.restart()
        await world.settle()
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": taints}}, "")
        await world.settle()
        assert await _count(world, "east") == 52, "ten may move, and eight more would make sixteen"
        (hold,) = await _holds(world)
        assert (hold["spec"]["cause"], hold["spec"]["count"]) == ("FederatedCluster east", 8)
        await _approve(world, hold)
        await world.until_equal(lambda: _count(world, "east"), 44)


async def test_a_label_that_takes_a_cluster_out_of_its_policies_is_held_and_ends_when_it_is_taken_back() -> None:
    labels = {"east": {"tier": "prod"}, "west": {"tier": "prod"}}
    when = {"rescheduleWhen": {"clusterLabelsChanged": True}}
    async with a_world(members=("east", "west"), labels=labels, has_workloads=False) as world:
        await _fleet(world, _copies(clusterSelector={"tier": "prod"}, reschedulePolicy=when), count=30)
        assert await _count(world, "east") == 30
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "test"}}}, "")
        await world.settle()
        assert await _count(world, "east") == 30
        assert len(await _holds(world)) == 1

        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "prod"}}}, "")
        await world.settle()
        assert not await _holds(world)
        assert await _held_condition(world, "app-05") == ("True", "Scheduled")


async def test_many_small_policies_do_not_empty_a_cluster_by_one_taint() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        for number in range(6):
            policy = _copies("east", "west")
            policy["metadata"]["name"] = f"small-{number}"
            policy["spec"]["resourceSelectors"] = [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"app-{number}{unit}"} for unit in range(5)
            ]
            await world.create(PROPAGATION_POLICIES, policy)
        for number in range(30):
            await world.create(DEPLOYMENTS, a_deployment(f"app-{number // 5}{number % 5}", replicas=1))
        await world.settle()
        assert await _count(world, "east") == 30
        taint = {"key": "maintenance", "value": "yes", "effect": "NoExecute"}
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": [taint]}}, "")
        await world.settle()
        assert await _count(world, "east") == 30
        (hold,) = await _holds(world)
        await _approve(world, hold)
        await world.until_equal(lambda: _count(world, "east"), 0)


async def test_many_small_policies_of_a_namespace_that_change_together_are_held() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        for number in range(24):
            policy = _copies("east", "west")
            policy["metadata"]["name"] = f"small-{number:02}"
            policy["spec"]["resourceSelectors"] = [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"app-{number:02}"}
            ]
            await world.create(PROPAGATION_POLICIES, policy)
            await world.create(DEPLOYMENTS, a_deployment(f"app-{number:02}", replicas=1))
        await world.settle()
        assert await _count(world, "east") == 24

        async def place(numbers: range, *clusters: str) -> None:
            placement = [{"cluster": name} for name in clusters]
            for number in numbers:
                await world.merge(PROPAGATION_POLICIES, f"small-{number:02}", {"spec": {"placement": placement}})
            await world.settle()

        await place(range(6), "west")
        assert await _count(world, "east") == 18, "few of them act"
        await place(range(6, 24), "west")
        assert await _count(world, "east") == 18
        (hold,) = await _holds(world)
        assert (hold["spec"]["cause"], hold["spec"]["count"]) == ("Namespace default", 18)
        await place(range(6, 8), "east", "west")
        (hold,) = await _holds(world)
        assert hold["spec"]["count"] == 16
        await _approve(world, hold)
        await world.until_equal(lambda: _count(world, "east"), 2)


async def test_a_hold_survives_a_restart_and_an_approval_while_the_control_plane_is_down_counts() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, _copies("east", "west"), count=30)
        await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.settle()
        (before,) = await _holds(world)
        await world.restart()
        await world.settle()
        (hold,) = await _holds(world)
        assert hold["metadata"]["uid"] == before["metadata"]["uid"]
        assert await _count(world, "east") == 30
        await world.stop()
        await _approve(world, hold)
        await world.restart()
        await world.until_equal(lambda: _count(world, "east"), 0)


@pytest.mark.slow("an outage of twenty minutes, for twelve workloads")
@pytest.mark.parametrize("toleration_s", [0, 300])
async def test_what_is_held_stays_held_while_its_cluster_is_lost(toleration_s: float) -> None:
    async with a_world(has_workloads=False, toleration_s=toleration_s) as world:
        await _fleet(world, _copies("east"), count=12)
        await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.settle()
        await world.lose("east")
        await world.pass_time(600)
        assert await _count(world, "west") == 0
        (hold,) = await _holds(world)
        assert hold["spec"]["count"] == 12

        # All members answer no more, and the one that the policy names is back first.
        await world.lose(*world.members)
        await world.pass_time(60)
        await world.restart()
        await world.bring_back("west")
        await world.pass_time(60)
        assert await _count(world, "west") == 0
        await world.bring_back("east", "north")
        await world.pass_time(600)
        assert (await _count(world, "east"), await _count(world, "west")) == (12, 0)
        assert [each["metadata"]["uid"] for each in await _holds(world)] == [hold["metadata"]["uid"]]
        await _approve(world, hold)
        await world.until_equal(lambda: _count(world, "west"), 12)
        await world.until_equal(lambda: _count(world, "east"), 0)


async def test_a_change_that_is_taken_back_lets_failover_go_on() -> None:
    async with a_world(has_workloads=False, toleration_s=0) as world:
        await _fleet(world, a_policy({"east": 1, "north": 1}), count=12)
        taken_back = await world.user.get(PROPAGATION_POLICIES, "divide", "default")
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": a_policy({"west": 1})["spec"]})
        await world.settle()
        await world.lose("east")
        await world.pass_time(120)
        assert await _count(world, "west") == 0
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": taken_back["spec"]})
        await world.until_equal(lambda: _replicas_in(world, "north"), 48)
        await world.until_equal(lambda: _holds(world), [])
        await world.bring_back("east")


async def _replicas_in(world: World, member: str) -> int:
    """Return the replicas of all Deployments in the member."""
    found = (await world.members[member].admin.list(DEPLOYMENTS)).items
    return sum(each["spec"]["replicas"] for each in found)


async def test_an_approval_does_not_cover_what_is_held_later() -> None:
    async with a_world(has_workloads=False) as world:
        await _fleet(world, _copies("east", "north", "west"), count=30)
        await world.merge(
            PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}, {"cluster": "north"}]}}
        )
        await world.settle()
        (first,) = await _holds(world)
        await _approve(world, first)
        await world.until_equal(lambda: _count(world, "east"), 0)
        await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.settle()
        assert await _count(world, "north") == 30
        waiting = [hold for hold in await _holds(world) if not hold["spec"].get("approval")]
        assert [hold["spec"]["count"] for hold in waiting] == [30]
        await _approve(world, waiting[0])
        await world.until_equal(lambda: _count(world, "north"), 0)


async def test_scaling_and_divided_replicas_go_on_while_a_move_is_held() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, a_policy({"east": 1, "west": 1}), count=20)
        moved = a_policy({"west": 1})
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": moved["spec"]})
        await world.settle()
        assert await world.replicas("app-03") == {"east": 2, "west": 2}
        await world.scale("app-03", 7)
        await world.until_replicas("app-03", {"east": 2, "west": 5})
        await world.scale("app-03", 3)
        await world.until_equal(lambda: _total(world, "app-03"), 3)
        (hold,) = await _holds(world)
        await _approve(world, hold)
        await world.until_replicas("app-03", {"west": 3})
        await world.until_equal(lambda: _count(world, "east"), 0)


async def _total(world: World, name: str) -> int:
    return sum((await world.replicas(name)).values())


# -- undo


async def _undo(world: World, name: str) -> None:
    """Ask for the undoing of the last move, as `fedctl undo` does."""
    move = past_move(await world.federated(name))
    assert move is not None
    await world.merge(DEPLOYMENTS, name, {"metadata": {"annotations": {names.UNDO: move.at}}})


async def test_undo_restores_the_previous_copies_and_they_stay() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, _copies("east", "west"), count=3)
        await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.until_equal(lambda: _count(world, "east"), 0)
        await _undo(world, "app-00")
        await world.until_replicas("app-00", {"east": 4, "west": 4})
        await world.restart()
        await world.settle()
        assert await world.replicas("app-00") == {"east": 4, "west": 4}
        assert await world.replicas("app-01") == {"west": 4}
        assert "MoveUndone" in [reason for reason, _ in await world.events()]


async def test_undo_restores_divided_replicas_and_keeps_a_scaling_since() -> None:
    async with a_world(members=("east", "west")) as world:
        await _fleet(world, a_policy({"east": 1, "west": 1}), count=2)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": a_policy({"west": 1})["spec"]})
        await world.until_replicas("app-00", {"west": 4})
        await world.settle()
        await _undo(world, "app-01")
        await world.until_replicas("app-01", {"east": 2, "west": 2})
        await world.scale("app-00", 6)
        await world.until_replicas("app-00", {"west": 6})
        await _undo(world, "app-00")
        await world.until_replicas("app-00", {"east": 2, "west": 4})


async def test_undo_is_refused_after_its_window() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, _copies("east", "west"), count=1)
        await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.until_equal(lambda: _count(world, "east"), 0)
        await world.settle()
        for _ in range(61):
            await world.clock.advance(60)
        await _undo(world, "app-00")
        await world.settle()
        assert await world.replicas("app-00") == {"west": 4}
        assert any(reason == "UndoRefused" and "1 h" in text for reason, text in await world.events())
