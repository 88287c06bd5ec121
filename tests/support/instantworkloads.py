"""The workload controllers of a member without pods: they report every Deployment as running at once.

They are the light stand-in for the simulator's workloads in histories that need no pods. Moves between clusters need
reports, because sync removes replicas only when others are available.
"""

import contextlib

from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.client.client import Client, PatchType


class InstantWorkloads:
    """Reports the Deployments of one member."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            with contextlib.suppress(ApiError):
                page = await self._client.list(DEPLOYMENTS)
                for deployment in page.items:
                    await self._report(deployment)
                async for batch in self._client.watch(DEPLOYMENTS, resource_version=page.resource_version):
                    for event in batch:
                        if event.type in ("ADDED", "MODIFIED"):
                            await self._report(event.object)

    async def _report(self, deployment: Object) -> None:
        metadata, status = deployment["metadata"], deployment.get("status") or {}
        if status.get("observedGeneration") == metadata["generation"]:
            return
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        reported = dict.fromkeys(counts, deployment["spec"]["replicas"])
        body = {"status": {"observedGeneration": metadata["generation"], **reported}}
        with contextlib.suppress(NotFound):
            await self._client.patch(
                DEPLOYMENTS,
                metadata["name"],
                body,
                patch_type=PatchType.MERGE,
                namespace=metadata["namespace"],
                subresource="status",
            )
