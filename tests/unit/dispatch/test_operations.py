"""Writes of one object of a member, when somebody else writes it too."""

from tests.support.member_world import Line

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.dispatch.expectations import MemberKey
from federation.dispatch.operations import MemberWriter, Write
from federation.dispatch.status import ClusterStatus
from federation.planning.rendering.memberobject import Rendered

KEY = MemberKey("m1", CONFIGMAPS, "default", "settings")


def rendered(value: str) -> Rendered:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": {names.MANAGED_LABEL: "true"}}
    return Rendered({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}, value)


async def test_a_process_that_wakes_within_a_write_does_not_undo_what_another_leader_wrote() -> None:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    member, writer = LocalClient(registry), MemberWriter()
    answers = [True, True]
    pool = ClusterPool(clock=clock, may_write=lambda: bool(answers) and answers.pop())
    pool.set_transport("m1", Line(registry, clock))
    client = pool.client("m1")

    async def live() -> Object:
        return await member.get(CONFIGMAPS, KEY.name, KEY.namespace)

    await member.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    await member.create(CONFIGMAPS, rendered("1").object)
    seen = await live()
    assert (await writer.ensure(client, Write(KEY, rendered("2"), seen))).status is ClusterStatus.OK
    # The second answer is from before a pause; every later one is that another process leads.
    outcome = await writer.ensure(client, Write(KEY, rendered("1"), seen))
    assert outcome.status is ClusterStatus.UPDATE_FAILED
    assert (await live())["data"] == {"value": "2"}
    assert answers == []
