"""A member is swept for managed objects that nothing delivers: each is delivered again, removed, released or reported."""

import base64
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, SECRETS, Object, Resource

EVERYWHERE = {"east": 1, "north": 1, "west": 1}
CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")


async def _running(world: World, **policy: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy(EVERYWHERE, **policy))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
    await world.until_replicas("web", EVERYWHERE)
    await world.until_available("web", 3)
    await world.settle()


async def _leftovers(world: World) -> list[tuple[str, str, str]]:
    found = [leftover["spec"] for leftover in (await world.user.list(LEFTOVERS)).items]
    return sorted((spec["cluster"], spec["name"], spec["action"]) for spec in found if spec["reason"] != "Revoked")


def _managed(obj: Object) -> Object:
    labels = {**(obj["metadata"].get("labels") or {}), names.MANAGED_LABEL: "true"}
    metadata = {**obj["metadata"], "labels": labels, "annotations": {names.TEMPLATE_HASH: "0"}}
    return {**obj, "metadata": metadata}


async def _restore(world: World, member: str, resource: Resource, backup: Object) -> None:
    """Create an object in a member as it was: what a restore of a backup does."""
    dropped = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
    metadata = {key: value for key, value in backup["metadata"].items() if key not in dropped}
    await world.members[member].admin.create(resource, {**backup, "metadata": metadata})


def _a_secret(name: str = "password") -> Object:
    data = {"key": base64.b64encode(b"old").decode()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "type": "Opaque",
        "data": data,
    }


def _a_claim() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def _selecting(kind: str, *clusters: str, api_version: str = "v1") -> Object:
    policy = a_policy(dict.fromkeys(clusters, 1), name=f"some-{kind.lower()}")
    policy["spec"]["resourceSelectors"] = [{"apiVersion": api_version, "kind": kind}]
    policy["spec"]["schedulingMode"] = "Duplicate"
    return policy


async def test_an_object_that_the_host_never_had_is_reported_and_never_counted() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        await world.members["east"].admin.create(DEPLOYMENTS, _managed(a_deployment("stray", replicas=2)))
        await world.until_equal(lambda: _leftovers(world), [("east", "stray", "Keep")])
        await world.restart()
        await world.pass_time(60)
        assert await world.members["east"].replicas("stray") == 2

        (leftover,) = (await world.user.list(LEFTOVERS)).items
        patch = {"spec": {"action": "Delete"}}  # as `fedctl leftovers` suggests
        await world.merge(LEFTOVERS, leftover["metadata"]["name"], patch, "")
        await world.until_equal(lambda: _leftovers(world), [])
        assert await world.members["east"].replicas("stray") is None


async def test_an_object_that_only_carries_the_label_is_not_ours() -> None:
    """The members' EndpointSlice controllers copy the labels of a Service, ours among them."""
    async with a_world_without_pods() as world:
        await _running(world)
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"annotations": {names.STRAYS: "remove"}}})
        east = world.members["east"]
        copied = _managed(a_deployment("copied", replicas=1))
        del copied["metadata"]["annotations"]
        await east.admin.create(DEPLOYMENTS, copied)
        await world.restart()
        await world.pass_time(60)
        assert await east.replicas("copied") == 1
        assert await _leftovers(world) == []


@pytest.mark.parametrize(("strays", "is_left"), [("remove", False), ("release", True)])
async def test_the_annotation_of_the_cluster_decides_about_strays(strays: str, is_left: bool) -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        annotated = {"metadata": {"annotations": {names.STRAYS: strays}}}
        await world.merge(FEDERATED_CLUSTERS, "east", annotated)
        east = world.members["east"]
        await east.admin.create(DEPLOYMENTS, _managed(a_deployment("stray", replicas=2)))

        async def is_handled() -> bool:
            found = await east.find(DEPLOYMENTS, "stray")
            is_managed = found is not None and names.MANAGED_LABEL in found["metadata"]["labels"]
            return (found is not None) is is_left and not is_managed

        await world.until(is_handled)
        await world.until_equal(lambda: _leftovers(world), [])


async def test_a_copy_that_is_placed_elsewhere_is_removed_and_not_counted() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_available("web", 3)
        await world.settle()
        backup = await world.members["east"].admin.get(DEPLOYMENTS, "web", "default")
        await _restore(world, "north", DEPLOYMENTS, backup)
        seen = []
        for _ in range(100):
            await world.pass_time(0.2)
            seen.append((await world.status("web")).get("readyReplicas", 0))
        assert max(seen) == 3
        await world.until_replicas("web", {"east": 3})


