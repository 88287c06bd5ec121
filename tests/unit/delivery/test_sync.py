"""Sync on real registries: what reaches members, what stays, what is written back."""

from typing import Any

import orjson
import pytest
from tests.support.member_world import World, a_deployment, member_world, placed
from tests.support.reconciles import reconciles

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, LEFTOVERS
from federation.apimachinery import conditions
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.client.client import PatchType
from federation.delivery.rules.names import (
    EVENT_DRY_RUN_SKIPPED,
    EVENT_DRY_RUN_WORKED,
    EVENT_LEFT_BEHIND,
)


def _member_writes(world: World) -> list[tuple[str, str, str]]:
    return [call for member in world.members.values() for call in member.line.writes()]


async def _admin_patch(world: World, member: str, body: Object, name: str = "web") -> Object:
    admin = world.members[member].admin
    return await admin.patch(DEPLOYMENTS, name, body, patch_type=PatchType.MERGE, namespace="default")


async def _converged(world: World, placement: dict[str, int | None], **more: Any) -> None:
    await world.place(placement=placement, **more)
    await world.until_statuses(dict.fromkeys(placement, "OK"))
    await world.pass_time(1)


async def test_an_object_reaches_its_clusters_and_costs_one_host_write() -> None:
    async with member_world(2) as world:
        await world.place(placement={"m1": 2, "m2": 1})
        await world.until_statuses({"m1": "OK", "m2": "OK"})
        for name, replicas in (("m1", 2), ("m2", 1)):
            deployment = await world.members[name].deployment()
            assert deployment is not None
            assert deployment["spec"]["replicas"] == replicas
            assert deployment["metadata"]["labels"][names.MANAGED_LABEL] == "true"
            assert deployment["metadata"]["annotations"][names.SOURCE_GENERATION] == "1"
        await world.pass_time(2)
        assert [call[0] for call in world.plane.line.writes("federatedobjects")] == ["patch"]
        federated = await world.federated()
        assert federated["status"]["syncedGeneration"] == federated["metadata"]["generation"]
        assert federated["status"]["conditions"][0]["status"] == "True"


async def test_all_fields_belong_to_the_federation_from_the_first_write_on() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        deployment = await world.members["m1"].deployment()
        assert deployment is not None
        owners = [
            (entry["manager"], entry["operation"])
            for entry in deployment["metadata"]["managedFields"]
            if not entry.get("subresource")
        ]
        assert owners == [(names.FIELD_MANAGER, "Apply")]


async def test_a_restart_after_convergence_writes_nothing_anywhere() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        await world.pass_time(15)
        await world.restart()
        await world.pass_time(15)
        assert _member_writes(world) == []
        assert world.plane.line.writes() == []
        assert await world.statuses() == {"m1": "OK", "m2": "OK"}


async def test_after_a_restart_a_new_object_does_not_wait_for_complete_lists() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        line = world.members["m1"].line
        line.delays_s["list"] = 30.0
        await world.restart()
        started_s = world.clock.monotonic()
        await world.place("new", placement={"m1": 1})
        await world.until_statuses({"m1": "OK"}, "new")
        assert world.clock.monotonic() - started_s < 5
        deployments = [call for call in line.calls if call[1] == "deployments" and call[0] != "list"]
        assert deployments == [("get", "deployments", "new"), ("patch", "deployments", "new")]


async def test_a_late_answer_about_a_new_object_counts_although_it_was_published_as_pending_meanwhile() -> None:
    async with member_world(2) as world:
        for member in world.members.values():
            member.line.delays_s["list"] = 30.0
        world.members["m2"].line.delays_s["get"] = 1.0
        await world.restart()
        started_s = world.clock.monotonic()
        await world.place("new", placement={"m1": 1, "m2": 1})
        await world.until_statuses({"m1": "OK", "m2": "OK"}, "new")
        assert world.clock.monotonic() - started_s < 5


async def test_a_member_that_has_a_new_object_already_is_written_after_its_complete_list() -> None:
    async with member_world(1) as world:
        line = world.members["m1"].line
        managed = a_deployment("new")
        managed["metadata"]["labels"] = {**managed["metadata"].get("labels", {}), names.MANAGED_LABEL: "true"}
        await world.members["m1"].admin.create(DEPLOYMENTS, managed)
        line.delays_s["list"] = 10.0
        await world.restart()
        await world.place("new", placement={"m1": 1})
        await world.pass_time(5)
        assert ("get", "deployments", "new") in line.calls
        assert line.writes() == []
        await world.until_statuses({"m1": "OK"}, "new")


