"""Followers of a workload exist in a member before the workload and are removed after it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson
import pytest
from tests.support.generated import nightly_after
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import NAMES, World, a_world_without_pods
from tests.support.worldmember import Member

from federation.api import names
from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import (
    CONFIGMAPS,
    CRDS,
    DEPLOYMENTS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Object,
    Resource,
)
from federation.apiserver.store.interface import Event, EventType
from federation.controllers.follower.names import EVENT_FAILED_INFER_FOLLOWERS, EVENT_FAILED_UPDATE_FOLLOWER
from federation.delivery.rules.names import EVENT_FOLLOWER_MISSING
from federation.planning.federatedobject.naming import federated_object_name
from federation.planning.followers.leaderplan import dependencies_of
from federation.planning.followers.references import Reference

KINDS = {"ConfigMap": CONFIGMAPS, "Secret": SECRETS, "ServiceAccount": SERVICE_ACCOUNTS}
HPAS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
_ADMISSION = ("admissionregistration.k8s.io", "v1")
ADMISSION_POLICIES = Resource(*_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
ADMISSION_BINDINGS = Resource(
    *_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
ADOPTING = {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: '{"regexp":".*"}'}
MOUNTED = "/spec/template/spec/volumes/0/configMap/name"


def _object(resource: Resource, name: str, **content: Any) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": "default"},
        **content,
    }


def _config(name: str) -> Object:
    return _object(CONFIGMAPS, name, data={"colour": "blue"})


def _needy(name: str = "web", replicas: int = 3, config: str = "settings") -> Object:
    """Return a Deployment whose pods refer to a ConfigMap, a Secret and a ServiceAccount."""
    deployment = a_deployment(name, replicas)
    pod = deployment["spec"]["template"]["spec"]
    pod["serviceAccountName"] = "runner"
    pod["volumes"] = [{"name": "config", "configMap": {"name": config}}]
    key = {"secretKeyRef": {"name": "password", "key": "password"}}
    pod["containers"][0]["env"] = [{"name": "PASSWORD", "valueFrom": key}]
    return deployment


async def _create_needs(world: World) -> None:
    await world.create(CONFIGMAPS, _config("settings"))
    await world.create(SECRETS, _object(SECRETS, "password", data={"password": "c2VjcmV0"}))
    await world.create(SERVICE_ACCOUNTS, _object(SERVICE_ACCOUNTS, "runner"))


async def _holders(world: World, resource: Resource, name: str) -> set[str]:
    """Return the members that have the object."""
    return {member.name for member in world.members.values() if await member.find(resource, name) is not None}


async def _starved(world: World) -> list[str]:
    """Return the Deployments in members whose followers exist on the host but not in that member."""
    found = []
    for member in world.members.values():
        for deployment in (await member.admin.list(DEPLOYMENTS)).items:
            for _, kind, name in dependencies_of(DEPLOYMENT_TYPE | deployment):
                wanted = await world.find(KINDS[kind], name) or {"metadata": {"deletionTimestamp": "never was"}}
                if "deletionTimestamp" in wanted["metadata"]:
                    continue
                if await member.find(KINDS[kind], name) is None:
                    found.append(f"{member.name}: {deployment['metadata']['name']} lacks {kind} {name}")
    return found


DEPLOYMENT_TYPE = {"apiVersion": "apps/v1", "kind": "Deployment"}


async def _until(world: World, look: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Wait like `world.until_equal`, and assert at every step that no Deployment lacks a follower."""

    async def seen() -> Any:
        assert await _starved(world) == []
        return await look()

    await world.until_equal(seen, expected)


async def _until_everything_is_in(world: World, *clusters: str) -> None:
    everything = ((CONFIGMAPS, "settings"), (SECRETS, "password"), (SERVICE_ACCOUNTS, "runner"), (DEPLOYMENTS, "web"))

    async def look() -> Mapping[str, set[str]]:
        return {name: await _holders(world, resource, name) for resource, name in everything}

    await _until(world, look, {name: set(clusters) for _, name in everything})


async def _federated(world: World, name: str, type_name: str = "configmaps") -> Object:
    return await world.user.get(FEDERATED_OBJECTS, federated_object_name(name, type_name), "default")


async def _place(world: World, *clusters: str) -> None:
    placement = [{"cluster": cluster, "preferences": {"weight": 1}} for cluster in clusters]
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": placement}})


