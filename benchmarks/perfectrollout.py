"""A perfect controller of one change: the fastest rolling update that the limits and the members allow.

It knows nothing but `maxSurge` and `maxUnavailable` of each Deployment over all members, and shares them out: each pod of
the limits goes to one member, which gets the new image in the same write, and when a member has replaced its pods, its
share goes to the next member at once. It plans nothing, stores nothing and reports nothing.
"""

import asyncio
import contextlib
import time
from collections import deque

from bareclient import NAMESPACE, WRITERS, BareClient, are_pods_ready, to_image

from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.client.client import WatchEventType
from federation.client.http import HTTPClient
from federation.planning.steps.strategy import Limits, Strategy

DEFAULT_LIMIT = "25%"


def shares_of(limits: Limits, members: int) -> list[Limits]:
    """Return the limits of the members that may be updated at the same time, which together are those of all."""
    units = [(1, 0)] * limits.surge + [(0, 1)] * limits.unavailable
    dealt = [units[first::members] for first in range(min(members, len(units)))]
    return [Limits(sum(surge for surge, _ in hand), sum(away for _, away in hand)) for hand in dealt]


class PerfectRollout:
    """Gives all Deployments of a bare client another image; `limit` is their maxSurge and maxUnavailable."""

    def __init__(self, bare: BareClient, clients: list[HTTPClient], replicas: int, limit: str) -> None:
        self._bare, self._clients, self._replicas = bare, clients, replicas
        self._shares = shares_of(Strategy(limit, limit).limits(replicas), len(clients))
        self._writers = [asyncio.Semaphore(WRITERS) for _ in clients]
        self._done: dict[tuple[int, str], asyncio.Event] = {}

    async def run(self, tag: str, label: str) -> float:
        """Return the seconds until all members have replaced all pods."""
        bare, members = self._bare, range(len(self._clients))
        names = {index: bare.name_of(index) for index in range(bare.count)}
        self._done = {(member, name): asyncio.Event() for member in members for name in names.values()}
        watches = [asyncio.create_task(self._watch(member, to_image(tag))) for member in members]
        started = time.monotonic()
        try:
            await asyncio.gather(*(self._roll_out(index, name, tag, label) for index, name in names.items()))
            return time.monotonic() - started
        finally:
            for watch in watches:
                watch.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watch

    async def _roll_out(self, index: int, name: str, tag: str, label: str) -> None:
        waiting = deque(range(len(self._clients)))

        async def spend(share: Limits) -> None:
            while waiting:
                member = waiting.popleft()
                async with self._writers[member]:
                    await self._bare.apply(self._clients[member], index, self._replicas, tag, label, share)
                await self._done[member, name].wait()

        await asyncio.gather(*(spend(share) for share in self._shares))

    async def _watch(self, member: int, image: str) -> None:
        client = self._clients[member]
        version = (await client.list(DEPLOYMENTS, NAMESPACE, limit=1)).resource_version
        while True:
            async for batch in client.watch(DEPLOYMENTS, NAMESPACE, resource_version=version):
                for event in batch:
                    version = event.object["metadata"]["resourceVersion"]
                    if event.type is not WatchEventType.BOOKMARK and is_rolled_out(event.object, image):
                        self._done[member, event.object["metadata"]["name"]].set()


def is_rolled_out(deployment: Object, image: str) -> bool:
    """Return whether a member has replaced all pods of the Deployment by ready ones with the image."""
    return bool(deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image) and are_pods_ready(
        deployment
    )
