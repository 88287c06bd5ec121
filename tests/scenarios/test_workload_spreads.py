"""WorkloadSpreads in a simulated member: the pods of real workload controllers, on a virtual clock."""

import asyncio
import random
from collections import Counter

import pytest
from tests.support.generated import nightly_after
from tests.support.memberspreads import a_node, a_spread, a_subset, create_spread, pools, subset_sizes
from tests.support.metrics import sample_of
from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object

from federation.api.names import POD_DELETION_COST
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.resources import (
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    REPLICA_SETS,
)
from federation.apiserver.verbs.requestoptions import WriteOptions, own_user
from federation.features.workloadspread.incluster.configurations import CREATE_POD
from federation.features.workloadspread.incluster.reviews import OUTCOMES
from federation.features.workloadspread.rules.ledger import parse_match
from federation.planning.automigration.podanalysis import is_live
from federation.simulator.controllers.names import SIMULATOR_CPU_LOAD


async def test_pods_fill_the_base_pool_before_the_elastic_pool() -> None:
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 2), a_subset("elastic")))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=5))
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=3))
        assert await subset_sizes(member) == {"base": 2, "elastic": 3}


async def test_concurrent_creations_through_several_services_keep_the_limits() -> None:
    before = admissions()
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=3) as member:
        subsets = a_subset("base", 7), a_subset("elastic", 12), a_subset("rest", required=False)
        await create_spread(member, a_spread(*subsets, kind="ReplicaSet"))
        await member.pass_time(1)  # every service has the WorkloadSpread in its cache
        # The ReplicaSet controller creates 50 pods at once.
        await member.create(REPLICA_SETS, a_workload(REPLICA_SETS, replicas=50))
        await member.until_equal(lambda: subset_sizes(member), Counter(base=7, elastic=12, rest=31))
        assert admissions() - before == Counter(changed=50)
        (spread,) = await member.all(WORKLOAD_SPREADS)
        (entry,) = spread["status"]["versionedSubsetStatuses"].values()
        assert [status["missingReplicas"] for status in entry] == [0, 0, -1]


def admissions() -> Counter[str]:
    """Return how many creations of pods ended in which way."""
    name = "federation_spread_reviews_total"
    samples = {outcome: {"handler": CREATE_POD, "outcome": outcome} for outcome in OUTCOMES}
    return Counter({outcome: int(sample_of(name, labels) or 0) for outcome, labels in samples.items()})


async def test_three_zones_keep_their_shares_when_the_workload_is_scaled() -> None:
    zones = [a_node(name, name) for name in ("zone-a", "zone-b", "zone-c")]
    async with a_member(zones, spread_services=1) as member:
        await create_spread(
            member, a_spread(a_subset("zone-a", "20%"), a_subset("zone-b", "20%"), a_subset("zone-c", "60%"))
        )
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=5))
        await member.until_equal(lambda: pools(member), Counter({"zone-a": 1, "zone-b": 1, "zone-c": 3}))
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
        await member.until_equal(lambda: pools(member), Counter({"zone-a": 3, "zone-b": 3, "zone-c": 9}))
        await member.pass_time(5)
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 10}})
        await member.until_equal(lambda: pools(member), Counter({"zone-a": 2, "zone-b": 2, "zone-c": 6}))


async def test_scale_in_empties_the_elastic_pool_first_and_then_the_surplus_of_the_base_pool() -> None:
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 8), a_subset("elastic")))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=10))
        await member.until_equal(lambda: costs(member), {"base": [200] * 8, "elastic": [100] * 2})
        limit = [a_subset("base", 5), a_subset("elastic")]
        await member.merge(WORKLOAD_SPREADS, "web", {"spec": {"subsets": limit}})
        await member.until_equal(lambda: costs(member), {"base": [-100] * 3 + [200] * 5, "elastic": [100] * 2})
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 7}})
        await member.until_equal(lambda: costs(member), {"base": [200] * 5, "elastic": [100] * 2})
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
        await member.until_equal(lambda: costs(member), {"base": [200] * 4})
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
        await member.until_equal(lambda: costs(member), {"base": [200] * 5, "elastic": [100]})