async def _begin(world: World, *clusters: str, replicas: int = 3) -> None:
    """Create a policy for the clusters, and a Deployment with its followers."""
    await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(clusters, 1)))
    await world.create(DEPLOYMENTS, _needy(replicas=replicas))
    await _create_needs(world)
    await world.until_available("web", replicas)
    await _until_everything_is_in(world, *clusters)


async def test_followers_are_placed_moved_and_removed_with_their_leader() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await _create_needs(world)
        await world.create(DEPLOYMENTS, _needy())
        await _until_everything_is_in(world, "east", "north")

        await _place(world, "west")
        await _until_everything_is_in(world, "west")

        await world.user.delete(DEPLOYMENTS, "web", "default")
        await _until_everything_is_in(world)
        assert await world.find(CONFIGMAPS, "settings") is not None
        assert "follows" not in (await _federated(world, "settings"))["spec"]


async def test_followers_move_when_a_taint_evicts_their_leader() -> None:
    async with a_world_without_pods() as world:
        await _begin(world, "east", "north", replicas=4)
        taint = {"key": "maintenance", "value": "yes", "effect": "NoExecute"}
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": [taint]}}, namespace="")
        await _until_everything_is_in(world, "north")
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": []}}, namespace="")
        await world.until_available("web", 4)


async def test_scaling_a_leader_writes_nothing_to_followers() -> None:
    async with a_world_without_pods() as world:
        await _begin(world, "east", "north", replicas=4)
        before = await _federated(world, "settings")
        await world.scale("web", 8)
        await world.until_available("web", 8)
        await world.settle()
        assert await _federated(world, "settings") == before


async def test_a_follower_missing_in_one_cluster_does_not_delay_the_others() -> None:
    async with a_world_without_pods() as world:
        await _begin(world, "east", "north", replicas=4)
        world.members["east"].line.mode = "down"
        await _place(world, "west")

        async def look() -> set[str]:
            return await _holders(world, DEPLOYMENTS, "web")

        await _until(world, look, {"east", "west"})
        await world.pass_time(60)
        assert await _holders(world, CONFIGMAPS, "settings") == {"east", "west"}
        await world.restart()
        world.members["east"].line.mend()
        await _until_everything_is_in(world, "west")


async def test_an_object_referenced_by_an_override_follows_to_its_cluster_only() -> None:
    async with a_world_without_pods() as world:
        await world.create(CONFIGMAPS, _config("special"))
        await _begin(world, "east", "west")
        assert await _holders(world, CONFIGMAPS, "special") == set()

        async def special() -> set[str]:
            return await _holders(world, CONFIGMAPS, "special")

        async def mounted() -> str:
            deployment = await world.members["west"].find(DEPLOYMENTS, "web") or {}
            return str(deployment["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"])

        await world.create(OVERRIDE_POLICIES, an_override("west", MOUNTED, "special"))
        await _until(world, mounted, "special")
        await _until(world, special, {"west"})
        await _place(world, "east", "north")
        await _until(world, special, set())


async def test_a_follower_created_after_its_leader_is_placed_with_it() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, _needy())
        await world.until_available("web", 3)  # a missing object on the host is not waited for
        await _create_needs(world)
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "settings"), {"east"})


async def test_a_follower_is_placed_in_the_clusters_of_leader_and_own_policy() -> None:
    async with a_world_without_pods() as world:
        selectors = [{"apiVersion": "v1", "kind": "ConfigMap"}]
        own = a_policy({"north": 1}, name="own", resourceSelectors=selectors, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, own)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(CONFIGMAPS, _config("settings"))
        await world.create(DEPLOYMENTS, _needy("web"))
        await world.create(DEPLOYMENTS, _needy("other"))

        async def look() -> set[str]:
            return await _holders(world, CONFIGMAPS, "settings")

        await _until(world, look, {"east", "north"})
        follows = (await _federated(world, "settings"))["spec"]["follows"]
        await world.settle()
        assert {leader["name"] for leader in (await _federated(world, "settings"))["spec"]["follows"]} == {
            "web",
            "other",
        }, follows
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.settle()
        assert await look() == {"east", "north"}
        await world.user.delete(DEPLOYMENTS, "other", "default")
        await _until(world, look, {"north"})


async def test_removing_a_reference_removes_the_follower_after_the_pods_that_used_it() -> None:
    async with a_world_without_pods() as world:
        await _begin(world, "east", "west")
        await world.create(CONFIGMAPS, _config("newer"))
        await _mount(world, "newer")

        async def look() -> tuple[set[str], set[str]]:
            return await _holders(world, CONFIGMAPS, "newer"), await _holders(world, CONFIGMAPS, "settings")

        await _until(world, look, ({"east", "west"}, set()))


