"""WorkloadSpreads across members that spread their pods: the host divides, each member fills its own subsets."""

import asyncio

from tests.support.federatedspreads import (
    POOLS,
    V1ALPHA1,
    a_node,
    a_spread,
    a_subset,
    begin,
    costs,
    layout,
    member_status,
    pods,
    statuses,
    until_layout,
)
from tests.support.invariants import changes_of_a_restart
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_CLUSTERS, WORKLOAD_SPREADS
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import DEPLOYMENTS, NODES, PODS
from federation.apiserver.verbs.requestoptions import WriteOptions, own_user
from federation.client.client import PatchType
from federation.scheduling.names import UNSCHEDULABLE_SUBSETS
from federation.scheduling.workloadspreads import stored_quotas

ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30, "disableSimulationSchedule": True}}
TWO = ("east", "north")


async def test_pools_of_two_clusters_fill_in_the_order_of_the_subsets_and_empty_backwards() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        subsets = a_subset("own", "east", "base", 3), a_subset("more", "north", "base", 2), a_subset("spot", "", "spot")
        await begin(world, a_spread(*subsets), 2)
        before = await world.user.get(DEPLOYMENTS, "web", "default")
        await until_layout(world, {("east", "base", "own"): 2})
        await world.scale("web", 5)
        full = {("east", "base", "own"): 3, ("north", "base", "more"): 2}
        await until_layout(world, full)
        await world.scale("web", 9)
        await until_layout(world, full | {("east", "spot", "spot"): 2, ("north", "spot", "spot"): 2})
        await world.until_equal(lambda: statuses(world), [("own", 3, 0), ("more", 2, 0), ("spot", 4, -1)])
        await world.scale("web", 4)
        await until_layout(world, full | {("north", "base", "more"): 1})
        await world.until_equal(lambda: statuses(world), [("own", 3, 0), ("more", 1, 1), ("spot", 0, -1)])
        after = await world.user.get(DEPLOYMENTS, "web", "default")
        assert after["spec"]["template"] == before["spec"]["template"]
        copy = await world.members["north"].find(DEPLOYMENTS, "web") or {}
        assert copy["spec"]["template"]["spec"] == before["spec"]["template"]["spec"]
        await world.settle()
        assert await changes_of_a_restart(world) == []