@pytest.mark.parametrize("mode", ["slow", "failing"])
async def test_a_slow_or_failing_member_gets_few_look_ups_while_its_lists_are_incomplete(mode: str) -> None:
    async with member_world(1) as world:
        line = world.members["m1"].line
        line.delays_s = {"list": 30.0, "get": 2.0 if mode == "slow" else 0.0}
        if mode == "failing":
            line.failing.add(("get", "deployments"))
        await world.restart()
        for number in range(40):
            await world.place(f"new-{number}", placement={"m1": 1})
        await world.pass_time(20)
        assert 1 <= sum(call[:2] == ("get", "deployments") for call in line.calls) <= 24
        line.failing.clear()
        for number in range(40):
            await world.until_statuses({"m1": "OK"}, f"new-{number}")


@pytest.mark.parametrize("is_foreign", [False, True], ids=["the status", "a foreign change"])
async def test_a_change_before_the_answer_to_our_write_is_corrected_and_a_status_wakes_nobody(
    is_foreign: bool,
) -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        member, before = world.members["m1"], reconciles(controller="sync")
        member.line.calls.clear()
        member.line.answer_delays_s["patch"] = 0.5
        await world.patch({"spec": placed({"m1": 3})})
        await world.until(lambda: _has_replicas(world, 3), "the write, whose answer is under way")
        await member.report(replicas=3)
        if is_foreign:
            await _admin_patch(world, "m1", {"spec": {"replicas": 7}})
        await world.pass_time(0.2)
        assert len(member.line.writes()) == 1
        await world.pass_time(5)
        assert await _has_replicas(world, 3)
        assert len(member.line.writes()) == (2 if is_foreign else 1)
        if not is_foreign:
            assert reconciles(controller="sync") - before == 1


async def _has_replicas(world: World, replicas: int) -> bool:
    deployment = await world.members["m1"].deployment()
    return deployment is not None and deployment["spec"]["replicas"] == replicas


async def test_an_object_waits_for_its_pipeline() -> None:
    async with member_world(1) as world:
        pending = orjson.dumps([[names.GLOBAL_SCHEDULER]]).decode()
        await world.place(placement={"m1": 1}, annotations={names.PENDING_CONTROLLERS: pending})
        await world.pass_time(1)
        assert await world.members["m1"].deployment() is None
        await world.patch({"metadata": {"annotations": {names.PENDING_CONTROLLERS: "[]"}}})
        await world.until_statuses({"m1": "OK"})


async def test_an_administrators_change_of_our_field_is_reverted_and_other_fields_stay() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        await _admin_patch(
            world, "m1", {"metadata": {"annotations": {"team": "blue"}}, "spec": {"replicas": 7, "paused": True}}
        )

        async def reverted() -> bool:
            deployment = await world.members["m1"].deployment()
            return deployment is not None and deployment["spec"]["replicas"] == 2

        await world.until(reverted)
        deployment = await world.members["m1"].deployment()
        assert deployment is not None
        assert deployment["spec"]["paused"] is True
        assert deployment["metadata"]["annotations"]["team"] == "blue"


async def test_a_deleted_member_object_is_created_again() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        before = await world.members["m1"].deployment()
        assert before is not None
        await world.members["m1"].admin.delete(DEPLOYMENTS, "web", "default")

        async def back() -> bool:
            deployment = await world.members["m1"].deployment()
            return deployment is not None and deployment["metadata"]["uid"] != before["metadata"]["uid"]

        await world.until(back)


async def test_a_field_that_leaves_the_template_leaves_the_members() -> None:
    async with member_world(1) as world:
        template = a_deployment("web")
        template["spec"]["minReadySeconds"] = 30
        template["metadata"]["labels"]["tier"] = "front"
        await _converged(world, {"m1": 2}, template=template)
        await world.patch(
            {"spec": {"template": {"metadata": {"labels": {"tier": None}}, "spec": {"minReadySeconds": None}}}}
        )

        async def gone() -> bool:
            deployment = await world.members["m1"].deployment()
            assert deployment is not None
            return "minReadySeconds" not in deployment["spec"] and "tier" not in deployment["metadata"]["labels"]

        await world.until(gone)