async def test_a_follower_that_is_being_deleted_counts_as_missing() -> None:
    """The follower is being deleted when the workload returns: it must be recreated before the workload."""
    async with a_world_without_pods() as world:
        await _begin(world, "east", "west")
        await world.create(CONFIGMAPS, _config("newer"))
        east = world.members["east"]
        east.line.delays_s["delete"] = 3.0
        east.line.calls.clear()
        await _mount(world, "newer")

        async def deletes() -> list[tuple[str, str, str]]:
            return [call for call in east.line.calls if call[0] == "delete"]

        await world.until_equal(deletes, [("delete", "configmaps", "settings")])
        events, recording = await _record(east)
        await _mount(world, "settings")
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "newer"), set())
        recording.cancel()
        deleted = [event.key for event in events if event.type is EventType.DELETED and "/configmaps/" in event.key]
        assert len(deleted) == 2, deleted
        assert _gaps(events, ConfigMap={"settings", "newer"}, Secret={"password"}, ServiceAccount={"runner"}) == []


async def _mount(world: World, config: str, name: str = "web") -> None:
    volumes = [{"name": "config", "configMap": {"name": config}}]
    await world.merge(DEPLOYMENTS, name, {"spec": {"template": {"spec": {"volumes": volumes}}}})


async def test_a_follower_that_cannot_be_written_delays_its_leader_for_a_limited_time() -> None:
    async with a_world_without_pods() as world:
        # The member rejects this ConfigMap: an override changes its identity.
        broken = an_override("east", "/metadata/name", "other", name="broken")
        broken["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "ConfigMap"}]
        await world.create(OVERRIDE_POLICIES, broken)
        await world.create(CONFIGMAPS, _config("settings"))
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await world.settle()
        begun_s = world.clock.monotonic()
        await world.create(DEPLOYMENTS, _needy(replicas=4))
        await world.until_equal(lambda: _holders(world, DEPLOYMENTS, "web"), {"north"})
        await world.pass_time(5)
        assert "waits for ConfigMap settings" in (await world.condition("web", names.PROPAGATED))["message"]
        await world.until_equal(lambda: _holders(world, DEPLOYMENTS, "web"), {"east", "north"})
        assert 30 <= world.clock.monotonic() - begun_s < 35
        assert any(reason == EVENT_FOLLOWER_MISSING for reason, _ in await world.events())
        await world.user.delete(OVERRIDE_POLICIES, "broken", "default")
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "settings"), {"east", "north"})


async def test_listed_followers_including_an_hpa_follow_until_the_list_changes() -> None:
    async with a_world_without_pods() as world:
        listed = [
            {"kind": "Service", "name": "web"},
            {"group": "autoscaling", "kind": "HorizontalPodAutoscaler", "name": "web"},
        ]
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        await world.create(SERVICES, _object(SERVICES, "web", spec={"ports": [{"port": 80}]}))
        await world.create(HPAS, _object(HPAS, "web", spec={"scaleTargetRef": target, "maxReplicas": 5}))
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        deployment = a_deployment("web")
        deployment["metadata"]["annotations"] = {names.FOLLOWERS: orjson.dumps(listed).decode()}
        await world.create(DEPLOYMENTS, deployment)

        async def look() -> tuple[set[str], set[str]]:
            return await _holders(world, SERVICES, "web"), await _holders(world, HPAS, "web")

        await world.until_equal(look, ({"east"}, {"east"}))
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.FOLLOWERS: "[{"}}})
        await world.settle()
        assert await look() == ({"east"}, {"east"})  # an unparsable annotation removes no follower
        assert any(reason == EVENT_FAILED_INFER_FOLLOWERS for reason, _ in await world.events())
        text = orjson.dumps(listed[:1]).decode()
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.FOLLOWERS: text}}})
        await world.until_equal(look, ({"east"}, set()))


async def test_following_is_disabled_and_enabled_by_the_policy() -> None:
    async with a_world_without_pods() as world:
        await _begin(world, "east")
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"disableFollowerScheduling": True}})
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "settings"), set())
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"disableFollowerScheduling": False}})
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "settings"), {"east"})
        await world.merge(CONFIGMAPS, "settings", {"metadata": {"annotations": {names.DISABLE_FOLLOWING: "true"}}})
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "settings"), set())