async def costs(member: Member) -> dict[str, list[int]]:
    """Return the deletion costs of the pods by subset, in ascending order."""
    found: dict[str, list[int]] = {}
    for pod in await member.all(PODS):
        match = parse_match(pod)
        cost = pod["metadata"].get("annotations", {}).get(POD_DELETION_COST, "0")
        found.setdefault(match.subset if match is not None else "", []).append(int(cost))
    return {subset: sorted(values) for subset, values in sorted(found.items())}


async def test_pods_leave_a_subset_that_cannot_run_them_and_it_is_skipped_for_five_minutes() -> None:
    async with a_member([a_node("a", "base", cpu="2"), a_node("b", "elastic")], spread_services=1) as member:
        adaptive = {"rescheduleCriticalSeconds": 30, "disableSimulationSchedule": True}
        strategy = {"type": "Adaptive", "adaptive": adaptive}
        await create_spread(member, a_spread(a_subset("base", 5), a_subset("elastic"), scheduleStrategy=strategy))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=5, template=a_template(cpu="1")))
        await member.until_equal(lambda: pools(member), Counter({"base": 2, "": 3}))
        await member.pass_time(25)
        assert await pools(member) == Counter({"base": 2, "": 3})
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=3))
        assert await schedulable(member) == {"base": "False", "elastic": "True"}
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=4))
        await enlarge(member, "a", cpu="8")
        await member.pass_time(240)
        assert await schedulable(member) == {"base": "False", "elastic": "True"}
        await member.until_equal(lambda: schedulable(member), {"base": "True", "elastic": "True"})
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 8}})
        await member.until_equal(lambda: pools(member), Counter(base=4, elastic=4))
        assert "RecoverSchedulable" in [event["reason"] for event in await member.all(EVENTS)]


async def schedulable(member: Member) -> dict[str, str]:
    """Return the condition Schedulable of every subset."""
    (spread,) = await member.all(WORKLOAD_SPREADS)
    statuses = spread["status"]["subsetStatuses"]
    return {status["name"]: condition["status"] for status in statuses for condition in status.get("conditions") or ()}


async def enlarge(member: Member, node: str, **amounts: str) -> None:
    await member.client.patch(NODES, node, {"status": {"allocatable": amounts}}, subresource="status")


async def test_existing_pods_are_adopted_where_they_run_and_not_restarted() -> None:
    tainted = a_node("b", "elastic", taints=({"key": "virtual", "value": "yes", "effect": "NoSchedule"},))
    async with a_member([a_node("a", "base"), tainted], spread_services=1) as member:
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=8))
        await member.until_equal(lambda: pools(member), Counter(base=8))
        before = {pod["metadata"]["uid"] for pod in await member.all(PODS)}
        patch = {"metadata": {"labels": {"alibabacloud.com/eci": "true"}}}
        toleration = {"key": "virtual", "operator": "Exists"}
        subsets = a_subset("base", 8), a_subset("elastic", patch=patch, tolerations=[toleration])
        await create_spread(member, a_spread(*subsets))
        await member.until_equal(lambda: costs(member), {"base": [200] * 8})
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 10}})
        await member.until_equal(lambda: pools(member), Counter(base=8, elastic=2))
        pods = await member.all(PODS)
        assert before < {pod["metadata"]["uid"] for pod in pods}
        labelled = [pod["spec"]["nodeName"] for pod in pods if "alibabacloud.com/eci" in pod["metadata"]["labels"]]
        assert labelled == ["b", "b"]


async def test_packages_of_a_limited_size_and_a_subset_for_the_rest() -> None:
    node = a_node("a", "all", pods=500, cpu="64")
    async with a_member([node], spread_services=1) as member:
        packages = [
            a_subset(f"bandwidthPackage-{n}", 6, required=False, patch={"metadata": {"labels": {"package": f"p-{n}"}}})
            for n in range(1, 11)
        ]
        await create_spread(member, a_spread(*packages, a_subset("others", required=False)))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=70))
        expected = Counter({f"bandwidthPackage-{n}": 6 for n in range(1, 11)}) + Counter(others=10)
        await member.until_equal(lambda: subset_sizes(member), expected)
        assert Counter(pod["metadata"]["labels"].get("package") for pod in await member.all(PODS))["p-3"] == 6
        await member.until_equal(lambda: free(member), [0] * 10 + [-1])
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 50}})
        await member.until_equal(lambda: free(member), [0] * 8 + [4, 6, -1])