async def test_a_scale_reaches_only_the_clusters_that_change() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        for member in world.members.values():
            member.line.calls.clear()
        await world.patch({"spec": placed({"m1": 5, "m2": 1})})

        async def scaled() -> bool:
            deployment = await world.members["m1"].deployment()
            return deployment is not None and deployment["spec"]["replicas"] == 5

        await world.until(scaled)
        await world.pass_time(1)
        assert [call[0] for call in world.members["m1"].line.writes()] == ["patch"]
        assert world.members["m2"].line.writes() == []


async def test_a_departed_cluster_loses_the_object_and_then_its_status_entry() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        departed = {"metadata": {"annotations": {names.DEPARTED_CLUSTERS: '["m2"]'}}}
        await world.patch({**departed, "spec": placed({"m1": 3})})
        await world.until_statuses({"m1": "OK"})
        assert await world.members["m2"].deployment() is None

        async def forgotten() -> bool:
            annotations = (await world.federated())["metadata"]["annotations"]
            return names.DEPARTED_CLUSTERS not in annotations

        await world.until(forgotten)


async def test_a_departed_cluster_that_does_not_answer_keeps_its_status_entry() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        world.members["m2"].line.mode = "down"
        await world.until_condition("m2", names.CLUSTER_READY, "Unknown")
        await world.patch({"metadata": {"annotations": {names.DEPARTED_CLUSTERS: '["m2"]'}}, "spec": placed({"m1": 3})})
        await world.until_statuses({"m1": "OK", "m2": "ClusterNotReady"})
        await world.pass_time(5)
        assert (await world.federated())["metadata"]["annotations"][names.DEPARTED_CLUSTERS] == '["m2"]'
        world.members["m2"].line.mend()
        await world.until_statuses({"m1": "OK"})
        assert await world.members["m2"].deployment() is None


async def test_an_object_whose_creation_got_no_answer_is_removed_from_a_departed_cluster() -> None:
    """The cache does not show the object either; only a question to the member does."""
    async with member_world(2) as world:
        await _converged(world, {"m1": 2})
        member = world.members["m2"]
        member.line.is_silent, member.line.loses_answers = True, frozenset({"patch"})
        await world.patch({"spec": placed({"m1": 1, "m2": 1})})

        async def is_there() -> bool:
            return await member.deployment() is not None

        async def is_gone() -> bool:
            return await member.deployment() is None

        await world.until(is_there)
        await world.patch({"metadata": {"annotations": {names.DEPARTED_CLUSTERS: '["m2"]'}}, "spec": placed({"m1": 2})})
        await world.until(is_gone)


async def test_a_hanging_member_does_not_delay_other_members() -> None:
    async with member_world(3) as world:
        world.members["m3"].line.mode = "hang"
        started_s = world.clock.monotonic()
        for number in range(20):
            await world.place(f"web-{number}", placement={"m1": 1, "m2": 1, "m3": 1})

        async def arrived() -> bool:
            found = [await world.members[m].deployment(f"web-{n}") for m in ("m1", "m2") for n in range(20)]
            return all(found)

        await world.until(arrived)
        assert world.clock.monotonic() - started_s < 0.5
        await world.until_statuses({"m1": "OK", "m2": "OK", "m3": "PendingCreate"}, "web-0")
        world.members["m3"].line.mend()
        for number in range(20):
            await world.until_statuses({"m1": "OK", "m2": "OK", "m3": "OK"}, f"web-{number}")


async def test_a_member_gets_missed_changes_after_an_outage() -> None:
    async with member_world(2) as world:
        world.members["m2"].line.mode = "down"
        await world.place(placement={"m1": 1, "m2": 1})
        await world.until_statuses({"m1": "OK", "m2": "ClusterNotReady"})
        condition = (await world.federated())["status"]["conditions"][0]
        assert condition["status"] == "False"
        assert "m2" in condition["message"]
        world.members["m2"].line.mend()
        await world.until_statuses({"m1": "OK", "m2": "OK"})


async def test_an_existing_object_is_not_adopted_by_default() -> None:
    async with member_world(1) as world:
        await world.members["m1"].admin.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        await world.place(placement={"m1": 2})
        await world.until_statuses({"m1": "AlreadyExists"})
        deployment = await world.members["m1"].deployment()
        assert deployment is not None
        assert deployment["spec"]["replicas"] == 9
        assert names.MANAGED_LABEL not in deployment["metadata"]["labels"]
        assert any(reason == "CreateInClusterFailed" for reason, _ in await world.events())


