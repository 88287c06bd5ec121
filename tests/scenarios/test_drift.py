"""Drift: the federation restores its own fields, keeps fields of others, and makes no unnecessary writes."""

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Object


async def _running(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
    await world.until_available("web", 4)
    await world.settle()


async def _copy(world: World, member: str = "east") -> Object:
    return await world.members[member].admin.get(DEPLOYMENTS, "web", "default")


async def test_a_manual_edit_of_a_federated_field_is_reverted() -> None:
    async with a_world() as world:
        await _running(world)
        before = await _copy(world)
        container = {"name": "web", "image": "hacked:1"}
        edit = {"spec": {"replicas": 9, "template": {"spec": {"containers": [container]}}}}
        await world.members["east"].merge(DEPLOYMENTS, "web", edit)

        async def spec() -> Object:
            return (await _copy(world))["spec"]

        await world.until_equal(spec, before["spec"])


async def test_a_member_object_deleted_by_hand_is_recreated() -> None:
    async with a_world() as world:
        await _running(world)
        await world.members["west"].admin.delete(DEPLOYMENTS, "web", "default")
        await world.until_replicas("web", {"east": 2, "north": 1, "west": 1})
        await world.until_available("web", 4)


async def test_fields_of_other_managers_are_kept() -> None:
    async with a_world() as world:
        await _running(world)
        theirs = {
            "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "by hand"}},
            "spec": {"template": {"metadata": {"annotations": {"injected": "sidecar"}}}},
        }
        await world.members["east"].merge(DEPLOYMENTS, "web", theirs)
        await world.settle()
        # A later write of ours for another reason must keep them too.
        await world.scale("web", 8)
        await world.until_replicas("web", {"east": 4, "north": 2, "west": 2})
        await world.settle()

        copy = await _copy(world)
        assert copy["metadata"]["labels"]["team"] == "blue"
        assert copy["metadata"]["annotations"]["note"] == "by hand"
        assert copy["spec"]["template"]["metadata"]["annotations"] == {"injected": "sidecar"}
        assert "team" not in (await _copy(world, "north"))["metadata"]["labels"]


async def test_a_field_removed_from_the_manifest_is_removed_in_the_members() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        deployment = a_deployment("web", replicas=3, tier="gold")
        deployment["spec"]["minReadySeconds"] = 1
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 3)

        await world.merge(
            DEPLOYMENTS, "web", {"metadata": {"labels": {"tier": None}}, "spec": {"minReadySeconds": None}}
        )
        await world.settle()

        copy = await _copy(world)
        assert "tier" not in copy["metadata"]["labels"]
        assert copy["spec"].get("minReadySeconds", 0) == 0


async def test_a_restart_after_convergence_writes_nothing() -> None:
    async with a_world() as world:
        policy = a_policy({"east": 2, "north": 1, "west": 1})
        policy["spec"]["resourceSelectors"].append({"apiVersion": "v1", "kind": "ConfigMap"})
        await world.create(PROPAGATION_POLICIES, policy)
        for number in range(10):
            await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=number))
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}
        await world.create(CONFIGMAPS, {**settings, "data": {"a": "1"}})
        await world.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        await world.settle()
        before = await world.revisions()

        for _ in range(2):
            await world.restart()
            await world.settle()
            assert [member.line.writes() for member in world.members.values()] == [[], [], []]
        after = await world.revisions()

        assert {name: after[name] for name in world.members} == {name: before[name] for name in world.members}
        assert after[""] == before[""]


@pytest.mark.parametrize("mode", ["Report", "Stop"])
async def test_a_change_in_a_member_stays_as_the_annotation_says(mode: str) -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        deployment = a_deployment("web", replicas=4)
        deployment["metadata"]["annotations"] = {names.DRIFT: mode}
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 4)
        await world.settle()
        edit = {"spec": {"minReadySeconds": 5, "template": {"spec": {"containers": [{"name": "web", "image": "x:1"}]}}}}
        await world.members["east"].merge(DEPLOYMENTS, "web", edit)
        await world.restart()
        await world.pass_time(30)

        async def statuses() -> dict[str, str]:
            found = (await world.federated("web"))["status"]["clusters"]
            return {entry["cluster"]: entry["status"] for entry in found}

        async def images() -> list[str]:
            copies = [await _copy(world, name) for name in ("east", "west")]
            return [copy["spec"]["template"]["spec"]["containers"][0]["image"] for copy in copies]

        assert await statuses() == {"east": "Drifted", "west": "OK"}
        propagated = await world.condition("web", names.PROPAGATED)
        assert "changed in the cluster: spec.template.spec.containers[web].image" in propagated["message"]
        assert (await images())[0] == "x:1"

        new = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}}}
        await world.merge(DEPLOYMENTS, "web", new)
        await world.pass_time(120)
        assert await images() == ["nginx:1.28" if mode == "Report" else "x:1", "nginx:1.28"]
        assert await statuses() == {"east": "OK" if mode == "Report" else "Drifted", "west": "OK"}

        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.DRIFT: "Repair"}}})
        await world.pass_time(10)
        assert await images() == ["nginx:1.28", "nginx:1.28"]


async def test_a_retention_rule_of_the_kind_leaves_a_field_to_the_member() -> None:
    async with a_world(members=("east",)) as world:
        rules = [{"path": "spec.minReadySeconds", "expression": "member > template ? member : template"}]
        await world.merge(FEDERATED_TYPE_CONFIGS, "deployments.apps", {"spec": {"retention": rules}})
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        deployment = a_deployment("web", replicas=1)
        deployment["spec"]["minReadySeconds"] = 2
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 1)
        for theirs, kept in ((5, 5), (1, 2)):
            await world.members["east"].merge(DEPLOYMENTS, "web", {"spec": {"minReadySeconds": theirs}})
            await world.settle()
            assert (await _copy(world))["spec"]["minReadySeconds"] == kept
