"""Joining, watching and leaving on real registries and a virtual clock."""

import base64
import contextlib
from typing import Any

import pytest
from tests.support.member_world import World, a_pod, member_world
from tests.support.metrics import sample_of

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import ClusterUnreachable, NotFound
from federation.apimachinery.resources import CRDS, DEPLOYMENTS, NAMESPACES, NODES, PODS, SECRETS
from federation.client.client import PatchType
from federation.controllers.cluster.apidiscovery import served_by
from federation.controllers.cluster.names import (
    EVENT_CLUSTER_NOT_READY,
    EVENT_CLUSTER_READY,
    REASON_CLUSTER_UNJOINABLE,
    REASON_TOKEN_NOT_OBTAINED,
)
from federation.delivery.rules.names import EVENT_WAIT_FOR_RELEASE


async def _is_gone(world: World, name: str) -> bool:
    try:
        await world.cluster(name)
    except NotFound:
        return True
    return False


async def test_a_joined_cluster_is_ready_with_resources_and_types() -> None:
    async with member_world(1) as world:
        cluster = await world.cluster("m1")
        status = cluster["status"]
        assert status["joinPerformed"] is True
        assert status["resources"]["schedulableNodes"] == 1
        assert status["resources"]["allocatable"] == {"cpu": "8", "memory": "16Gi"}
        deployments = {"group": "apps", "version": "v1", "kind": "Deployment", "pluralName": "deployments"}
        assert {**deployments, "scope": "Namespaced"} in status["apiResourceTypes"]
        assert status["kubernetesVersion"].startswith("v1.")
        assert (await world.condition("m1", names.CLUSTER_OFFLINE))["status"] == "False"
        namespace = await world.members["m1"].admin.get(NAMESPACES, names.SYSTEM_NAMESPACE)
        assert namespace["metadata"]["annotations"][names.FEDERATED_CLUSTER_UID] == cluster["metadata"]["uid"]


async def test_an_idle_federation_writes_almost_nothing() -> None:
    async with member_world(2) as world:
        await world.pass_time(10)
        world.plane.line.calls.clear()
        before = (await world.condition("m1", names.CLUSTER_READY))["lastProbeTime"]
        await world.pass_time(120, step_s=0.5)
        assert world.plane.line.writes() == []
        await world.pass_time(200)
        assert (await world.condition("m1", names.CLUSTER_READY))["lastProbeTime"] > before


async def test_capacity_follows_pods_but_not_each_of_them() -> None:
    async with member_world(1) as world:
        await world.pass_time(6)
        world.plane.line.calls.clear()
        for number in range(4):
            await world.members["m1"].admin.create(PODS, a_pod(f"p{number}", "500m"))
            await world.pass_time(0.5)

        async def seen() -> bool:
            return (await world.cluster("m1"))["status"]["resources"]["available"]["cpu"] == "6"

        await world.until(seen)
        resources = (await world.cluster("m1"))["status"]["resources"]
        assert [entry["nodes"] for entry in resources["nodeClasses"]] == [1]
        assert resources["nodeClasses"][0]["free"][0]["resources"]["cpu"] == "8", "the pods have no node yet"
        assert resources["waiting"] == {"cpu": "2", "pods": "4"}
        assert len(world.plane.line.writes("federatedclusters")) <= 2


@pytest.mark.parametrize("mode", ["down", "hang"])
async def test_a_loss_is_published_within_ten_seconds_and_a_return_within_five(mode: str) -> None:
    async with member_world(1) as world:
        await world.pass_time(6)
        world.members["m1"].line.mode = mode
        lost_s = world.clock.monotonic()
        await world.pass_time(2)
        assert (await world.condition("m1", names.CLUSTER_READY))["status"] == "True", "it may be a hiccup"
        await world.until_condition("m1", names.CLUSTER_READY, "Unknown")
        assert world.clock.monotonic() - lost_s <= 10
        assert (await world.condition("m1", names.CLUSTER_OFFLINE))["status"] == "True"
        before_s = world.clock.monotonic()
        world.members["m1"].line.mend()
        await world.pass_time(1)
        assert (await world.condition("m1", names.CLUSTER_READY))["status"] == "Unknown", "it may be a hiccup too"
        await world.until_condition("m1", names.CLUSTER_READY, "True")
        assert world.clock.monotonic() - before_s < 5
        reasons = [reason for reason, _ in await world.events()]
        assert reasons.count(EVENT_CLUSTER_NOT_READY) == 1
        assert reasons.count(EVENT_CLUSTER_READY) == 1
        metric, labels = "federation_runtime_cluster_ready", {"cluster": "m1"}
        assert sample_of(metric, labels) == 1
        await world.host.delete(FEDERATED_CLUSTERS, "m1")
        await world.until(lambda: _is_gone(world, "m1"))
        assert sample_of(metric, labels) is None


