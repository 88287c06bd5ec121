"""Keeps the state equal to the host's objects, event by event, and says when a round is due."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from federation.api.resources import CAPACITY_FLAVORS, CLUSTER_JOB_QUEUES, FEDERATED_CLUSTERS, JOB_QUEUES, PROJECTS
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import JOBS, NAMESPACES, PRIORITY_CLASSES, Object, Resource
from federation.features.queues.memberclasses import RESOURCES, MemberClasses
from federation.features.queues.rules.entries import Entry, to_entry
from federation.features.queues.rules.faults import JobFailed, blame
from federation.features.queues.rules.queuestate import QueueState
from federation.planning.federatedobject.finished import kind_of
from federation.runtime.controller import Key, key_of
from federation.runtime.host import Host
from federation.scheduling.jobqueues import QueueIndex
from federation.scheduling.worldobjects import name_of


class Observer:
    """Handles the events. `changed` is called when a round may have another result than the last one."""

    def __init__(self, host: Host, state: QueueState, changed: Callable[[], None]) -> None:
        self._objects, self._clock = host.objects, host.clock
        self._state = state
        self._changed = changed
        self._index = QueueIndex()
        self._informers = {
            resource: host.informers.for_resource(resource)
            for resource in (
                CAPACITY_FLAVORS,
                CLUSTER_JOB_QUEUES,
                JOB_QUEUES,
                FEDERATED_CLUSTERS,
                NAMESPACES,
                PRIORITY_CLASSES,
                PROJECTS,
                JOBS,
            )
        }
        self._keys: dict[str, Key] = {}
        self._classes = MemberClasses(host.members, self._on_classes)

    async def run(self) -> None:
        """Subscribe; return once everything is known."""
        handlers = {
            CAPACITY_FLAVORS: self._on_flavor,
            CLUSTER_JOB_QUEUES: self._on_cluster_queue,
            JOB_QUEUES: self._on_job_queue,
            FEDERATED_CLUSTERS: self._on_cluster,
            NAMESPACES: self._on_namespace,
            PRIORITY_CLASSES: self._on_priority_class,
            PROJECTS: self._on_project,
            JOBS: self._on_job,
        }
        for resource, handler in handlers.items():
            self._informers[resource].add_handler(handler)
        await asyncio.gather(self._objects.wait_synced(), *(each.wait_synced() for each in self._informers.values()))
        self._objects.subscribe(self._on_federated, None, is_replayed=False)  # without queues nothing is to be read
        self._objects.types.add_listener(lambda _: self._observe_all(), lambda _: None)
        self._observe_all()

    def present(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return a queue as it is cached."""
        return self._informers[resource].get(namespace, name)

    def key_of(self, key: str) -> Key:
        """Return the federated object's key of an entry."""
        return self._keys[key]

    def observe(self, federated: Object) -> None:
        """Record a federated object."""
        key, fault = key_of(federated), None
        try:
            entry = blame(lambda: self._entry_of(str(key), federated), lambda: str(key))
        except JobFailed as failed:
            entry, fault = self._state.entries.get(failed.key), failed.error
        if fault is not None:
            self._state.record_fault(str(key), fault)  # what was known of it holds
            self._changed()
        elif entry is None:
            self._remove(key)
        elif self._state.put(entry, self._clock.now().timestamp(), revision_of(federated)):
            self._keys[entry.key] = key
            self._changed()

    def _entry_of(self, key: str, federated: Object) -> Entry | None:
        type_ = self._objects.type_of(federated)
        queue = self._index.queue_of(federated, type_) if type_ is not None else ""
        if type_ is None or not queue:
            return None
        return to_entry(key, federated, type_, queue, self._status_of(federated))

    def _status_of(self, federated: Object) -> Mapping[str, Any]:
        """Return the merged status of a Job, {} for other kinds."""
        template = federated["spec"]["template"]
        if kind_of(template) != (JOBS.group, JOBS.kind):
            return {}
        job = self._informers[JOBS].get(federated["metadata"].get("namespace", ""), template["metadata"]["name"])
        return (job or {}).get("status") or {}

    def _on_job(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a Job: pods that have ended give up what they held."""
        if new is None or not self._state.job_queues or (old or {}).get("status") == new.get("status"):
            return
        metadata = new["metadata"]
        if (
            federated := self._objects.of_source(JOBS.group, JOBS.kind, metadata["namespace"], metadata["name"])
        ) is not None:
            self.observe(federated)

    def _remove(self, key: Key) -> None:
        if self._state.remove(str(key), self._clock.now().timestamp()):
            del self._keys[str(key)]
            self._changed()

    def _observe_all(self) -> None:
        if self._state.job_queues:
            for federated in self._objects.scan():
                self.observe(federated)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.observe(new)
        elif old is not None:
            self._remove(key_of(old))

    def _on_cluster_queue(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old.get("spec") != new.get("spec"):
            self._state.put_queue((new if new is not None else old or {})["metadata"]["name"], new)
            self._changed()

    def _on_flavor(self, old: Object | None, new: Object | None) -> None:
        self._state.put_flavor((new if new is not None else old or {})["metadata"]["name"], new)
        self._changed()

    def _on_job_queue(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        either = new if new is not None else old or {}
        namespace, name = name_of(either)
        self._state.put_job_queue(namespace, name, None if new is None else new.get("spec") or {})
        if new is None:
            self._index.remove(either)
        else:
            self._index.put(either)
            self._classes.ensure()
        if self._objects.has_synced:
            for federated in self._objects.list_namespace(namespace):
                self.observe(federated)
        self._changed()

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        if new is None:
            self._classes.remove_cluster(name)
            for kind in RESOURCES:
                self._state.put_classes(name, kind, None)
        else:
            self._classes.add_cluster(name)
        if self._state.put_cluster(name, new):
            self._changed()

    def _on_classes(self, cluster: str, kind: str, found: frozenset[str]) -> None:
        self._state.put_classes(cluster, kind, found)
        self._changed()

    def _on_project(self, old: Object | None, new: Object | None) -> None:
        if self._state.put_project((new if new is not None else old or {})["metadata"]["name"], new):
            self._changed()

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        metadata = (new if new is not None else old or {})["metadata"]
        labels = None if new is None else metadata.get("labels") or {}
        if self._state.put_namespace(metadata["name"], labels):
            self._changed()

    def _on_priority_class(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        self._state.put_priority(name, None if new is None else int(new.get("value") or 0))
        self._changed()