async def test_an_existing_object_is_adopted_when_annotated() -> None:
    async with member_world(1) as world:
        await world.members["m1"].admin.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        adopt = {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: '{"clusters":["m1"]}'}
        await world.place(placement={"m1": 2}, annotations=adopt)
        await world.until_statuses({"m1": "OK"})
        await world.patch({"spec": placed({"m1": 4})})

        async def scaled() -> Object | None:
            deployment = await world.members["m1"].deployment()
            return deployment if deployment is not None and deployment["spec"]["replicas"] == 4 else None

        deployment = await world.until(scaled)
        assert deployment["metadata"]["annotations"][names.ADOPTED] == "true", "also after a further apply"


async def test_a_member_may_refuse_management() -> None:
    async with member_world(1) as world:
        refused = a_deployment("web", replicas=9)
        refused["metadata"]["labels"][names.MANAGED_LABEL] = "false"
        await world.members["m1"].admin.create(DEPLOYMENTS, refused)
        adopt = {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: '{"regexp":".*"}'}
        await world.place(placement={"m1": 2}, annotations=adopt)
        await world.until_statuses({"m1": "ManagedLabelFalse"})


async def test_retained_replicas_are_not_overwritten() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2}, annotations={names.RETAIN_REPLICAS: "true"})
        await _admin_patch(world, "m1", {"spec": {"replicas": 6}})
        await world.pass_time(1)
        await world.patch({"spec": {"template": {"metadata": {"labels": {"tier": "front"}}}}})

        async def relabelled() -> Object | None:
            deployment = await world.members["m1"].deployment()
            return deployment if deployment is not None and "tier" in deployment["metadata"]["labels"] else None

        deployment = await world.until(relabelled)
        assert deployment["spec"]["replicas"] == 6


async def test_invalid_overrides_are_reported_and_stop_only_their_cluster() -> None:
    async with member_world(2) as world:
        await world.place(placement={"m1": None, "m2": None})
        spec = placed({"m1": None, "m2": None})
        patches = [{"op": "remove", "path": "/spec/nothing"}]
        spec["overrides"] = [
            {"controller": names.OVERRIDE_CONTROLLER, "clusters": [{"cluster": "m2", "patches": patches}]}
        ]
        await world.patch({"spec": spec})
        await world.until_statuses({"m1": "OK", "m2": "ApplyOverridesFailed"})
        message = (await world.federated())["status"]["conditions"][0]["message"]
        assert "nothing" in message


async def test_a_dry_run_propagates_nothing() -> None:
    async with member_world(1) as world:
        await world.place(placement={"m1": 1}, annotations={names.DRY_RUN: "true"})
        await world.pass_time(1)
        assert await world.members["m1"].deployment() is None
        assert any(reason == EVENT_DRY_RUN_WORKED for reason, _ in await world.events())


async def test_a_dry_run_of_an_object_that_clusters_have_is_ignored_and_an_event_says_so() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 1})
        spec = {"template": {"spec": {"paused": True}}}
        body = {"metadata": {"annotations": {names.DRY_RUN: "true"}}, "spec": spec}
        await world.host.patch(
            FEDERATED_OBJECTS, "web-deployments.apps", body, patch_type=PatchType.MERGE, namespace="default"
        )
        await world.pass_time(2)
        deployment = await world.members["m1"].deployment()
        assert deployment is not None
        assert deployment["spec"]["paused"] is True
        expected = (EVENT_DRY_RUN_SKIPPED, "dry-run is ignored: the object is in clusters already")
        assert expected in await world.events()


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        ("False", "no cluster fits", (names.REASON_NOT_PLACED, "no cluster fits")),
        ("Unknown", "it waits", (names.REASON_NOT_PLACED, "it waits")),
        ("True", "placed in 1 cluster", (names.REASON_NO_POLICY, None)),
    ],
)
async def test_an_object_without_placement_says_what_the_scheduler_says(
    status: str, message: str, expected: tuple[str, str | None]
) -> None:
    async with member_world(1) as world:
        federated = await world.place(placement={})
        decided = {"type": names.SCHEDULED, "status": status, "reason": "Decided", "message": message}
        await world.host.patch(
            FEDERATED_OBJECTS,
            federated["metadata"]["name"],
            {"status": {"conditions": [decided]}},
            patch_type=PatchType.MERGE,
            namespace="default",
            subresource="status",
        )
        await world.restart()
        await world.pass_time(2)
        found = conditions.find((await world.federated())["status"]["conditions"], names.PROPAGATED) or {}
        assert found.get("reason") == expected[0]
        assert expected[1] in (None, found.get("message"))


async def _delete(world: World, name: str = "web") -> None:
    await world.host.delete(DEPLOYMENTS, name, "default")
    await world.host.delete(FEDERATED_OBJECTS, f"{name}-deployments.apps", "default")


