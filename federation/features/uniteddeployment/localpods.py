"""The pods of subsets in the cluster of their UnitedDeployments, and the interface that `memberpods.py` shares."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from federation.api import names
from federation.apimachinery.resources import PODS, Object
from federation.client.client import Client
from federation.features.uniteddeployment.rules.workloadkinds import WorkloadKind
from federation.runtime.handlers import Handler
from federation.runtime.informers import Informers

Ordinals = frozenset[int] | None
BY_SUBSET = "uniteddeployments/subset"
"""Index of pods by namespace and subset name."""


class SubsetPods(Protocol):
    """The pods with a subset, where they run: in the cluster itself, or in members."""

    async def run(self, on_pod: Handler, on_all: Callable[[], None]) -> None:
        """Subscribe, and return once the caches that are needed at the start are complete.

        `on_pod` is called for changes of pods, `on_all` when every UnitedDeployment must be reconciled.
        """
        ...

    def in_subset(self, namespace: str, subset: str) -> list[Object]:
        """Return the cached pods with this subset."""
        ...

    def problem(self, subset: Mapping[str, Any], namespace: str, kind: WorkloadKind, workload: Object | None) -> str:
        """Return why the pods of a subset are not known, "" if they are; `workload` is that of the subset."""
        ...

    def data(self, namespace: str, kind: WorkloadKind, workload: Object, pods: Iterable[Object]) -> Ordinals:
        """Return the ordinals of a workload whose volumes have data, None while they are not known."""
        ...

    async def label(self, namespace: str, name: str, labels: Mapping[str, str]) -> None:
        """Set labels of a pod and wait until the cache has them; NotFound, and other errors of the cluster."""
        ...

    async def delete(self, namespace: str, name: str) -> None:
        """Delete a pod; NotFound, and other errors of the cluster."""
        ...


class LocalPods:
    """The pods of the cluster of the client."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._informer = informers.for_resource(PODS, label_selector=names.SUBSET_NAME_LABEL)
        self._informer.add_index(BY_SUBSET, subset_keys)

    async def run(self, on_pod: Handler, on_all: Callable[[], None]) -> None:  # noqa: ARG002  # an interface's signature
        """Subscribe once the cache is complete."""
        await self._informer.wait_synced()
        self._informer.add_handler(on_pod)

    def in_subset(self, namespace: str, subset: str) -> list[Object]:
        """Return the cached pods with this subset."""
        return list(self._informer.by_index(BY_SUBSET, f"{namespace}/{subset}"))

    def problem(self, subset: Mapping[str, Any], namespace: str, kind: WorkloadKind, workload: Object | None) -> str:  # noqa: ARG002  # an interface's signature
        """Return "": the cluster writes its own status."""
        return ""

    def data(self, namespace: str, kind: WorkloadKind, workload: Object, pods: Iterable[Object]) -> Ordinals:  # noqa: ARG002  # an interface's signature
        """Return none: inside one cluster a subset is a part of the nodes, and pods move as with OpenKruise."""
        return frozenset()

    async def label(self, namespace: str, name: str, labels: Mapping[str, str]) -> None:
        """Set labels of a pod and wait until the cache has them."""
        written = await self._client.patch(PODS, name, {"metadata": {"labels": labels}}, namespace=namespace)
        await self._informer.wait_for(written["metadata"]["resourceVersion"])

    async def delete(self, namespace: str, name: str) -> None:
        """Delete a pod."""
        await self._client.delete(PODS, name, namespace)


def subset_keys(pod: Object) -> Iterator[str]:
    """Return the index keys of a pod."""
    metadata = pod["metadata"]
    subset = (metadata.get("labels") or {}).get(names.SUBSET_NAME_LABEL)
    if subset:
        yield f"{metadata.get('namespace', '')}/{subset}"