async def test_a_broken_connection_leads_to_a_probe_at_once_and_a_lost_member_is_probed_slowly() -> None:
    async with member_world(1) as world:
        await world.pass_time(6)
        line = world.members["m1"].line
        line.mode = "down"
        with contextlib.suppress(ClusterUnreachable):
            await world.plane.pool.client("m1").list(NODES)
        lost_s = world.clock.monotonic()
        await world.until_condition("m1", names.CLUSTER_READY, "Unknown")
        assert world.clock.monotonic() - lost_s <= 5
        await world.pass_time(30)
        line.calls.clear()
        for _ in range(40):
            with contextlib.suppress(ClusterUnreachable):
                await world.plane.pool.client("m1").list(NODES)
            await world.pass_time(0.5)
        assert line.calls.count(("raw", "/readyz", "")) <= 11


async def test_a_member_without_readyz_is_probed_by_healthz() -> None:
    async with member_world(1) as world:
        line = world.members["m1"].line
        line.missing.add("/readyz")
        line.calls.clear()
        await world.pass_time(12)
        assert ("raw", "/healthz", "") in line.calls
        assert line.calls.count(("raw", "/readyz", "")) == 1, "only until the first 404"
        assert (await world.condition("m1", names.CLUSTER_READY))["status"] == "True"


async def test_a_broken_group_is_discovered_again_in_growing_intervals() -> None:
    async with member_world(1) as world:
        line = world.members["m1"].line
        line.missing.add("/apis/batch/v1")
        await world.pass_time(61)  # the discovery that finds the group broken

        def discoveries() -> int:
            return line.calls.count(("raw", "/apis", ""))

        line.calls.clear()
        await world.pass_time(300)
        assert 4 <= discoveries() <= 8, "after 3, 6, 12, ... s, then once a minute"
        types = (await world.cluster("m1"))["status"]["apiResourceTypes"]
        assert any(type_["kind"] == "Job" for type_ in types), "known types of a broken group stay"
        line.missing.clear()
        await world.pass_time(61)
        line.calls.clear()
        line.missing.add("/apis/batch/v1")
        await world.pass_time(80)
        assert discoveries() >= 3, "the pause is short again after a success"


async def test_a_blip_is_never_published() -> None:
    async with member_world(1) as world:
        await world.pass_time(6)
        world.plane.line.calls.clear()
        world.members["m1"].line.mode = "down"
        await world.pass_time(2.5)
        world.members["m1"].line.mend()
        await world.pass_time(60)
        assert world.plane.line.writes("federatedclusters") == []


async def test_a_hanging_member_is_found_out_and_delays_nobody() -> None:
    async with member_world(2) as world:
        world.members["m2"].line.mode = "hang"
        await world.add_member("m3")
        before_s = world.clock.monotonic()
        await world.join("m3")
        await world.until_condition("m3", names.CLUSTER_READY, "True")
        assert world.clock.monotonic() - before_s < 2
        await world.until_condition("m2", names.CLUSTER_READY, "Unknown")


async def test_a_member_of_another_federation_is_refused_for_good() -> None:
    async with member_world(0) as world:
        member = await world.add_member("m1")
        taken = {"metadata": {"annotations": {names.FEDERATED_CLUSTER_UID: "somebody"}}}
        await member.admin.patch(NAMESPACES, names.SYSTEM_NAMESPACE, taken, patch_type=PatchType.MERGE)
        await world.join("m1")
        condition = await world.until_condition("m1", names.CLUSTER_JOINED, "False")
        assert condition["reason"] == REASON_CLUSTER_UNJOINABLE
        assert "somebody" in condition["message"]
        member.line.calls.clear()
        await world.pass_time(60, step_s=0.5)
        assert member.line.calls == [], "final: nobody asks again"


async def test_joining_goes_on_until_the_member_answers() -> None:
    async with member_world(0) as world:
        member = await world.add_member("m1")
        member.line.mode = "down"
        await world.join("m1")
        condition = await world.until_condition("m1", names.CLUSTER_JOINED, "False")
        assert condition["reason"] == REASON_TOKEN_NOT_OBTAINED
        member.line.mend()
        await world.until_condition("m1", names.CLUSTER_READY, "True")


async def test_joining_is_given_up_after_its_time() -> None:
    async with member_world(0) as world:
        member = await world.add_member("m1")
        member.line.mode = "down"
        await world.join("m1")
        await world.until_condition("m1", names.CLUSTER_JOINED, "False")
        await world.pass_time(660, step_s=1.0)
        assert (await world.condition("m1", names.CLUSTER_JOINED))["reason"] == names.REASON_JOIN_TIMEOUT_EXCEEDED


@pytest.mark.parametrize("is_restarted", [True, False], ids=["restarted", "frozen"])
async def test_time_during_which_no_process_ran_does_not_end_a_join(is_restarted) -> None:
    async with member_world(0) as world:
        member = await world.add_member("m1")
        member.line.mode = "down"
        await world.join("m1")
        await world.until_condition("m1", names.CLUSTER_JOINED, "False")
        if is_restarted:
            await world.stop()
        world.clock.skip(3600)
        if is_restarted:
            await world.restart()
        await world.pass_time(100, step_s=1.0)
        assert (await world.condition("m1", names.CLUSTER_JOINED))["reason"] == REASON_TOKEN_NOT_OBTAINED
        member.line.mend()
        await world.until_condition("m1", names.CLUSTER_READY, "True")


