"""Triggers of Projects, and their wiring: changes of Projects, of claims on their namespaces, and of clusters."""

import asyncio
from collections import Counter

from federation.api.resources import FEDERATED_CLUSTERS, PROJECTS
from federation.apimachinery.resources import Object
from federation.features.projects.reconcile import Reconciler
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.projects.projectindex import ProjectIndex
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_WORKERS = 2


class ProjectController:
    """Keeps what Projects make. `run` runs until cancelled."""

    def __init__(self, host: Host, *, gives_rights: bool) -> None:
        self._objects = host.objects
        self._index = ProjectIndex()
        self._projects = host.informers.for_resource(PROJECTS)
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        reconciler = Reconciler(
            host, self._projects, self._index, self._clusters_of, self._leaving, gives_rights=gives_rights
        )
        self.controller: Controller[str] = Controller(
            "projects", reconciler.reconcile, workers=_WORKERS, clock=host.clock
        )
        self._projects.add_handler(self._on_project)
        self._clusters.add_handler(self._on_cluster)

    async def run(self) -> None:
        """Start the workers once Projects, clusters and federated objects are cached."""
        await asyncio.gather(self._projects.wait_synced(), self._clusters.wait_synced(), self._objects.wait_synced())
        await self.controller.run()

    def _clusters_of(self, name: str) -> list[str]:
        project = self._index.get(name)
        found = (each["metadata"] for each in self._clusters.list() if not each["metadata"].get("deletionTimestamp"))
        has = (lambda _name, _labels: False) if project is None else project.has
        return sorted(each["name"] for each in found if has(each["name"], each.get("labels") or {}))

    def _leaving(self, name: str) -> Counter[str]:
        project, own = self._index.get(name), frozenset(self._clusters_of(name))
        counts: Counter[str] = Counter()
        for namespace in project.namespaces if project is not None else ():
            if self._index.of(namespace) is project:
                for federated in self._objects.list_namespace(namespace):
                    counts.update(effective_placement(federated) - own)
        return counts

    def _on_project(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        changed = self._index.put(new) if new is not None else self._index.remove(name)
        self.controller.enqueue(name)
        for source in self._projects.list() if changed else ():
            # Of projects that claim one namespace, another one may have it now.
            if not changed.isdisjoint(source["spec"]["namespaces"]):
                self.controller.enqueue(source["metadata"]["name"])

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if _selected_by(old) != _selected_by(new):
            for source in self._projects.list():
                self.controller.enqueue(source["metadata"]["name"])


def _selected_by(cluster: Object | None) -> object:
    if cluster is None or cluster["metadata"].get("deletionTimestamp"):
        return None
    return cluster["metadata"].get("labels") or {}
