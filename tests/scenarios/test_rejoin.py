"""A cluster leaves the federation and joins again: what it kept is the user's, and nothing of it is deleted."""

from typing import Any

import pytest
from tests.support.generated import nightly_unless
from tests.support.manifests import a_deployment, a_policy
from tests.support.reconciles import reconciles
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, STATEFUL_SETS, Object, Resource
from federation.client.client import PatchType
from federation.planning.federatedobject.naming import federated_object_name

EVERYWHERE = {"east": 1, "north": 1, "west": 1}
OURS = ("kubeadmiral.io/", "federation.kubeadmiral.io/")
LONG_S = 100.0
"""Longer than the sweep after a join, and what follows from it."""


def a_stateful_set() -> Object:
    found = a_deployment("web", replicas=3)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    found["spec"] |= {"serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    return {**found, "kind": "StatefulSet"}


def _policy(shape: str) -> Object:
    """Return a policy: copies in all clusters, a Deployment of one cluster, or a StatefulSet in two of them."""
    if shape == "copies":
        policy = a_policy(EVERYWHERE)
        policy["spec"]["schedulingMode"] = "Duplicate"
        del policy["spec"]["placement"]
    else:
        policy = a_policy({"east": 1} if shape == "one cluster" else {"east": 1, "north": 1})
    kind = "StatefulSet" if shape == "claims" else "Deployment"
    policy["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": kind}]
    return policy


def _kind(shape: str) -> Resource:
    return STATEFUL_SETS if shape == "claims" else DEPLOYMENTS


async def _running(world: World, shape: str, name: str = "web") -> Object:
    """Run the workload, and return its copy in east."""
    await world.create(PROPAGATION_POLICIES, _policy(shape))
    await world.create(_kind(shape), a_stateful_set() if shape == "claims" else a_deployment(name, replicas=3))
    east = world.members["east"]
    await world.until(lambda: east.find(_kind(shape), name), "a copy in east")
    await world.settle()
    return await east.admin.get(_kind(shape), name, "default")


async def _unjoin(world: World, name: str) -> None:
    await world.user.delete(FEDERATED_CLUSTERS, name)
    await world.until_gone(FEDERATED_CLUSTERS, name, "")


async def _rejoin(world: World, name: str) -> None:
    """Let the member join again, as `name`, and wait until it was swept."""
    if name != "east":
        world.rename("east", name)
    await world.join(name)
    await world.until_ready(name)
    await world.pass_time(LONG_S)


async def _leftovers(world: World) -> set[tuple[str, str, str, str]]:
    specs = [leftover["spec"] for leftover in (await world.user.list(LEFTOVERS)).items]
    workloads = ("Deployment", "StatefulSet")
    return {
        (spec["cluster"], spec["name"], spec["action"], spec["reason"])
        for spec in specs
        if spec["resource"]["kind"] in workloads
    }


def _is_ours(obj: Object) -> bool:
    """Return whether anything of the federation is left on the object."""
    metadata = obj["metadata"]
    keys = [*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})]
    return any(key.startswith(OURS) for key in keys)


async def _copy(world: World, name: str, shape: str) -> Object:
    return await world.members[name].admin.get(_kind(shape), "web", "default")


@pytest.mark.parametrize(
    ("shape", "name", "is_restarted"),
    nightly_unless(
        [("copies", "east", False), ("one cluster", "east", True), ("claims", "berlin", False)],
        [
            (shape, name, is_restarted)
            for shape in ("copies", "one cluster", "claims")
            for name in ("east", "berlin")
            for is_restarted in (False, True)
        ],
    ),
)
async def test_what_a_cluster_keeps_is_released_and_stays_when_it_joins_again(
    shape: str, name: str, is_restarted: bool
) -> None:
    async with a_world_without_pods() as world:
        before = await _running(world, shape)
        member = world.members["east"]
        assert _is_ours(before)
        await _unjoin(world, "east")
        kept = await _copy(world, "east", shape)
        assert not _is_ours(kept)
        assert kept["metadata"]["uid"] == before["metadata"]["uid"]
        assert ("east", "web", "Keep", "Kept") in await _leftovers(world)
        await world.pass_time(20)
        if is_restarted:
            await world.restart()

        await _rejoin(world, name)
        after = await _copy(world, name, shape)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"] == before["spec"]
        assert not _is_ours(after)
        assert (name, "web", "Keep", "Kept") in await _leftovers(world)
        assert not [call for call in member.line.calls if call[:2] == ("delete", _kind(shape).plural)]

        if shape == "claims":
            # Its move away from east waits for an approval, because its volumes do not move. Its end ends the hold.
            await world.user.delete(STATEFUL_SETS, "web", "default")
            await world.until_gone(STATEFUL_SETS, "web")
            assert (await _copy(world, name, shape))["metadata"]["uid"] == before["metadata"]["uid"]
            return
        adopting = {
            names.CONFLICT_RESOLUTION: "adopt",
            names.CLUSTERS_TO_ADOPT: f'{{"clusters":["{name}"]}}',
        }
        await world.merge(_kind(shape), "web", {"metadata": {"annotations": adopting}})
        policy = _policy(shape)
        if shape != "copies" and name != "east":
            policy["spec"]["placement"] = [{"cluster": name, "preferences": {"weight": 1}}]
        elif shape == "copies":
            policy["spec"]["reschedulePolicy"] = {"rescheduleWhen": {"clusterJoined": True}}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})

        async def is_managed() -> bool:
            return _is_ours(await _copy(world, name, shape))

        await world.until(is_managed, "managed again")
        assert (await _copy(world, name, shape))["metadata"]["uid"] == before["metadata"]["uid"]
        await world.restart()
        await world.pass_time(LONG_S)
        assert await _leftovers(world) == set()