async def test_an_autoscaler_scales_through_the_subresource_and_the_subsets_follow() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        await begin(world, a_spread(a_subset("own", "east", "base", "50%"), a_subset("rest", "north", "spot")), 2)
        for total in (6, 3, 8):
            body = {"spec": {"replicas": total}}
            await world.user.patch(DEPLOYMENTS, "web", body, namespace="default", subresource="scale")
            own = -(-total // 2)
            await until_layout(world, {("east", "base", "own"): own, ("north", "spot", "rest"): total - own})


async def test_pods_of_a_fixed_spread_wait_in_their_subset_and_cluster() -> None:
    small = {"east": (a_node("base", cpu="2"), a_node("spot")), "north": POOLS["north"]}
    async with a_world(members=TWO, spreading=small) as world:
        spread = a_spread(
            a_subset("own", "east", "base", 4), a_subset("more", "north"), scheduleStrategy={"type": "Fixed"}
        )
        await begin(world, spread, 5, cpu="1")
        waiting = {("east", "base", "own"): 2, ("east", "", "own"): 2, ("north", "base", "more"): 1}
        await world.until(lambda: _has(world, waiting))
        await world.pass_time(400)
        assert await _has(world, waiting)
        assert all("conditions" not in entry for entry in await member_status(world, "east"))


async def _has(world: World, expected: dict[tuple[str, str, str], int]) -> bool:
    """Return whether the layout has these counts, with the pods of `more` on either node."""
    found = await layout(world)
    found[("north", "base", "more")] = found.get(("north", "base", "more"), 0) + found.pop(("north", "spot", "more"), 0)
    return found == expected


async def test_a_subset_that_a_member_cannot_run_gives_its_replicas_to_another_cluster_for_five_minutes() -> None:
    small = {"east": (a_node("base", cpu="2"), a_node("spot")), "north": POOLS["north"]}
    async with a_world(members=TWO, spreading=small) as world:
        subsets = a_subset("own", "east", "base", 5), a_subset("more", "north", "base")
        await begin(world, a_spread(*subsets, scheduleStrategy=ADAPTIVE), 5, cpu="1")
        # The cluster has room, but not on the nodes of the subset.
        await until_layout(world, {("east", "base", "own"): 2, ("east", "", "own"): 3})
        await world.pass_time(20)
        assert await world.replicas("web") == {"east": 5}
        await until_layout(world, {("east", "base", "own"): 2, ("north", "base", "more"): 3})
        await world.until_equal(lambda: schedulable(world), {"own": "False", "more": "True"})
        await world.members["east"].admin.patch(
            NODES, "base", {"status": {"allocatable": {"cpu": "64"}}}, subresource="status"
        )
        await world.scale("web", 7)
        await until_layout(world, {("east", "base", "own"): 2, ("north", "base", "more"): 5})
        await world.pass_time(240)
        await world.until_equal(lambda: schedulable(world), {"own": "True", "more": "True"})
        await world.scale("web", 9)
        await until_layout(world, {("east", "base", "own"): 4, ("north", "base", "more"): 5})
        assert UNSCHEDULABLE_SUBSETS not in (await world.federated("web"))["metadata"]["annotations"]


async def schedulable(world: World) -> dict[str, str]:
    """Return the condition Schedulable of every subset on the host."""
    spread = await world.find(WORKLOAD_SPREADS, "web") or {}
    entries = (spread.get("status") or {}).get("subsetStatuses") or ()
    return {entry["name"]: (find(entry.get("conditions"), "Schedulable") or {}).get("status", "") for entry in entries}


async def test_simulation_avoids_full_nodes_and_without_it_a_member_moves_pods_to_its_next_subset() -> None:
    small = {name: (a_node("base", cpu="2"), a_node("spot")) for name in TWO}
    simulated = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}
    async with a_world(members=TWO, spreading=small) as world:
        subsets = a_subset("own", "", "base", 12), a_subset("spot", "", "spot")
        await begin(world, a_spread(*subsets, scheduleStrategy=simulated), 8, cpu="1")
        base = {(name, "base", "own"): 2 for name in TWO}
        await until_layout(world, base | {(name, "spot", "spot"): 2 for name in TWO})
        assert await schedulable(world) == {"own": "True", "spot": "True"}
        blind = {"adaptive": {"disableSimulationSchedule": True}}
        await world.merge(V1ALPHA1, "web", {"spec": {"scheduleStrategy": blind}})
        await world.scale("web", 12)
        await world.until(lambda: _are_waiting(world, 4))
        await until_layout(world, base | {(name, "spot", "spot"): 4 for name in TWO})
        await world.until_equal(lambda: schedulable(world), {"own": "False", "spot": "True"})


async def _are_waiting(world: World, count: int) -> bool:
    return len([pod for _, pod in await pods(world) if not pod["spec"].get("nodeName")]) == count


async def test_a_lower_limit_makes_the_surplus_the_first_to_go() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        subsets = a_subset("own", "east", "base", 4), a_subset("rest", "north")
        await begin(world, a_spread(*subsets), 5)
        await world.until_equal(lambda: costs(world), {("east", "own"): [100] * 4, ("north", "rest"): [100]})
        lower = [a_subset("own", "east", "base", 1), a_subset("rest", "north")]
        await world.merge(V1ALPHA1, "web", {"spec": {"subsets": lower}})
        await world.until_equal(lambda: costs(world), {("east", "own"): [-100] * 3 + [100], ("north", "rest"): [100]})
        await world.scale("web", 2)
        await world.until_equal(lambda: costs(world), {("east", "own"): [100], ("north", "rest"): [100]})


async def test_a_new_label_of_a_cluster_is_a_reason_to_divide_again() -> None:
    labels = {"east": {"vendor": "own"}, "north": {"vendor": "own"}}
    term = {"matchExpressions": [{"key": "cluster.kubeadmiral.io/vendor", "operator": "In", "values": ["cloud"]}]}
    async with a_world(members=TWO, labels=labels) as world:
        cloud = {"name": "cloud", "requiredNodeSelectorTerm": term}
        await begin(world, a_spread(a_subset("own", "east", "", 2), cloud), 2)
        await world.until_replicas("web", {"east": 2})
        await world.scale("web", 6)
        # No cluster is in the second subset: the rest is divided over all clusters, without a quota.
        await world.until(lambda: _are_divided(world, 6))
        rest = (await world.replicas("web"))["north"]
        assert await quotas(world) == {"own": {"east": 2}}
        await world.merge(FEDERATED_CLUSTERS, "north", {"metadata": {"labels": {"vendor": "cloud"}}})
        await world.until_equal(lambda: quotas(world), {"own": {"east": 2}, "cloud": {"north": rest}})
        await world.scale("web", 9)
        await world.until_equal(lambda: quotas(world), {"own": {"east": 2}, "cloud": {"north": rest + 3}})