async def test_a_missing_secret_is_told_and_cured() -> None:
    async with member_world(0) as world:
        await world.add_member("m1")
        await world.join("m1")
        await world.host.delete(SECRETS, "m1", names.SYSTEM_NAMESPACE)
        # Whether the join was faster than the deletion or not, the Secret comes back and all is well.
        token = base64.b64encode(b"new").decode()
        secret: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "m1", "namespace": names.SYSTEM_NAMESPACE},
            "data": {names.SECRET_BOOTSTRAP_TOKEN: token},
        }
        await world.pass_time(1)
        await world.host.create(SECRETS, secret)
        await world.until_condition("m1", names.CLUSTER_READY, "True")


async def test_a_rotated_secret_replaces_the_connection() -> None:
    async with member_world(1) as world:
        token = base64.b64encode(b"rotated").decode()
        await world.host.patch(
            SECRETS,
            "m1",
            {"data": {names.SECRET_BOOTSTRAP_TOKEN: token}},
            patch_type=PatchType.MERGE,
            namespace=names.SYSTEM_NAMESPACE,
        )

        async def replaced() -> bool:
            connection = world.plane.pool.connection("m1")
            return connection is not None and connection.token == "rotated"

        await world.until(replaced)


async def test_leaving_cleans_the_member_and_keeps_its_workloads() -> None:
    async with member_world(1) as world:
        await world.place(placement={"m1": 1})
        await world.until_statuses({"m1": "OK"})
        await world.host.delete(FEDERATED_CLUSTERS, "m1")
        await world.until(lambda: _is_gone(world, "m1"))
        namespace = await world.members["m1"].admin.get(NAMESPACES, names.SYSTEM_NAMESPACE)
        assert names.FEDERATED_CLUSTER_UID not in namespace["metadata"].get("annotations", {})
        assert await world.members["m1"].deployment() is not None
        assert world.plane.members.clusters == []


async def test_leaving_with_cascading_deletion_empties_the_member_first() -> None:
    async with member_world(1) as world:
        await world.place(placement={"m1": 1})
        await world.until_statuses({"m1": "OK"})
        lost = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "lost", "namespace": "default", "labels": {names.MANAGED_LABEL: "true"}},
            "spec": (await world.source())["spec"],
        }
        await world.members["m1"].admin.create(DEPLOYMENTS, lost)
        mark = {"metadata": {"annotations": {names.CASCADING_DELETE: ""}}}
        await world.host.patch(FEDERATED_CLUSTERS, "m1", mark, patch_type=PatchType.MERGE)
        await world.host.delete(FEDERATED_CLUSTERS, "m1")
        await world.until(lambda: _is_gone(world, "m1"))
        assert await world.members["m1"].deployment() is None
        assert await world.members["m1"].deployment("lost") is None, "its federated object is gone already"


async def test_a_member_that_does_not_answer_is_kept_until_it_could_be_cleaned() -> None:
    async with member_world(1) as world:
        world.members["m1"].line.mode = "down"
        await world.host.delete(FEDERATED_CLUSTERS, "m1")
        await world.pass_time(20)
        assert not await _is_gone(world, "m1")
        assert any(reason == EVENT_WAIT_FOR_RELEASE for reason, _ in await world.events())
        world.members["m1"].line.mend()
        await world.until(lambda: _is_gone(world, "m1"))


async def test_a_restart_goes_on_with_what_was_joined_and_writes_nothing() -> None:
    async with member_world(2) as world:
        await world.pass_time(6)
        await world.restart()
        await world.pass_time(30)
        assert world.plane.line.writes() == []
        assert world.plane.members.clusters == ["m1", "m2"]


def a_definition(**status: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "labels": {names.MANAGED_LABEL: "true"}},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
        **({"status": status} if status else {}),
    }


async def test_the_types_of_a_propagated_definition_are_published_without_waiting_for_the_next_discovery() -> None:
    async with member_world(1) as world:
        world.plane.members.ensure_informer(CRDS)
        await world.pass_time(11)
        admin = world.members["m1"].admin

        async def is_published() -> bool:
            return any(type_["kind"] == "Widget" for type_ in (await world.cluster("m1"))["status"]["apiResourceTypes"])

        before_s = world.clock.monotonic()
        await admin.create(CRDS, a_definition())
        await world.until(is_published)
        await admin.delete(CRDS, "widgets.example.com")

        async def is_withdrawn() -> bool:
            return not await is_published()

        await world.until(is_withdrawn)
        assert world.clock.monotonic() - before_s < 5


def test_a_definition_serves_its_types_when_it_is_established() -> None:
    established = {"type": "Established", "status": "True"}
    assert served_by(a_definition(conditions=[established])) == {("example.com", "v1", "Widget")}
    assert served_by(a_definition(conditions=[{**established, "status": "False"}])) == frozenset()
    malformed: list[Any] = [None, {}, a_definition(), a_definition(conditions=3), a_definition(conditions=["x"])]
    malformed.append({**a_definition(conditions=[established]), "spec": {"versions": [1]}})
    assert [served_by(each) for each in malformed] == [frozenset()] * len(malformed)
