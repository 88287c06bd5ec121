"""The pods of subsets in member clusters, for the UnitedDeployments of the host.

A member's pods are watched from the first time that a subset has the member as its target or is placed there. While a
member is not ready or its cache is not current, `problem` says so: pods that are not seen may still run.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.conditions import is_true
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Object
from federation.features.uniteddeployment.localpods import BY_SUBSET, Ordinals, subset_keys
from federation.features.uniteddeployment.rules.clustertargets import target_of
from federation.features.uniteddeployment.rules.subsetvolumes import find_data
from federation.features.uniteddeployment.rules.workloadkinds import WorkloadKind
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.guard.earliervolumes import claim_stems_of, has_data, stems_of
from federation.runtime.handlers import Handler
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.runtime.transforms import drop_managed_fields, slim_claim

_WATCHED = (PODS, PERSISTENT_VOLUME_CLAIMS)
_BY_STEM = "uniteddeployments/stem"


def _ignore(old: Object | None, new: Object | None) -> None:
    """Handle nothing: the handler before `run`."""


class MemberPods:
    """The pods of all members. Lives as long as the control plane."""

    def __init__(self, host: Host) -> None:
        self._objects = host.objects
        self._members = host.members
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._informers: dict[str, Informer] = {}
        self._claims: dict[str, Informer] = {}
        self._on_pod: Handler = _ignore
        self._on_all: Callable[[], None] = lambda: None

    async def run(self, on_pod: Handler, on_all: Callable[[], None]) -> None:
        """Subscribe once clusters and placements are known. Caches of pods are completed later."""
        await self._clusters.wait_synced()
        await self._objects.wait_synced()
        self._on_pod, self._on_all = on_pod, on_all

        def on_cluster(old: Object | None, new: Object | None) -> None:
            if _facts(old) != _facts(new):
                on_all()

        self._clusters.add_handler(on_cluster)
        self._members.add_sync_listener(lambda _cluster, resource: on_all() if resource in _WATCHED else None)

    def in_subset(self, namespace: str, subset: str) -> list[Object]:
        """Return the cached pods with this subset, of all members that are watched."""
        key = f"{namespace}/{subset}"
        return list(chain.from_iterable(informer.by_index(BY_SUBSET, key) for informer in self._informers.values()))

    def problem(self, subset: Mapping[str, Any], namespace: str, kind: WorkloadKind, workload: Object | None) -> str:
        """Return the first cluster of the subset that cannot be observed, and why; "" if all can.

        Without a workload there are no pods to be seen, so the cluster only has to be ready.
        """
        target = target_of(subset)
        for cluster in self._placement(namespace, kind, workload) if target is None else [target[1]]:
            found = self._clusters.get("", cluster)
            if found is None:
                return f"cluster {cluster} does not exist"
            if not _is_ready(found):
                return f"cluster {cluster} is not ready"
            informer = self._watch(cluster)
            is_current = informer is not None and informer.has_synced and informer.is_connected
            if workload is not None and not is_current:
                return f"the pods of cluster {cluster} are not known"
        return ""

    def data(self, namespace: str, kind: WorkloadKind, workload: Object, pods: Iterable[Object]) -> Ordinals:
        """Return the ordinals of a workload whose volumes have data, None while a member's claims are not listed."""
        stems = claim_stems_of(workload)
        if not (kind.is_stateful and stems):
            return frozenset()
        claims: list[Object] = []
        for cluster in self._placement(namespace, kind, workload):
            informer = self._watch_claims(cluster)
            if informer is None:
                continue
            if not informer.has_synced:
                return None
            claims += chain.from_iterable(informer.by_index(_BY_STEM, f"{namespace}/{stem}") for stem in stems)
        return find_data(claims, pods)

    async def label(self, namespace: str, name: str, labels: Mapping[str, str]) -> None:
        """Set labels of a pod in every member that has it."""
        for cluster, informer in self._holders(namespace, name):
            client = self._members.client(cluster)
            written = await client.patch(PODS, name, {"metadata": {"labels": labels}}, namespace=namespace)
            await informer.wait_for(written["metadata"]["resourceVersion"])

    async def delete(self, namespace: str, name: str) -> None:
        """Delete a pod in every member that has it."""
        for cluster, _ in self._holders(namespace, name):
            await self._members.client(cluster).delete(PODS, name, namespace)

    def _placement(self, namespace: str, kind: WorkloadKind, workload: Object | None) -> Iterable[str]:
        type_ = self._objects.types.for_resource(kind.resource)
        if type_ is None or workload is None:
            return ()
        federated = self._objects.get(self._objects.key_for(type_, namespace, workload["metadata"]["name"]))
        return sorted(effective_placement(federated)) if federated is not None else ()

    def _watch(self, cluster: str) -> Informer | None:
        informer = self._members.ensure_selected_informer(
            cluster, PODS, names.SUBSET_NAME_LABEL, transform=drop_managed_fields
        )
        if informer is None:
            self._informers.pop(cluster, None)
        elif self._informers.get(cluster) is not informer:
            self._informers[cluster] = informer
            informer.add_index(BY_SUBSET, subset_keys)
            informer.add_handler(self._on_pod)
        return informer

    def _watch_claims(self, cluster: str) -> Informer | None:
        informer = self._members.ensure_selected_informer(cluster, PERSISTENT_VOLUME_CLAIMS, "", transform=slim_claim)
        if informer is not None and self._claims.get(cluster) is not informer:
            self._claims[cluster] = informer
            informer.add_index(_BY_STEM, stems_of)
            informer.add_handler(self._on_claim)
        return informer

    def _on_claim(self, old: Object | None, new: Object | None) -> None:
        if old is not None and has_data(old) and (new is None or not has_data(new)):
            self._on_all()

    def _holders(self, namespace: str, name: str) -> list[tuple[str, Informer]]:
        found = [each for each in self._informers.items() if each[1].get(namespace, name) is not None]
        if not found:
            raise NotFound(f"no member has pod {namespace}/{name}")
        return found


def _is_ready(cluster: Object) -> bool:
    return is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY)


def _facts(cluster: Object | None) -> tuple[Any, ...]:
    """Return what decisions read from a FederatedCluster."""
    return () if cluster is None else (_is_ready(cluster), cluster["metadata"].get("labels"))