async def creations(member: Member) -> list[str]:
    """Return the records of pods that the controller has not seen."""
    (spread,) = await member.all(WORKLOAD_SPREADS)
    entries = spread["status"]["versionedSubsetStatuses"].values()
    return [name for entry in entries for status in entry for name in status.get("creatingPods", ())]


async def free(member: Member) -> list[int]:
    """Return the free replicas of every subset."""
    (spread,) = await member.all(WORKLOAD_SPREADS)
    return [status["missingReplicas"] for status in spread["status"]["subsetStatuses"]]


async def test_a_rollout_ends_with_the_wanted_layout() -> None:
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 2), a_subset("elastic")))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=6))
        await member.until_equal(lambda: costs(member), {"base": [200] * 2, "elastic": [100] * 4})
        before = set(await member.names(PODS))
        await member.merge(DEPLOYMENTS, "web", {"spec": {"template": a_template(cpu="200m")}})
        await member.until(lambda: _are_replaced(member, before))
        await member.until_equal(lambda: costs(member), {"base": [200] * 2, "elastic": [100] * 4})


async def _are_replaced(member: Member, before: set[str]) -> bool:
    return before.isdisjoint(await member.names(PODS)) and len(await member.ready_pods()) == 6


@pytest.mark.parametrize("is_evicted", [False, True], ids=["deleted", "evicted"])
async def test_a_removed_pod_is_replaced_in_its_subset(is_evicted: bool) -> None:
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 3), a_subset("elastic")))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=5))
        await member.until_equal(lambda: costs(member), {"base": [200] * 3, "elastic": [100] * 2})
        await member.until_equal(lambda: creations(member), [])
        pod = next(pod["metadata"]["name"] for pod in await member.all(PODS) if pod["spec"].get("nodeName") == "a")
        await (evict(member, pod) if is_evicted else member.delete(PODS, pod))
        (spread,) = await member.all(WORKLOAD_SPREADS)
        (entry,) = spread["status"]["versionedSubsetStatuses"].values()
        assert [list(status.get("deletingPods", ())) for status in entry] == [[pod], []]
        await member.until(lambda: _is_gone(member, pod))
        await member.until_equal(lambda: costs(member), {"base": [200] * 3, "elastic": [100] * 2})


async def evict(member: Member, pod: str) -> None:
    info = member.registry.kinds.lookup("", "v1", "pods")
    eviction = an_object(PODS, pod) | {"apiVersion": "policy/v1", "kind": "Eviction"}
    await member.registry.create(
        info, "default", eviction, WriteOptions(user=own_user), name=pod, subresource="eviction"
    )


async def _is_gone(member: Member, pod: str) -> bool:
    return not await member.exists(PODS, pod)


async def test_simulation_sends_pods_past_a_subset_without_room() -> None:
    async with a_member([a_node("a", "base", cpu="2"), a_node("b", "elastic")], spread_services=1) as member:
        strategy = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 60}}
        await create_spread(member, a_spread(a_subset("base", 5), a_subset("elastic"), scheduleStrategy=strategy))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=6, template=a_template(cpu="1")))
        await member.until_equal(lambda: pools(member), Counter(base=2, elastic=4))
        assert await schedulable(member) == {"base": "True", "elastic": "True"}


async def test_a_cluster_that_has_converged_is_left_alone() -> None:
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=2) as member:
        strategy = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}}
        await create_spread(member, a_spread(a_subset("base", "50%"), a_subset("elastic"), scheduleStrategy=strategy))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=4))
        await member.until_equal(lambda: costs(member), {"base": [200] * 2, "elastic": [100] * 2})
        await member.pass_time(60)
        before = await member.revision()
        await member.pass_time(400)
        assert await member.revision() == before


