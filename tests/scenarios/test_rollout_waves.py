"""Rollouts in waves: a new pod template reaches the clusters wave by wave, and goes back if a gate fails."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.prometheus import CountedRequests
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    CLUSTER_DISRUPTION_BUDGETS,
    FEDERATED_CLUSTERS,
    FEDERATED_ROLLOUTS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import DAEMON_SETS, DEPLOYMENTS, Object
from federation.apimachinery.webhookclient import WebhookResponse
from federation.simulator.controllers.names import SIMULATOR_EXIT_CODE, SIMULATOR_READY, SIMULATOR_RUN_FOR

ROLLOUT = "web-deployments.apps"
CANARY: Object = {
    "onFailure": "RollBack",
    "waves": [{"name": "canary", "clusters": ["east"], "gate": {"soakSeconds": 30}, "timeoutSeconds": 60}],
}


def a_policy_with_waves(rollout: Object) -> Object:
    policy = a_policy({"east": 2, "north": 1, "west": 1})
    return {**policy, "spec": {**policy["spec"], "rollout": rollout}}


async def images(world: World) -> dict[str, str]:
    found = {}
    for name, member in world.members.items():
        copy = await member.find(DEPLOYMENTS, "web")
        assert copy is not None
        found[name] = copy["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


async def rollout(world: World) -> dict[str, Any]:
    found = await world.find(FEDERATED_ROLLOUTS, ROLLOUT)
    return (found or {}).get("status") or {}


async def steer(world: World, **spec: Any) -> None:
    await world.merge(FEDERATED_ROLLOUTS, ROLLOUT, {"spec": spec})


async def start(world: World, waves: Object) -> None:
    """Create the policy and a Deployment of 8 replicas, and wait until it runs."""
    await world.create(PROPAGATION_POLICIES, a_policy_with_waves(waves))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))
    await world.until_replicas("web", {"east": 4, "north": 2, "west": 2})
    await world.until_available("web", 8)
    await world.until_equal(lambda: state(world), "Complete")


async def state(world: World) -> str:
    return str((await rollout(world)).get("state"))


async def set_template(world: World, image: str, *, is_ready: bool = True) -> None:
    annotations = {SIMULATOR_READY: None if is_ready else "false"}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "web", "image": image}]}}
    await world.merge(DEPLOYMENTS, "web", {"spec": {"template": template}})


OLD = dict.fromkeys(("east", "north", "west"), "nginx:1.27")
NEW = dict.fromkeys(("east", "north", "west"), "nginx:1.28")


async def test_a_change_goes_out_wave_by_wave() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        assert (await rollout(world))["revision"] == 0
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), {**OLD, "east": "nginx:1.28"})
        began = world.clock.monotonic()
        await world.until_equal(lambda: images(world), NEW)
        assert world.clock.monotonic() - began >= 30
        await world.until_equal(lambda: state(world), "Complete")
        status = await rollout(world)
        assert [(wave["name"], wave["state"], wave["clusters"]) for wave in status["waves"]] == [
            ("canary", "Complete", ["east"]),
            ("remaining", "Complete", ["north", "west"]),
        ]
        assert (status["revision"], status["progress"]) == (1, "3/3")
        await world.until_available("web", 8)


async def test_a_wave_that_never_becomes_ready_touches_no_other_cluster_and_rolls_back() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        await set_template(world, "broken:1", is_ready=False)
        await world.until_equal(lambda: images(world), {**OLD, "east": "broken:1"})
        await world.until_equal(lambda: state(world), "RolledBack")
        assert await images(world) == OLD
        status = await rollout(world)
        assert "the gate of wave canary did not hold for 60 s: east: " in status["failure"]
        assert [cluster["name"] for cluster in status["clusters"] if cluster.get("changed")] == ["east"]
        # `kubectl rollout status` ends with an error.
        await world.until_equal(lambda: progressing(world), ("False", "ProgressDeadlineExceeded"))
        # Nothing moves by itself; the next template begins a new rollout.
        await world.settle()
        assert await images(world) == OLD
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), NEW)
        await world.until_equal(lambda: progressing(world), ("True", "NewReplicaSetAvailable"))


async def test_a_wave_names_what_somebody_in_a_member_set_that_keeps_it_waiting() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        paused = {"spec": {"paused": True}}
        await world.members["east"].admin.patch(DEPLOYMENTS, "web", paused, namespace="default", field_manager="team")
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: state(world), "RolledBack")
        assert "somebody set spec.paused there" in (await rollout(world))["failure"]
        await world.members["east"].admin.patch(
            DEPLOYMENTS, "web", {"spec": {"paused": None}}, namespace="default", field_manager="team"
        )
        await set_template(world, "nginx:1.29")
        await world.until_equal(lambda: images(world), dict.fromkeys(OLD, "nginx:1.29"))
        await world.until_available("web", 8)
        await world.until_equal(lambda: state(world), "Complete")


async def test_a_restart_after_a_long_time_without_a_process_fails_no_wave() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), {**OLD, "east": "nginx:1.28"})
        await world.pass_time(20)
        await world.stop()
        await world.clock.pass_time(600)
        world.members["east"].line.mode = "hang"
        await world.restart()
        await world.pass_time(10)
        world.members["east"].line.mend()
        await world.until_equal(lambda: images(world), NEW)
        await world.until_equal(lambda: state(world), "Complete")


async def test_a_wave_whose_pods_crash_says_so_after_seconds_and_fails_early() -> None:
    async with a_world() as world:
        wave = {"name": "canary", "clusters": ["east"], "brokenSeconds": 40}
        await start(world, {"onFailure": "RollBack", "waves": [wave]})
        crash = {SIMULATOR_RUN_FOR: "1s", SIMULATOR_EXIT_CODE: "3", SIMULATOR_READY: "false"}
        containers = [{"name": "web", "image": "broken:1"}]
        began = world.clock.monotonic()
        template = {"metadata": {"annotations": crash}, "spec": {"containers": containers}}
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": template}})

        async def is_told() -> bool:
            status = await rollout(world)
            told = [status.get("message", ""), *(each.get("message", "") for each in status["clusters"])]
            healthy = conditions.find(status["conditions"], "Healthy") or {}
            told.append(healthy["message"])
            return sum("is in CrashLoopBackOff: back-off" in text and "exit code 3" in text for text in told) == 3

        await world.until_equal(is_told, True)
        assert world.clock.monotonic() - began < 15
        await world.until_equal(lambda: state(world), "RolledBack")
        assert 40 <= world.clock.monotonic() - began < 80
        failure = (await rollout(world))["failure"]
        assert "the gate of wave canary did not hold for 40 s: east: " in failure
        assert "exit code 3" in failure
        await set_template(world, "nginx:1.27")
        template["metadata"]["annotations"] = dict.fromkeys(crash)
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": {"metadata": template["metadata"]}}})
        await world.until_equal(lambda: state(world), "Complete")


async def progressing(world: World) -> tuple[str, str] | None:
    """Return status and reason of the condition, None while the status is about an earlier spec."""
    deployment = await world.user.get(DEPLOYMENTS, "web", "default")
    status = deployment["status"]
    if status.get("observedGeneration") != deployment["metadata"]["generation"]:
        return None
    condition = conditions.find(status["conditions"], "Progressing") or {}
    return condition["status"], condition["reason"]


async def test_a_pause_waits_for_approval_and_the_rollout_survives_a_restart() -> None:
    waves = [{"name": "canary", "clusters": ["east"]}, {"name": "north", "clusters": ["north"], "pause": True}]
    async with a_world() as world:
        await start(world, {"waves": waves})
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: message(world), "wave north waits for approval")
        await world.restart()
        await world.settle()
        assert await images(world) == {**OLD, "east": "nginx:1.28"}
        await steer(world, approvedWave={"revision": 1, "wave": "north"})
        await world.until_equal(lambda: images(world), NEW)
        await world.until_equal(lambda: state(world), "Complete")


async def message(world: World) -> str:
    return str((await rollout(world)).get("message"))


async def test_a_control_plane_that_is_killed_in_the_middle_of_a_wave_goes_on_where_it_was() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), {**OLD, "east": "nginx:1.28"})
        world.kill()
        await world.clock.advance(5)
        await world.restart()
        await world.until_equal(lambda: images(world), NEW)
        status = await rollout(world)
        assert (status["revision"], [wave["name"] for wave in status["waves"]]) == (1, ["canary", "remaining"])
        await world.until_equal(lambda: state(world), "Complete")


async def test_a_control_plane_that_is_killed_while_it_rolls_back_goes_on() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        await set_template(world, "broken:1", is_ready=False)
        await world.until_equal(lambda: state(world), "RollingBack")
        world.kill()
        await world.clock.advance(5)
        await world.restart()
        await world.until_equal(lambda: state(world), "RolledBack")
        await world.until_equal(lambda: images(world), OLD)
        await set_template(world, "nginx:1.27")
        await world.until_equal(lambda: state(world), "Complete")


async def test_a_change_of_an_override_policy_rolls_by_its_waves() -> None:
    path, image = "/spec/template/spec/containers/0/image", "mirror.example/nginx:1.27"
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))
        await world.until_available("web", 8)
        policy = an_override("east", path, image)
        del policy["spec"]["overrideRules"][0]["targetClusters"]
        policy["spec"]["rollout"] = {"waves": [{"name": "first", "clusters": ["west"], "gate": {"soakSeconds": 20}}]}
        await world.create(OVERRIDE_POLICIES, policy)
        await world.until_equal(lambda: images(world), {**OLD, "west": image})
        assert (await rollout(world))["policy"] == "OverridePolicy default/special"
        await world.until_equal(lambda: images(world), dict.fromkeys(OLD, image))
        await world.until_equal(lambda: state(world), "Complete")
        # Without the policy every cluster has its template at once, and nothing of the rollout is left.
        await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        await world.until_equal(lambda: images(world), OLD)
        await world.until_gone(FEDERATED_ROLLOUTS, ROLLOUT)
        assert names.APPROVED_REVISIONS not in (await world.federated("web"))["metadata"]["annotations"]


async def test_an_abort_returns_what_was_changed() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), {**OLD, "east": "nginx:1.28"})
        await steer(world, abort=1)
        await world.until_equal(lambda: state(world), "RolledBack")
        await world.until_equal(lambda: images(world), OLD)
        # The user takes the change back: every cluster has it already.
        await set_template(world, "nginx:1.27")
        await world.until_equal(lambda: state(world), "Complete")
        assert (await rollout(world))["revision"] == 2


async def test_copies_of_a_workload_roll_by_waves_and_scale_at_once() -> None:
    async with a_world() as world:
        policy = a_policy_with_waves({"waves": [{"name": "canary", "clusters": ["east"], "gate": {"soakSeconds": 30}}]})
        policy["spec"]["schedulingMode"] = "Duplicate"
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_available("web", 6)
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), {**OLD, "east": "nginx:1.28"})
        await world.scale("web", 3)
        await world.until_replicas("web", {"east": 3, "north": 3, "west": 3})
        assert await images(world) == {**OLD, "east": "nginx:1.28"}
        await world.until_equal(lambda: images(world), NEW)


@pytest.mark.parametrize("replicas", [4, 5, 7])
async def test_no_cluster_is_without_a_replica_while_another_has_two_in_the_middle_of_a_wave(replicas: int) -> None:
    waves = {"waves": [{"name": "canary", "clusters": ["east"]}, {"name": "rest", "pause": True}]}
    async with a_world() as world:
        policy = a_policy(dict.fromkeys(("east", "north", "west"), 10))
        await world.create(PROPAGATION_POLICIES, {**policy, "spec": {**policy["spec"], "rollout": waves}})
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_available("web", 3)
        await world.until_equal(lambda: state(world), "Complete")
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: message(world), "wave rest waits for approval")
        await world.merge(DEPLOYMENTS, "web", {"spec": {"replicas": replicas}})

        async def counts() -> list[int]:
            found = [await member.find(DEPLOYMENTS, "web") for member in world.members.values()]
            return [int(copy["spec"]["replicas"]) for copy in found if copy is not None]

        async def total() -> int:
            return sum(await counts())

        await world.until_equal(total, replicas)
        placed = await counts()
        assert len(placed) == 3
        assert max(placed) - min(placed) <= 1
        assert await images(world) == {**OLD, "east": "nginx:1.28"}
        await steer(world, approvedWave={"revision": 1, "wave": "rest"})
        await world.until_equal(lambda: state(world), "Complete")
        await world.until_available("web", replicas)


async def test_waves_cost_no_write_of_the_federated_object_before_the_first_change() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        federated = await world.federated("web")
        assert names.APPROVED_REVISIONS not in federated["metadata"]["annotations"]
        assert federated["metadata"]["generation"] == 1  # created with its placement


async def test_a_template_that_was_taken_back_after_a_failure_never_exceeds_its_deadline() -> None:
    async with a_world() as world:
        await start(world, CANARY)
        await set_template(world, "broken:1", is_ready=False)
        await world.until_equal(lambda: progressing(world), ("False", "ProgressDeadlineExceeded"))
        deployment = await world.user.get(DEPLOYMENTS, "web", "default")
        found = conditions.find(deployment["status"]["conditions"], "Progressing") or {}
        assert "the gate of wave canary did not hold for 60 s: east: " in found["message"]
        await set_template(world, "nginx:1.27")
        seen = set()
        while ("True", "NewReplicaSetAvailable") not in seen:
            seen.add(await progressing(world))
            await world.clock.advance(0.005)
        assert ("False", "ProgressDeadlineExceeded") not in seen


def a_budget(most: int) -> Object:
    return {
        "apiVersion": CLUSTER_DISRUPTION_BUDGETS.api_version,
        "kind": "ClusterDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"maxUnavailable": most},
    }


async def eviction(world: World, name: str) -> str:
    cluster = await world.user.get(FEDERATED_CLUSTERS, name)
    found = conditions.find(cluster["status"]["conditions"], names.EVICTION_ALLOWED) or {}
    return str(found.get("message") or "")


async def test_waves_and_drains_share_the_budget_for_clusters() -> None:
    waves = {"waves": [{"name": "canary", "clusters": ["east"], "timeoutSeconds": 3600}]}
    async with a_world() as world:
        await start(world, waves)
        await world.create(CLUSTER_DISRUPTION_BUDGETS, a_budget(1))
        await set_template(world, "broken:1", is_ready=False)
        await world.until_equal(lambda: images(world), {**OLD, "east": "broken:1"})
        taint = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": to_rfc3339(world.clock.now())}
        await world.merge(FEDERATED_CLUSTERS, "north", {"spec": {"taints": [taint]}})
        blocked = "ClusterDisruptionBudget all allows 1 unavailable clusters; 1 of 3 clusters are unavailable already"
        await world.until_equal(lambda: eviction(world, "north"), blocked)
        await world.restart()
        await world.pass_time(30)
        assert (await world.replicas("web"))["north"] == 2

        # When east is ready, north is drained. The other clusters wait for the end of the drain.
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: world.members["north"].replicas("web"), None)
        await world.until_equal(lambda: message(world), f"wave remaining: west: {blocked}")
        await world.pass_time(30)
        west = await world.members["west"].find(DEPLOYMENTS, "web")
        assert west is not None
        assert west["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.27"
        await world.merge(FEDERATED_CLUSTERS, "north", {"spec": {"taints": None}})
        await world.until_equal(lambda: state(world), "Complete")


@pytest.mark.slow("two rollouts in waves")
async def test_waves_of_two_workloads_do_not_add_up() -> None:
    waves = {"waves": [{"name": "canary", "clusters": ["east"], "gate": {"soakSeconds": 5}}]}
    async with a_world() as world:
        await start(world, waves)
        await world.create(DEPLOYMENTS, a_deployment("api", replicas=8))
        await world.until_available("api", 8)
        await world.create(CLUSTER_DISRUPTION_BUDGETS, a_budget(1))

        async def disrupted() -> set[str]:
            rollouts = (await world.user.list(FEDERATED_ROLLOUTS)).items
            clusters = [each for found in rollouts for each in (found.get("status") or {}).get("clusters") or ()]
            return {each["name"] for each in clusters if each.get("disruptedSince")}

        for name in ("web", "api"):
            containers = [{"name": "web", "image": "nginx:1.28"}]
            await world.merge(DEPLOYMENTS, name, {"spec": {"template": {"spec": {"containers": containers}}}})
        seen = set()
        while await state(world) != "Complete" or await images(world) != NEW:
            await world.clock.advance(0.2)
            seen.add(frozenset(await disrupted()))
        assert max(map(len, seen)) == 1
        await world.until_equal(disrupted, set())


async def test_a_daemon_set_rolls_by_waves() -> None:
    async with a_world() as world:
        policy = a_policy_with_waves({"waves": [{"name": "canary", "clusters": ["east"], "gate": {"soakSeconds": 30}}]})
        policy["spec"] |= {"schedulingMode": "Duplicate"}
        policy["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]
        await world.create(PROPAGATION_POLICIES, policy)
        agent = a_deployment("agent")
        del agent["spec"]["replicas"]
        await world.create(DAEMON_SETS, {**agent, "kind": "DaemonSet"})

        async def revisions() -> dict[str, str]:
            found = {}
            for name, member in world.members.items():
                copy = await member.find(DAEMON_SETS, "agent") or {}
                if (copy.get("status") or {}).get("updatedNumberScheduled"):
                    found[name] = copy["spec"]["template"]["spec"]["containers"][0]["image"]
            return found

        await world.until_equal(revisions, OLD)
        await world.settle()
        containers = [{"name": "web", "image": "nginx:1.28"}]
        await world.merge(DAEMON_SETS, "agent", {"spec": {"template": {"spec": {"containers": containers}}}})
        await world.until_equal(revisions, {**OLD, "east": "nginx:1.28"})
        began = world.clock.monotonic()
        await world.until_equal(revisions, NEW)
        assert world.clock.monotonic() - began >= 30


class ErrorRates:
    """A service of the user that judges releases: its answer can be changed."""

    def __init__(self) -> None:
        self.status = 503
        self.urls: list[str] = []

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        assert headers
        assert timeout_s > 0
        self.urls.append(connection.server)
        return WebhookResponse(self.status)


async def test_a_gate_asks_a_service_and_reads_the_object_of_the_member() -> None:
    service = ErrorRates()
    gate = {
        "expression": "object.metadata.labels['release'] == 'good'",
        "http": {"url": "https://slo.example/web"},
    }
    async with a_world(gates=service) as world:
        await start(world, {"waves": [{"name": "canary", "clusters": ["east"], "gate": gate, "timeoutSeconds": 900}]})
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: message(world), "wave canary: east: its expression fails: no such key: release")
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"labels": {"release": "bad"}}})
        await world.until_equal(lambda: message(world), "wave canary: east: its expression is false")
        assert service.urls == []
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"labels": {"release": "good"}}})
        await world.until_equal(lambda: message(world), "wave canary: https://slo.example/web: the gate did not hold")
        assert await images(world) == {**OLD, "east": "nginx:1.28"}
        service.status = 200
        await world.until_equal(lambda: images(world), NEW)
        await world.until_equal(lambda: state(world), "Complete")


async def test_a_wave_waits_for_a_cluster_that_does_not_answer() -> None:
    async with a_world() as world:
        await start(world, {"waves": [{"name": "canary", "clusters": ["east"], "timeoutSeconds": 3600}]})
        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await set_template(world, "nginx:1.28")
        await world.clock.advance(30)
        assert await images(world) == OLD
        world.members["east"].line.mode = "up"
        await world.until_equal(lambda: images(world), NEW)
        await world.until_equal(lambda: state(world), "Complete")


async def test_waves_that_a_policy_gets_later_hold_the_next_change() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))
        await world.until_available("web", 8)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"rollout": CANARY}})
        await world.until_equal(lambda: state(world), "Complete")
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), {**OLD, "east": "nginx:1.28"})
        # Without waves all other clusters get the template at once.
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"rollout": None}})
        await world.until_equal(lambda: images(world), NEW)
        await world.until_gone(FEDERATED_ROLLOUTS, ROLLOUT)


OBJECTIVES: Object = {
    "onFailure": "RollBack",
    "waves": [
        {
            "name": "canary",
            "clusters": ["east"],
            "gate": {
                "soakSeconds": 120,
                "objectives": [
                    {
                        "name": "errors",
                        "source": "main",
                        "errors": {"metric": "http_requests_total", "bad": {"code": "5.."}},
                    }
                ],
            },
        }
    ],
}


class Metered:
    """A transport of gates whose source of metrics exists once the world runs."""

    def __init__(self) -> None:
        self.counted: CountedRequests | None = None

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        raise AssertionError((connection, headers, timeout_s))

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        assert self.counted is not None
        self.counted.advance()
        return await self.counted.post(connection, body, headers, timeout_s=timeout_s)


async def start_measured(world: World, metered: Metered) -> dict[str, float]:
    """Start after ten measured minutes, and return the shares of bad requests by cluster, which a test changes."""
    shares = dict.fromkeys(("east", "north", "west"), 0.01)
    rates = {name: (lambda name=name: shares[name]) for name in shares}
    metered.counted = CountedRequests(world.clock, rates, per_second=100)
    await start(world, OBJECTIVES)
    for ago_s in range(600, 0, -10):
        metered.counted.advance(ago_s)
    return shares


@pytest.fixture
def metric_sources(tmp_path: Path) -> str:
    path = tmp_path / "sources.yaml"
    path.write_text("sources: {main: {url: 'https://prometheus.example.com'}}\n")
    return str(path)


async def test_a_template_with_more_errors_than_before_and_elsewhere_rolls_back(metric_sources: str) -> None:
    metered = Metered()
    async with a_world(gates=metered, metric_sources_file=metric_sources) as world:
        shares = await start_measured(world, metered)
        shares["east"] = 0.03
        await set_template(world, "nginx:1.28")
        await world.until_equal(lambda: images(world), {**OLD, "east": "nginx:1.28"})
        await world.until_equal(lambda: state(world), "RolledBack")
        assert await images(world) == OLD
        failure = (await rollout(world))["failure"]
        assert failure.startswith("the objectives of wave canary were not met: errors: ")
        assert "in waiting clusters" in failure
        assert metered.counted is not None
        assert {server for server, _ in metered.counted.queries} == {"https://prometheus.example.com/api/v1/query"}
        shares["east"] = 0.01
        await set_template(world, "nginx:1.29")
        await world.until_equal(lambda: state(world), "Complete")
        assert await images(world) == dict.fromkeys(OLD, "nginx:1.29")


async def test_a_source_that_does_not_answer_holds_the_rollout_until_it_does(metric_sources: str) -> None:
    metered = Metered()
    async with a_world(gates=metered, metric_sources_file=metric_sources) as world:
        await start_measured(world, metered)
        assert metered.counted is not None
        metered.counted.status = 503
        await set_template(world, "nginx:1.28")

        async def is_held() -> bool:
            message = (await rollout(world)).get("message", "")
            return "waits for its objectives: errors: the metrics source answers with HTTP status 503" in message

        await world.until_equal(is_held, True)
        assert await images(world) == {**OLD, "east": "nginx:1.28"}
        metered.counted.status = 200
        await world.until_equal(lambda: state(world), "Complete")
        assert await images(world) == NEW