async def test_a_kept_object_is_deleted_by_an_answer_and_forgotten_once_it_is_gone() -> None:
    async with a_world_without_pods() as world:
        await _running(world, "copies")
        await _unjoin(world, "east")
        await _rejoin(world, "east")
        (record,) = [
            leftover
            for leftover in (await world.user.list(LEFTOVERS)).items
            if leftover["spec"]["resource"]["kind"] == "Deployment"
        ]
        await world.merge(LEFTOVERS, record["metadata"]["name"], {"spec": {"action": "Delete"}}, "")
        await world.until_replicas("web", {"north": 3, "west": 3})
        await world.until_equal(lambda: _leftovers(world), set())


async def test_a_sweep_whose_member_answers_errors_comes_again_later() -> None:
    async with a_world_without_pods() as world:
        await _running(world, "copies")
        await _unjoin(world, "east")
        before = reconciles(controller="sweep", outcome="retryable")
        await world.join("east")
        await world.until_ready("east")
        east = world.members["east"]
        east.line.failing.add(("list", "deployments"))
        await world.pass_time(LONG_S)
        assert reconciles(controller="sweep", outcome="retryable") == before
        east.line.failing.clear()
        await world.pass_time(LONG_S)
        assert await _leftovers(world) == {("east", "web", "Keep", "Kept")}


async def test_a_kept_object_that_its_owner_replaces_is_not_deleted_by_an_answer_about_the_old_one() -> None:
    async with a_world_without_pods() as world:
        await _running(world, "copies")
        await _unjoin(world, "east")
        east = world.members["east"]
        await east.admin.delete(DEPLOYMENTS, "web", "default")
        await east.admin.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        for leftover in (await world.user.list(LEFTOVERS)).items:
            await world.merge(LEFTOVERS, leftover["metadata"]["name"], {"spec": {"action": "Delete"}}, "")
        await _rejoin(world, "east")
        assert await east.replicas("web") == 2
        assert await _leftovers(world) == set()


@pytest.mark.parametrize("is_deleted", [False, True], ids=["placed elsewhere", "source deleted"])
async def test_what_a_lost_cluster_held_is_released_when_it_is_back(is_deleted: bool) -> None:
    async with a_world_without_pods() as world:
        before = await _running(world, "copies")
        east = world.members["east"]
        east.line.mode = "down"
        await world.unjoin_by_force("east")
        await world.until_gone(FEDERATED_CLUSTERS, "east", "")
        assert ("east", "web", "Keep", "ClusterRemoved") in await _leftovers(world)
        await world.pass_time(10)
        if is_deleted:
            await world.user.delete(DEPLOYMENTS, "web", "default")
            await world.until_gone(DEPLOYMENTS, "web")
        east.line.mend()
        await _rejoin(world, "east")
        after = await _copy(world, "east", "copies")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert not _is_ours(after)
        assert ("east", "web", "Keep", "Kept") in await _leftovers(world)


async def _leave_without_a_trace(world: World, name: str) -> None:
    """Remove a FederatedCluster as an earlier version did: its objects keep our label, and nothing records them."""
    await world.stop()
    await world.user.patch(FEDERATED_CLUSTERS, name, {"metadata": {"finalizers": None}}, patch_type=PatchType.MERGE)
    await world.user.delete(FEDERATED_CLUSTERS, name)
    await world.members[name].admin.delete(_NAMESPACES, names.SYSTEM_NAMESPACE)


_NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


