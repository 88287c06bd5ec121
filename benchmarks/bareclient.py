"""A client without a control plane, for comparison: it makes the same writes to the same members.

It sends one server-side apply per Deployment and member, in a namespace of its own, as the control plane does.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.client.client import PatchType
from federation.client.http import HTTPClient
from federation.planning.steps.strategy import Limits

NAMESPACE = "bare"
WRITERS = 16
"""Concurrent requests per member."""

ToDeployment = Callable[[int, int], Object]
"""Returns a Deployment by number and replicas."""


async def in_parallel(count: int, work: Callable[[int], Awaitable[object]], *, writers: int = WRITERS) -> None:
    """Do the work of each number below `count`, with so many writers at a time."""
    indices = iter(range(count))

    async def writer() -> None:
        for index in indices:
            await work(index)

    await asyncio.gather(*(writer() for _ in range(writers)))


class BareClient:
    """Writes `count` Deployments to every member; each method returns the seconds that it took."""

    def __init__(self, clients: dict[str, HTTPClient], to_deployment: ToDeployment, count: int) -> None:
        self._clients = list(clients.values())
        self._to_deployment = to_deployment
        self.count = count

    async def start(self) -> None:
        for client in self._clients:
            with contextlib.suppress(Exception):
                await client.create(
                    NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
                )

    async def apply_all(self, replicas: int, tag: str, label: str = "") -> float:
        """Create or change all Deployments, with so many replicas over all members."""
        return await self._of_all(lambda client, index: self.apply(client, index, replicas, tag, label))

    async def settle(self) -> None:
        """Wait until the pods of all Deployments are as wanted, so that the next change starts from rest."""
        for client in self._clients:
            while not await _are_settled(client):
                await asyncio.sleep(0.2)

    async def delete_all(self) -> float:
        async def delete(client: HTTPClient, index: int) -> None:
            await client.delete(DEPLOYMENTS, self._to_deployment(index, 1)["metadata"]["name"], NAMESPACE)

        return await self._of_all(delete)

    async def apply_one(self, index: int, replicas: int) -> float:
        """Create one Deployment in all members at once."""
        started = time.monotonic()
        await asyncio.gather(*(self.apply(client, index, replicas, "1.0", "") for client in self._clients))
        return time.monotonic() - started

    async def _of_all(self, work: Callable[[HTTPClient, int], Awaitable[None]]) -> float:
        targets = [(client, index) for index in range(self.count) for client in self._clients]
        started = time.monotonic()
        await in_parallel(len(targets), lambda at: work(*targets[at]), writers=WRITERS * len(self._clients))
        return time.monotonic() - started

    def name_of(self, index: int) -> str:
        """Return the name of a Deployment."""
        return str(self._to_deployment(index, 1)["metadata"]["name"])

    async def apply(
        self, client: HTTPClient, index: int, replicas: int, tag: str, label: str, limits: Limits | None = None
    ) -> None:
        """Create or change one Deployment in one member; `limits` are those of its updates."""
        body = self._to_deployment(index, max(1, replicas // len(self._clients)))
        if limits is not None:
            rolling = {"maxSurge": limits.surge, "maxUnavailable": limits.unavailable}
            body["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
        body["metadata"] |= {"namespace": NAMESPACE, "labels": {**body["metadata"]["labels"], "override": label}}
        body["spec"]["template"]["spec"]["containers"][0]["image"] = to_image(tag)
        await client.patch(
            DEPLOYMENTS,
            body["metadata"]["name"],
            body,
            patch_type=PatchType.APPLY,
            namespace=NAMESPACE,
            field_manager="bare",
            force=True,
        )


def to_image(tag: str) -> str:
    """Return the image of bare Deployments."""
    return f"registry.example/app:{tag}"


async def _are_settled(client: HTTPClient) -> bool:
    # In pages: ten thousand Deployments are more bytes than the client takes in one response.
    async for each in client.list_all(DEPLOYMENTS, NAMESPACE, limit=500):
        if not are_pods_ready(each):
            return False
    return True


def are_pods_ready(deployment: Object) -> bool:
    """Return whether a member has all pods of the newest version, ready, and no other."""
    status, wanted = deployment.get("status") or {}, deployment["spec"]["replicas"]
    is_observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
    counts = (status.get(field) for field in ("replicas", "updatedReplicas", "readyReplicas"))
    return is_observed and all(count == wanted for count in counts)
