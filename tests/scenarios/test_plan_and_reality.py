"""`fedctl plan` predicts what the control plane does: the same clusters, replicas and manifests.

Each test computes a plan for a running federation, makes the change, waits for convergence and compares the members
with the plan: changed objects down to the hash of every manifest, and all other objects for being unchanged.
"""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.admission.deviceselectors import selects
from federation.api import names
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_TAINT_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, SECRETS, Object
from federation.features.catalogue import decision_chain, feature_forecasts
from federation.plans.documents import Document
from federation.plans.edits import apply_edit
from federation.plans.inventory import read_inventory
from federation.plans.planfile import PlanFile, to_plan_file
from federation.plans.planner import Planner, apply_edits, check_and_apply, unmet_expectations
from federation.plans.plugincalls import drive
from federation.plans.requestedchanges import RequestedChanges, ResolvedChanges, resolve_changes
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.triggerwords import describe_deferral
from federation.scheduling.whatif.compute import compute
from federation.scheduling.whatif.planresult import Action, Plan

MOVABLE: dict[str, Any] = {
    "reschedulePolicy": {
        "replicaRescheduling": {"avoidDisruption": False},
        "rescheduleWhen": {"policyContentChanged": True, "clusterLabelsChanged": True, "clusterJoined": True},
    }
}

State = dict[tuple[str, str], tuple[int, str]]
"""Deployment and member → replicas and hash of the manifest."""


def documents(*manifests: Object) -> list[Document]:
    return [Document(f"document {number}", manifest) for number, manifest in enumerate(manifests, 1)]


def planner(world: World) -> Planner:
    plugins, forecasts = load_plugins(selects=selects), feature_forecasts()
    return Planner(world.user, plugins, decision_chain(), None, world.clock, forecasts=forecasts)


async def plan(world: World, **requested: Any) -> tuple[Plan, ResolvedChanges]:
    inventory = await read_inventory(world.user, decision_chain())
    resolved = await resolve_changes(world.user, inventory, RequestedChanges(**requested))
    return await planner(world).plan(inventory, resolved.changes), resolved


async def plan_file(world: World, **requested: Any) -> PlanFile:
    inventory = await read_inventory(world.user, decision_chain())
    resolved = await resolve_changes(world.user, inventory, RequestedChanges(**requested))
    result = await planner(world).plan(inventory, resolved.changes)
    return to_plan_file(result, inventory, resolved.edits, resolved.changes, resolved.hypothetical)


async def state(world: World) -> State:
    found = {}
    for member in world.members.values():
        for copy in (await member.admin.list(DEPLOYMENTS, "default")).items:
            key = (copy["metadata"]["name"], member.name)
            found[key] = (copy["spec"]["replicas"], copy["metadata"]["annotations"][names.TEMPLATE_HASH])
    return found


def predicted(before: State, result: Plan) -> State:
    """Return the members' state that the plan predicts."""
    after = dict(before)
    for obj in result.changed:
        for row in obj.rows:
            after.pop((obj.name, row.cluster), None)
            if row.after is not None:
                after[obj.name, row.cluster] = (row.after.replicas or 0, row.after.hash)
    return after


async def assert_plan_comes_true(world: World, **requested: Any) -> Plan:
    """Plan the changes, make them one after the other, and compare the members with the plan."""
    before = await state(world)
    result, resolved = await plan(world, **requested)
    assert len(result.problems) <= (
        len(resolved.changes) > 1
    )  # only the note that the order of several changes may matter
    for edit, change in zip(resolved.edits, resolved.changes, strict=True):
        await apply_edit(world.user, edit, change.before)
    await world.settle()
    after = await state(world)
    expected = predicted(before, result)
    assert _replicas(after) == _replicas(expected), (requested, result.summary())
    changed = {(obj.name, row.cluster) for obj in result.changed for row in obj.rows if row.is_changed}
    assert {key: after.get(key) for key in changed} == {key: expected.get(key) for key in changed}
    return result


def _replicas(found: State) -> dict[tuple[str, str], int]:
    return {key: replicas for key, (replicas, _) in found.items()}


async def begin(world: World, names_: Sequence[str] = ("web",), replicas: int = 9, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}, **{**MOVABLE, **spec}))
    for name in names_:
        await world.create(DEPLOYMENTS, a_deployment(name, replicas=replicas))
    await world.settle()


async def test_a_new_deployment_with_policy_and_override_matches_the_plan() -> None:
    async with a_world() as world:
        manifests = (
            a_deployment("web", replicas=7),
            a_policy({"east": 2, "west": 1}),
            an_override("west", "/spec/minReadySeconds", 5),
        )
        result = await assert_plan_comes_true(world, documents=documents(*manifests))
        assert result.summary()["created"] == 1
        assert result.summary()["replicasStarted"] == 7