async def test_copies_that_a_cluster_brings_along_are_reported_and_never_removed_by_a_placement() -> None:
    """A later decision is evidence about what it has placed, not about a copy that was there before the join."""
    async with a_world_without_pods() as world:
        before = await _running(world, "copies")
        await _leave_without_a_trace(world, "east")
        await world.restart()
        await world.until_equal(lambda: _placed(world), ["north", "west"])
        await world.pass_time(10)
        await _rejoin(world, "east")
        assert ("east", "web", "Keep", "Stray") in await _leftovers(world)
        policy = _policy("copies")
        policy["spec"]["placement"] = [{"cluster": "north"}]
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})
        await world.until_equal(lambda: _placed(world), ["north"])
        await world.restart()
        await world.pass_time(LONG_S)
        assert (await _copy(world, "east", "copies"))["metadata"]["uid"] == before["metadata"]["uid"]
        assert ("east", "web", "Keep", "Stray") in await _leftovers(world)
        await world.members["east"].admin.delete(DEPLOYMENTS, "web", "default")  # for the invariants of the world


async def _placed(world: World) -> list[str]:
    clusters = (await world.federated("web"))["spec"].get("placements") or ()
    return sorted(item["cluster"] for entry in clusters for item in entry["placement"])


async def test_what_an_earlier_membership_was_to_lose_stays_in_the_next_one() -> None:
    """The names of clusters in a federated object mean the membership in which they were written."""
    async with a_world_without_pods() as world:
        before = await _running(world, "copies")
        east = world.members["east"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        policy = _policy("copies")
        policy["spec"]["placement"] = [{"cluster": "north"}, {"cluster": "west"}]
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})
        await world.until_equal(lambda: _placed(world), ["north", "west"])
        await world.pass_time(5)
        federated = await world.federated("web")
        assert federated["metadata"]["annotations"][names.DEPARTED_CLUSTERS] == '["east"]'
        await _leave_without_a_trace(world, "east")
        east.line.mend()
        await world.join("east")
        await world.restart()
        await world.until_ready("east")
        await world.pass_time(LONG_S)
        assert (await _copy(world, "east", "copies"))["metadata"]["uid"] == before["metadata"]["uid"]
        federated = await world.federated("web")
        assert names.DEPARTED_CLUSTERS not in federated["metadata"]["annotations"]
        assert ("east", "web", "Keep", "Stray") in await _leftovers(world)
        await east.admin.delete(DEPLOYMENTS, "web", "default")  # for the invariants of the world


async def test_a_deletion_that_began_before_the_join_leaves_what_the_cluster_brings_along() -> None:
    async with a_world_without_pods() as world:
        before = await _running(world, "one cluster")
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        name = federated_object_name("web", "deployments.apps")
        await world.merge(
            FEDERATED_OBJECTS, name, {"metadata": {"finalizers": [names.SYNC_FINALIZER, "example.com/a"]}}
        )
        await world.merge(DEPLOYMENTS, "web", held)
        await _leave_without_a_trace(world, "east")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.user.delete(FEDERATED_OBJECTS, name, "default")
        await world.pass_time(0)
        await world.clock.advance(5.0)
        await world.join("east")
        await world.restart()
        await world.until_ready("east")
        await world.pass_time(10)
        await world.merge(FEDERATED_OBJECTS, name, {"metadata": {"finalizers": None}})
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}})
        await world.pass_time(LONG_S)
        assert (await _copy(world, "east", "one cluster"))["metadata"]["uid"] == before["metadata"]["uid"]


def _restored(obj: Object) -> Object:
    dropped = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in dropped}}


@pytest.mark.parametrize(("count", "is_held"), [(10, False), (11, True)])
async def test_a_sweep_removes_no_more_than_the_guard_allows(count: int, is_held: bool) -> None:
    """A member is restored with copies of objects that are placed elsewhere."""
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        for number in range(count):
            await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=1))
        east, north = world.members["east"], world.members["north"]

        async def found(member: Any) -> int:
            return len((await member.admin.list(DEPLOYMENTS)).items)

        await world.until_equal(lambda: found(east), count)
        await world.settle()
        for obj in (await east.admin.list(DEPLOYMENTS)).items:
            await north.admin.create(DEPLOYMENTS, _restored(obj))
        await world.pass_time(LONG_S)
        assert await found(north) == (count if is_held else 0)
        held = {entry for entry in await _leftovers(world) if entry[3] == "Held"}
        assert len(held) == (count if is_held else 0)
        await world.restart()
        await world.pass_time(LONG_S)
        assert await found(north) == (count if is_held else 0)
        for leftover in (await world.user.list(LEFTOVERS)).items:
            await world.merge(LEFTOVERS, leftover["metadata"]["name"], {"spec": {"action": "Delete"}}, "")
        await world.until_equal(lambda: found(north), 0)
