"""Write the workloads, pods and revisions of UnitedDeployments.

Operations of one reconcile run in batches of 1, 2, 4 …, and no batch starts after one with a failure, so that a broken
template costs few requests. Failures are returned, because the status stores them.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import AlreadyExists, FederationError, NotFound
from federation.apimachinery.resources import CONTROLLER_REVISIONS, Object
from federation.client.client import Client
from federation.features.uniteddeployment.children import Children
from federation.features.uniteddeployment.names import RESERVED_POD_LABEL, UNITED_DEPLOYMENT_MANAGER
from federation.features.uniteddeployment.rules.subsettemplate import Target, render_workload
from federation.features.uniteddeployment.rules.templaterevisions import RevisionPlan, surplus_revisions
from federation.features.uniteddeployment.rules.workloadkinds import WorkloadKind
from federation.planning.authors import authors_of
from federation.planning.corerules import PatchPod
from federation.runtime.onbehalf import apply_for

Operation = Callable[[], Awaitable[None]]


async def run_in_batches(operations: Sequence[Operation]) -> list[FederationError]:
    """Run the operations and return the failures of the batch that failed; later batches do not run."""
    start, size = 0, 1
    failures: list[FederationError] = []
    while start < len(operations) and not failures:
        batch = operations[start : start + size]
        results = await asyncio.gather(*map(_attempt, batch))
        failures = [failure for failure in results if failure is not None]
        start, size = start + size, size * 2
    return failures


async def _attempt(operation: Operation) -> FederationError | None:
    try:
        await operation()
    except FederationError as failure:
        return failure
    return None


class SubsetWriter:
    """Writes through the client of one cluster and waits until the caches have its writes."""

    def __init__(self, client: Client, children: Children, patch_pod: PatchPod) -> None:
        self._client = client
        self._children = children
        self._patch_pod = patch_pod

    async def write(
        self, united: Object, subset: Mapping[str, Any], kind: WorkloadKind, target: Target, name: str = ""
    ) -> None:
        """Create the workload of a subset, or update the one with this name, on behalf of the authors."""
        workload = render_workload(united, subset, kind, target, self._patch_pod, name=name)
        written = await apply_for(
            authors_of(united), self._client, kind.resource, workload, field_manager=UNITED_DEPLOYMENT_MANAGER
        )
        await self._children.wait_for(kind, written["metadata"]["resourceVersion"])

    async def delete(self, workload: Object, kind: WorkloadKind) -> None:
        """Delete a workload in the background; one that is gone or already being deleted is left alone."""
        metadata = workload["metadata"]
        if metadata.get("deletionTimestamp"):
            return
        with contextlib.suppress(NotFound):
            await self._client.delete(
                kind.resource,
                metadata["name"],
                metadata["namespace"],
                uid=metadata["uid"],
                propagation_policy="Background",
            )

    async def delete_pods(self, namespace: str, pods: Iterable[str]) -> None:
        """Delete pods that block the update of a StatefulSet."""
        for pod in pods:
            with contextlib.suppress(NotFound):
                await self._children.pods.delete(namespace, pod)

    async def label_pods(self, namespace: str, labels: Mapping[str, str]) -> None:
        """Set the reserved label of pods."""
        for pod, value in labels.items():
            with contextlib.suppress(NotFound):
                await self._children.pods.label(namespace, pod, {RESERVED_POD_LABEL: value})

    async def write_revisions(self, united: Object, plan: RevisionPlan) -> None:
        """Create or renumber a revision; a revision that exists already is that of an earlier run."""
        namespace = united["metadata"]["namespace"]
        if plan.created is not None:
            with contextlib.suppress(AlreadyExists):
                written = await self._client.create(CONTROLLER_REVISIONS, plan.created)
                await self._children.revisions.wait_for(written["metadata"]["resourceVersion"])
        elif plan.renumbered is not None:
            name, number = plan.renumbered
            written = await self._client.patch(CONTROLLER_REVISIONS, name, {"revision": number}, namespace=namespace)
            await self._children.revisions.wait_for(written["metadata"]["resourceVersion"])

    async def trim_revisions(self, united: Object, status: Mapping[str, Any]) -> None:
        """Delete the oldest revisions beyond the limit."""
        live = {status["currentRevision"], status["updatedRevision"]}
        limit = (united.get("spec") or {}).get("revisionHistoryLimit")
        for name in surplus_revisions(self._children.revisions_of(united), live, limit):
            with contextlib.suppress(NotFound):
                await self._client.delete(CONTROLLER_REVISIONS, name, united["metadata"]["namespace"])
