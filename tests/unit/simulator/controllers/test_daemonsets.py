"""DaemonSets in a simulated member."""

from typing import Any

from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object

from federation.apimachinery.resources import DAEMON_SETS, NODES, PODS, Object
from federation.simulator.options import NodeShape

NODES_3 = tuple(NodeShape(f"node-{number}", labels={"disk": "ssd" if number < 3 else "hdd"}) for number in (1, 2, 3))


def a_daemon_set(**spec: Any) -> Object:
    return a_workload(DAEMON_SETS, "agent", **spec)


async def until_ready(member: Member, count: int) -> Object:
    async def look() -> Object | None:
        found = await member.get(DAEMON_SETS, "agent")
        status = found.get("status") or {}
        counts = [status.get(key, 0) for key in ("numberReady", "desiredNumberScheduled", "updatedNumberScheduled")]
        is_newest = status.get("observedGeneration") == found["metadata"]["generation"]
        return found if is_newest and counts == [count] * 3 and status["currentNumberScheduled"] == count else None

    return await member.until(look) or {}


async def nodes_of_pods(member: Member) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in await member.all(PODS))


async def test_every_node_gets_a_pod_and_a_new_node_too() -> None:
    async with a_member(NODES_3) as member:
        await member.create(DAEMON_SETS, a_daemon_set())
        found = await until_ready(member, 3)
        assert found["status"] == {
            "currentNumberScheduled": 3,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 3,
            "numberReady": 3,
            "observedGeneration": 1,
            "updatedNumberScheduled": 3,
            "numberAvailable": 3,
        }
        assert await nodes_of_pods(member) == ["node-1", "node-2", "node-3"]
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
        await member.create(NODES, an_object(NODES, "node-4", status=status))
        await until_ready(member, 4)
        await member.delete(NODES, "node-1")
        await until_ready(member, 3)
        await member.until_equal(lambda: nodes_of_pods(member), ["node-2", "node-3", "node-4"])


async def test_selectors_and_taints_choose_the_nodes() -> None:
    async with a_member(NODES_3) as member:
        await member.create(DAEMON_SETS, a_daemon_set(template=a_template(nodeSelector={"disk": "ssd"})))
        await until_ready(member, 2)
        taint = {"key": "broken", "value": "", "effect": "NoExecute"}
        await member.merge(NODES, "node-1", {"spec": {"taints": [taint]}})
        await until_ready(member, 1)
        await member.until_equal(lambda: nodes_of_pods(member), ["node-2"])
        await member.merge(NODES, "node-1", {"spec": {"taints": [{**taint, "effect": "NoSchedule"}]}})
        await member.merge(NODES, "node-2", {"spec": {"taints": [{**taint, "effect": "NoSchedule"}]}})

        async def is_misscheduled() -> bool:
            return (await member.status(DAEMON_SETS, "agent")).get("numberMisscheduled") == 1

        await member.until(is_misscheduled)  # a running pod stays, a new one does not come
        assert await nodes_of_pods(member) == ["node-2"]
        await member.merge(NODES, "node-1", {"spec": {"taints": None, "unschedulable": True}})
        await member.until_equal(lambda: nodes_of_pods(member), ["node-1", "node-2"])  # daemons tolerate a cordon


async def roll_out(member: Member, **rolling: Any) -> tuple[int, int]:
    """Change the image; return the most unavailable nodes and the most pods that were seen."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    await member.create(DAEMON_SETS, a_daemon_set(updateStrategy=strategy))
    await until_ready(member, 3)
    template = a_template()
    template["spec"]["containers"][0]["image"] = "nginx:2"
    await member.merge(DAEMON_SETS, "agent", {"spec": {"template": template}})
    unavailable = pods = 0

    async def watch() -> bool:
        nonlocal unavailable, pods
        found = await member.all(PODS)
        ready = set(await member.ready_pods())
        nodes = {pod["spec"].get("nodeName") for pod in found if pod["metadata"]["name"] in ready}
        unavailable, pods = (
            max(unavailable, 3 - len(nodes)),
            max(pods, sum("deletionTimestamp" not in pod["metadata"] for pod in found)),
        )
        return {pod["spec"]["containers"][0]["image"] for pod in found} == {"nginx:2"} and len(ready) == 3

    await member.until(watch)
    await until_ready(member, 3)
    return unavailable, pods


async def test_a_rolling_update_keeps_to_max_unavailable() -> None:
    async with a_member(NODES_3) as member:
        assert await roll_out(member, maxUnavailable=1) == (1, 3)
    async with a_member(NODES_3) as member:
        assert await roll_out(member, maxUnavailable="100%") == (3, 3)


async def test_a_rolling_update_with_surge_leaves_no_node_without_a_pod() -> None:
    async with a_member(NODES_3) as member:
        unavailable, pods = await roll_out(member, maxSurge=1, maxUnavailable=0)
        assert (unavailable, pods) == (0, 4)


async def test_on_delete_waits_for_the_user() -> None:
    async with a_member(NODES_3) as member:
        await member.create(DAEMON_SETS, a_daemon_set(updateStrategy={"type": "OnDelete"}))
        await until_ready(member, 3)
        template = a_template(cpu="200m")
        await member.merge(DAEMON_SETS, "agent", {"spec": {"template": template}})
        await member.pass_time(5)
        assert (await member.status(DAEMON_SETS, "agent")).get("updatedNumberScheduled", 0) == 0
        await member.delete(PODS, (await member.names(PODS))[0])

        async def updated() -> int:
            return int((await member.status(DAEMON_SETS, "agent")).get("updatedNumberScheduled", 0))

        await member.until_equal(updated, 1)
        await member.pass_time(2)
        before = await member.revision()
        await member.pass_time(30)
        assert await member.revision() == before
