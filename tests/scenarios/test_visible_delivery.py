"""Users see delivery on their own object: no policy, a lost replica, a restart, a policy that comes later."""

from collections.abc import Mapping
from typing import Any

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_OBJECTS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, PODS
from federation.planning.federatedobject.naming import federated_object_name

DIVIDED = {"east": 2, "north": 1, "west": 1}


async def _conditions(world: World) -> Mapping[str, tuple[str, str]]:
    status = await world.status("web")
    return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions") or ()}


async def _until_condition(world: World, type_: str, expected: tuple[str, str]) -> None:
    async def look() -> Any:
        return (await _conditions(world)).get(type_)

    await world.until_equal(look, expected)


async def _no_policy_events(world: World) -> int:
    return [reason for reason, _ in await world.events()].count("NoPolicy")


async def test_an_object_whose_policy_comes_seconds_later_gets_no_event() -> None:
    async with a_world() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await _until_condition(world, "Scheduled", ("False", "NoPolicy"))
        await world.pass_time(2)
        await world.create(PROPAGATION_POLICIES, a_policy(DIVIDED))
        await world.until_available("web", 4)
        await world.pass_time(20)
        assert await _no_policy_events(world) == 0


async def test_a_restart_while_the_event_waits_does_not_lose_it() -> None:
    async with a_world() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await _until_condition(world, "Scheduled", ("False", "NoPolicy"))
        await world.restart()
        await world.until_equal(lambda: _no_policy_events(world), 1)
        await world.restart()
        await world.pass_time(20)
        assert await _no_policy_events(world) == 1


async def test_an_object_that_no_policy_selects_says_so_until_one_does() -> None:
    async with a_world() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await _until_condition(world, "Scheduled", ("False", "NoPolicy"))
        assert (await _conditions(world))["Propagated"] == ("False", "NoPolicy")
        assert await _no_policy_events(world) == 0
        await world.until_equal(lambda: _no_policy_events(world), 1)
        await world.pass_time(20)
        assert await _no_policy_events(world) == 1
        assert (await world.condition("web", "Propagated"))["reason"] == "NoPolicy"

        before = await world.revisions()
        await world.restart()
        await world.settle()
        assert await world.revisions() == before

        await world.create(PROPAGATION_POLICIES, a_policy(DIVIDED))
        await world.until_available("web", 4)
        await _until_condition(world, "Propagated", ("True", "Propagated"))
        assert (await _conditions(world))["Scheduled"] == ("True", "Scheduled")


async def test_a_deployment_without_policy_exceeds_its_progress_deadline() -> None:
    async with a_world() as world:
        deployment = a_deployment("web", replicas=1)
        deployment["spec"]["progressDeadlineSeconds"] = 30
        await world.create(DEPLOYMENTS, deployment)
        await _until_condition(world, "Scheduled", ("False", "NoPolicy"))
        assert set(await _conditions(world)) == {"Scheduled", "Propagated"}
        await _until_condition(world, "Progressing", ("False", "ProgressDeadlineExceeded"))
        status = await world.status("web")
        assert status["observedGeneration"] == 1


async def test_an_unplaced_object_without_status_is_told_on_its_federated_object_only() -> None:
    async with a_world() as world:
        await world.create(
            CONFIGMAPS,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}},
        )
        await world.settle()
        assert "NoPolicy" not in [reason for reason, _ in await world.events()]


async def test_a_lost_replica_shows_at_once() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(DIVIDED))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        await world.settle()
        await world.pass_time(10)
        lost_s = world.clock.monotonic()
        east = world.members["east"].admin
        pod = (await east.list(PODS, "default")).items[0]
        await east.delete(PODS, pod["metadata"]["name"], "default", grace_period_s=0)

        async def has_fewer() -> bool:
            return int((await world.status("web")).get("availableReplicas") or 0) < 4

        await world.until(has_fewer)
        assert world.clock.monotonic() - lost_s < 1.0


