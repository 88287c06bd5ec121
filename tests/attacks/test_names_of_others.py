"""Attack: a tenant reads names of other namespaces in what is said about his own workloads."""

from datetime import UTC, datetime

from tests.scenarios.test_preemption import a_full_world, a_web
from tests.support.manifests import a_policy
from tests.unit.features.queues.test_admission import NOW, WITHIN, a_job, replace, rooms, running

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.features.preemption.names import EVENT_GIVES_WAY, EVENT_PREEMPTS, GAVE_WAY
from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.facts import Capacity
from federation.journal.decisions import DecisionFilter
from federation.planning.failover.halts import ClusterState, HaltOptions, next_halt

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_workload_that_gives_way_to_one_of_another_namespace_is_not_named_to_it_and_does_not_name_it() -> None:
    async with a_full_world() as world:
        await world.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        policy, shop = a_policy({"east": 1, "west": 1}), a_web("shop", 2, "16", "high")
        policy["metadata"]["namespace"] = shop["metadata"]["namespace"] = "team"
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, shop)

        async def gave_way() -> bool:
            return (await world.condition("batch", GAVE_WAY) or {}).get("status") == "True"

        await world.until(gave_way)
        await world.settle()
        events = dict(await world.events())
        assert "give way to a Deployment of another namespace" in events[EVENT_GIVES_WAY]
        assert "1 replica of a Deployment of another namespace" in events[EVENT_PREEMPTS]
        said = {name: await world.journal.query(DecisionFilter(name=name), limit=50) for name in ("batch", "shop")}
        texts = {
            "batch": f"{await world.condition('batch', GAVE_WAY)} {[each.explanation for each in said['batch']]}",
            "shop": str([each.explanation for each in said["shop"]]),
        }
        assert "givesWay" in texts["batch"]
        assert EVENT_PREEMPTS in texts["shop"]
        assert ("team/shop" in texts["batch"], "default/batch" in texts["shop"]) == (False, False)
        await world.user.delete(DEPLOYMENTS, "shop", "team")
        await world.until_gone(DEPLOYMENTS, "shop", "team")


def test_a_job_that_gives_way_in_a_shared_queue_names_no_job_of_another_namespace() -> None:
    low, high = running("team/low", 10, priority=1), a_job("team/high", 4, priority=2)
    for key, leaf, because in (
        ("team/high", "team/q", "it gave way to team/high"),
        ("other/high", "other/q", "it gave way to a job of another namespace"),
    ):
        jobs = [low, replace(high, key=key, leaf=leaf)]
        evicted = admit({WITHIN.name: WITHIN}, jobs, Capacity(rooms(east=20, west=20)), NOW).evicted
        assert [each.because for each in evicted.values()] == [because]


def test_a_halt_of_the_failover_names_no_cluster_because_each_lost_cluster_says_so() -> None:
    lost = [ClusterState(name, "Unknown", NOW_AT, "ClusterNotReachable") for name in ("own", "of-others")]
    states = [*lost, ClusterState("third", "True", NOW_AT)]
    halt = next_halt(None, states, NOW_AT, HaltOptions())
    assert halt is not None
    assert halt.message == "2 of 3 clusters are lost, more than 50%"
