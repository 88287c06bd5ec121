"""When an agent that is not connected says something about its cluster, and when about this process only."""

import asyncio
from contextlib import suppress

import pytest
from tests.support.tunnels import QueueCarrier, carrier_pair

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterUnreachable, Obstacle
from federation.tunnel.tunnel import CarrierClosed, Tunnel
from federation.tunnel.tunnels import AT_ONCE_S, RETURN_S, Tunnels


class Process:
    """A control plane whose probes dial each cluster every two seconds."""

    def __init__(self, *clusters: str) -> None:
        self.clock = ManualClock()
        self.tunnels = Tunnels(self.clock)
        self._clusters = clusters
        self._carriers: dict[str, tuple[QueueCarrier, asyncio.Future[None]]] = {}

    async def connect(self, *clusters: str) -> None:
        for name in clusters:
            ours, theirs = carrier_pair()
            ready = asyncio.Event()
            self.tunnels.add_listener(lambda _, ready=ready: ready.set())
            carrying = asyncio.ensure_future(self.tunnels.carry(name, Tunnel(ours), "first"))
            await ready.wait()
            self._carriers[name] = theirs, carrying

    async def lose(self, *clusters: str) -> None:
        for name in clusters:
            theirs, carrying = self._carriers.pop(name)
            await theirs.send(b"end")
            with suppress(CarrierClosed):
                await carrying

    async def verdict(self, cluster: str) -> Obstacle:
        with pytest.raises(ClusterUnreachable, match=f"the agent of cluster {cluster} is not connected") as refusal:
            await self.tunnels.dial(cluster)
        return refusal.value.obstacle

    async def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds / 2)):
            for name in self._clusters:
                if name not in self._carriers:
                    await self.verdict(name)
            await self.clock.advance(2)


async def test_an_agent_has_a_minute_to_connect_to_a_process_that_has_started() -> None:
    process = Process("paris", "rome")
    assert await process.verdict("paris") is Obstacle.AGENTS_AWAY
    await process.connect("rome")
    await process.pass_time(RETURN_S - 4)
    assert await process.verdict("paris") is Obstacle.AGENTS_AWAY
    await process.pass_time(6)
    assert await process.verdict("paris") is Obstacle.NO_ANSWER
    await process.connect("paris")
    await process.lose("paris")
    assert await process.verdict("paris") is Obstacle.NO_ANSWER, "it had connected to this process"
    await process.lose("rome")


async def test_a_process_that_stood_still_gives_agents_the_rest_of_their_minute() -> None:
    process = Process("paris", "rome")
    await process.connect("rome")
    await process.pass_time(4)
    process.clock.skip(600)
    assert await process.verdict("paris") is Obstacle.AGENTS_AWAY
    await process.lose("rome")


async def test_the_loss_of_one_agent_among_others_is_a_silence() -> None:
    process = Process("paris", "rome")
    await process.connect("paris", "rome")
    await process.lose("paris")
    assert await process.verdict("paris") is Obstacle.NO_ANSWER
    await process.pass_time(AT_ONCE_S + 2)
    await process.lose("rome")
    assert await process.verdict("rome") is Obstacle.NO_ANSWER, "the other one was lost long before"


async def test_the_loss_of_all_agents_at_once_is_a_fault_of_ours_however_long() -> None:
    process = Process("paris", "rome")
    await process.connect("paris", "rome")
    await process.lose("paris", "rome")
    for _ in range(3):
        assert await process.verdict("paris") is Obstacle.AGENTS_AWAY
        assert await process.verdict("rome") is Obstacle.AGENTS_AWAY
        await process.pass_time(600)
    await process.connect("rome")
    assert await process.verdict("paris") is Obstacle.NO_ANSWER
    await process.lose("rome")


async def test_agents_that_never_reach_a_process_are_a_fault_of_ours_if_there_are_several() -> None:
    several, one = Process("paris", "rome"), Process("paris")
    for process in (several, one):
        await process.pass_time(RETURN_S + 4)
    assert await several.verdict("paris") is Obstacle.AGENTS_AWAY
    assert await one.verdict("paris") is Obstacle.NO_ANSWER


async def test_an_agent_that_this_process_refuses_is_alive() -> None:
    process = Process("paris", "rome")
    await process.connect("paris", "rome")
    await process.lose("paris")
    process.tunnels.refused("paris")
    assert await process.verdict("paris") is Obstacle.AGENTS_AWAY
    await process.pass_time(RETURN_S)
    assert await process.verdict("paris") is Obstacle.NO_ANSWER
    process.tunnels.refused("unknown")
    assert await process.verdict("unknown") is Obstacle.NO_ANSWER
    await process.lose("rome")


async def test_nothing_is_known_of_a_cluster_that_has_left() -> None:
    process = Process("paris", "rome")
    await process.connect("paris", "rome")
    process.tunnels.forget("rome")
    await process.lose("paris")
    assert await process.verdict("paris") is Obstacle.NO_ANSWER, "rome was not lost"
