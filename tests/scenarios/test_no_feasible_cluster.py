"""No cluster fits, the policy is gone, a plugin fails: the workload stays where it is, and everybody is told why."""

from typing import Any, ClassVar

import orjson
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import DEPLOYMENTS, FEDERATED_CLUSTERS, PROPAGATION_POLICIES, SCHEDULING_PROFILES, Object
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import FilterPlugin
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.types import SUCCESS, Cluster, SchedulingUnit, Status
from federation.store.journal import DecisionFilter

KEPT = {"east": 2, "north": 1, "west": 1}


async def _running(world: World, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}, **spec))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
    await world.until_replicas("web", KEPT)
    await world.until_available("web", 4)
    await world.settle()


async def _is_kept_and_told(world: World, reason: str) -> str:
    """Check that all is as it was, that condition, event and the user's object say why; return the message."""

    async def told() -> Any:
        condition = await world.condition("web", names.SCHEDULED)
        return condition if condition.get("status") == "False" else None

    condition = await world.until(told)
    await world.settle()
    assert condition["reason"] == reason
    assert await world.replicas("web") == KEPT
    assert (await world.status("web"))["availableReplicas"] == 4
    events = [message for event, message in await world.events() if event == names.EVENT_SCHEDULING_FAILED]
    assert any("the last placement stays" in message for message in events)
    merged = {c["type"]: c for c in (await world.status("web"))["conditions"]}
    assert (merged["Scheduled"]["status"], merged["Scheduled"]["reason"]) == ("False", reason)
    return str(condition["message"])


async def _is_well_again(world: World, expected: dict[str, int]) -> None:
    await world.until_replicas("web", expected)

    async def is_scheduled() -> bool:
        return (await world.condition("web", names.SCHEDULED)).get("status") in (None, "True")

    await world.until(is_scheduled)


async def test_clusters_that_all_became_unsuitable_keep_what_they_have() -> None:
    async with a_world(labels={name: {"tier": "gold"} for name in ("east", "north", "west")}) as world:
        await _running(world)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"clusterSelector": {"tier": "platinum"}}})

        message = await _is_kept_and_told(world, "NoFeasibleCluster")

        assert "3" in message  # so many clusters were looked at
        (record,) = await world.journal.query(DecisionFilter(name="web"))
        assert record.outcome == "NoFeasibleCluster"
        assert orjson.loads(record.explanation)["outcome"] == "NoFeasibleCluster"

        # The first cluster that fits takes it over.
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "platinum"}}})
        await _is_well_again(world, {"east": 4})


async def test_a_new_object_without_any_cluster_says_so_and_comes_alive_with_the_first_one() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, clusterSelector={"tier": "gold"}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))

        async def told() -> bool:
            conditions = (await world.status("web")).get("conditions") or ()
            return any(c["type"] == "Scheduled" and c["status"] == "False" for c in conditions)

        await world.until(told)
        assert await world.replicas("web") == {}
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "gold"}}})
        await _is_well_again(world, {"east": 2})
        await world.until_available("web", 2)


async def test_without_its_policy_an_object_stays_and_can_be_taken_up_by_another() -> None:
    async with a_world() as world:
        await _running(world)
        await world.user.delete(PROPAGATION_POLICIES, "divide", "default")

        await _is_kept_and_told(world, names.REASON_NO_POLICY)

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

        message = await _is_kept_and_told(world, names.REASON_POLICY_NOT_FOUND)

        assert "nowhere" in message


class Moody(FilterPlugin):
    """Lets everything pass, or fails."""

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
    async with a_world(plugins=load_plugins().with_plugin("Moody", lambda _: plugin)) as world:
        await world.create(SCHEDULING_PROFILES, _profile())
        await _running(world, schedulingProfile="moody")
        plugin.fails = True
        # Something that has to be decided again; the annotation makes no difference to the replicas.
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"tolerations": [{"operator": "Exists"}]}})

        message = await _is_kept_and_told(world, "PluginFailed")

        assert "Moody" in message
        assert "out of sorts" in message
        plugin.fails = False
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"tolerations": None}})
        await _is_well_again(world, KEPT)