async def _is_gone(world: World, name: str = "web") -> bool:
    try:
        await world.federated(name)
    except NotFound:
        return True
    return False


async def test_deletion_deletes_every_member_object() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        await _delete(world)

        await world.until(lambda: _is_gone(world))
        assert await world.members["m1"].deployment() is None
        assert await world.members["m2"].deployment() is None


async def test_deletion_leaves_a_record_for_a_cluster_that_does_not_answer() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        world.members["m2"].line.mode = "down"
        await world.until_condition("m2", names.CLUSTER_READY, "Unknown")
        await _delete(world)
        await world.until(lambda: _is_gone(world))
        assert await world.members["m1"].deployment() is None
        assert any(r == EVENT_LEFT_BEHIND and "[m2]" in m for r, m in await world.events())
        (leftover,) = (await world.host.list(LEFTOVERS)).items
        deployment = await world.members["m2"].deployment()
        assert deployment is not None
        assert leftover["spec"]["uid"] == deployment["metadata"]["uid"]


async def test_deletion_survives_a_restart_in_the_middle() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        await world.stop()
        await _delete(world)
        await world.restart()
        await world.until(lambda: _is_gone(world))
        assert await world.members["m2"].deployment() is None


async def test_orphans_stay_without_our_label() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2}, annotations={names.ORPHAN: "all"})
        await _delete(world)
        await world.until(lambda: _is_gone(world))
        deployment = await world.members["m1"].deployment()
        assert deployment is not None
        assert names.MANAGED_LABEL not in deployment["metadata"]["labels"]
        assert names.TEMPLATE_HASH not in deployment["metadata"].get("annotations", {})


async def test_an_object_without_placement_deletes_nothing_in_unrecorded_clusters() -> None:
    async with member_world(1) as world:
        await _converged(world, {"m1": 2})
        await world.patch({"spec": placed({})})
        await world.until_statuses({})
        assert await world.members["m1"].deployment() is None, "status named the cluster, so it was visited"


async def test_a_federated_object_that_is_deleted_without_its_source_keeps_its_member_objects() -> None:
    async with member_world(2) as world:
        await _converged(world, {"m1": 2, "m2": 1})
        await world.host.delete(FEDERATED_OBJECTS, "web-deployments.apps", "default")
        await world.clock.advance(60)
        assert not await _is_gone(world), "sync leaves it to the federate controller, which does not run here"
        assert await world.members["m1"].deployment() is not None
        assert not [call for member in world.members.values() for call in member.line.calls if call[0] == "delete"]


async def test_the_condition_names_the_clusters_that_fail_and_no_others() -> None:
    async with member_world(2) as world:
        world.members["m2"].line.failing.add(("patch", "deployments"))
        await world.place(placement={"m1": 1, "m2": 1})
        await world.until_statuses({"m1": "OK", "m2": "CreationFailed"})
        (condition,) = (await world.federated())["status"]["conditions"]
        assert (condition["type"], condition["status"]) == (names.PROPAGATED, "False")
        assert condition["message"] == "m2: CreationFailed (injected)"


async def test_the_end_of_a_federated_system_namespace_deletes_no_namespace() -> None:
    async with member_world(1) as world:
        member = world.members["m1"]
        template = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        managed = {**template, "metadata": {"name": "kube-system", "labels": {names.MANAGED_LABEL: "true"}}}
        await member.admin.patch(NAMESPACES, "kube-system", managed, patch_type=PatchType.MERGE)
        metadata = {"name": "kube-system-namespaces", "finalizers": [names.SYNC_FINALIZER]}
        kind = {"apiVersion": CLUSTER_FEDERATED_OBJECTS.api_version, "kind": CLUSTER_FEDERATED_OBJECTS.kind}
        pending = {"annotations": {names.PENDING_CONTROLLERS: "[]"}}
        federated = {
            **kind,
            "metadata": {**metadata, **pending},
            "spec": {"template": template, **placed({"m1": None})},
        }
        await world.host.create(CLUSTER_FEDERATED_OBJECTS, federated)
        await world.pass_time(1)
        await world.host.delete(CLUSTER_FEDERATED_OBJECTS, metadata["name"])

        async def is_gone() -> bool:
            return not (await world.host.list(CLUSTER_FEDERATED_OBJECTS)).items

        await world.until(is_gone)
        assert [name for _, _, name in member.line.writes("namespaces") if name == "kube-system"] == []
