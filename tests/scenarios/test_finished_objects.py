"""What has finished in a member stays finished: it never runs twice, and its time to live begins with the last end."""

from collections.abc import Callable
from typing import Any

from tests.support.manifests import a_policy, an_override
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.resources import CRDS, EVENTS, JOBS, PODS, Object, Resource
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR

MEMBERS = ("east", "north")
WORKFLOWS = Resource("argoproj.io", "v1alpha1", "Workflow", "workflows")


def _job(*, runs_s: float = 2.0, **spec: Any) -> Object:
    template = {
        "metadata": {"annotations": {SIMULATOR_RUN_FOR: f"{runs_s}s"}},
        "spec": {"containers": [{"name": "main", "image": "job:1"}], "restartPolicy": "Never"},
    }
    metadata = {"name": "crunch", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}


async def _place(world: World, resource: Resource) -> None:
    kinds = [{"apiVersion": resource.api_version, "kind": resource.kind}]
    await world.create(
        PROPAGATION_POLICIES,
        a_policy(dict.fromkeys(MEMBERS, 1), resourceSelectors=kinds, schedulingMode="Duplicate"),
    )


async def _uids(world: World, resource: Resource = JOBS) -> dict[str, str]:
    found = {name: await member.find(resource, "crunch") for name, member in world.members.items()}
    return {name: obj["metadata"]["uid"] for name, obj in found.items() if obj is not None}


async def _statuses(world: World, name: str = "crunch-jobs.batch") -> dict[str, str]:
    status = (await world.find(FEDERATED_OBJECTS, name) or {}).get("status") or {}
    return {entry["cluster"]: entry["status"] for entry in status.get("clusters") or ()}


def _outcome(world: World) -> Callable[[], Any]:
    async def look() -> Any:
        status = (await world.user.get(JOBS, "crunch", "default")).get("status") or {}
        complete = conditions.find(status.get("conditions"), "Complete") or {}
        return status.get("succeeded"), complete.get("status")

    return look


async def test_a_job_with_a_time_to_live_runs_once_and_leaves_after_the_last_end() -> None:
    async with a_world(members=MEMBERS) as world:
        await _place(world, JOBS)
        runs: set[str] = set()
        await world.create(JOBS, _job(ttlSecondsAfterFinished=20))
        await world.until_equal(_outcome(world), (2, "True"))
        for _ in range(15):
            runs |= set((await _uids(world)).values())
            await world.pass_time(1)
        assert len(runs) == len(MEMBERS)
        assert len(await _uids(world)) == len(MEMBERS), "the time to live is the host's"
        await world.until_gone(JOBS, "crunch")
        assert await _uids(world) == {}


async def test_a_finished_job_that_is_gone_is_not_created_again() -> None:
    async with a_world(members=MEMBERS) as world:
        await _place(world, JOBS)
        await world.create(JOBS, _job())
        await world.until_equal(_outcome(world), (2, "True"))
        await world.settle()
        await world.members["east"].admin.delete(JOBS, "crunch", "default", propagation_policy="Background")
        await world.until_equal(lambda: _statuses(world), {"east": "Finished", "north": "OK"})
        await world.restart()
        await world.merge(JOBS, "crunch", {"metadata": {"labels": {"team": "a"}}})
        await world.pass_time(60)
        await world.settle()
        assert (await _uids(world)).keys() == {"north"}
        assert await _outcome(world)() == (2, "True")

        # A federated object that is written again is of the same run.
        before = (await world.user.get(FEDERATED_OBJECTS, "crunch-jobs.batch", "default"))["metadata"]["uid"]
        await world.user.delete(FEDERATED_OBJECTS, "crunch-jobs.batch", "default")

        async def is_new() -> Any:
            found = await world.find(FEDERATED_OBJECTS, "crunch-jobs.batch")
            return found is not None and found["metadata"]["uid"] != before and bool(found.get("status"))

        await world.until(is_new)
        await world.until_equal(lambda: _statuses(world), {"east": "Finished", "north": "OK"})
        await world.settle()
        assert (await _uids(world)).keys() == {"north"}

        # Another Job of the name is another run.
        await world.user.delete(JOBS, "crunch", "default", propagation_policy="Background")
        await world.until_gone(JOBS, "crunch")
        await world.create(JOBS, _job())
        await world.until_equal(_outcome(world), (2, "True"))
        assert (await _uids(world)).keys() == set(MEMBERS)