async def test_followers_match_the_plan() -> None:
    async with a_world() as world:
        await begin(world)
        settings = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "default"},
            "data": {"colour": "blue"},
        }
        needy = a_deployment("needy", replicas=3)
        needy["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
        narrow = a_policy({"north": 1, "west": 1}, **MOVABLE)
        heir = an_override("west", "/spec/template/spec/containers/0/envFrom", [{"configMapRef": {"name": "heir"}}])
        heir["spec"]["resourceSelectors"][0]["name"] = "needy"
        other = {**settings, "metadata": {"name": "heir", "namespace": "default"}}
        for requested, expected in (
            ({"documents": documents(needy, settings)}, {"settings": {"east", "north", "west"}}),
            ({"documents": documents(narrow)}, {"settings": {"north", "west"}}),
            ({"documents": documents(other, heir)}, {"heir": {"west"}}),
            ({"deletions": ["deployment/needy"]}, {"settings": set(), "heir": set()}),
        ):
            result, resolved = await plan(world, **requested)
            planned = {
                obj.name: {row.cluster for row in obj.rows if row.after is not None}
                for obj in result.changed
                if obj.resource == CONFIGMAPS
            }
            assert planned == expected
            if "deletions" in requested:
                left = dict.fromkeys(("settings", "heir"), Action.WITHDRAW)
                assert {obj.name: obj.action for obj in result.changed} == {"needy": Action.DELETE, **left}
            for edit, change in zip(resolved.edits, resolved.changes, strict=True):
                await apply_edit(world.user, edit, change.before)
            await world.settle()
            for name, clusters in expected.items():
                saved = {m.name for m in world.members.values() if await m.find(CONFIGMAPS, name) is not None}
                assert saved == clusters


async def test_secrets_of_a_service_account_match_the_plan() -> None:
    def an_object(kind: str, name: str, **content: Any) -> Object:
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **content}

    async with a_world() as world:
        await begin(world)
        needy = a_deployment("needy", replicas=3)
        needy["spec"]["template"]["spec"]["serviceAccountName"] = "runner"
        runner = an_object("ServiceAccount", "runner", imagePullSecrets=[{"name": "old"}])
        changed = an_object("ServiceAccount", "runner", imagePullSecrets=[{"name": "new"}])
        secrets = [an_object("Secret", name, data={"key": "dmFsdWU="}) for name in ("old", "new")]
        everywhere = {"east", "north", "west"}
        for requested, expected in (
            ({"documents": documents(needy, runner, *secrets)}, {"old": everywhere}),
            ({"documents": documents(changed)}, {"old": set(), "new": everywhere}),
            ({"deletions": ["serviceaccount/runner"]}, {"new": set()}),
        ):
            result, resolved = await plan(world, **requested)
            found = {
                obj.name: {row.cluster for row in obj.rows if row.after is not None}
                for obj in result.changed
                if obj.resource == SECRETS
            }
            assert found == expected
            for edit, change in zip(resolved.edits, resolved.changes, strict=True):
                await apply_edit(world.user, edit, change.before)
            await world.settle()
            for name, clusters in expected.items():
                saved = {m.name for m in world.members.values() if await m.find(SECRETS, name) is not None}
                assert saved == clusters


async def test_a_policy_change_matches_the_plan_for_all_its_objects() -> None:
    async with a_world() as world:
        await begin(world, ("a", "b", "c"))
        heavy = a_policy({"east": 4, "north": 1, "west": 1}, **MOVABLE)
        result = await assert_plan_comes_true(world, documents=documents(heavy))
        assert result.summary()["placedOtherwise"] == 3
        narrow = a_policy({"east": 1, "north": 1}, **MOVABLE)
        result = await assert_plan_comes_true(world, documents=documents(narrow))
        assert {row.cluster for obj in result.changed for row in obj.rows if row.after is None} == {"west"}
        result = await assert_plan_comes_true(world, deletions=["propagationpolicy/divide"])
        assert not result.changed
        assert {obj.reason for obj in result.unchanged} == {"no policy applies to it any more"}


async def test_cluster_taints_and_labels_match_the_plan() -> None:
    async with a_world() as world:
        await begin(world, ("a", "b"))
        result = await assert_plan_comes_true(world, taints=["east=maintenance=yes:NoExecute"])
        assert result.summary()["replicasMoved"] == 6
        result = await assert_plan_comes_true(world, taints=["east=maintenance-"], labels=["north=tier=gold"])
        assert result.changed


