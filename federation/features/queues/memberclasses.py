"""The classes that pods name and that no object brings along: PriorityClasses and RuntimeClasses of members.

A member refuses pods that name a class which it does not have. So a job is admitted only to clusters that have its
classes, and others give way to it only where it can run. They are watched in the members from the first JobQueue on. A
cluster whose cache is not complete counts as having all of them.
"""

from collections.abc import Callable
from functools import partial

from federation.apimachinery.resources import PRIORITY_CLASSES, RUNTIME_CLASSES, Object, Resource
from federation.runtime.members import Members

RESOURCES = {each.kind: each for each in (PRIORITY_CLASSES, RUNTIME_CLASSES)}


class MemberClasses:
    """Watches the classes. `changed` is called with a cluster, a kind and the names that the cluster has."""

    def __init__(self, members: Members, changed: Callable[[str, str, frozenset[str]], None]) -> None:
        self._members = members
        self._changed = changed
        self._is_watching = False
        self._handled: set[tuple[str, str]] = set()
        members.add_sync_listener(self._on_synced)

    def ensure(self) -> None:
        """Watch them in all clusters, now and later."""
        if not self._is_watching:
            self._is_watching = True
            for cluster in self._members.clusters:
                self.add_cluster(cluster)

    def add_cluster(self, cluster: str) -> None:
        """Watch them in a cluster that was added."""
        for kind in RESOURCES if self._is_watching else ():
            self._watch(cluster, kind)

    def remove_cluster(self, cluster: str) -> None:
        """Forget a cluster that is gone."""
        self._handled = {(name, kind) for name, kind in self._handled if name != cluster}

    def _watch(self, cluster: str, kind: str) -> None:
        informer = self._members.ensure_owned_informer(cluster, RESOURCES[kind], slim_class)
        if informer is not None and (cluster, kind) not in self._handled:
            self._handled.add((cluster, kind))
            informer.add_handler(partial(self._on_class, cluster, kind))

    def _on_class(self, cluster: str, kind: str, old: Object | None, new: Object | None) -> None:
        if old is None or new is None:
            self._report(cluster, kind)

    def _on_synced(self, cluster: str, resource: Resource) -> None:
        if RESOURCES.get(resource.kind) == resource:
            self._report(cluster, resource.kind)

    def _report(self, cluster: str, kind: str) -> None:
        informer = self._members.ensure_owned_informer(cluster, RESOURCES[kind], slim_class)
        if informer is not None and informer.has_synced:
            self._changed(cluster, kind, frozenset(obj["metadata"]["name"] for obj in informer.cache.scan()))


def slim_class(source: Object) -> Object:
    """Return the name of a class; nothing else of it is read."""
    metadata = source["metadata"]
    return {"metadata": {key: metadata[key] for key in ("name", "resourceVersion") if key in metadata}}
