"""Single steps of sync that good histories do not reach: leaving clusters, incomplete caches, federated objects with wrong names."""

from itertools import pairwise
from typing import Any

import pytest
from tests.support.member_world import World, a_deployment, member_world, placed

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, LEFTOVERS
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object
from federation.client.client import PatchType
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.names import (
    EVENT_ENSURE_DELETION_FAILED,
    EVENT_NO_SOURCE,
    EVENT_WAIT_FOR_CASCADING_DELETE,
    REASON_ENSURE_DELETION_FAILED,
)
from federation.planning.rendering.memberobject import template_revision
from federation.planning.steps.waveapproval import to_annotation

STRANGER = "stranger-deployments.apps"


async def _converged(world: World, placement: dict[str, int | None], **more: Any) -> None:
    await world.place(placement=placement, **more)
    await world.until_statuses(dict.fromkeys(placement, "OK"))
    await world.pass_time(1)


async def _stranger(world: World) -> None:
    """Create a federated object with another name than its template asks for, and delete it."""
    spec = {"template": a_deployment("web"), **placed({"m1": 2})}
    metadata = {"name": STRANGER, "namespace": "default", "finalizers": [names.SYNC_FINALIZER]}
    head = {"apiVersion": FEDERATED_OBJECTS.api_version, "kind": "FederatedObject"}
    await world.host.create(FEDERATED_OBJECTS, {**head, "metadata": metadata, "spec": spec})
    await world.pass_time(0.5)
    await world.host.delete(FEDERATED_OBJECTS, STRANGER, "default")


async def _is_stranger_gone(world: World) -> bool:
    try:
        await world.host.get(FEDERATED_OBJECTS, STRANGER, "default")
    except NotFound:
        return True
    return False


async def test_a_deleted_federated_object_with_the_wrong_name_leaves_the_member_objects_of_the_regular_one() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        world.members["m1"].line.calls.clear()
        await _stranger(world)
        await world.until(lambda: _is_stranger_gone(world))
        await world.pass_time(1)
        assert await world.members["m1"].deployment() is not None
        assert world.members["m1"].line.writes() == []


async def _leave(world: World, cluster: str) -> None:
    """Delete a FederatedCluster, whose removal somebody's finalizer delays."""
    finalizers = {"metadata": {"finalizers": [*(await world.cluster(cluster))["metadata"]["finalizers"], "a.io/b"]}}
    await world.host.patch(FEDERATED_CLUSTERS, cluster, finalizers, patch_type=PatchType.MERGE)
    await world.host.delete(FEDERATED_CLUSTERS, cluster)
    await world.pass_time(0.5)
    assert (await world.cluster(cluster))["metadata"]["deletionTimestamp"]


async def test_a_leaving_cluster_gets_no_new_objects_and_no_status_of_them() -> None:
    async with member_world(2) as world:
        await _leave(world, "m2")
        await world.place("new", placement={"m1": 1, "m2": 1})
        await world.until_statuses({"m1": "OK"}, "new")
        await world.pass_time(1)
        assert await world.statuses("new") == {"m1": "OK"}
        assert await world.members["m2"].deployment("new") is None
        condition = (await world.federated("new"))["status"]["conditions"][0]
        assert (condition["status"], condition["reason"]) == ("False", names.REASON_CHECK_CLUSTERS)
        assert "m2" in condition["message"]


@pytest.mark.parametrize("is_forced", [True, False])
async def test_a_cluster_that_is_removed_by_force_leaves_a_record_of_what_it_may_hold(is_forced: bool) -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        world.members["m2"].line.mode = "down"
        if is_forced:
            reason = {"metadata": {"annotations": {names.FORCED_REMOVAL: "it burnt"}}}
            await world.host.patch(FEDERATED_CLUSTERS, "m2", reason, patch_type=PatchType.MERGE)
        await world.host.delete(FEDERATED_CLUSTERS, "m2")
        await world.pass_time(3)
        records = [leftover["spec"] for leftover in (await world.host.list(LEFTOVERS)).items]
        assert [(each["cluster"], each["name"]) for each in records] == ([("m2", "web")] if is_forced else [])
        assert all("it burnt" in str(each) for each in records)


async def test_clusters_that_are_unknown_or_have_not_joined_delay_no_other() -> None:
    async with member_world(1) as world:
        head = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": {"name": "m2"}}
        spec = {"apiEndpoint": "https://m2", "insecure": True, "secretRef": {"name": "missing"}}
        await world.host.create(FEDERATED_CLUSTERS, {**head, "spec": spec})
        await world.pass_time(1)
        await world.place(placement={"m1": 1, "m2": 1, "unknown": 1})
        await world.until_statuses({"m1": "OK"})
        await world.pass_time(1)
        assert await world.statuses() == {"m1": "OK"}