async def test_capacity_used_by_one_object_is_not_free_for_the_next() -> None:
    """Without weights replicas are divided by free capacity; all objects move before any member reports again."""
    async with a_world() as world:
        policy = a_policy({"east": 1, "north": 1, "west": 1}, **MOVABLE)
        policy["spec"]["placement"] = []
        await world.create(PROPAGATION_POLICIES, policy)
        for name in ("a", "b", "c", "d"):
            deployment = a_deployment(name, replicas=6)
            container = deployment["spec"]["template"]["spec"]["containers"][0]
            container["resources"] = {"requests": {"cpu": "4"}}
            await world.create(DEPLOYMENTS, deployment)
        await world.settle()
        await world.pass_time(70)  # assumed replicas have been reported or have expired
        result = await assert_plan_comes_true(world, taints=["east=down:NoExecute"])
        assert result.summary()["placedOtherwise"] == 4


async def test_objects_that_are_not_rescheduled_stay_and_the_plan_has_the_reason() -> None:
    async with a_world() as world:
        await begin(world, reschedulePolicy={"disableRescheduling": True})
        result = await assert_plan_comes_true(world, labels=["north=tier=gold"])
        assert not result.changed
        assert [obj.reason for obj in result.unchanged] == [
            f"not rescheduled: {describe_deferral('disableRescheduling:true')}"
        ]
        result = await assert_plan_comes_true(world, replicas=["deployment/web=12"])
        (obj,) = result.unchanged
        assert obj.reason.endswith("first; 3 of 12 replicas have no place within its first placement")
        assert obj.unplaced == 3
        await assert_plan_comes_true(world, replicas=["deployment/web=9"])  # all replicas run at the end


async def test_an_override_changes_only_the_content_in_its_cluster() -> None:
    async with a_world() as world:
        await begin(world)
        image = "/spec/template/spec/containers/0/image"
        result = await assert_plan_comes_true(
            world, documents=documents(an_override("north", image, "mirror.example/nginx:1.27"))
        )
        (obj,) = result.changed
        assert not obj.is_placed_otherwise
        assert [row.cluster for row in obj.rows if row.is_changed] == ["north"]
        broken = an_override("north", "/spec/nowhere/at/all", 1)
        result, _ = await plan(world, documents=documents(broken))
        assert "its overrides cannot be computed" in " ".join(result.unchanged[0].problems) or any(
            row.after is not None and row.after.error for row in result.objects[0].rows
        )


async def test_an_unreachable_cluster_keeps_its_objects_and_gets_no_new_ones() -> None:
    async with a_world() as world:
        await begin(world, ("a", "b"))
        result, resolved = await plan(world, down=["east"])
        assert resolved.hypothetical == ["--cluster-down east"]
        assert not result.changed
        assert [(s.cluster, s.objects, s.replicas) for s in result.stranded] == [("east", 2, 6)]
        result, _ = await plan(world, down=["east"], documents=documents(a_deployment("new", replicas=4)))
        (obj,) = result.changed
        assert {row.cluster for row in obj.rows} == {"north", "west"}

        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=4))
        await world.until_replicas("new", {row.cluster: row.after.replicas or 0 for row in obj.rows if row.after})
        world.members["east"].line.mend()
        await world.until_ready("east")


@pytest.mark.slow("twelve plans, each carried out in a whole world")
async def test_a_sequence_of_changes_matches_its_plans() -> None:
    """After any history the next change matches its plan, including sticky clusters, kept replicas and departures."""
    chance = random.Random(5)
    async with a_world(seed=5) as world:
        await begin(world, ("a", "b"), reschedulePolicy={"rescheduleWhen": {"clusterLabelsChanged": True}})
        tainted: set[str] = set()
        for _ in range(12):
            match chance.randrange(5):
                case 0:
                    requested: dict[str, Any] = {
                        "replicas": [f"deployment/{chance.choice('ab')}={chance.randrange(20)}"]
                    }
                case 1:
                    weights = {name: chance.randrange(1, 5) for name in chance.sample(["east", "north", "west"], 2)}
                    requested = {"documents": documents(a_policy(weights, **chance.choice(({}, MOVABLE))))}
                case 2:
                    key = chance.choice(("east", "north"))
                    requested = {"taints": [f"{key}=t=1:{chance.choice(('NoSchedule', 'NoExecute'))}"]}
                    tainted.add(key)
                case 3 if tainted:
                    requested = {"taints": [f"{key}=t-" for key in sorted(tainted)]}
                    tainted.clear()
                case _:
                    value = chance.randrange(60)
                    requested = {"documents": documents(an_override("west", "/spec/minReadySeconds", value))}
            await assert_plan_comes_true(world, **requested)


async def test_a_plan_without_changes_is_empty_even_if_all_objects_are_examined() -> None:
    async with a_world() as world:
        await begin(world, ("a", "b"))
        await world.create(OVERRIDE_POLICIES, an_override("north", "/spec/minReadySeconds", 5))
        await world.settle()
        inventory = await read_inventory(world.user, decision_chain())
        run = compute(
            inventory, (), load_plugins(selects=selects), decision_chain(), now=world.clock.now(), is_everything=True
        )
        result, _ = await drive(run, None)
        assert result.examined >= 3  # the namespace among them
        assert result.objects == []


