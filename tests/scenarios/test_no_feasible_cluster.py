"""No feasible cluster, a deleted policy, a failing plugin: the workload stays and its status has the reason."""

from typing import Any, ClassVar

import orjson
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES, SCHEDULING_PROFILES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.controllers.schedule.names import EVENT_SCHEDULING_FAILED
from federation.journal.decisions import DecisionFilter
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import FilterPlugin
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.types import SUCCESS, Cluster, SchedulingUnit, Status
from federation.scheduling.names import REASON_POLICY_NOT_FOUND

KEPT = {"east": 2, "north": 1, "west": 1}


async def _running(world: World, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}, **spec))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
    await world.until_replicas("web", KEPT)
    await world.until_available("web", 4)
    await world.settle()


async def _assert_placement_kept(world: World, reason: str) -> str:
    """Assert that placements are unchanged and condition, event and user object have the reason; return the message."""

    async def failed_condition() -> Any:
        condition = await world.condition("web", names.SCHEDULED)
        return condition if condition.get("status") == "False" else None

    condition = await world.until(failed_condition)
    await world.settle()
    assert condition["reason"] == reason
    assert await world.replicas("web") == KEPT
    assert (await world.status("web"))["availableReplicas"] == 4
    events = [message for event, message in await world.events() if event == EVENT_SCHEDULING_FAILED]
    assert any("the last placement stays" in message for message in events)
    merged = {c["type"]: c for c in (await world.status("web"))["conditions"]}
    assert (merged["Scheduled"]["status"], merged["Scheduled"]["reason"]) == ("False", reason)
    return str(condition["message"])


async def _is_well_again(world: World, expected: dict[str, int]) -> None:
    await world.until_replicas("web", expected)

    async def is_scheduled() -> bool:
        return (await world.condition("web", names.SCHEDULED)).get("status") in (None, "True")

    await world.until(is_scheduled)


async def test_placements_stay_when_all_clusters_become_infeasible() -> None:
    async with a_world(labels={name: {"tier": "gold"} for name in ("east", "north", "west")}) as world:
        await _running(world)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"clusterSelector": {"tier": "platinum"}}})

        message = await _assert_placement_kept(world, "NoFeasibleCluster")

        assert "3" in message  # the number of examined clusters
        (record,) = await world.journal.query(DecisionFilter(name="web"))
        assert record.outcome == "NoFeasibleCluster"
        assert orjson.loads(record.explanation)["outcome"] == "NoFeasibleCluster"

        # The first feasible cluster gets it.
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "platinum"}}})
        await _is_well_again(world, {"east": 4})


async def test_a_new_object_without_a_feasible_cluster_is_placed_in_the_first_one() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, clusterSelector={"tier": "gold"}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))

        async def is_reported() -> bool:
            conditions = (await world.status("web")).get("conditions") or ()
            return any(c["type"] == "Scheduled" and c["status"] == "False" for c in conditions)

        await world.until(is_reported)
        assert await world.replicas("web") == {}
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "gold"}}})
        await _is_well_again(world, {"east": 2})
        await world.until_available("web", 2)


async def test_an_object_keeps_its_placement_without_its_policy_until_another_applies() -> None:
    async with a_world() as world:
        await _running(world)
        await world.user.delete(PROPAGATION_POLICIES, "divide", "default")

        await _assert_placement_kept(world, names.REASON_NO_POLICY)

        await world.restart()
        await world.settle()
        assert await world.replicas("web") == KEPT
        assert [member.line.writes() for member in world.members.values()] == [[], [], []]

        await world.create(PROPAGATION_POLICIES, a_policy({"west": 1}, name="other"))
        await _is_well_again(world, {"west": 4})


async def test_a_label_that_names_no_policy_keeps_the_placement() -> None:
    async with a_world() as world:
        await _running(world)
        label = {"metadata": {"labels": {names.PROPAGATION_POLICY_LABEL: "nowhere"}}}
        await world.merge(DEPLOYMENTS, "web", label)

        message = await _assert_placement_kept(world, REASON_POLICY_NOT_FOUND)

        assert "nowhere" in message


class Moody(FilterPlugin):
    """Accepts every cluster, or fails."""

    NAME: ClassVar[str] = "Moody"

    def __init__(self) -> None:
        self.fails = False

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        if self.fails:
            raise RuntimeError("out of sorts")
        return SUCCESS


def _profile() -> Object:
    return {
        "apiVersion": SCHEDULING_PROFILES.api_version,
        "kind": "SchedulingProfile",
        "metadata": {"name": "moody"},
        "spec": {"plugins": {"filter": {"enabled": [{"name": "Moody"}]}}},
    }


async def test_a_failing_plugin_keeps_the_placement() -> None:
    plugin = Moody()
    plugins = load_plugins().with_plugin("Moody", lambda _: plugin)
    async with a_world(plugins=plugins, is_replayed=False) as world:  # the plugin depends on more than its arguments
        await world.create(SCHEDULING_PROFILES, _profile())
        await _running(world, schedulingProfile="moody")
        plugin.fails = True
        # A change that requires a new decision; the annotation does not affect replicas.
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"tolerations": [{"operator": "Exists"}]}})

        message = await _assert_placement_kept(world, "PluginFailed")

        assert "Moody" in message
        assert "out of sorts" in message
        plugin.fails = False
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"tolerations": None}})
        await _is_well_again(world, KEPT)