async def test_a_cluster_leaves_when_the_last_object_is_gone_and_not_before() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        admin = world.members["m2"].admin
        kept: Object = {"metadata": {"finalizers": ["a.io/b"]}}
        await admin.patch(DEPLOYMENTS, "web", kept, patch_type=PatchType.MERGE, namespace="default")
        cascading = {"metadata": {"annotations": {names.CASCADING_DELETE: "true"}}}
        await world.host.patch(FEDERATED_CLUSTERS, "m2", cascading, patch_type=PatchType.MERGE)
        await world.pass_time(0.5)
        await world.host.delete(FEDERATED_CLUSTERS, "m2")
        await world.pass_time(20, step_s=0.5)
        finalizers = (await world.cluster("m2"))["metadata"]["finalizers"]
        assert names.CASCADING_DELETE_FINALIZER in finalizers, "the Deployment is still there"
        waits = f"{EVENT_WAIT_FOR_CASCADING_DELETE}: waiting for 1 object to be deleted"
        assert waits in [f"{reason}: {message}" for reason, message in await world.events()]
        await admin.patch(
            DEPLOYMENTS, "web", {"metadata": {"finalizers": None}}, patch_type=PatchType.MERGE, namespace="default"
        )

        async def has_left() -> bool:
            return "m2" not in [each["metadata"]["name"] for each in (await world.host.list(FEDERATED_CLUSTERS)).items]

        await world.until(has_left)


