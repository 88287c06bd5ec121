"""The newcomer's tour: one Deployment goes in, replicas run in three clusters, one status comes back, and all of it leaves.

Everything moves here: the API's semantics, all controllers, the scheduler and its plugins, three members with
workload controllers of their own. Read it top to bottom; `tests/support/world.py` is the stage.
"""

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import a_world

from federation.api import names
from federation.api.resources import (
    COLLECTED_STATUSES,
    DEPLOYMENTS,
    EVENTS,
    FEDERATED_OBJECTS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)

HOST_WRITES_MAX = 8
"""From the user's create to the first merged status, the user's create and the event that tells the decision included."""


async def test_a_deployment_runs_in_three_clusters_and_reports_as_one() -> None:
    async with a_world(members=("east", "north", "west")) as world:
        # The user says where things go and what is different where …
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        image = "/spec/template/spec/containers/0/image"
        await world.create(OVERRIDE_POLICIES, an_override("north", image, "registry.north.example/nginx:1.27"))
        # … and applies a plain Kubernetes manifest.
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))

        # The replicas are divided by weight,
        await world.until_replicas("web", {"east": 4, "north": 2, "west": 2})
        # the override holds in its cluster and nowhere else,
        images = {}
        for name, member in world.members.items():
            copy = await member.find(DEPLOYMENTS, "web")
            assert copy is not None
            images[name] = copy["spec"]["template"]["spec"]["containers"][0]["image"]
        assert images == {
            "east": "nginx:1.27",
            "north": "registry.north.example/nginx:1.27",
            "west": "nginx:1.27",
        }
        # and what the members report comes back merged, in the words that `kubectl rollout status` waits for.
        await world.until_available("web", 8)
        deployment = await world.user.get(DEPLOYMENTS, "web", "default")
        status = deployment["status"]
        assert status["observedGeneration"] == deployment["metadata"]["generation"]
        assert {key: status[key] for key in ("replicas", "updatedReplicas", "readyReplicas")} == {
            "replicas": 8,
            "updatedReplicas": 8,
            "readyReplicas": 8,
        }
        told = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
        assert told["Available"] == ("True", "MinimumReplicasAvailable")
        assert told["Progressing"] == ("True", "NewReplicaSetAvailable")
        assert told["Scheduled"] == ("True", "Scheduled")
        assert (await world.condition("web", names.PROPAGATED))["status"] == "True"
        (event,) = [e for e in (await world.user.list(EVENTS)).items if e["reason"] == names.EVENT_SCHEDULED]
        assert event["message"] == "east 4, north 2, west 2 (PropagationPolicy default/divide)"
        assert (event["involvedObject"]["kind"], event["involvedObject"]["uid"]) == (
            "Deployment",
            deployment["metadata"]["uid"],
        )

        # Scaling is one field; the division follows.
        await world.scale("web", 12)
        await world.until_replicas("web", {"east": 6, "north": 3, "west": 3})
        await world.until_available("web", 12)

        # Deleting is one command: the object waits until every member is clean, then it is gone, and nothing is left.
        await world.user.delete(DEPLOYMENTS, "web", "default")
        held = await world.find(DEPLOYMENTS, "web")
        assert held is not None
        assert names.FEDERATE_FINALIZER in held["metadata"]["finalizers"]
        await world.until_gone(DEPLOYMENTS, "web")
        assert await world.replicas("web") == {}
        assert (await world.user.list(FEDERATED_OBJECTS)).items == []
        assert (await world.user.list(COLLECTED_STATUSES)).items == []


async def test_a_deployment_costs_few_writes_on_the_host() -> None:
    """Members that report once leave only the control plane's own writes, all of them counted: revisions have no gaps."""
    async with a_world(has_workloads=False) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        await world.create(OVERRIDE_POLICIES, an_override("north", "/spec/minReadySeconds", 5))
        await world.settle()
        before = await world.store.revision()

        await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))
        await world.until_replicas("web", {"east": 4, "north": 2, "west": 2})
        for name, member in world.members.items():
            count = {"east": 4}.get(name, 2)
            ready = {"replicas": count, "updatedReplicas": count, "readyReplicas": count, "availableReplicas": count}
            await member.report("web", **ready)
        await world.until_available("web", 8)
        await world.settle()

        assert await world.store.revision() - before <= HOST_WRITES_MAX


async def test_the_same_seed_gives_the_same_run() -> None:
    """A scenario that fails can be run again: every revision of every store is the same."""
    runs = []
    for _ in range(2):
        async with a_world(seed=7) as world:
            await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
            for number in range(5):
                await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=number + 1))
            await world.settle()
            runs.append(await world.revisions())
    assert runs[0] == runs[1]
