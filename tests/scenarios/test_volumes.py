"""Nothing starts on an empty volume without a word: every way out of a cluster, with claims and without them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import orjson
import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_base, a_world

from federation.api import names
from federation.api.resources import (
    CLUSTER_TAINT_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PLACEMENT_HOLDS,
    PROJECTS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS, Object
from federation.cli.databases import marking
from federation.simulator.controllers.names import SIMULATOR_READY

ALL = [{"cluster": "east"}, {"cluster": "north"}, {"cluster": "west"}]
KINDS = [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]
SICK = [{"clusterLabels": {"matchLabels": {"network": "sick"}}}]
LABELS = {"east": {"tier": "data"}, "north": {}, "west": {}}
WITH, WITHOUT = "db", "web"
Act = Callable[[World], Awaitable[None]]


def a_stateful_set(name: str, *, has_claims: bool, replicas: int = 2) -> Object:
    """Return a StatefulSet, with a template of claims or without."""
    found = a_deployment(name, replicas)
    found["kind"] = "StatefulSet"
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    found["spec"] |= {"serviceName": name} | ({"volumeClaimTemplates": [claim]} if has_claims else {})
    return found


async def policy(world: World, **spec: Any) -> None:
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": spec})


async def cluster(world: World, name: str, **patch: Any) -> None:
    await world.merge(FEDERATED_CLUSTERS, name, patch, "")


async def project(world: World, **clusters: Any) -> None:
    body: Object = {"namespaces": ["default"], "clusters": clusters}
    await world.create(
        PROJECTS,
        {"apiVersion": PROJECTS.api_version, "kind": "Project", "metadata": {"name": "shop"}, "spec": body},
    )


async def federated(world: World, name: str) -> Object:
    return await world.user.get(FEDERATED_OBJECTS, f"{name}-statefulsets.apps", "default")


async def places(world: World, name: str) -> set[str]:
    """Return the members that have the StatefulSet."""
    return {each.name for each in world.members.values() if await each.find(STATEFUL_SETS, name) is not None}


async def claims(world: World) -> dict[str, int]:
    """Return the number of claims by member that has some."""
    found = {}
    for member in world.members.values():
        if listed := (await member.admin.list(PERSISTENT_VOLUME_CLAIMS, "default")).items:
            found[member.name] = len(listed)
    return found


async def holds(world: World) -> dict[str, str]:
    """Return the causes of the PlacementHolds by name."""
    return {each["metadata"]["name"]: each["spec"]["cause"] for each in (await world.user.list(PLACEMENT_HOLDS)).items}


async def scheduled(world: World, name: str) -> Object:
    status = (await federated(world, name)).get("status") or {}
    return dict(conditions.find(status.get("conditions"), names.SCHEDULED) or {})


async def approve(world: World) -> None:
    (name,) = await holds(world)
    approval = {"approved": True, "reason": "copied by hand", "by": "ops", "at": "2099-01-01T00:00:00Z"}
    await world.merge(PLACEMENT_HOLDS, name, {"spec": {"approval": approval}}, "")


async def begin(world: World, **spec: Any) -> None:
    """Run both workloads in east, with a policy that allows all clusters afterwards."""
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, maxClusters=1, resourceSelectors=KINDS, **spec))
    await world.create(STATEFUL_SETS, a_stateful_set(WITH, has_claims=True))
    await world.create(STATEFUL_SETS, a_stateful_set(WITHOUT, has_claims=False))
    await world.settle()
    await policy(world, placement=ALL)
    await world.settle()
    assert await places(world, WITH) == await places(world, WITHOUT) == {"east"}
    assert await claims(world) == {"east": 2}
    assert await holds(world) == {}


async def by_policy(world: World) -> None:
    await policy(world, placement=[{"cluster": "north"}])


async def by_waves_of_a_policy(world: World) -> None:
    """Let a change of the policy reach both in a wave."""
    await policy(world, changeRollout={"waves": [{"name": "all"}]})
    await world.settle()
    await by_policy(world)


async def by_another_policy(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"north": 1}, name="other", maxClusters=1, resourceSelectors=[]))
    label = {"metadata": {"labels": {names.PROPAGATION_POLICY_LABEL: "other"}}}
    for name in (WITH, WITHOUT):
        await world.merge(STATEFUL_SETS, name, label)


async def by_a_policy_that_is_deleted_and_returns(world: World) -> None:
    """Keep copies when the sources are deleted, delete the policy, and create another one of its name elsewhere."""
    for name in (WITH, WITHOUT):
        await world.merge(STATEFUL_SETS, name, {"metadata": {"annotations": {names.ORPHAN: "all"}}})
    await world.user.delete(PROPAGATION_POLICIES, "divide", "default")
    await world.settle()
    assert (await scheduled(world, WITH))["reason"] == "NoPolicy"
    assert await places(world, WITH) == await places(world, WITHOUT) == {"east"}
    await world.create(PROPAGATION_POLICIES, a_policy({"north": 1}, maxClusters=1, resourceSelectors=KINDS))


async def by_group(world: World) -> None:
    await policy(world, placement=None, clusterGroups=[{"name": "own", "clusters": ["north", "west"]}])


async def by_affinity(world: World) -> None:
    expression = {"key": "tier", "operator": "NotIn", "values": ["data"]}
    await policy(world, clusterAffinity=[{"matchExpressions": [expression]}])


async def by_label(world: World) -> None:
    await policy(
        world,
        placement=None,
        clusterSelector={"tier": "data"},
        reschedulePolicy={"rescheduleWhen": {"clusterLabelsChanged": True, "policyContentChanged": True}},
    )
    await world.settle()
    assert await holds(world) == {}
    await cluster(world, "north", metadata={"labels": {"tier": "data"}})
    await cluster(world, "east", metadata={"labels": {"tier": None}})


async def by_names_of_a_project(world: World) -> None:
    await project(world, names=["east"])
    await world.settle()
    await world.merge(PROJECTS, "shop", {"spec": {"clusters": {"names": ["north"]}}}, "")


async def by_selector_of_a_project(world: World) -> None:
    await project(world, selector={"matchLabels": {"tier": "data"}})
    await world.settle()
    await cluster(world, "north", metadata={"labels": {"tier": "data"}})
    await world.pass_time(0.2)
    await cluster(world, "east", metadata={"labels": {"tier": None}})


async def by_a_new_project(world: World) -> None:
    await project(world, names=["north", "west"])


async def by_unjoin(world: World) -> None:
    await world.user.delete(FEDERATED_CLUSTERS, "east")
    await world.until_gone(FEDERATED_CLUSTERS, "east", "")
    world.members.pop("east")  # what it keeps is no concern of the federation any more


async def by_unjoin_with_removal(world: World) -> None:
    await cluster(world, "east", metadata={"annotations": {names.CASCADING_DELETE: "true"}})
    await by_unjoin(world)


async def by_forced_unjoin(world: World) -> None:
    await world.lose("east")
    await world.unjoin_by_force("east")
    await world.until_gone(FEDERATED_CLUSTERS, "east", "")
    world.members["east"].line.mode = "up"


async def by_taint(world: World) -> None:
    await cluster(world, "east", spec={"taints": [{"key": "broken", "effect": "NoExecute"}]})


async def by_taint_policy(world: World) -> None:
    taint = {"key": "network", "value": "sick", "effect": "NoExecute"}
    body: Object = {"when": SICK, "holdSeconds": 1, "clearSeconds": 1, "taints": [taint]}
    metadata = {"name": "net"}
    kind = CLUSTER_TAINT_POLICIES
    await world.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": body})
    await cluster(world, "east", metadata={"labels": {"network": "sick"}})


async def by_drain(world: World) -> None:
    await cluster(world, "east", spec={"taints": [{"key": names.TAINT_DRAIN, "effect": "NoExecute"}]})


async def by_loss(world: World) -> None:
    await world.lose("east")
    await world.pass_time(900)


async def by_mode(world: World) -> None:
    await policy(world, placement=[{"cluster": "north"}], schedulingMode="Duplicate")


async def by_partner(world: World) -> None:
    """Let both follow a Deployment, which then leaves."""
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, name="partner", maxClusters=1))
    await world.create(DEPLOYMENTS, a_deployment("partner", 1))
    await world.settle()
    term = {"labelSelector": {"matchLabels": {"app": "partner"}}}
    await policy(world, workloadAffinity={"required": [term]})
    await world.settle()
    assert await holds(world) == {}
    await world.merge(PROPAGATION_POLICIES, "partner", {"spec": {"placement": [{"cluster": "north"}]}})


async def by_unhealthy_application(world: World) -> None:
    """Let no pod in east become ready, after all of them were ready for a while."""
    await policy(world, failover={"application": {"tolerationSeconds": 20}})
    await world.pass_time(60)
    override = an_override("east", "/spec/template/metadata/annotations", {SIMULATOR_READY: "false"})
    override["spec"]["resourceSelectors"] = KINDS
    await world.create(OVERRIDE_POLICIES, override)
    for name in (WITH, WITHOUT):
        await world.merge(STATEFUL_SETS, name, {"metadata": {"labels": {names.OVERRIDE_POLICY_LABEL: "special"}}})


class Exit(NamedTuple):
    """A way out; `cause` of the hold, "" if failover keeps the workload without one; whether one without claims goes."""

    act: Act
    cause: str
    moves: bool = True


EXITS = [
    Exit(by_policy, "PropagationPolicy default/divide"),
    Exit(by_waves_of_a_policy, "PropagationPolicy default/divide"),
    Exit(by_another_policy, "PropagationPolicy default/other"),
    Exit(by_a_policy_that_is_deleted_and_returns, "PropagationPolicy default/divide"),
    Exit(by_group, "PropagationPolicy default/divide"),
    Exit(by_affinity, "PropagationPolicy default/divide"),
    Exit(by_mode, "PropagationPolicy default/divide"),
    Exit(by_label, "FederatedCluster east"),
    Exit(by_names_of_a_project, "Project shop"),
    Exit(by_selector_of_a_project, "Project shop"),
    Exit(by_a_new_project, "Project shop"),
    Exit(by_unjoin, "FederatedCluster east"),
    Exit(by_unjoin_with_removal, "FederatedCluster east"),
    Exit(by_forced_unjoin, "FederatedCluster east"),
    Exit(by_taint, "FederatedCluster east"),
    Exit(by_partner, "FederatedCluster east"),
    Exit(by_unhealthy_application, "FederatedCluster east"),
    Exit(by_taint_policy, "", moves=False),
    Exit(by_drain, "", moves=False),
    Exit(by_loss, "", moves=False),
]


@pytest.mark.parametrize("way", EXITS, ids=[each.act.__name__ for each in EXITS])
async def test_a_workload_with_claims_leaves_no_cluster_without_a_word_and_one_without_claims_does(way: Exit) -> None:
    async with a_world(labels=LABELS, toleration_s=5) as world:
        await begin(world)
        await way.act(world)
        await world.pass_time(60)
        await world.restart()
        await world.pass_time(30)
        assert set(await claims(world)) <= {"east"}, "it started on an empty volume"
        moved = bool(await places(world, WITHOUT) - {"east"})
        assert moved is way.moves
        assert list((await holds(world)).values()) == ([way.cause] if way.cause else [])
        if not way.cause:
            await world.bring_back("east")
            return
        found = await scheduled(world, WITH)
        assert found["reason"] == names.REASON_HELD
        assert "do not move with it, and it would start with empty volumes" in found["message"]
        await approve(world)
        await world.pass_time(60)
        assert await places(world, WITH) - {"east"}, "an approval lets it go"


@pytest.mark.parametrize(("replicas", "stay"), [(3, 2), (1, 1)])
async def test_the_word_of_a_user_who_scales_is_not_about_the_replicas_that_run(replicas: int, stay: int) -> None:
    async with a_world() as world:
        await begin(world)
        await by_policy(world)
        await world.settle()
        held = await holds(world)
        await world.merge(STATEFUL_SETS, WITH, {"spec": {"replicas": replicas}})
        await world.pass_time(30)
        east = await world.members["east"].find(STATEFUL_SETS, WITH)
        assert east is not None
        assert east["spec"]["replicas"] == stay
        assert await holds(world) == held


async def test_a_hold_outlives_a_taint_of_a_rule_and_the_loss_of_the_cluster_and_restarts() -> None:
    async with a_world(toleration_s=5) as world:
        await begin(world)
        await by_policy(world)
        await world.settle()
        before = await world.user.list(PLACEMENT_HOLDS)
        (hold,) = before.items

        async def is_same() -> None:
            assert [each["metadata"]["uid"] for each in (await world.user.list(PLACEMENT_HOLDS)).items] == [
                hold["metadata"]["uid"]
            ]

        await by_taint_policy(world)
        await world.pass_time(60)
        await is_same()
        await cluster(world, "east", metadata={"labels": {"network": None}})
        await world.pass_time(60)
        await is_same()
        for members in (("east",), ("north", "west"), ("east", "north", "west")):
            await world.lose(*members)
            await world.restart()
            await world.pass_time(120)
            await is_same()
            await world.bring_back(*members)
            await world.pass_time(60)
            await is_same()
        assert await claims(world) == {"east": 2}


async def delete(world: World, **options: Any) -> None:
    """Delete both workloads; their claims stay."""
    for name in (WITH, WITHOUT):
        await world.user.delete(STATEFUL_SETS, name, "default", **options)
        await world.until_gone(STATEFUL_SETS, name)
    await world.settle()


async def create(world: World, replicas: int = 2) -> None:
    await world.create(STATEFUL_SETS, a_stateful_set(WITH, has_claims=True, replicas=replicas))
    await world.create(STATEFUL_SETS, a_stateful_set(WITHOUT, has_claims=False, replicas=replicas))


async def again_by_deletion(world: World) -> None:
    await delete(world)
    await by_policy(world)
    await create(world)


async def again_by_orphaning(world: World) -> None:
    await delete(world, propagation_policy="Orphan")
    await by_policy(world)
    await create(world)


async def again_by_orphaning_and_another_policy(world: World) -> None:
    """Keep the copies by annotation, delete the policy and both, and create all of it for another cluster."""
    for name in (WITH, WITHOUT):
        await world.merge(STATEFUL_SETS, name, {"metadata": {"annotations": {names.ORPHAN: "all"}}})
    await world.user.delete(PROPAGATION_POLICIES, "divide", "default")
    await delete(world)
    await world.create(PROPAGATION_POLICIES, a_policy({"north": 1}, maxClusters=1, resourceSelectors=KINDS))
    await create(world)


async def again_by_type(world: World, change: Act = by_policy) -> None:
    """Let the type of both go, with its objects kept, and return after their policy or cluster has changed."""
    name = "statefulsets.apps"
    config = await world.user.get(FEDERATED_TYPE_CONFIGS, name)
    await world.merge(FEDERATED_TYPE_CONFIGS, name, {"metadata": {"annotations": {names.ORPHAN: "all"}}}, "")
    await world.user.delete(FEDERATED_TYPE_CONFIGS, name)
    await world.until_gone(FEDERATED_TYPE_CONFIGS, name, "")
    await change(world)
    header = {"apiVersion": config["apiVersion"], "kind": config["kind"]}
    await world.create(FEDERATED_TYPE_CONFIGS, {**header, "metadata": {"name": name}, "spec": config["spec"]})


async def again_by_type_without_the_cluster(world: World) -> None:
    """Unjoin the cluster while nothing federates the type: no Leftover says what is in it, only the source does."""
    await again_by_type(world, by_unjoin)


async def again_without_the_cluster(world: World) -> None:
    """Unjoin the cluster, which keeps both, before they are deleted and created again."""
    await by_unjoin(world)
    await delete(world)
    await create(world)


async def again_while_it_is_lost(world: World) -> None:
    await delete(world)
    await world.lose("east")
    await world.pass_time(60)
    await create(world)


async def again_after_its_loss(world: World) -> None:
    """Lose the cluster before the deletion, and restart, so that only a Leftover says what is in it."""
    await world.lose("east")
    await world.pass_time(60)
    await delete(world)
    await world.restart()
    await create(world)


async def again_under_another_name(world: World) -> None:
    """Unjoin the cluster, delete both, join it under another name, and create both elsewhere."""
    await world.user.delete(FEDERATED_CLUSTERS, "east")
    await world.until_gone(FEDERATED_CLUSTERS, "east", "")
    await delete(world)
    world.rename("east", "east-1")
    await world.join("east-1")
    await world.settle()
    await by_policy(world)
    await create(world)


async def again_after_a_restore(world: World) -> None:
    """Restore the host from a backup that is older than both, and create them again."""
    kind = {"apiVersion": PROPAGATION_POLICIES.api_version, "kind": PROPAGATION_POLICIES.kind}
    held = await world.user.get(PROPAGATION_POLICIES, "divide", "default")
    backup = (await a_base("east", "north", "west", labels=LABELS)).stores[""]
    mark = marking(world.clock.now() - timedelta(seconds=30), world.clock.now())
    entries = [replace(entry, value=mark(entry.key, entry.value)) for entry in backup.entries]
    await world.restore_host(backup._replace(entries=entries))
    header = {"metadata": {"name": "divide", "namespace": "default"}}
    spec = {**held["spec"], "placement": [{"cluster": "north"}]}
    await world.create(PROPAGATION_POLICIES, {**kind, **header, "spec": spec})
    await create(world)


STARTS: list[Act] = [
    again_by_deletion,
    again_by_orphaning,
    again_by_orphaning_and_another_policy,
    again_by_type,
    again_by_type_without_the_cluster,
    again_without_the_cluster,
    again_while_it_is_lost,
    again_after_its_loss,
    again_under_another_name,
    again_after_a_restore,
]


@pytest.mark.parametrize("again", STARTS, ids=[each.__name__ for each in STARTS])
async def test_an_object_without_a_place_starts_where_volumes_of_its_name_are(again: Act) -> None:
    async with a_world(labels=LABELS, toleration_s=5) as world:
        await begin(world)
        home = next(member for member in world.members.values() if member.name == "east")
        await again(world)
        await world.pass_time(60)
        await world.restart()
        await world.pass_time(30)
        assert set(await claims(world)) <= {home.name}, "it started on an empty volume"
        assert not await places(world, WITH) - {home.name}
        assert await places(world, WITHOUT) - {home.name}, "one without claims is placed as ever"
        assert list((await holds(world)).values()) == ["PropagationPolicy default/divide"]
        found = await scheduled(world, WITH)
        assert found["reason"] == names.REASON_HELD
        assert "volumes of an earlier object of its name are in " in found["message"]
        await approve(world)
        await world.pass_time(60)
        assert await places(world, WITH) - {home.name}, "an approval lets it go"
        if home.line.mode != "up":
            await world.bring_back(home.name)
            await world.pass_time(60)


async def test_shares_return_to_the_ordinals_of_their_claims() -> None:
    async with a_world() as world:
        weights = [{"cluster": "west", "preferences": {"weight": 2}}, {"cluster": "east", "preferences": {"weight": 1}}]
        await world.create(PROPAGATION_POLICIES, a_policy({"west": 1}, resourceSelectors=KINDS))
        await world.create(STATEFUL_SETS, a_stateful_set(WITH, has_claims=True, replicas=2))
        await world.settle()
        await policy(world, placement=weights)
        await world.merge(STATEFUL_SETS, WITH, {"spec": {"replicas": 3}})
        await world.settle()
        before = await names_of_claims(world)
        assert before == {"east": ["data-db-1000"], "west": ["data-db-0", "data-db-1"]}
        await world.user.delete(STATEFUL_SETS, WITH, "default")
        await world.until_gone(STATEFUL_SETS, WITH)
        await policy(world, placement=ALL)
        await world.create(STATEFUL_SETS, a_stateful_set(WITH, has_claims=True, replicas=3))
        await world.settle()
        assert await names_of_claims(world) == before
        assert await holds(world) == {}


async def names_of_claims(world: World) -> dict[str, list[str]]:
    found = {
        member.name: sorted(
            each["metadata"]["name"] for each in (await member.admin.list(PERSISTENT_VOLUME_CLAIMS, "default")).items
        )
        for member in world.members.values()
    }
    return {name: listed for name, listed in found.items() if listed}


async def test_what_waits_for_volumes_goes_on_when_their_claims_are_deleted() -> None:
    async with a_world() as world:
        await begin(world)
        await again_by_deletion(world)
        await world.settle()
        assert await places(world, WITH) == set()
        for name in (await names_of_claims(world))["east"]:
            await world.members["east"].admin.delete(PERSISTENT_VOLUME_CLAIMS, name, "default")
        await world.settle()
        assert await places(world, WITH) == {"north"}
        assert await holds(world) == {}


async def test_a_share_of_one_does_not_turn_the_rule_about_volumes_off() -> None:
    async with a_world(guard_share=1.0) as world:
        await begin(world)
        await by_policy(world)
        await world.settle()
        assert set(await claims(world)) == {"east"}
        assert list((await holds(world)).values()) == ["PropagationPolicy default/divide"]


async def test_a_workload_of_another_name_goes_where_its_claim_has_a_volume() -> None:
    """The claim of the host stays when its workload gets another name."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    header = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]

    async def run(name: str) -> None:
        deployment = a_deployment(name, 1)
        deployment["spec"]["template"]["spec"]["volumes"] = volumes
        await world.create(DEPLOYMENTS, deployment)

    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"west": 1}, maxClusters=1))
        await world.create(
            PERSISTENT_VOLUME_CLAIMS, {**header, "metadata": {"name": "disk", "namespace": "default"}, "spec": claim}
        )
        await run("old")
        await world.until_replicas("old", {"west": 1})
        await world.user.delete(DEPLOYMENTS, "old", "default")
        await world.until_gone(DEPLOYMENTS, "old")
        await policy(world, placement=ALL)
        await run("new")
        await world.until_replicas("new", {"west": 1})
        await world.user.delete(DEPLOYMENTS, "new", "default")
        await world.until_gone(DEPLOYMENTS, "new")
        await policy(world, placement=[{"cluster": "north"}])
        await run("newest")
        await world.pass_time(30)
        assert set(await claims(world)) == {"west"}
        assert list((await holds(world)).values()) == ["PropagationPolicy default/divide"]
        await policy(world, placement=ALL)
        await world.until_replicas("newest", {"west": 1})


async def test_an_object_whose_name_has_no_claims_is_placed_in_the_write_that_creates_it() -> None:
    async with a_world() as world:
        await begin(world)
        revision = (await world.revisions())[""]
        await world.create(STATEFUL_SETS, a_stateful_set("other", has_claims=True))
        await world.settle()
        changes = [each for each in world.events_since("", revision) if each.key.endswith("/other-statefulsets.apps")]
        assert orjson.loads(changes[0].value)["spec"]["placements"]