async def test_followers_of_an_orphaned_workload_stay_until_it_is_adopted_and_deleted() -> None:
    async with a_world_without_pods() as world:
        await _begin(world, "east", "north")
        await world.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.settle()
        await world.restart()
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"disableFollowerScheduling": True}})
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"disableFollowerScheduling": False}})
        await world.settle()
        await _until_everything_is_in(world, "east", "north")
        kept = [{"group": "apps", "kind": "Deployment", "name": "web", "clusters": ["east", "north"]}]
        assert orjson.loads((await _federated(world, "settings"))["metadata"]["annotations"][names.KEPT_FOR]) == kept

        # The remaining followers are still updated.
        await world.merge(CONFIGMAPS, "settings", {"data": {"colour": "green"}})

        async def colours() -> list[str]:
            return [(await world.members[name].find(CONFIGMAPS, "settings"))["data"]["colour"] for name in kept_in]

        kept_in = ("east", "north")
        await world.until_equal(colours, ["green", "green"])

        # A Deployment of that name that does not adopt the orphaned objects changes nothing.
        await world.create(DEPLOYMENTS, _needy())
        await world.settle()
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.settle()
        await _until_everything_is_in(world, "east", "north")

        adopting = _needy()
        adopting["metadata"]["annotations"] = ADOPTING
        await world.create(DEPLOYMENTS, adopting)
        await world.until_available("web", 3)
        await world.settle()
        assert names.KEPT_FOR not in (await _federated(world, "settings"))["metadata"]["annotations"]
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await _until_everything_is_in(world)


async def test_an_orphaned_workload_is_recorded_on_its_followers_before_it_is_deleted() -> None:
    """The control plane may stop at any time; here writes to the followers fail for a while."""
    async with a_world_without_pods() as world:
        await _begin(world, "east")
        refused = f"!('{names.KEPT_FOR}' in object.metadata.annotations)"
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["federatedobjects"]}
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": refused}]}
        binding = {"policyName": "mute", "validationActions": ["Deny"]}
        await world.create(ADMISSION_POLICIES, _cluster_object(ADMISSION_POLICIES, "mute", spec=spec))
        await world.create(ADMISSION_BINDINGS, _cluster_object(ADMISSION_BINDINGS, "mute", spec=binding))
        await world.settle()
        begun_s = world.clock.monotonic()
        await world.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
        await world.pass_time(10)
        assert await world.find(DEPLOYMENTS, "web") is not None
        assert any(reason == EVENT_FAILED_UPDATE_FOLLOWER for reason, _ in await world.events())
        await world.user.delete(ADMISSION_BINDINGS, "mute")
        await world.until_gone(DEPLOYMENTS, "web")
        assert world.clock.monotonic() - begun_s < 30
        await world.settle()
        await _until_everything_is_in(world, "east")


def _cluster_object(resource: Resource, name: str, **content: Any) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, **content}


async def test_a_follower_of_an_orphaned_workload_is_removed_when_following_is_disabled() -> None:
    async with a_world_without_pods() as world:
        await _begin(world, "east")
        await world.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.merge(CONFIGMAPS, "settings", {"metadata": {"annotations": {names.DISABLE_FOLLOWING: "true"}}})
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "settings"), set())
        assert await _holders(world, SECRETS, "password") == {"east"}
        assert await _holders(world, DEPLOYMENTS, "web") == {"east"}


async def test_objects_without_leaders_and_workloads_without_references_cause_no_writes() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(CONFIGMAPS, _config("alone"))
        await world.create(DEPLOYMENTS, a_deployment("plain"))
        await world.until_available("plain", 3)
        await world.settle()
        for federated in (await _federated(world, "alone"), await world.federated("plain")):
            managers = {entry["manager"] for entry in federated["metadata"].get("managedFields") or ()}
            controllers = {entry["controller"] for entry in federated["spec"].get("placements") or ()}
            assert names.FOLLOWER_CONTROLLER not in controllers, managers
            assert "follows" not in federated["spec"]