async def test_a_job_that_finishes_and_leaves_between_two_writes_of_sync_is_not_created_again() -> None:
    async with a_world(members=MEMBERS) as world:
        await _place(world, JOBS)
        # Somebody in the member has given it a time to live of its own.
        await world.create(JOBS, _job(runs_s=5))

        async def present() -> Any:
            return (await _uids(world)).keys() == set(MEMBERS)

        await world.until(present)
        await world.members["east"].merge(JOBS, "crunch", {"spec": {"ttlSecondsAfterFinished": 0}})
        await world.until_equal(_outcome(world), (2, "True"))
        await world.settle()
        assert (await _uids(world)).keys() == {"north"}


async def test_a_finished_job_takes_labels_and_says_once_that_an_override_comes_too_late() -> None:
    async with a_world(members=MEMBERS) as world:
        await _place(world, JOBS)
        await world.create(JOBS, _job())
        await world.until_equal(_outcome(world), (2, "True"))
        await world.settle()
        policy = an_override("east", "/spec/template/spec/containers/0/image", "job:2")
        policy["spec"]["resourceSelectors"] = [{"apiVersion": "batch/v1", "kind": "Job"}]
        policy["metadata"]["labels"] = {}
        await world.create(OVERRIDE_POLICIES, policy)
        bound = {names.OVERRIDE_POLICY_LABEL: "special", "team": "a"}
        await world.merge(JOBS, "crunch", {"metadata": {"labels": bound}})
        await world.until_equal(lambda: _statuses(world), {"east": "Finished", "north": "OK"})
        await world.settle()
        federated = await world.user.get(FEDERATED_OBJECTS, "crunch-jobs.batch", "default")
        messages = {entry["cluster"]: entry.get("message", "") for entry in federated["status"]["clusters"]}
        assert "changes of its spec are not delivered" in messages["east"]
        assert conditions.is_true(federated["status"]["conditions"], names.PROPAGATED)
        for member in world.members.values():
            live = await member.find(JOBS, "crunch")
            assert live is not None
            assert live["metadata"]["labels"]["team"] == "a"
            assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "job:1"


async def test_a_job_that_is_deleted_in_a_member_while_it_runs_is_created_again() -> None:
    async with a_world(members=MEMBERS) as world:
        await _place(world, JOBS)
        await world.create(JOBS, _job(runs_s=30))

        async def both() -> Any:
            return len(await _uids(world)) == len(MEMBERS)

        await world.until(both)
        before = await _uids(world)
        await world.members["east"].admin.delete(JOBS, "crunch", "default", propagation_policy="Background")
        await world.until_equal(_outcome(world), (2, "True"))
        after = await _uids(world)
        assert (after["north"], after["east"] != before["east"]) == (before["north"], True)


async def test_a_finished_job_is_not_moved_from_a_cluster_that_is_lost_or_drained() -> None:
    async with a_world() as world:
        kinds = [{"apiVersion": "batch/v1", "kind": "Job"}]
        policy = a_policy({"east": 10, "north": 1, "west": 1}, resourceSelectors=kinds, failover={"mode": "Auto"})
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(JOBS, _job())
        await world.until_equal(_outcome(world), (1, "True"))
        await world.settle()
        assert (await _uids(world)).keys() == {"east"}
        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.pass_time(600)
        assert (await _uids(world)).keys() == {"east"}
        assert await _outcome(world)() == (1, "True")
        world.members["east"].line.mode = "up"
        await world.until_ready("east")
        drain = {"key": names.TAINT_DRAIN, "effect": "NoExecute"}
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": [drain]}}, namespace="")
        await world.settle()
        assert (await _uids(world)).keys() == {"east"}


def _definition() -> Object:
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    kinds = {"plural": "workflows", "singular": "workflow", "kind": "Workflow", "listKind": "WorkflowList"}
    spec = {"group": "argoproj.io", "scope": "Namespaced", "names": kinds, "versions": [version]}
    metadata = {"name": "workflows.argoproj.io"}
    return {"apiVersion": CRDS.api_version, "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


async def _run_workflow(world: World) -> str:
    """Run the workflow in both members until that is published; return the name of its federated object."""
    await world.user.create(CRDS, _definition())
    source = {
        "group": "argoproj.io",
        "version": "v1alpha1",
        "kind": "Workflow",
        "pluralName": "workflows",
        "scope": "Namespaced",
    }
    config: Object = {
        "apiVersion": FEDERATED_TYPE_CONFIGS.api_version,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": "workflows.argoproj.io"},
        "spec": {"sourceType": source, "controllers": [["kubeadmiral.io/global-scheduler"]]},
    }
    await world.user.create(FEDERATED_TYPE_CONFIGS, config)
    for member in world.members.values():
        await member.admin.create(CRDS, _definition())
    await world.pass_time(60)  # until the clusters are known to serve it
    await _place(world, WORKFLOWS)
    spec = {"entrypoint": "main", "ttlStrategy": {"secondsAfterSuccess": 30}}
    metadata = {"name": "crunch", "namespace": "default"}
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}
    await world.create(WORKFLOWS, workflow)

    async def delivered() -> Any:
        return len(await _uids(world, WORKFLOWS)) == len(MEMBERS)

    await world.until(delivered)
    await world.settle()
    return str((await world.user.list(FEDERATED_OBJECTS)).items[0]["metadata"]["name"])