async def _show_a_reported_copy(world: World) -> None:
    """Let east show a copy of `web`, which is reported and stays."""
    east = world.members["east"]
    await east.admin.create(DEPLOYMENTS, _managed(a_deployment("web", replicas=2)))
    await world.until_equal(lambda: _leftovers(world), [("east", "web", "Keep")])
    await world.pass_time(60)
    assert await east.replicas("web") == 2


async def test_a_copy_of_an_object_that_no_policy_places_is_reported() -> None:
    async with a_world_without_pods() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        await _show_a_reported_copy(world)

        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.until_replicas("web", {"east": 3})
        await world.restart()  # its sweep finds the copy delivered
        await world.until_equal(lambda: _leftovers(world), [])


async def test_a_reported_copy_is_removed_once_its_object_is_placed_elsewhere() -> None:
    """A report is the verdict of one moment: the placement that came later is evidence."""
    async with a_world_without_pods() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        await _show_a_reported_copy(world)
        await world.create(PROPAGATION_POLICIES, a_policy({"north": 1}))
        await world.until_replicas("web", {"north": 3})
        await world.until_equal(lambda: _leftovers(world), [])


async def test_a_reported_copy_stays_when_a_new_object_of_its_name_is_placed_elsewhere() -> None:
    """A decision about an object that is younger than the copy is not about the copy."""
    async with a_world_without_pods(is_judged=False) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"north": 1}))
        await world.settle()
        await _show_a_reported_copy(world)
        await world.pass_time(90)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", {"east": 2, "north": 3})
        await world.restart()
        await world.pass_time(120)
        assert await world.replicas("web") == {"east": 2, "north": 3}
        assert await _leftovers(world) == [("east", "web", "Keep")]


async def test_a_record_that_becomes_a_report_is_judged_by_the_placement_of_its_object() -> None:
    """A slow member: the object of the record was replaced before its deletion, and no sweep comes afterwards."""
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", {"east": 3})
        await world.settle()
        east = world.members["east"]
        east.line.delays_s.update(dict.fromkeys(("get", "patch", "delete"), 40.0))
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        assert await _leftovers(world) == [("east", "web", "Delete")]
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": a_policy({"north": 1})["spec"]})
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await east.admin.delete(DEPLOYMENTS, "web", "default")
        await east.admin.create(DEPLOYMENTS, _managed(a_deployment("web", replicas=2)))
        await world.pass_time(60)
        assert await world.replicas("web") == {"east": 2, "north": 3}
        east.line.delays_s.clear()
        await world.until_replicas("web", {"north": 3})
        await world.until_equal(lambda: _leftovers(world), [])


async def test_the_report_of_a_copy_ends_when_the_copy_is_delivered() -> None:
    async with a_world_without_pods() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        await world.members["east"].admin.create(DEPLOYMENTS, _managed(a_deployment("web", replicas=2)))
        await world.until_equal(lambda: _leftovers(world), [("east", "web", "Keep")])
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.until_replicas("web", {"east": 3})
        await world.until_equal(lambda: _leftovers(world), [])


async def test_a_revoked_secret_does_not_come_back_with_a_restored_member() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, _selecting("Secret", "east", "north"))
        await world.create(SECRETS, _a_secret())
        east = world.members["east"]

        async def in_east() -> bool:
            return await east.find(SECRETS, "password") is not None

        await world.until_equal(in_east, True)
        backup = await east.admin.get(SECRETS, "password", "default")
        await world.user.delete(SECRETS, "password", "default")
        await world.until_equal(in_east, False)
        await world.settle()
        await _restore(world, "east", SECRETS, backup)
        await world.until_equal(in_east, False)

        await world.stop()
        await _restore(world, "east", SECRETS, backup)
        await world.restart()  # nothing watches Secrets any more: the sweep after a start lists them
        await world.until_equal(in_east, False)
        await world.until_equal(lambda: _leftovers(world), [])

        await world.create(SECRETS, _a_secret())  # a new Secret of the name is delivered
        await world.until_equal(in_east, True)
        await world.pass_time(60)
        assert await in_east()