@pytest.mark.parametrize("seed", nightly_after(2, range(6)))
async def test_no_workload_is_ever_without_its_followers_in_any_history(seed: int) -> None:
    """Random changes of workloads, placements and overrides, unreachable members, and restarts of the control plane.

    Every write of every member is looked at, in the order of commits. That followers end where their leaders are is
    among the invariants of every scenario.
    """
    chance = random.Random(seed)
    async with a_world_without_pods(seed=seed) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await _create_needs(world)
        await world.create(CONFIGMAPS, _config("special"))
        histories = {name: await _record(member) for name, member in world.members.items()}
        for _ in range(25):
            name, config = chance.choice(("web", "api")), chance.choice(("settings", "special"))
            await _happen(world, chance, name, config)
            await world.pass_time(chance.choice((0, 0.1, 0.5, 2)))
        _mend(world)
        await world.settle()
        for cluster, (events, recording) in histories.items():
            recording.cancel()
            assert _gaps(events) == [], cluster
        assert any("/deployments/" in event.key for events, _ in histories.values() for event in events)


async def _record(member: Member) -> tuple[list[Event], asyncio.Task[None]]:
    """Record every write of a member from now on."""
    events: list[Event] = []
    since = await member.store.revision()

    async def follow() -> None:
        async for batch in member.store.watch("", since):
            events.extend(batch)

    return events, asyncio.create_task(follow())


def _gaps(events: Sequence[Event], **present: set[str]) -> list[str]:
    """Return the revisions at which a Deployment existed without an object that its pods refer to.

    `present` has the names of what was there before the first event, by kind.
    """
    held: dict[str, set[str]] = {kind: set(present.get(kind, ())) for kind in KINDS}
    needs: dict[str, set[Reference]] = {}
    found = []
    for event in events:
        obj = orjson.loads(event.value)
        kind, name = obj.get("kind", ""), obj["metadata"]["name"]
        if kind == "Deployment":
            needs[name] = set() if event.type is EventType.DELETED else dependencies_of(obj)
        elif kind in KINDS:
            (held[kind].discard if event.type is EventType.DELETED else held[kind].add)(name)
        missing = sorted(f"{w}: {ref}" for w, refs in needs.items() for ref in refs if ref.name not in held[ref.kind])
        if missing:
            found.append(f"revision {event.revision}, {event.type} {kind} {name}: {missing}")
    return found


def _mend(world: World) -> None:
    for member in world.members.values():
        member.line.mend()


async def _happen(world: World, chance: random.Random, name: str, config: str) -> None:
    """Perform one random action of a user or operator."""
    deployment = await world.find(DEPLOYMENTS, name)
    match chance.randrange(8):
        case 0 | 1 if deployment is None:
            created = _needy(name, config=config)
            created["metadata"]["annotations"] = ADOPTING
            await world.create(DEPLOYMENTS, created)
        case 0 if deployment is not None:
            await _mount(world, config, name)
        case 2 if deployment is not None:
            policy = chance.choice(("Background", "Orphan"))
            await world.user.delete(DEPLOYMENTS, name, "default", propagation_policy=policy)
        case 3:
            await _place(world, *chance.sample(NAMES, chance.randint(1, 3)))
        case 4:
            if await world.find(OVERRIDE_POLICIES, "special") is None:
                await world.create(OVERRIDE_POLICIES, an_override(chance.choice(NAMES), MOUNTED, "special"))
            else:
                await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        case 5 if chance.random() < 0.5:
            await world.restart()
        case 6:
            world.members[chance.choice(NAMES)].line.mode = chance.choice(("down", "hang"))
        case 7:
            world.members[chance.choice(NAMES)].line.mend()


async def test_a_follower_that_the_member_had_before_is_named_on_its_workload_until_it_is_adopted() -> None:
    async with a_world_without_pods() as world:
        await world.members["east"].admin.create(CONFIGMAPS, {**_config("settings"), "data": {"colour": "red"}})
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await world.create(DEPLOYMENTS, _needy(replicas=4))
        await _create_needs(world)
        await world.until_equal(lambda: _holders(world, DEPLOYMENTS, "web"), {"east", "north"})

        async def condition() -> Any:
            held = {each["type"]: each for each in (await world.status("web")).get("conditions") or ()}
            return held.get(names.FOLLOWERS_DELIVERED, {}).get("message")

        remedy = "pods use the one that was there before; take it over with fedctl adopt configmap/settings -n default"
        expected = f"ConfigMap settings is not the host's in east (AlreadyExists): {remedy}"
        await world.until_equal(condition, expected)
        assert (await world.condition("web", names.FOLLOWERS_DELIVERED))["status"] == "False"
        assert {message for reason, message in await world.events() if reason == "CheckFollowers"} == {expected}
        (conflict,) = [
            entry for entry in (await _federated(world, "settings"))["status"]["clusters"] if entry["cluster"] == "east"
        ]
        assert "fedctl adopt configmap/settings -n default --cluster east" in conflict["message"]

        await world.restart()
        await world.settle()
        assert await condition() == expected
        await world.merge(CONFIGMAPS, "settings", {"metadata": {"annotations": ADOPTING}})
        await world.until_equal(condition, None)
        assert (await world.condition("web", names.FOLLOWERS_DELIVERED))["status"] == "True"
        adopted = await world.members["east"].find(CONFIGMAPS, "settings")
        assert adopted is not None
        assert adopted["data"] == {"colour": "blue"}