async def quotas(world: World) -> dict[str, dict[str, int]]:
    """Return the replicas by subset and cluster of the last decision."""
    return stored_quotas(await world.federated("web"))


async def _are_divided(world: World, total: int) -> bool:
    return sum((await world.replicas("web")).values()) == total


async def test_the_counts_follow_the_pods_whatever_happens_to_pods_statuses_and_the_control_plane() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        subsets = a_subset("own", "east", "base", 6), a_subset("more", "north", "base", 4), a_subset("spot", "", "spot")
        await begin(world, a_spread(*subsets), 16)
        # The members create all pods at once; no limit is exceeded and no place stays free.
        full = {("east", "base", "own"): 6, ("north", "base", "more"): 4}
        full |= {("east", "spot", "spot"): 3, ("north", "spot", "spot"): 3}
        counted = [("own", 6, 0), ("more", 4, 0), ("spot", 6, -1)]
        await until_layout(world, full)
        await world.until_equal(lambda: statuses(world), counted)

        removed = [(cluster, pod) for cluster, pod in await pods(world) if pod["spec"]["nodeName"] == "base"][::3]
        for number, (cluster, pod) in enumerate(removed):
            name = pod["metadata"]["name"]
            await remove(world, cluster, name, is_evicted=bool(number % 2))
            assert name in await records(world, cluster, "deletingPods")
        await until_layout(world, full)
        await world.until_equal(lambda: statuses(world), counted)

        forged = {"status": {"subsetStatuses": [{"name": "own", "replicas": 1, "missingReplicas": 5}]}}
        for client in (world.user, world.members["east"].admin):
            await client.patch(
                WORKLOAD_SPREADS, "web", forged, patch_type=PatchType.MERGE, namespace="default", subresource="status"
            )
        await world.until_equal(lambda: statuses(world), counted)
        await world.until_equal(lambda: _replicas_in(world, "east"), [6, 3])

        await world.scale("web", 12)
        world.kill()
        await world.restart()
        await until_layout(world, full | {("east", "spot", "spot"): 1, ("north", "spot", "spot"): 1})
        await world.until_equal(lambda: statuses(world), [("own", 6, 0), ("more", 4, 0), ("spot", 2, -1)])


async def test_concurrent_changes_of_limits_replicas_and_labels_end_in_the_last_state() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        await begin(world, a_spread(a_subset("own", "east", "base", 2), a_subset("more", "north", "base")), 3)
        for number, (limit, total) in enumerate(((3, 9), (4, 4), (5, 12))):
            subsets = [a_subset("own", "east", "base", limit), a_subset("more", "north", "base")]
            await asyncio.gather(
                world.merge(V1ALPHA1, "web", {"spec": {"subsets": subsets}}),
                world.scale("web", total),
                world.merge(DEPLOYMENTS, "web", {"metadata": {"labels": {"change": str(number)}}}),
                world.merge(V1ALPHA1, "web", {"metadata": {"labels": {"change": str(number)}}}),
            )
            await world.pass_time(0.3)
        await until_layout(world, {("east", "base", "own"): 5, ("north", "base", "more"): 7})
        await world.until_equal(lambda: statuses(world), [("own", 5, 0), ("more", 7, -1)])
        copy = await world.members["east"].find(WORKLOAD_SPREADS, "web") or {}
        assert copy["metadata"]["labels"]["change"] == "2"


async def remove(world: World, cluster: str, pod: str, *, is_evicted: bool) -> None:
    member = world.members[cluster]
    if not is_evicted:
        return await member.admin.delete(PODS, pod, "default")
    metadata = {"name": pod, "namespace": "default"}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    info = member.registry.kinds.lookup("", "v1", "pods")
    options = WriteOptions(user=own_user)
    await member.registry.create(info, "default", eviction, options, name=pod, subresource="eviction")
    return None


async def records(world: World, cluster: str, field: str) -> set[str]:
    """Return the pods that a member's WorkloadSpread has records of."""
    spread = await world.members[cluster].find(WORKLOAD_SPREADS, "web") or {}
    versions = (spread.get("status") or {}).get("versionedSubsetStatuses") or {}
    return {name for entry in versions.values() for status in entry for name in status.get(field) or ()}


async def _replicas_in(world: World, cluster: str) -> list[int]:
    return [entry["replicas"] for entry in await member_status(world, cluster)]
