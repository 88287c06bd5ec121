"""The objects that queues depend on: queues, flavours, namespaces, priorities, projects and clusters. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.selectors import SelectorError
from federation.features.queues.rules.configuration import (
    ClusterQueue,
    Component,
    Flavor,
    compile_flavor,
    compile_queue,
    is_drained,
    is_held,
)
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.facts import Job, Option
from federation.planning.projects.projectindex import ProjectIndex
from federation.scheduling.snapshot import ClusterCache


@dataclass(frozen=True, slots=True)
class JobQueueRef:
    """A JobQueue: the ClusterJobQueue that it names, and whether it is stopped."""

    namespace: str
    name: str
    target: str
    is_held: bool = False
    is_drained: bool = False


class QueueObjects:
    """What the objects say, and the facts of jobs that are computed from it once."""

    def __init__(self) -> None:
        self.clusters = ClusterCache()
        self.queues: dict[str, ClusterQueue] = {}
        self.problems: dict[str, str] = {}
        """Why ClusterJobQueues and flavours are not in force, by kind and name."""
        self.job_queues: dict[tuple[str, str], JobQueueRef] = {}
        self.projects = ProjectIndex()
        """Projects, outside of whose clusters no job of their namespaces starts."""
        self._flavors: dict[str, Flavor] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._priorities: dict[str, int] = {}

        self._classes: dict[tuple[str, str], frozenset[str]] = {}
        """The names that a cluster has of a kind of classes; nothing while that is not known."""
        self._jobs: dict[str, Job] = {}
        """Until the job or the configuration changes."""
        self._options: dict[tuple[str, tuple[Component, ...], str], tuple[Option, ...]] = {}

    def _forget_jobs(self) -> None:
        self._jobs.clear()
        self._options.clear()

    def put_queue(self, name: str, source: Mapping[str, Any] | None) -> None:
        """Add, replace or remove a ClusterJobQueue."""
        self._put("queue", name, source, self.queues, compile_queue)

    def put_flavor(self, name: str, source: Mapping[str, Any] | None) -> None:
        """Add, replace or remove a CapacityFlavor."""
        self._put("flavor", name, source, self._flavors, compile_flavor)

    def _put(
        self, kind: str, name: str, source: Mapping[str, Any] | None, known: dict[str, Any], compile_: Any
    ) -> None:
        """Add, replace or remove; a source that is not valid changes nothing, so that a typing error ends no limit."""
        self.problems.pop(f"{kind} {name}", None)
        if source is None:
            known.pop(name, None)
        else:
            try:
                known[name] = compile_(source)
            except (SelectorError, ValueError, TypeError, KeyError) as error:
                self.problems[f"{kind} {name}"] = str(error)
        self._forget_jobs()

    def put_job_queue(self, namespace: str, name: str, spec: Mapping[str, Any] | None) -> None:
        """Add, replace or remove a JobQueue."""
        if spec is None:
            self.job_queues.pop((namespace, name), None)
        else:
            target = str(spec.get("clusterJobQueue") or "")
            self.job_queues[namespace, name] = JobQueueRef(namespace, name, target, is_held(spec), is_drained(spec))
        self._forget_jobs()

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Record the labels of a namespace; return whether they changed."""
        if self._namespaces.get(name) == labels:
            return False
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = labels
        self._forget_jobs()
        return True

    def put_project(self, name: str, source: Mapping[str, Any] | None) -> bool:
        """Add, replace or remove a Project; return whether jobs may have other clusters."""
        has_changed = self.projects.remove(name) if source is None else self.projects.put(source)
        if has_changed:
            self._forget_jobs()
        return bool(has_changed)

    def put_priority(self, name: str, value: int | None) -> None:
        """Record the value of a PriorityClass."""
        if value is None:
            self._priorities.pop(name, None)
        else:
            self._priorities[name] = value
        self._forget_jobs()

    def put_cluster(self, name: str, source: Mapping[str, Any] | None) -> bool:
        """Record a FederatedCluster; return whether anything changed that admission depends on."""
        before = self.clusters.labels(), self.clusters.is_ready(name)
        change = self.clusters.update(source) if source is not None else self.clusters.remove(name)
        if (self.clusters.labels(), self.clusters.is_ready(name)) != before:
            self._forget_jobs()
        return bool(change)

    def put_classes(self, cluster: str, kind: str, found: frozenset[str] | None) -> None:
        """Record which objects of a kind of classes a cluster has, None if that is not known."""
        if found is None:
            self._classes.pop((cluster, kind), None)
        else:
            self._classes[cluster, kind] = found
        self._forget_jobs()

    def lacking(self, entry: Entry) -> dict[str, str]:
        """Return the clusters that would refuse the pods of an object, each with the class that it lacks."""
        return {
            cluster: f"{kind} {name}"
            for kind, name in reversed(entry.classes)
            for cluster in self.clusters.labels()
            if (found := self._classes.get((cluster, kind))) is not None and name not in found
        }

    def queue_of(self, entry: Entry) -> ClusterQueue | None:
        """Return the ClusterJobQueue of an object, None if its JobQueue does not lead to one."""
        ref = self.job_queues.get((entry.namespace, entry.queue))
        return self.queues.get(ref.target) if ref is not None else None

    def problem_of_queue(self, namespace: str, name: str) -> str:
        """Return why jobs of a JobQueue cannot be admitted, "" if they can."""
        ref = self.job_queues.get((namespace, name))
        if ref is None:
            return f"JobQueue {name} does not exist in namespace {namespace}"
        queue = self.queues.get(ref.target)
        # Whether a queue of others exists is not said.
        if queue is None or queue.namespaces is None or not queue.namespaces.matches(self._namespaces.get(namespace)):
            return f"ClusterJobQueue {ref.target} does not exist or does not admit namespace {namespace}"
        return f"JobQueue {name} is stopped: {_policy(ref)}" if ref.is_held else ""

    def stopped(self, entry: Entry, pays: str) -> str:
        """Return why an admitted object has to leave its cluster and wait, "" if it may stay."""
        if entry.is_stopped:
            return "its author stopped it" if entry.is_held else "its author suspended it"
        ref, queue = self.job_queues.get((entry.namespace, entry.queue)), self.queues.get(pays)
        if ref is not None and ref.is_drained:
            return f"JobQueue {ref.name} is stopped: {_policy(ref)}"
        if queue is not None and queue.queue.is_drained:
            return f"ClusterJobQueue {pays} is stopped: spec.stopPolicy is HoldAndDrain"
        return ""

    def flavor_names(self) -> frozenset[str]:
        """Return the names of the flavours in force."""
        return frozenset(self._flavors)


def _policy(ref: JobQueueRef) -> str:
    return f"spec.stopPolicy is {'HoldAndDrain' if ref.is_drained else 'Hold'}"