async def test_secrets_of_a_service_account_come_first_and_follow_with_it() -> None:
    async with a_world_without_pods() as world:
        broken = an_override("east", "/metadata/name", "other", name="broken")
        broken["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "Secret", "name": "pull"}]
        await world.create(OVERRIDE_POLICIES, broken)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await _create_needs(world)
        for name in ("pull", "newer"):
            await world.create(SECRETS, _object(SECRETS, name, data={"password": "c2VjcmV0"}))
        await world.merge(SERVICE_ACCOUNTS, "runner", {"imagePullSecrets": [{"name": "pull"}]})
        await world.create(DEPLOYMENTS, _needy(replicas=4))
        await world.until_equal(lambda: _holders(world, DEPLOYMENTS, "web"), {"north"})
        await world.pass_time(5)
        assert "waits for Secret pull" in (await world.condition("web", names.PROPAGATED))["message"]
        await world.user.delete(OVERRIDE_POLICIES, "broken", "default")
        await world.until_equal(lambda: _holders(world, SECRETS, "pull"), {"east", "north"})
        await world.until_equal(lambda: _holders(world, DEPLOYMENTS, "web"), {"east", "north"})

        await world.merge(SERVICE_ACCOUNTS, "runner", {"imagePullSecrets": [{"name": "newer"}]})
        await world.until_equal(lambda: _holders(world, SECRETS, "newer"), {"east", "north"})
        await world.until_equal(lambda: _holders(world, SECRETS, "pull"), set())
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_equal(lambda: _holders(world, SECRETS, "newer"), set())


async def test_what_a_custom_resource_with_a_pod_template_needs_follows_it() -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    kind = {"plural": "engines", "singular": "engine", "kind": "Engine", "listKind": "EngineList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": "engines.ai.example"},
        "spec": {"group": "ai.example", "scope": "Namespaced", "names": kind, "versions": [version]},
    }
    engines = Resource("ai.example", "v1", "Engine", "engines")
    source = {"group": "ai.example", "version": "v1", "kind": "Engine", "pluralName": "engines", "scope": "Namespaced"}
    config = {
        "apiVersion": FEDERATED_TYPE_CONFIGS.api_version,
        "kind": FEDERATED_TYPE_CONFIGS.kind,
        "metadata": {"name": "engines.ai.example"},
        "spec": {"sourceType": source, "pathDefinition": {"podTemplate": "spec.worker.template"}},
    }
    template = _needy()["spec"]["template"]
    async with a_world_without_pods() as world:
        selectors = [{"apiVersion": "ai.example/v1", "kind": "Engine"}]
        await world.create(CRDS, definition)
        await world.create(FEDERATED_TYPE_CONFIGS, config)
        await world.members["east"].admin.create(CRDS, definition)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, resourceSelectors=selectors))
        await _create_needs(world)
        await world.create(engines, _object(engines, "llm", spec={"worker": {"template": template}}))
        for resource, name in ((CONFIGMAPS, "settings"), (SECRETS, "password"), (SERVICE_ACCOUNTS, "runner")):
            await world.until_equal(lambda res=resource, each=name: _holders(world, res, each), {"east"})
        # Without its type nobody knows where its pods are, and they run.
        await world.user.delete(FEDERATED_TYPE_CONFIGS, "engines.ai.example")
        await world.merge(FEDERATED_TYPE_CONFIGS, "engines.ai.example", {"metadata": {"finalizers": None}}, "")
        await world.until_gone(FEDERATED_TYPE_CONFIGS, "engines.ai.example", "")
        await world.settle()
        assert await _holders(world, CONFIGMAPS, "settings") == {"east"}
        await world.create(FEDERATED_TYPE_CONFIGS, config)
        await world.settle()
        await world.user.delete(engines, "llm", "default")
        await world.until_equal(lambda: _holders(world, CONFIGMAPS, "settings"), set())
