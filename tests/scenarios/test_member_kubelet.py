"""A simulated kubelet starts what a real one would start, and says why it does not."""

from typing import Any

from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object

from federation.apimachinery.conditions import find
from federation.apimachinery.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    Object,
)
from federation.simulator.controllers.names import SIMULATOR_ALIVE, SIMULATOR_EVICT_AFTER, SIMULATOR_INIT_EXIT_CODE


def a_pod(annotations: dict[str, str] | None = None, container: Object | None = None, **spec: Any) -> Object:
    template = a_template(**spec)["spec"]
    template["containers"][0].update(container or {})
    metadata = {"annotations": annotations} if annotations else {}
    return an_object(PODS, "web", metadata=metadata, spec=template)


async def waiting(member: Member) -> tuple[str, str]:
    """Return reason and message of the waiting container."""
    status = (await member.get(PODS, "web")).get("status") or {}
    (container,) = status.get("containerStatuses") or ({},)
    state = (container.get("state") or {}).get("waiting") or {}
    return state.get("reason", ""), state.get("message", "")


async def is_ready(member: Member) -> bool:
    return bool(await member.ready_pods())


async def events(member: Member) -> list[tuple[str, str]]:
    return [(event["reason"], event["message"]) for event in await member.all(EVENTS)]


async def test_a_volume_without_its_config_map_keeps_a_pod_in_container_creating() -> None:
    async with a_member() as member:
        await member.create(PODS, a_pod(volumes=[{"name": "conf", "configMap": {"name": "settings"}}]))
        await member.until_equal(lambda: waiting(member), ("ContainerCreating", ""))
        message = 'MountVolume.SetUp failed for volume "conf" : configmap "settings" not found'
        assert ("FailedMount", message) in await events(member)
        await member.create(CONFIGMAPS, {**an_object(CONFIGMAPS, "settings"), "data": {"a": "b"}})
        await member.until(lambda: is_ready(member))


async def test_a_variable_without_its_secret_is_an_error_of_the_container() -> None:
    variable = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "api", "key": "token"}}}
    async with a_member() as member:
        await member.create(PODS, a_pod(container={"env": [variable]}))
        await member.until_equal(lambda: waiting(member), ("CreateContainerConfigError", 'secret "api" not found'))
        await member.create(SECRETS, an_object(SECRETS, "api"))
        message = "couldn't find key token in Secret default/api"
        await member.until_equal(lambda: waiting(member), ("CreateContainerConfigError", message))
        await member.merge(SECRETS, "api", {"data": {"token": "eA=="}})
        await member.until(lambda: is_ready(member))


async def test_a_pod_waits_for_its_claim() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]

    async def message(member: Member) -> str:
        conditions = ((await member.get(PODS, "web")).get("status") or {}).get("conditions")
        return str((find(conditions, "PodScheduled") or {}).get("message", ""))

    async with a_member() as member:
        await member.create(PODS, a_pod(volumes=volumes))
        text = '0/1 nodes are available: persistentvolumeclaim "data" not found.'
        await member.until_equal(lambda: message(member), text)
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await member.create(PERSISTENT_VOLUME_CLAIMS, an_object(PERSISTENT_VOLUME_CLAIMS, "data", spec=spec))
        await member.until(lambda: is_ready(member))
        await member.delete(PERSISTENT_VOLUME_CLAIMS, "data")
        await member.pass_time(2)
        assert await member.exists(PERSISTENT_VOLUME_CLAIMS, "data"), "a pod uses it"
        await member.delete(PODS, "web")

        async def is_gone() -> bool:
            return not await member.exists(PERSISTENT_VOLUME_CLAIMS, "data")

        await member.until(is_gone)


async def test_an_image_of_a_registry_that_cannot_exist_is_not_pulled() -> None:
    async with a_member() as member:
        template = a_template()
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, template=template))
        await member.until(lambda: is_ready(member))
        template["spec"]["containers"][0]["image"] = "registry.invalid/web:2"
        await member.merge(DEPLOYMENTS, "web", {"spec": {"template": template}})

        async def reasons() -> set[str]:
            pods = await member.all(PODS)
            statuses = [each for pod in pods for each in (pod.get("status") or {}).get("containerStatuses") or ()]
            return {each["state"]["waiting"]["reason"] for each in statuses if "waiting" in each["state"]}

        await member.until_equal(reasons, {"ErrImagePull"})
        await member.until_equal(reasons, {"ImagePullBackOff"})
        assert len(await member.ready_pods()) == 1, "the old pod stays"


