"""Watches, once the host has Kueue's definitions: Workloads, their checks, and the queues of workers."""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS, PROJECTS
from federation.apimachinery.resources import CRDS, Object
from federation.features.kueue.names import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    MULTI_KUEUE_CONFIGS,
    WORKLOADS,
)
from federation.features.kueue.reconcile import Informed, Reconciler
from federation.features.kueue.rules.pendingworkloads import GVK
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.transforms import slim_definition
from federation.scheduling.engine import Engine
from federation.scheduling.projectsnapshots import ProjectSnapshots
from federation.scheduling.snapshot import ClusterCache

_WORKERS = 1
"""A nomination must see those before it."""


class KueueController:
    """Nominates clusters for Workloads. `run` works until cancelled, and does nothing on a host without Kueue."""

    def __init__(self, host: Host, engine: Engine) -> None:
        self._host = host
        self._engine = engine
        self._definitions = host.informers.for_resource(CRDS, transform=slim_definition)
        self._has_kueue = asyncio.Event()
        self._clusters = ClusterCache()
        self._scoped = ProjectSnapshots(self._clusters)

    async def run(self) -> None:
        """Wait for Kueue, then watch and work."""
        self._definitions.add_handler(self._on_definition)
        await self._has_kueue.wait()
        find = self._host.informers.for_resource
        self._informed = informed = Informed(find(WORKLOADS), find(ADMISSION_CHECKS), find(MULTI_KUEUE_CONFIGS))
        clusters, projects = find(FEDERATED_CLUSTERS), find(PROJECTS)
        reconciler = Reconciler(self._host, self._engine, self._scoped, informed)
        self._controller: Controller[Key] = Controller(
            "kueue", reconciler.reconcile, workers=_WORKERS, clock=self._host.clock
        )
        clusters.add_handler(self._on_cluster)
        projects.add_handler(self._on_project)
        informed.workloads.add_handler(self._on_workload)
        host_caches = (informed.workloads, informed.checks, informed.configs, clusters, projects)
        await asyncio.gather(*(each.wait_synced() for each in host_caches))
        for informer in (informed.checks, informed.configs):
            informer.add_handler(self._on_settings)
        await self._controller.run()

    def _on_definition(self, old: Object | None, new: Object | None) -> None:
        del old
        if new is None or new["metadata"]["name"] != WORKLOADS.group_resource:
            return
        if any(version.get("name") == WORKLOADS.version for version in new["spec"].get("versions") or ()):
            self._has_kueue.set()

    def _on_workload(self, old: Object | None, new: Object | None) -> None:
        self._controller.enqueue(key_of(new if new is not None else old or {}))

    def _on_settings(self, old: Object | None, new: Object | None) -> None:
        del old, new
        for workload in self._informed.workloads.list():
            self._controller.enqueue(key_of(workload))

    def _on_project(self, old: Object | None, new: Object | None) -> None:
        projects = self._scoped.projects
        changed = projects.put(new) if new is not None else projects.remove((old or {})["metadata"]["name"])
        for namespace in changed:
            for workload in self._informed.workloads.list(namespace):
                self._controller.enqueue(key_of(workload))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        if new is None:
            self._clusters.remove(name)
            self._informed.queues.pop(name, None)
            return
        self._clusters.update(new)
        served = {(type_.get("group"), type_.get("version"), type_.get("kind")) for type_ in _types(new)}
        if tuple(GVK) in served:
            members = self._host.members
            found = [members.ensure_owned_informer(name, each, slim_queue) for each in (CLUSTER_QUEUES, LOCAL_QUEUES)]
            if found[0] is not None and found[1] is not None:
                self._informed.queues[name] = (found[0], found[1])


def _types(cluster: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return (cluster.get("status") or {}).get("apiResourceTypes") or []


def slim_queue(source: Object) -> Object:
    """Return what is read of a ClusterQueue or LocalQueue."""
    metadata, spec, status = source["metadata"], source.get("spec") or {}, source.get("status") or {}
    return {
        "metadata": {key: metadata[key] for key in ("name", "namespace", "resourceVersion") if key in metadata},
        "spec": {key: spec[key] for key in ("clusterQueue", "cohort", "cohortName", "resourceGroups") if key in spec},
        "status": {"flavorsReservation": status.get("flavorsReservation") or []},
    }