async def test_a_copy_that_gets_the_state_of_one_that_leaves_is_as_planned() -> None:
    rules = [{"annotation": "example.com/ready", "jsonPath": "{.readyReplicas}"}]
    failover = {"failover": {"statePreservation": {"rules": rules}}}
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, **MOVABLE, **failover))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_available("web", 3)
        await world.settle()
        saved = await plan_file(world, documents=documents(a_policy({"west": 1}, **MOVABLE, **failover)))
        assert await check_and_apply(planner(world), saved) == []
        await world.until_available("web", 3)
        await world.settle()
        copy = await world.members["west"].find(DEPLOYMENTS, "web")
        assert copy is not None
        assert copy["metadata"]["annotations"]["example.com/ready"] == "3"
        assert await unmet_expectations(world.user, saved.expected) == []


async def test_a_saved_plan_is_applied_only_while_it_is_valid() -> None:
    async with a_world() as world:
        await begin(world)
        saved = await plan_file(world, documents=documents(a_policy({"east": 2, "north": 1}, **MOVABLE)))
        assert await check_and_apply(planner(world), saved) == []
        await world.settle()
        assert await unmet_expectations(world.user, saved.expected) == []
        assert await world.replicas("web") == {"east": 6, "north": 3}

        saved = await plan_file(world, replicas=["deployment/web=12"])
        await world.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
        await world.settle()
        lines = await check_and_apply(planner(world), saved)
        assert lines[0] == "Deployment web in default has changed"
        assert lines[-1] == "nothing was applied; make the plan again"
        await world.settle()
        assert sum((await world.replicas("web")).values()) == 3

        saved = await plan_file(world, replicas=["deployment/web=12"])
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "gold"}}}, "")
        await world.settle()
        assert "east got the label tier=gold since" in await check_and_apply(planner(world), saved)


async def test_a_plan_of_a_rule_shows_its_taints_and_the_moves_that_come_true() -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", 4))
        await world.until_available("web", 4)
        await world.settle()
        rule = {
            "apiVersion": CLUSTER_TAINT_POLICIES.api_version,
            "kind": "ClusterTaintPolicy",
            "metadata": {"name": "west-out"},
            "spec": {"clusters": ["west"], "holdSeconds": 30, "taints": [{"key": "out", "effect": "NoExecute"}]},
        }
        freeze = {
            "apiVersion": CHANGE_FREEZES.api_version,
            "kind": "ChangeFreeze",
            "metadata": {"name": "later"},
            "spec": {"reason": "r", "windows": [{"start": "2030-01-01T00:00:00Z", "end": "2030-01-02T00:00:00Z"}]},
        }
        result, resolved = await plan(world, documents=documents(rule, freeze))
        assert result.problems[:2] == [
            "ClusterTaintPolicy/west-out is active in west (out:NoExecute) after 30 s",
            (
                "ChangeFreeze later is about 2 placed objects in east, west;"
                " it holds Evictions, Moves, Updates from 2030-01-01T00:00:00Z"
            ),
        ]
        assert result.summary()["replicasMoved"] == 2
        await apply_edits(world.user, resolved.edits, [change.before for change in resolved.changes])
        await world.until_replicas("web", {"east": 4})


async def test_a_plan_says_that_a_quota_keeps_content_from_being_delivered() -> None:
    async with a_world() as world:
        deployment = a_deployment("web", replicas=2)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "500m"}}
        await begin(world, (), schedulingMode="Duplicate")
        await world.create(DEPLOYMENTS, deployment)
        await world.settle()
        quota = {
            "apiVersion": FEDERATED_RESOURCE_QUOTAS.api_version,
            "kind": "FederatedResourceQuota",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"overall": {"cpu": "3"}},
        }
        await world.create(FEDERATED_RESOURCE_QUOTAS, quota)
        await world.settle()
        before = await state(world)
        result, resolved = await plan(world, replicas=["deployment/web=3"])
        (obj,) = result.changed
        text = "its content is not delivered, because it does not fit within FederatedResourceQuota team"
        assert [(row.cluster, row.held.startswith(text)) for row in obj.rows] == [
            ("east", True),
            ("north", True),
            ("west", True),
        ]
        await apply_edits(world.user, resolved.edits, [change.before for change in resolved.changes])
        await world.settle()
        assert await state(world) == before
        await world.merge(FEDERATED_RESOURCE_QUOTAS, "team", {"spec": {"overall": {"cpu": "9"}}})
        await world.until_replicas("web", dict.fromkeys(world.members, 3))
