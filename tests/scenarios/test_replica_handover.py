"""Replicas are handed over to an autoscaler in a member and taken back when it leaves; scaling by hand is drift."""

from pathlib import Path

import pytest
from tests.scenarios.test_drift_reports import counted, delivery, in_cluster, messages_of
from tests.scenarios.test_member_autoscaler import an_autoscaler, begin, minutes, owners_of_replicas, recording
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world
from tests.support.worldmember import Member

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.errors import ApiError, ServiceUnavailable
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object
from federation.client.client import PatchType, Request
from federation.delivery.rules.names import EVENT_DRIFT_CORRECTED, EVENT_REPLICAS_HANDED_OVER, EVENT_REPLICAS_TAKEN_BACK


async def running(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, schedulingMode="Duplicate"))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
    await world.until_available("web", 6)
    await world.settle()


async def scale_in_member(world: World, replicas: int, member: str = "east") -> None:
    """Scale as `kubectl scale` and autoscalers do."""
    await world.members[member].admin.patch(
        DEPLOYMENTS,
        "web",
        {"spec": {"replicas": replicas}},
        patch_type=PatchType.MERGE,
        namespace="default",
        subresource="scale",
        field_manager="kubectl-scale",
    )


def scaler_for(kind: str = "Deployment", name: str = "web", api_version: str = "apps/v1") -> Object:
    scaler = an_autoscaler()
    scaler["spec"]["scaleTargetRef"] = {"apiVersion": api_version, "kind": kind, "name": name}
    return scaler


def listing_autoscalers(patched: pytest.MonkeyPatch, member: Member, error: ApiError | None = None) -> list[str]:
    """Return the namespaces of whose autoscalers the control plane asks the member, which answers with the error."""
    asked: list[str] = []
    passed_on = member.line.request

    async def request(request: Request) -> Object:
        if request.verb == "list" and request.resource == HORIZONTAL_POD_AUTOSCALERS:
            asked.append(request.namespace)
            if error is not None:
                raise error
        return await passed_on(request)

    patched.setattr(member.line, "request", request)
    return asked


async def test_scaling_by_hand_without_an_autoscaler_is_corrected() -> None:
    async with a_world() as world:
        await running(world)
        await world.members["east"].admin.create(HORIZONTAL_POD_AUTOSCALERS, scaler_for(name="other"))
        before = counted("corrections", "east")
        await scale_in_member(world, 9)
        await world.until_replicas("web", {"east": 3, "west": 3})
        assert counted("corrections", "east") == before + 1
        (message,) = await messages_of(world, EVENT_DRIFT_CORRECTED)
        assert '"kubectl-scale" (Update at ' in message
        assert await messages_of(world, EVENT_REPLICAS_HANDED_OVER) == []


async def test_an_autoscaler_gets_the_replicas_without_a_write_of_ours(tmp_path: Path) -> None:
    async with a_world() as world:
        await running(world)
        # Without workloads for its metrics the autoscaler itself does nothing; the scale is done in its place.
        await world.members["east"].admin.create(HORIZONTAL_POD_AUTOSCALERS, scaler_for())
        async with recording(world.members["east"]) as east:
            await scale_in_member(world, 7)
            await world.settle()
            assert await world.replicas("web") == {"east": 7, "west": 3}
            await world.scale("web", 4)
            await world.until_replicas("web", {"east": 7, "west": 4})
            await world.settle()
            copy = await world.members["east"].admin.get(DEPLOYMENTS, "web", "default")
            assert owners_of_replicas(copy) == ["kubectl-scale"], "the template's write has left the field out"
        assert east.replicas in ([7], [3, 7])
        (message,) = await messages_of(world, EVENT_REPLICAS_HANDED_OVER)
        assert message == 'cluster "east": HorizontalPodAutoscaler "web" owns the replicas from now on'
        rows = await delivery(world, tmp_path)
        assert (rows["east"]["scaler"], rows["east"]["status"]) == ("web", "OK")
        assert "scaler" not in rows["west"]
        assert (await world.status("web"))["replicas"] == 11


async def test_the_replicas_are_taken_back_when_the_autoscaler_leaves() -> None:
    async with a_world() as world:
        await running(world)
        east = world.members["east"].admin
        await east.create(HORIZONTAL_POD_AUTOSCALERS, scaler_for())
        await scale_in_member(world, 7)
        await world.settle()
        await east.delete(HORIZONTAL_POD_AUTOSCALERS, "web", "default")
        await world.pass_time(360)
        assert await world.replicas("web") == {"east": 3, "west": 3}
        (message,) = await messages_of(world, EVENT_REPLICAS_TAKEN_BACK)
        assert '"web" is gone' in message
        await scale_in_member(world, 7)
        await world.until_replicas("web", {"east": 3, "west": 3})


async def test_a_restart_and_a_template_change_meanwhile_leave_the_replicas_alone() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world)
        await minutes(world, 2)
        async with recording(world.members["east"]) as east, recording(world.members["west"]) as west:
            await world.stop()
            await world.scale("web", 5)
            await world.restart()
            await minutes(world, 2)
        assert (east.strangers, west.strangers) == ([], [])
        assert set(east.replicas) | set(west.replicas) <= {4, 6}


async def test_nothing_is_written_while_the_member_does_not_tell_its_autoscalers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_world() as world:
        await running(world)
        east = world.members["east"]
        await east.admin.create(HORIZONTAL_POD_AUTOSCALERS, scaler_for())
        await scale_in_member(world, 7)
        await world.settle()
        await world.stop()
        await world.scale("web", 4)
        with monkeypatch.context() as patched:
            asked = listing_autoscalers(patched, east, ServiceUnavailable("injected"))
            await world.restart()
            await world.until_replicas("web", {"east": 7, "west": 4})
            await world.pass_time(60)
            assert await world.replicas("web") == {"east": 7, "west": 4}
            status = await in_cluster(world, "east")
            assert status["status"] == "RetrievalFailed"
            assert "its autoscalers cannot be listed" in status["message"]
            assert 2 <= len(asked) <= 12, "it is asked again, less and less often"
        await world.pass_time(60)
        assert (await in_cluster(world, "east"))["status"] == "OK"
        assert await world.replicas("web") == {"east": 7, "west": 4}