async def test_a_pod_is_ready_when_its_probe_can_have_succeeded() -> None:
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 20}
    async with a_member() as member:
        await member.create(PODS, a_pod(container={"readinessProbe": probe}))
        await member.pass_time(15)
        assert (await member.get(PODS, "web"))["status"]["phase"] == "Running"
        assert not await is_ready(member)
        await member.until(lambda: is_ready(member), patience_s=10)


async def test_a_container_whose_liveness_probe_fails_is_restarted() -> None:
    probe = {"httpGet": {"port": 80}, "periodSeconds": 2, "failureThreshold": 2}
    async with a_member() as member:
        await member.create(PODS, a_pod({SIMULATOR_ALIVE: "false"}, container={"livenessProbe": probe}))

        async def last_exit() -> int | None:
            (status,) = (await member.get(PODS, "web"))["status"].get("containerStatuses") or ({},)
            found: int | None = (status.get("lastState") or {}).get("terminated", {}).get("exitCode")
            return found

        await member.until_equal(last_exit, 137)
        assert (await waiting(member))[0] == "CrashLoopBackOff"


async def test_an_evicted_pod_is_replaced() -> None:
    async with a_member() as member:
        template = a_template()
        template["metadata"]["annotations"] = {SIMULATOR_EVICT_AFTER: "10s"}
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, template=template))

        async def evicted() -> list[Object]:
            return [pod for pod in await member.all(PODS) if pod["status"].get("reason") == "Evicted"]

        (pod, *_) = await member.until(evicted)
        assert pod["status"]["phase"] == "Failed"
        await member.until(lambda: is_ready(member))


async def test_a_pod_with_scheduling_gates_waits_for_their_removal() -> None:
    async with a_member() as member:
        await member.create(PODS, a_pod(schedulingGates=[{"name": "example.com/quota"}]))
        await member.pass_time(3)
        assert "nodeName" not in (await member.get(PODS, "web"))["spec"]
        await member.merge(PODS, "web", {"spec": {"schedulingGates": []}})
        await member.until(lambda: is_ready(member))


INIT: dict[str, Any] = {
    "initContainers": [
        {"name": "first", "image": "init:1"},
        {"name": "mesh", "image": "mesh:1", "restartPolicy": "Always"},
    ]
}


async def states(member: Member) -> dict[str, str]:
    """Return the kind of state of each init container."""
    status = (await member.get(PODS, "web")).get("status") or {}
    return {each["name"]: next(iter(each["state"])) for each in status.get("initContainerStatuses") or ()}


async def test_init_containers_end_before_the_others_run_and_sidecars_go_on() -> None:
    async with a_member() as member:
        await member.create(PODS, a_pod(**INIT))
        await member.until(lambda: is_ready(member))
        assert await states(member) == {"first": "terminated", "mesh": "running"}


async def test_an_init_container_that_fails_is_restarted_and_the_pod_does_not_start() -> None:
    async with a_member() as member:
        await member.create(PODS, a_pod({SIMULATOR_INIT_EXIT_CODE: "2"}, **INIT))

        async def restarts() -> int:
            status = (await member.get(PODS, "web")).get("status") or {}
            return int((status.get("initContainerStatuses") or [{"restartCount": 0}])[0]["restartCount"])

        async def has_restarted() -> bool:
            return await restarts() >= 3

        await member.until(has_restarted)
        status = (await member.get(PODS, "web"))["status"]
        assert status["phase"] == "Pending"
        assert status["initContainerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 2
        assert (find(status["conditions"], "Initialized") or {}).get("status") == "False"
        assert await waiting(member) == ("PodInitializing", "")


async def test_a_pod_that_never_restarts_fails_with_its_init_container() -> None:
    async with a_member() as member:
        await member.create(PODS, a_pod({SIMULATOR_INIT_EXIT_CODE: "2"}, **INIT, restartPolicy="Never"))

        async def has_failed() -> bool:
            return ((await member.get(PODS, "web")).get("status") or {}).get("phase") == "Failed"

        await member.until(has_failed)
