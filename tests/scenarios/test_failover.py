"""Replicas leave lost clusters at a limited rate, halt when most clusters are lost, and return."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition
from federation.api.resources import (
    CLUSTER_DISRUPTION_BUDGETS,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    PLACEMENT_HOLDS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, STATEFUL_SETS
from federation.controllers.eviction.names import REASON_EVICTION_ALLOWED
from federation.planning.failover.evictionrecord import eviction_record
from federation.planning.federatedobject.placements import current_clusters, effective_placement

_TYPE = FederatedType("deployments.apps", DEPLOYMENTS, (), PathDefinition(replicas_spec=("spec", "replicas")))
EVEN = {"east": 4, "north": 4, "west": 4}


async def _running(world: World, replicas: int = 6, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}, **spec))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=replicas))
    await world.until_available("web", replicas)
    await world.settle()


async def _condition(world: World, name: str) -> tuple[str, str]:
    """Return status and reason of condition EvictionAllowed of a cluster, two times "" without one."""
    cluster = await world.user.get(FEDERATED_CLUSTERS, name)
    found = conditions.find(cluster["status"]["conditions"], names.EVICTION_ALLOWED) or {}
    return str(found.get("status", "")), str(found.get("reason", ""))


async def _placed(world: World, name: str = "web") -> dict[str, int | None]:
    """Return the replicas by cluster that the scheduler wants."""
    return current_clusters(await world.federated(name), _TYPE)


async def _until_placed(world: World, expected: Mapping[str, int], name: str = "web") -> None:
    await world.until_equal(lambda: _placed(world, name), dict(expected))


async def test_replicas_leave_a_lost_cluster_and_return_in_batches() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world, 12)
        await world.lose("east")
        assert await _placed(world) == EVEN
        await _until_placed(world, {"north": 6, "west": 6})
        assert await world.replicas("web") == {"east": 4, "north": 6, "west": 6}  # east does not answer
        assert await _condition(world, "east") == ("True", "EvictionAllowed")

        await world.bring_back("east")
        await world.until_replicas("web", {"north": 6, "west": 6})  # the stale copy is gone
        await world.pass_time(280)
        assert await _placed(world) == {"north": 6, "west": 6}
        await world.until_equal(lambda: _placed_in(world, "east"), 3)
        assert sum((await world.replicas("web")).values()) >= 12
        await _until_placed(world, EVEN)
        await world.until_replicas("web", EVEN)
        assert eviction_record(await world.federated("web")).left == {}
        assert await _condition(world, "east") == ("", "")


async def test_nothing_leaves_when_most_clusters_are_lost_until_enough_are_back() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world, 12)
        await world.lose("east", "north")
        await world.pass_time(120)
        assert await _placed(world) == EVEN
        assert await _condition(world, "east") == ("False", "MajorityNotReady")
        assert "EvictionHalted" in [reason for reason, _ in await world.events()]
        await world.bring_back("north")
        await world.until_equal(lambda: _condition(world, "east"), ("False", "Settling"))
        assert await _placed(world) == EVEN
        await _until_placed(world, {"north": 6, "west": 6})
        await world.bring_back("east")


async def test_nothing_leaves_when_the_control_plane_reaches_no_cluster() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world, 12)
        await world.lose(*world.members)
        await world.pass_time(120)
        assert await _condition(world, "west") == ("False", "NetworkSuspected")
        await world.bring_back(*world.members)
        await world.pass_time(120)
        assert await _placed(world) == EVEN


async def test_a_stateful_workload_stays_unless_its_policy_lets_it_leave() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world, 12, failover={"mode": "Never"})
        await world.lose("east")
        await world.pass_time(120)
        assert await _placed(world) == EVEN
        stay = eviction_record(await world.federated("web")).stays["east"]
        assert stay.reason == "Never"
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"failover": {"mode": "Auto", "graceSeconds": 300}}})
        await world.pass_time(120)
        assert await _placed(world) == EVEN
        await _until_placed(world, {"north": 6, "west": 6})
        await world.bring_back("east")


async def test_the_rate_holds_over_a_restart_and_the_higher_priority_goes_first() -> None:
    async with a_world(replicas_per_minute=12, toleration_s=0) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        urgent = a_policy({"east": 1, "north": 1, "west": 1}, name="urgent", schedulingPriority=10)
        del urgent["spec"]["resourceSelectors"]
        await world.create(PROPAGATION_POLICIES, urgent)
        for name in ("web", "api", "db"):
            deployment = a_deployment(name, replicas=12)
            if name == "web":
                deployment["metadata"]["labels"][names.PROPAGATION_POLICY_LABEL] = "urgent"
            await world.create(DEPLOYMENTS, deployment)
        await world.settle()
        await world.lose("east")

        async def left() -> int:
            return sum([4 - ((await _placed(world, name)).get("east") or 0) for name in ("web", "api", "db")])

        await world.until_equal(left, 6)  # half of the rate, because all are of one namespace
        assert (await _placed(world)).get("east") is None
        world.kill()
        await world.restart()
        since_s = world.clock.monotonic()
        await world.pass_time(40)
        assert await left() == 6
        await world.until_equal(left, 12)
        assert world.clock.monotonic() - since_s < 90
        await world.bring_back("east")


async def test_many_objects_leave_without_being_held_by_the_guard() -> None:
    async with a_world(toleration_s=0) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        for number in range(30):
            await world.create(DEPLOYMENTS, a_deployment(f"app-{number}", replicas=3))
        await world.settle()
        await world.lose("east")
        for number in range(30):
            await world.until_equal(lambda n=number: _placed_in(world, "east", f"app-{n}"), None)
        assert not (await world.user.list(PLACEMENT_HOLDS)).items
        await world.bring_back("east")


async def _placed_in(world: World, cluster: str, name: str = "web") -> int | None:
    return (await _placed(world, name)).get(cluster)


# -- drains


async def _drain(world: World, name: str, slow_s: float = 0) -> None:
    """Drain a cluster; `slow_s` is how late the clock of the client is."""
    added = to_rfc3339(world.clock.now() - timedelta(seconds=slow_s))
    taint = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": added}
    await world.merge(FEDERATED_CLUSTERS, name, {"spec": {"taints": [taint]}})


async def _budget(world: World, most: int | str, **spec: Any) -> None:
    budget = {
        "apiVersion": CLUSTER_DISRUPTION_BUDGETS.api_version,
        "kind": "ClusterDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"maxUnavailable": most, **spec},
    }
    await world.create(CLUSTER_DISRUPTION_BUDGETS, budget)


async def test_a_drained_cluster_is_emptied_and_filled_again_after_the_drain() -> None:
    async with a_world() as world:
        await _running(world, 12)
        await _drain(world, "east")
        await world.until_replicas("web", {"north": 6, "west": 6})
        await world.pass_time(300)
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": None}})
        await world.until_equal(lambda: _placed_in(world, "east"), 3)
        await _until_placed(world, EVEN)


async def test_of_two_drains_at_once_the_second_waits_for_the_budget() -> None:
    async with a_world() as world:
        await _running(world, 12)
        await _budget(world, 1)
        await _drain(world, "east")
        await world.pass_time(2)
        await _drain(world, "north")
        await _until_placed(world, {"north": 6, "west": 6})
        await world.until_equal(lambda: _condition(world, "north"), ("False", "ClusterDisruptionBudget"))
        await world.pass_time(60)
        world.kill()
        await world.restart()
        await world.pass_time(60)
        assert await _placed(world) == {"north": 6, "west": 6}

        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": None}})
        await world.until_equal(lambda: _placed_in(world, "north"), None)
        await world.merge(FEDERATED_CLUSTERS, "north", {"spec": {"taints": None}})


async def test_a_drain_from_a_late_clock_does_not_overtake_one_that_the_budget_has_allowed() -> None:
    async with a_world() as world:
        await _running(world, 12)
        await _budget(world, 1)
        await _drain(world, "north")
        await _until_placed(world, {"east": 6, "west": 6})
        await _drain(world, "east", slow_s=30)
        await world.until_equal(lambda: _condition(world, "east"), ("False", "ClusterDisruptionBudget"))
        world.kill()
        await world.restart()
        await world.pass_time(60)
        assert await _placed(world) == {"east": 6, "west": 6}
        assert await _condition(world, "north") == ("True", REASON_EVICTION_ALLOWED)

        await world.merge(FEDERATED_CLUSTERS, "north", {"spec": {"taints": None}})
        await world.until_equal(lambda: _placed_in(world, "east"), None)


async def test_a_drain_waits_for_its_window() -> None:
    async with a_world() as world:
        await _running(world, 12)
        opens = world.clock.now().replace(microsecond=0) + timedelta(seconds=240)
        ends = opens + timedelta(hours=1)
        await _budget(world, 1, windows=[{"start": to_rfc3339(opens), "end": to_rfc3339(ends)}])
        await _drain(world, "east")
        await world.pass_time(120)
        assert await _placed(world) == EVEN
        await _until_placed(world, {"north": 6, "west": 6})
        assert world.clock.now() >= opens


async def test_replicas_that_no_other_cluster_can_hold_stay_in_a_drained_one() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        deployment = a_deployment("web", replicas=12)
        # Each cluster has one node of 64 cores.
        deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "12"}}
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 12)
        await world.settle()
        await world.pass_time(30)
        await _drain(world, "east")
        await world.pass_time(60)
        placed = await _placed(world)
        assert sum(count or 0 for count in placed.values()) == 12
        assert placed["east"] == 2
        assert eviction_record(await world.federated("web")).stays["east"].reason == "NoRoom"


async def _taint_keys(world: World, name: str) -> set[str]:
    spec = (await world.user.get(FEDERATED_CLUSTERS, name))["spec"]
    return {taint["key"] for taint in spec.get("taints") or ()}


async def test_a_flapping_cluster_is_held_out_longer_each_time_also_over_a_restart() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world, 12)
        await world.pass_time(60)  # losses before count as part of the start
        held_out = []
        for number in range(4):
            await world.lose("east")
            await world.until_equal(lambda: _taint_keys(world, "east"), {names.TAINT_UNREACHABLE})
            await world.bring_back("east")
            since_s = world.clock.monotonic()
            if number == 2:
                world.kill()
                await world.restart()
                await world.until_ready("east")
            while await _taint_keys(world, "east"):
                await world.pass_time(1)
            held_out.append(world.clock.monotonic() - since_s)
        assert held_out[0] < 10
        assert [round(seconds / 60) for seconds in held_out[1:]] == [1, 2, 4]
        assert "ClusterHeldOut" in [reason for reason, _ in await world.events()]


async def test_members_that_stop_with_the_control_plane_are_used_again_at_once() -> None:
    """Each restart would count as a loss, and after the third one nothing would be placed for four minutes."""
    async with a_world(toleration_s=600) as world:
        await _running(world, 12)
        for _ in range(4):
            await world.lose("east")
            await world.until_equal(lambda: _taint_keys(world, "east"), {names.TAINT_UNREACHABLE})
            world.kill()
            await world.restart()
            world.members["east"].line.mode = "up"
            since_s = world.clock.monotonic()
            while await _taint_keys(world, "east"):
                await world.pass_time(1)
            assert world.clock.monotonic() - since_s <= 10


async def test_a_drain_keeps_the_pod_disruption_budget_over_all_clusters() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        web = a_deployment("web", replicas=12)
        web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "50%"}}
        db = a_deployment("db", replicas=12)
        db["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        for deployment in (web, db):
            await world.create(DEPLOYMENTS, deployment)
            name = deployment["metadata"]["name"]
            spec = {"selector": {"matchLabels": {"app": name}}, "minAvailable": "100%"}
            budget = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
            await world.create(
                POD_DISRUPTION_BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **budget}
            )
        for name in ("web", "db"):
            await world.until_available(name, 12)
        await world.settle()
        await _drain(world, "east")
        least = 12
        while await world.members["east"].replicas("web") is not None:
            await world.pass_time(0.5)
            least = min(least, await _available(world, "web"))
        assert least == 12
        assert await _placed(world, "db") == EVEN
        assert eviction_record(await world.federated("db")).stays["east"].reason == "PodDisruptionBudget"


async def test_a_control_plane_that_is_killed_in_the_middle_of_a_drain_ends_it_within_the_budget() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        web = a_deployment("web", replicas=12)
        web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await world.create(DEPLOYMENTS, web)
        await world.until_available("web", 12)
        await world.settle()
        await _drain(world, "east")
        seen = [4]
        while (left := await world.members["east"].replicas("web")) is not None:
            if left < seen[-1]:
                seen.append(left)
                world.kill()
                await world.restart()
            await world.pass_time(0.5)
            assert await _available(world, "web") >= 12
        assert len(seen) > 2
        await _until_placed(world, {"north": 6, "west": 6})


async def _available(world: World, name: str) -> int:
    """Return the available replicas of a Deployment in all clusters together."""
    found = [await member.find(DEPLOYMENTS, name) or {} for member in world.members.values()]
    return sum(int((deployment.get("status") or {}).get("availableReplicas") or 0) for deployment in found)


async def test_a_budget_that_is_loosened_in_the_middle_of_a_drain_lets_it_go_on() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        web = a_deployment("web", replicas=12)
        web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        await world.create(DEPLOYMENTS, web)
        spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": "100%"}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}
        await world.create(POD_DISRUPTION_BUDGETS, {**budget, "metadata": {"name": "web", "namespace": "default"}})
        await world.until_available("web", 12)
        await world.settle()
        await _budget(world, 0)
        await _drain(world, "east")
        await world.until_equal(lambda: _condition(world, "east"), ("False", "ClusterDisruptionBudget"))
        await world.merge(CLUSTER_DISRUPTION_BUDGETS, "all", {"spec": {"maxUnavailable": 1}})
        await world.until_equal(lambda: _stay_reason(world), "PodDisruptionBudget")
        await world.settle()
        assert await _placed(world) == EVEN
        await world.merge(POD_DISRUPTION_BUDGETS, "web", {"spec": {"minAvailable": "75%"}})
        await world.until_replicas("web", {"north": 6, "west": 6})


async def _stay_reason(world: World) -> str:
    stay = eviction_record(await world.federated("web")).stays.get("east")
    return str(stay.reason) if stay is not None else ""


async def test_a_control_plane_that_is_killed_in_a_fail_over_and_a_fail_back_finishes_both() -> None:
    async with a_world(toleration_s=0, replicas_per_minute=4) as world:
        await _running(world, 12)
        await world.lose("east")
        await world.until_equal(lambda: _placed_in(world, "east"), 2)  # half of the rate
        world.kill()
        await world.restart()
        await world.until_equal(lambda: _placed_in(world, "east"), None)
        await world.bring_back("east")
        await world.pass_time(250)
        await world.until_equal(lambda: _placed_in(world, "east"), 3)
        world.kill()
        await world.restart()
        since_s = world.clock.monotonic()
        await _until_placed(world, EVEN)
        assert world.clock.monotonic() - since_s > 30  # the second batch keeps its distance
        await world.until_replicas("web", EVEN)


async def test_a_halt_survives_a_restart_of_the_control_plane() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world, 12)
        await world.lose("east", "north")
        await world.until_equal(lambda: _condition(world, "east"), ("False", "MajorityNotReady"))
        world.kill()
        world.members["north"].line.mode = "up"
        await world.restart()
        await world.until_ready("north")
        await world.until_equal(lambda: _condition(world, "east"), ("False", "Settling"))
        await _until_placed(world, {"north": 6, "west": 6})
        await world.bring_back("east")


async def test_no_ordinal_of_a_stateful_set_runs_twice_when_its_cluster_returns() -> None:
    async with a_world(toleration_s=0) as world:
        policy = a_policy({}, failover={"mode": "Auto", "graceSeconds": 60})
        policy["spec"] |= {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "StatefulSet"}], "maxClusters": 1}
        policy["spec"] |= {"placement": [{"cluster": "east"}, {"cluster": "west"}]}
        await world.create(PROPAGATION_POLICIES, policy)
        database = a_deployment("db", replicas=2)
        database |= {"kind": "StatefulSet"}
        database["spec"]["serviceName"] = "db"
        await world.create(STATEFUL_SETS, database)

        async def homes() -> set[str]:
            federated = await world.find(FEDERATED_OBJECTS, "db-statefulsets.apps")
            return set(effective_placement(federated)) if federated is not None else set()

        async def running() -> set[str]:
            return {m.name for m in world.members.values() if await m.find(STATEFUL_SETS, "db") is not None}

        (home,) = await world.until(homes)
        (other,) = {"east", "west"} - {home}
        await world.until_equal(running, {home})
        await world.lose(home)
        await world.pass_time(50)
        assert await homes() == {home}
        await world.until_equal(homes, {other})
        await world.bring_back(home)
        await world.until_equal(running, {other})
        await world.pass_time(200)
        assert await homes() == {other}
        deadline_s = world.clock.monotonic() + 240
        while await running() != {home}:
            assert world.clock.monotonic() < deadline_s
            await world.pass_time(0.5)
            found = [await _pods(world, name) for name in ("east", "west")]
            assert not found[0] & found[1]


async def _pods(world: World, member: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in (await world.members[member].admin.list(PODS)).items}