async def test_a_claim_stays_where_a_policy_or_a_taint_takes_it_from_until_its_source_is_deleted() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, _selecting("PersistentVolumeClaim", "east", "north"))
        await world.create(CLAIMS, _a_claim())
        east = world.members["east"]

        async def in_clusters() -> list[str]:
            return [name for name, member in world.members.items() if await member.find(CLAIMS, "data") is not None]

        await world.until_equal(in_clusters, ["east", "north"])
        taint = {"spec": {"taints": [{"key": "drain", "effect": "NoExecute"}]}}
        await world.merge(FEDERATED_CLUSTERS, "east", taint)
        await world.pass_time(30)
        placement = [{"cluster": "north"}]
        await world.merge(PROPAGATION_POLICIES, "some-persistentvolumeclaim", {"spec": {"placement": placement}})
        await world.pass_time(60)
        assert await in_clusters() == ["east", "north"]
        await world.restart()
        await world.pass_time(30)
        assert await in_clusters() == ["east", "north"]

        await world.user.delete(CLAIMS, "data", "default")
        await world.until_equal(in_clusters, [])
        await world.until_gone(CLAIMS, "data")
        assert await east.find(CLAIMS, "data") is None


async def test_a_member_that_joins_again_under_another_name_is_cleaned_up_by_its_uid() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        assert await _leftovers(world) == [("east", "web", "Delete")]
        forced = {"metadata": {"annotations": {names.FORCED_REMOVAL: "moved"}}}
        await world.merge(FEDERATED_CLUSTERS, "east", forced)
        await world.user.delete(FEDERATED_CLUSTERS, "east")
        await world.until_gone(FEDERATED_CLUSTERS, "east")

        east.line.mend()
        world.members["berlin"] = world.members.pop("east")
        await world.join("berlin")
        await world.until_ready("berlin")
        await world.until_replicas("web", {})
        await world.until_equal(lambda: _leftovers(world), [])


def _settings(**labels: str) -> Object:
    metadata = {"name": "settings", "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "blue"}}


async def _pass_hours(world: World, hours: int) -> None:
    """Pass hours. Every periodic task runs once an hour, or a day would take minutes of real time."""
    for _ in range(hours):
        world.clock.skip(3599)
        await world.pass_time(1)


async def test_the_daily_sweep_finds_what_nothing_watches_and_does_what_the_clusters_policies_say() -> None:
    """Nothing watches the ConfigMaps of the members while none is federated."""
    async with a_world(has_workloads=False) as world:
        for cluster, strays in (("north", "remove"), ("west", "release")):
            await world.merge(FEDERATED_CLUSTERS, cluster, {"metadata": {"annotations": {names.STRAYS: strays}}})
        await world.pass_time(60)  # the sweeps after the start are over
        east, north, west = (world.members[name] for name in ("east", "north", "west"))
        for member in (east, north, west):
            await member.admin.create(CONFIGMAPS, _managed(_settings()))
        await _pass_hours(world, 22)
        assert await _leftovers(world) == []
        assert await north.find(CONFIGMAPS, "settings") is not None

        await _pass_hours(world, 2)
        assert await _leftovers(world) == [("east", "settings", "Keep")]
        assert await north.find(CONFIGMAPS, "settings") is None
        released = await west.find(CONFIGMAPS, "settings")
        assert released is not None
        assert names.MANAGED_LABEL not in (released["metadata"].get("labels") or {})
        swept = {text for reason, text in await world.events() if reason == "Swept"}
        assert swept == {
            "reported, see fedctl leftovers: ConfigMap default/settings",
            "removed: ConfigMap default/settings",
            "released: ConfigMap default/settings",
        }

        # A source that appears on the host takes over what was reported. The next sweep ends the report.
        reported = await east.admin.get(CONFIGMAPS, "settings", "default")
        await world.create(PROPAGATION_POLICIES, _selecting("ConfigMap", "east"))
        await world.create(CONFIGMAPS, _settings(team="shop"))
        await world.pass_time(60)
        managed = await east.admin.get(CONFIGMAPS, "settings", "default")
        assert managed["metadata"]["uid"] == reported["metadata"]["uid"]
        assert managed["metadata"]["labels"].get("team") == "shop"
        await _pass_hours(world, 24)
        assert await _leftovers(world) == []
        assert await east.find(CONFIGMAPS, "settings") is not None