@pytest.mark.slow("reads all pods at each of hundreds of moments")
@pytest.mark.parametrize("seed", nightly_after(1, range(4)))
async def test_a_limit_holds_at_every_moment_while_pods_come_and_go(seed: int) -> None:
    rng = random.Random(seed)
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], seed=seed, spread_services=3) as member:
        await create_spread(
            member, a_spread(a_subset("base", 5), a_subset("elastic", 8), a_subset("rest", required=False))
        )
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=3))
        deletions: dict[str, asyncio.Future[None]] = {}
        for _ in range(25):
            for name in rng.sample(pods := await member.names(PODS), min(rng.randrange(3), len(pods))):
                # Not awaited: its admission may wait for the clock.
                deletions[name] = asyncio.ensure_future(member.delete(PODS, name))
            await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": rng.randrange(20)}})
            for _ in range(rng.randrange(1, 20)):
                await member.clock.advance(0.02)
                # The place of a pod is free as soon as its deletion is admitted, a moment before it is deleted.
                leaving = {name for name, deletion in deletions.items() if not deletion.done()}
                live = Counter(
                    match.subset
                    for pod in await member.all(PODS)
                    if is_live(pod) and pod["metadata"]["name"] not in leaving and (match := parse_match(pod))
                )
                assert live["base"] <= 5
                assert live["elastic"] <= 8
        # Records of pods that lived shorter than a reconcile expire; then all places are known to be free again.
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
        await member.pass_time(40)
        assert all(deletion.done() for deletion in deletions.values())
        await asyncio.gather(*deletions.values(), return_exceptions=True)
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
        await member.until_equal(lambda: subset_sizes(member), Counter(base=5, elastic=8, rest=2))


async def test_the_workload_is_not_changed() -> None:
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=1) as member:
        created = await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=4))
        await member.until_equal(lambda: _ready(member), 4)
        patch = {"metadata": {"labels": {"spread": "yes"}}}
        await create_spread(member, a_spread(a_subset("base", 2, patch=patch), a_subset("elastic", patch=patch)))
        await member.until_equal(lambda: _labelled(member), 4)
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
        await member.until_equal(lambda: _labelled(member), 6)
        workload = await member.get(DEPLOYMENTS, "web")
        assert workload["spec"] == {**created["spec"], "replicas": 6}
        (replica_set,) = await member.all(REPLICA_SETS)
        assert "spread" not in replica_set["spec"]["template"]["metadata"]["labels"]


async def _ready(member: Member) -> int:
    return len(await member.ready_pods())


async def _labelled(member: Member) -> int:
    return len([pod for pod in await member.all(PODS) if "spread" in pod["metadata"]["labels"]])


async def test_an_autoscaler_scales_a_workload_that_is_spread() -> None:
    async with a_member([a_node("a", "base"), a_node("b", "elastic")], spread_services=1) as member:
        await create_spread(member, a_spread(a_subset("base", 3), a_subset("elastic")))
        workload = a_workload(DEPLOYMENTS, replicas=2, template=a_template(cpu="100m"))
        workload["metadata"]["annotations"] = {SIMULATOR_CPU_LOAD: "0s=100m 1m=100m 2m=400m 10m=400m 11m=100m"}
        await member.create(DEPLOYMENTS, workload)
        metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": metric}],
        }
        await member.create(HORIZONTAL_POD_AUTOSCALERS, an_object(HORIZONTAL_POD_AUTOSCALERS, "web", spec=spec))
        await member.until_equal(lambda: pools(member), Counter(base=2))
        await member.pass_time(180, step_s=1)
        await member.until_equal(lambda: pools(member), Counter(base=3, elastic=5))
        await member.pass_time(18 * 60 - 180, step_s=1)
        await member.until_equal(lambda: pools(member), Counter(base=2))


async def test_pods_of_a_fixed_spread_wait_in_their_subset() -> None:
    async with a_member([a_node("a", "base", cpu="2"), a_node("b", "elastic")], spread_services=1) as member:
        strategy = {"type": "Fixed"}
        await create_spread(member, a_spread(a_subset("base", 5), a_subset("elastic"), scheduleStrategy=strategy))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=6, template=a_template(cpu="1")))
        await member.until_equal(lambda: pools(member), Counter({"base": 2, "": 3, "elastic": 1}))
        before = await member.names(PODS)
        await member.pass_time(600, step_s=1)
        assert await member.names(PODS) == before
        assert await subset_sizes(member) == Counter(base=5, elastic=1)
        assert await schedulable(member) == {}
        await enlarge(member, "a", cpu="8")
        await member.until_equal(lambda: pools(member), Counter(base=5, elastic=1))
