"""Questions to members whose answers come in any iteration of the event loop."""

import asyncio
from typing import Any, cast

import pytest
from tests.support.member_world import Line

from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import CONFIGMAPS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Request
from federation.client.pool import ClusterPool
from federation.delivery.members.depot import Depot
from federation.delivery.members.executor import Executor
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.members.operations import MemberWriter
from federation.delivery.members.propagation import Aim, Propagation
from federation.delivery.questions import Questions
from federation.delivery.rules.content import Subject
from federation.delivery.rules.decision import Decision, Question
from federation.runtime.controller import Key
from federation.runtime.host import Host

FEDERATED = {
    "metadata": {"name": "app-configmaps", "namespace": "default"},
    "spec": {"template": {"metadata": {"name": "app"}}},
}
UNUSED = cast("Any", None)


class LateLine(Line):
    """A line whose answers come so many iterations of the event loop later."""

    steps = 0

    async def request(self, request: Request) -> Object:
        try:
            return await super().request(request)
        finally:
            for _ in range(self.steps):
                await asyncio.sleep(0)


@pytest.mark.parametrize("late", ["m1", "m2"])
async def test_an_answer_allows_a_decision_only_when_its_operation_has_ended(late: str) -> None:
    """A decision before that would find the operation under way, and nothing would wake the object again."""
    clock = ManualClock()
    pool, lines = ClusterPool(clock=clock), {}
    for cluster in ("m1", "m2"):
        lines[cluster] = LateLine(Registry(MemoryStore(clock=clock), clock=clock), clock)
        pool.set_transport(cluster, lines[cluster])
    executor = Executor(pool, clock=clock)
    running = asyncio.ensure_future(executor.run())
    subject = Subject(FEDERATED, FederatedType("configmaps", CONFIGMAPS, ()), UNUSED)
    kept, records = KeptState(), MemberRecords(clock)
    host = Host(UNUSED, UNUSED, UNUSED, UNUSED, UNUSED, clock, UNUSED)
    depot = Depot(host, kept, records, executor, UNUSED, MemberWriter(kept), UNUSED, 5, lambda _: None)
    questions = Questions(depot, UNUSED, UNUSED)
    for steps in range(8):
        lines[late].steps = steps
        propagation = Propagation(Aim(Key("default", "app-configmaps"), subject))
        propagation.decisions = {cluster: Decision(question=Question.LOOK_UP) for cluster in lines}
        async for cluster in questions.answers(propagation):
            assert not executor.is_pending(subject.member_key(cluster)), f"{steps} iterations"
            propagation.decisions[cluster] = Decision()
        assert propagation.absent == {"m1", "m2"}
    running.cancel()
    await pool.close()