async def test_a_workflow_that_its_controller_has_removed_does_not_run_again_and_leaves_the_host() -> None:
    async with a_world(members=MEMBERS) as world:
        name = await _run_workflow(world)
        for member in world.members.values():
            await member.merge(WORKFLOWS, "crunch", {"status": {"phase": "Succeeded", "nodes": {"main": {"x": 1}}}})
            await member.admin.delete(WORKFLOWS, "crunch", "default")
        await world.until_equal(lambda: _statuses(world, name), dict.fromkeys(MEMBERS, "Finished"))
        assert await _uids(world, WORKFLOWS) == {}
        await world.until_gone(WORKFLOWS, "crunch")


async def test_what_ends_and_leaves_while_nobody_watches_does_not_run_again() -> None:
    async with a_world(members=MEMBERS) as world:
        name = await _run_workflow(world)
        uids = await _uids(world, WORKFLOWS)
        await world.stop()
        for cluster, member in world.members.items():
            await member.admin.delete(WORKFLOWS, "crunch", "default")
            if cluster == "east":
                involved = {"kind": "Workflow", "namespace": "default", "name": "crunch", "uid": uids["east"]}
                event: Object = {
                    "metadata": {"name": "crunch.1", "namespace": "default"},
                    "involvedObject": involved,
                    "reason": "WorkflowSucceeded",
                    "lastTimestamp": "2026-01-01T00:00:00Z",
                }
                await member.admin.create(EVENTS, event)
        await world.restart()
        await world.until_equal(lambda: _statuses(world, name), {"east": "Finished", "north": "EndUnknown"})
        await world.pass_time(120)
        assert await _uids(world, WORKFLOWS) == {}
        federated = await world.user.get(FEDERATED_OBJECTS, name, "default")
        propagated = conditions.find(federated["status"]["conditions"], names.PROPAGATED) or {}
        assert (propagated["status"], names.RUN_AGAIN in propagated["message"]) == ("False", True)
        assert [entry["finished"]["succeeded"] for entry in federated["status"]["clusters"] if "finished" in entry] == [
            True
        ]

        # The user decides.
        await world.merge(WORKFLOWS, "crunch", {"metadata": {"annotations": {names.RUN_AGAIN: "now"}}})
        await world.until_equal(lambda: _statuses(world, name), dict.fromkeys(MEMBERS, "OK"))
        assert (await _uids(world, WORKFLOWS)).keys() == set(MEMBERS)


async def test_a_pod_that_always_restarts_is_created_again_although_nobody_saw_it_leave() -> None:
    async with a_world(members=MEMBERS) as world:
        await _place(world, PODS)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "crunch", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        }
        await world.create(PODS, pod)
        await world.until_equal(lambda: _statuses(world, "crunch-pods"), dict.fromkeys(MEMBERS, "OK"))
        before = await _uids(world, PODS)
        await world.stop()
        await world.members["east"].admin.delete(PODS, "crunch", "default", grace_period_s=0)
        await world.restart()

        async def is_there_again() -> Any:
            after = await _uids(world, PODS)
            return after.keys() == before.keys() and after["east"] != before["east"]

        await world.until(is_there_again)


async def test_a_job_that_is_deleted_while_nobody_watches_runs_again_only_if_its_user_wants() -> None:
    async with a_world(members=MEMBERS) as world:
        await _place(world, JOBS)
        await world.create(JOBS, _job(runs_s=30))
        await world.until_equal(lambda: _statuses(world), dict.fromkeys(MEMBERS, "OK"))
        await world.settle()
        await world.stop()
        await world.members["east"].admin.delete(JOBS, "crunch", "default", propagation_policy="Background")
        await world.restart()
        await world.until_equal(lambda: _statuses(world), {"east": "EndUnknown", "north": "OK"})
        await world.pass_time(60)
        assert (await _uids(world)).keys() == {"north"}
        await world.merge(JOBS, "crunch", {"metadata": {"annotations": {names.RUN_AGAIN: "now"}}})
        await world.until_equal(lambda: _statuses(world), dict.fromkeys(MEMBERS, "OK"))
