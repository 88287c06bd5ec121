"""A tour: one Deployment is created, runs in three clusters, gets one merged status, and is deleted everywhere.

Everything runs here: the API's semantics, all controllers, the scheduler and its plugins, three members with
their own workload controllers. Read it from top to bottom; `tests/support/world.py` is the test harness.
"""

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import a_world

from federation.api import names
from federation.api.resources import COLLECTED_STATUSES, FEDERATED_OBJECTS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, EVENTS
from federation.controllers.schedule.names import EVENT_SCHEDULED

HOST_WRITES_MAX = 8
"""From the user's create to the first merged status, including both and the event about the decision."""
POLICY_WRITES = 2
"""The counts in the status of the two policies: one write each, however many objects come within two seconds."""


async def test_a_deployment_runs_in_three_clusters_with_one_merged_status() -> None:
    async with a_world(members=("east", "north", "west")) as world:
        # The user creates a policy and an override …
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        image = "/spec/template/spec/containers/0/image"
        await world.create(OVERRIDE_POLICIES, an_override("north", image, "registry.north.example/nginx:1.27"))
        # … and applies a plain Kubernetes manifest.
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))

        # The replicas are divided by weight,
        await world.until_replicas("web", {"east": 4, "north": 2, "west": 2})
        # the override applies in its cluster only,
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
        # and the members' status is merged into the fields that `kubectl rollout status` waits for.
        await world.until_available("web", 8)
        deployment = await world.user.get(DEPLOYMENTS, "web", "default")
        status = deployment["status"]
        assert status["observedGeneration"] == deployment["metadata"]["generation"]
        assert {key: status[key] for key in ("replicas", "updatedReplicas", "readyReplicas")} == {
            "replicas": 8,
            "updatedReplicas": 8,
            "readyReplicas": 8,
        }
        conditions = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
        assert conditions["Available"] == ("True", "MinimumReplicasAvailable")
        assert conditions["Progressing"] == ("True", "NewReplicaSetAvailable")
        assert conditions["Scheduled"] == ("True", "Scheduled")
        assert (await world.condition("web", names.PROPAGATED))["status"] == "True"
        (event,) = [e for e in (await world.user.list(EVENTS)).items if e["reason"] == EVENT_SCHEDULED]
        assert event["message"] == "east 4, north 2, west 2 (PropagationPolicy default/divide)"
        assert (event["involvedObject"]["kind"], event["involvedObject"]["uid"]) == (
            "Deployment",
            deployment["metadata"]["uid"],
        )

        # Scaling changes one field; the replicas are divided again.
        await world.scale("web", 12)
        await world.until_replicas("web", {"east": 6, "north": 3, "west": 3})
        await world.until_available("web", 12)

        # Deletion waits until the object is deleted in every member; then nothing is left.
        await world.user.delete(DEPLOYMENTS, "web", "default")
        held = await world.find(DEPLOYMENTS, "web")
        assert held is not None
        assert names.FEDERATE_FINALIZER in held["metadata"]["finalizers"]
        await world.until_gone(DEPLOYMENTS, "web")
        assert await world.replicas("web") == {}
        assert (await world.user.list(FEDERATED_OBJECTS)).items == []
        assert (await world.user.list(COLLECTED_STATUSES)).items == []


async def test_a_deployment_takes_few_writes_on_the_host() -> None:
    """Members report once, so only writes of the control plane remain; revisions have no gaps, so they count writes."""
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

        assert await world.store.revision() - before <= HOST_WRITES_MAX + POLICY_WRITES


async def test_the_same_seed_gives_the_same_run() -> None:
    """Two runs with the same seed end with the same revision in every store, so failures can be reproduced."""
    runs = []
    for _ in range(2):
        async with a_world(seed=7) as world:
            await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
            for number in range(5):
                await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=number + 1))
            await world.settle()
            runs.append(await world.revisions())
    assert runs[0] == runs[1]