async def test_controllers_of_the_host_keep_the_status_of_what_no_policy_selects() -> None:
    async with a_world() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=1))
        await _until_condition(world, "Scheduled", ("False", "NoPolicy"))
        conditions = [*(await world.status("web"))["conditions"], {"type": "Available", "status": "True"}]
        status = {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "conditions": conditions}
        await world.user.patch(DEPLOYMENTS, "web", {"status": status}, namespace="default", subresource="status")
        await world.pass_time(700)
        await world.restart()
        await world.settle()
        found = await world.status("web")
        assert (found["replicas"], found["readyReplicas"]) == (1, 1)
        assert {c["type"]: c["status"] for c in found["conditions"]} == {
            "Scheduled": "False",
            "Propagated": "False",
            "Available": "True",
        }


async def test_what_is_only_kept_in_a_cluster_is_not_propagated() -> None:
    """A claim stays in its cluster when the workload that it followed is gone, and is placed nowhere then."""
    async with a_world() as world:
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        web = a_deployment("web", replicas=1)
        web["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await world.create(PERSISTENT_VOLUME_CLAIMS, claim)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, web)
        await world.settle()

        async def propagated() -> Any:
            name = federated_object_name("data", "persistentvolumeclaims")
            status = (await world.user.get(FEDERATED_OBJECTS, name, "default")).get("status") or {}
            (found,) = [each for each in status["conditions"] if each["type"] == "Propagated"]
            clusters = {entry["cluster"]: entry["status"] for entry in status.get("clusters") or ()}
            return found["status"], found["reason"], clusters

        assert await propagated() == ("True", "", {"east": "OK"})
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_equal(propagated, ("False", "NoPolicy", {"east": "Kept"}))
        await world.user.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")


async def test_policies_that_name_what_does_not_exist_get_events() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "nowhere": 1}))
        override = an_override("nowhere", "/spec/replicas", 1)
        override["spec"]["resourceSelectors"].append({"apiVersion": "example.com/v1", "kind": "Gadget"})
        await world.create(OVERRIDE_POLICIES, override)
        await world.create(PROPAGATION_POLICIES, a_policy({"west": 1}, name="second"))
        await world.settle()
        events = await world.events()
        told = {reason: [text for seen, text in events if seen == reason] for reason, _ in events}
        assert any(
            "spec.placement[1].cluster: there is no FederatedCluster 'nowhere'" in text
            for text in told["InvalidPropagationPolicy"]
        )
        assert any(
            'PropagationPolicy "divide" may select the same objects' in text
            for text in told["InvalidPropagationPolicy"]
        )
        assert sorted(told["InvalidOverridePolicy"]) == [
            "spec.overrideRules[0].targetClusters.clusters[0]: there is no FederatedCluster 'nowhere'",
            (
                "spec.resourceSelectors[1]: Gadget in example.com/v1 is not federated, so nothing is selected;"
                " no FederatedTypeConfig covers it"
            ),
        ]


async def test_single_changes_of_ready_replicas_are_visible_at_once() -> None:
    async with a_world(has_workloads=False, has_reports=True) as world:
        await world.create(PROPAGATION_POLICIES, a_policy(DIVIDED))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        await world.settle()
        for ready in (1, 0, 1, 2, 1, 2):
            await world.members["east"].report("web", replicas=2, readyReplicas=ready, availableReplicas=ready)
            await world.clock.advance(0.01)
            assert (await world.status("web")).get("readyReplicas") == 2 + ready
            await world.pass_time(1)


async def test_a_burst_of_changes_costs_few_writes() -> None:
    async with a_world(has_workloads=False, has_reports=True) as world:
        await world.create(PROPAGATION_POLICIES, a_policy(DIVIDED))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        await world.settle()
        before = await world.store.revision()
        for number in range(40):
            ready = number % 2 + 1
            await world.members["east"].report("web", replicas=2, readyReplicas=ready, availableReplicas=ready)
            await world.pass_time(0.05)
        await world.settle()
        assert (await world.status("web"))["readyReplicas"] == 4
        assert await world.store.revision() - before <= 10, "two seconds of changes"