@pytest.mark.parametrize(("has_autoscaler", "expected"), [(True, 7), (False, 2)])
async def test_replicas_of_an_autoscaler_in_the_member_stay(has_autoscaler: bool, expected: int) -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        admin = world.members["m1"].admin
        if has_autoscaler:
            head = {"apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version, "kind": HORIZONTAL_POD_AUTOSCALERS.kind}
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
            spec = {"maxReplicas": 9, "scaleTargetRef": target}
            metadata = {"name": "web", "namespace": "default"}
            await admin.create(HORIZONTAL_POD_AUTOSCALERS, {**head, "metadata": metadata, "spec": spec})
        more: Object = {"spec": {"replicas": 7}}
        await admin.patch(
            DEPLOYMENTS, "web", more, patch_type=PatchType.MERGE, namespace="default", subresource="scale"
        )
        await world.pass_time(5)
        deployment = await world.members["m1"].deployment()
        assert deployment is not None
        assert deployment["spec"]["replicas"] == expected


async def _change(world: World, label: str) -> Object:
    """Change the template and its generation; return the federated object as stored."""
    return await world.patch({"spec": {"template": {"metadata": {"labels": {"tier": label}}}}})


async def test_statuses_of_an_incomplete_cache_are_published_with_the_generation_that_they_describe() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        before = (await world.federated())["status"]
        await world.stop()
        changed = await _change(world, "front")
        assert changed["metadata"]["generation"] > before["syncedGeneration"]
        world.members["m2"].line.delays_s["list"] = 20.0
        await world.restart()

        async def is_m1_written() -> bool:
            deployment = await world.members["m1"].deployment()
            return deployment is not None and deployment["metadata"]["labels"].get("tier") == "front"

        await world.until(is_m1_written)
        await world.pass_time(2)
        status = (await world.federated())["status"]
        assert status["syncedGeneration"] == before["syncedGeneration"], "m2 has the earlier one"
        m2 = [[each for each in found["clusters"] if each["cluster"] == "m2"] for found in (before, status)]
        assert m2[0] == m2[1], "what was published stays"
        await world.pass_time(25, step_s=0.5)
        assert (await world.federated())["status"]["syncedGeneration"] == changed["metadata"]["generation"]


@pytest.mark.parametrize("label", ["true", None])
async def test_a_departed_object_is_removed_only_where_it_has_our_label(label: str | None) -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        await world.stop()
        admin = world.members["m2"].admin
        body = {"metadata": {"labels": {names.MANAGED_LABEL: label}}}
        await admin.patch(DEPLOYMENTS, "web", body, patch_type=PatchType.MERGE, namespace="default")
        departed = {"metadata": {"annotations": {names.DEPARTED_CLUSTERS: '["m2"]'}}}
        await world.patch({**departed, "spec": placed({"m1": 3})})
        await world.restart()
        await world.until_statuses({"m1": "OK"})
        assert (await world.members["m2"].deployment() is None) is (label == "true")


async def test_a_member_object_that_only_shares_its_name_is_not_the_one_of_the_federated_object() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        derived = {names.DERIVED_SERVICE: "x"}
        cache = MemberObjectCache(world.plane.members, MemberRecords(world.clock), world.clock, KeptState())
        key = MemberKey("m1", DEPLOYMENTS, "default", "web")
        body = {"metadata": {"annotations": derived}}
        for theirs in ({}, derived):
            if theirs:
                await world.members["m1"].admin.patch(
                    DEPLOYMENTS, "web", body, patch_type=PatchType.MERGE, namespace="default"
                )
                await world.clock.advance(0)
            assert not cache.observe(key)[0].derived_service_mismatch, "nobody asks"
            for ours in ({}, derived):
                assert cache.observe(key, ours)[0].derived_service_mismatch is (ours != theirs)


async def _run(world: World, cluster: str) -> int:
    """Act as the member's Deployment controller: run all replicas, and return their number."""
    deployment = await world.members[cluster].deployment()
    count = 0 if deployment is None else deployment["spec"]["replicas"]
    if deployment is not None:
        await world.members[cluster].report(replicas=count, updatedReplicas=count, availableReplicas=count)
    return int(count)


async def test_a_departed_cluster_keeps_its_replicas_until_others_run() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        seen = [(await _run(world, "m1"), await _run(world, "m2"))]
        await world.patch({"spec": placed({"m2": 3})})
        while seen[-1][0]:
            await world.pass_time(1)
            if seen[-1][0] == 2:
                assert await world.statuses() == {"m1": "WaitingForReplicas", "m2": "WaitingForReplicas"}
            seen.append((await _run(world, "m1"), await _run(world, "m2")))
        assert all(departing + before >= 3 for (_, before), (departing, _) in pairwise(seen)), seen
        assert await world.members["m1"].deployment() is None


async def test_a_federated_object_without_a_source_is_not_delivered_and_says_so_once() -> None:
    async with member_world(1) as world:
        await _stranger_without_source(world)

        async def condition() -> Object | None:
            status = (await world.federated("ghost")).get("status") or {}
            return next(iter(status.get("conditions") or ()), None)

        found = await world.until(condition)
        assert (found["type"], found["status"], found["reason"]) == (names.PROPAGATED, "False", names.REASON_NO_SOURCE)
        assert found["message"]
        await world.patch({"metadata": {"labels": {"touched": "true"}}}, "ghost")
        await world.pass_time(1)
        events = [text for reason, text in await world.events() if reason == EVENT_NO_SOURCE]
        assert events == [f"not delivered, because it does not follow from an object of the host: {found['message']}"]
        assert world.members["m1"].line.writes("deployments") == []


async def _stranger_without_source(world: World) -> None:
    spec = {"template": a_deployment("ghost"), **placed({"m1": 1})}
    metadata = {
        "name": "ghost-deployments.apps",
        "namespace": "default",
        "annotations": {names.PENDING_CONTROLLERS: "[]"},
        "finalizers": [names.SYNC_FINALIZER],
    }
    head = {"apiVersion": FEDERATED_OBJECTS.api_version, "kind": "FederatedObject"}
    await world.host.create(FEDERATED_OBJECTS, {**head, "metadata": metadata, "spec": spec})


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_deletion_that_takes_long_says_whether_a_member_refuses_it(is_refused: bool) -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        if is_refused:
            world.members["m1"].line.failing.add(("delete", "deployments"))
        else:
            body = {"metadata": {"finalizers": ["a.io/b"]}}
            admin = world.members["m1"].admin
            await admin.patch(DEPLOYMENTS, "web", body, patch_type=PatchType.MERGE, namespace="default")
        await world.host.delete(DEPLOYMENTS, "web", "default")
        await world.host.delete(FEDERATED_OBJECTS, "web-deployments.apps", "default")

        async def condition() -> Object | None:
            (found,) = (await world.federated())["status"]["conditions"]
            return found if found["status"] == "False" else None

        found = await world.until(condition)
        reason = REASON_ENSURE_DELETION_FAILED if is_refused else names.REASON_CHECK_CLUSTERS
        assert (found["reason"], found["message"]) == (reason, "deletion waits for clusters [m1]")
        events = [text for reason, text in await world.events() if reason == EVENT_ENSURE_DELETION_FAILED]
        assert bool(events) is is_refused


async def test_a_new_template_waits_for_its_approval_by_cluster() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 1, "m2": 1})
        rules = {names.ROLLOUT: "{}", names.APPROVED_REVISIONS: "{}"}
        spec = {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}
        body: Object = {"metadata": {"annotations": rules}, "spec": {"template": {"spec": {"template": spec}}}}
        federated = await world.host.patch(
            FEDERATED_OBJECTS, "web-deployments.apps", body, patch_type=PatchType.MERGE, namespace="default"
        )
        await world.pass_time(2)
        assert await _images(world) == {"m1": "nginx:1", "m2": "nginx:1"}
        approved = to_annotation({"m1": template_revision(federated["spec"]["template"])})
        body = {"metadata": {"annotations": {names.APPROVED_REVISIONS: approved}}}
        await world.host.patch(
            FEDERATED_OBJECTS, "web-deployments.apps", body, patch_type=PatchType.MERGE, namespace="default"
        )
        await world.pass_time(2)
        assert await _images(world) == {"m1": "nginx:2", "m2": "nginx:1"}


async def _images(world: World) -> dict[str, str]:
    found = {name: await member.deployment() for name, member in world.members.items()}
    return {
        name: each["spec"]["template"]["spec"]["containers"][0]["image"]
        for name, each in found.items()
        if each is not None
    }
