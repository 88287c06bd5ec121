"""`Ledger`: all queues and the objects in them, as the facts that `admission.py` decides about. Pure.

It is rebuilt from the host's objects after a restart: what is admitted is in the annotations of federated objects, and
the order of what waits follows from their age. An object is counted once however often it is observed, and its quota
is free as soon as it has finished or is gone. A change of one object costs a time that does not depend on the others.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from federation.apimachinery.selectors import SelectorError
from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.checks import Answer
from federation.features.queues.rules.configuration import (
    ClusterQueue,
    Component,
    Flavor,
    compile_flavor,
    compile_queue,
    options_for,
)
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.facts import Amounts, Bids, Capacity, Decisions, Job, Option, Reservation, Room
from federation.features.queues.rules.faults import PER_ROUND_MAX, Faults, JobFailed, blame
from federation.features.queues.rules.heldquota import find_less, has_grown, holds_of
from federation.features.queues.rules.rooms import less, to_emptied, to_room
from federation.planning.projects.projectindex import ProjectIndex
from federation.scheduling.deadlines import by_cost, to_offer
from federation.scheduling.framework.gangfit import find_shortfall
from federation.scheduling.framework.types import Cluster
from federation.scheduling.jobqueues import Phase, on_nodes
from federation.scheduling.snapshot import ClusterCache

_HOUR_S = 3600.0
_BACKOFF_S, _BACKOFF_S_MAX = 5.0, 300.0
"""After the scheduler found no place, a job is admitted again after 5, 10, 20 seconds and so on."""
_EXCLUDED_S = 600.0
"""How long a cluster that the scheduler refused is not tried again."""
_UNREPORTED_S = 10.0
"""How long the pods of a job that was just placed may be missing in the report of its cluster."""
_LISTED_MAX = 100
"""Jobs of a JobQueue that leads to no ClusterJobQueue that are listed with the reason."""
_MEAN_WEIGHT = 0.1
"""How much the last job counts in the mean time of a queue's jobs."""


@dataclass(frozen=True, slots=True)
class JobQueueRef:
    """A JobQueue: the ClusterJobQueue that it names."""

    namespace: str
    name: str
    target: str


class Ledger:
    """Queues, flavours, namespaces, priorities, clusters and objects; `decide` runs a round."""

    def __init__(self) -> None:
        self.clusters = ClusterCache()
        self.queues: dict[str, ClusterQueue] = {}
        self.problems: dict[str, str] = {}
        """Why ClusterJobQueues and flavours are not in force, by kind and name."""
        self.job_queues: dict[tuple[str, str], JobQueueRef] = {}
        self.entries: dict[str, Entry] = {}
        self.reserved: Mapping[str, Reservation] = {}
        self.means_s: dict[str, float] = {}
        """The mean time that jobs ran, by ClusterJobQueue."""
        self.projects = ProjectIndex()
        """Projects, outside of whose clusters no job of their namespaces starts."""
        self._flavors: dict[str, Flavor] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._priorities: dict[str, int] = {}
        self._jobs: dict[str, Job] = {}
        """Made from entries once, until the configuration changes."""
        self._options: dict[tuple[str, tuple[Component, ...], str], tuple[Option, ...]] = {}
        self._empty: dict[str, Cluster] = {}
        self._evictions: dict[str, deque[float]] = defaultdict(deque)
        self._answers: dict[str, Answer] = {}
        """Of admission checks, by object."""
        self.faults = Faults()

    # -- configuration

    def put_queue(self, name: str, source: Mapping[str, Any] | None) -> None:
        """Add, replace or remove a ClusterJobQueue."""
        before = self.queues.get(name)
        self._put("queue", name, source, self.queues, compile_queue)
        after = self.queues.get(name)
        if before is not None and (after is None or after.checks != before.checks):
            self._answers.clear()

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

    def put_job_queue(self, namespace: str, name: str, target: str | None) -> None:
        """Add, replace or remove a JobQueue."""
        if target is None:
            self.job_queues.pop((namespace, name), None)
        else:
            self.job_queues[namespace, name] = JobQueueRef(namespace, name, target)
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
        before = self.clusters.labels()
        change = self.clusters.update(source) if source is not None else self.clusters.remove(name)
        if self.clusters.labels() != before:
            self._forget_jobs()
        return bool(change)

    def _forget_jobs(self) -> None:
        self._jobs.clear()
        self._options.clear()

    # -- objects

    def put(self, entry: Entry, now: float) -> None:
        """Add or replace an object with a queue."""
        before = self.entries.get(entry.key)
        if before is not None and before.has_finished < entry.has_finished and entry.admission is not None:
            self._record_length(entry, now)
        if before is not None and (before.components, before.queue) != (entry.components, entry.queue):
            self._answers.pop(entry.key, None)
        self.entries[entry.key] = entry
        self._forget(entry.key)

    def remove(self, key: str, now: float) -> bool:
        """Remove an object that is gone or has no queue any more; return whether it was known."""
        entry = self.entries.pop(key, None)
        self._answers.pop(key, None)
        self._forget(key)
        if entry is not None and entry.placed and entry.admission is not None and not entry.has_finished:
            self._record_length(entry, now)
        return entry is not None

    def _forget(self, key: str) -> None:
        self._jobs.pop(key, None)
        self.faults.forget(key)

    def _record_length(self, entry: Entry, now: float) -> None:
        assert entry.admission is not None  # the callers have checked
        queue, length = self.queue_of(entry), now - entry.admission.at.timestamp()
        if queue is not None and length > 0:
            before = self.means_s.get(queue.queue.name, length)
            self.means_s[queue.queue.name] = before + _MEAN_WEIGHT * (length - before)

    def must_ask(self, key: str, now: float) -> bool:
        """Return whether admission checks have to be asked before an object that could start is admitted."""
        queue, answer = self.queue_of(self.entries[key]), self._answers.get(key)
        if queue is None or not queue.checks:
            return False
        return answer is None or not answer.is_ready or now >= answer.until_s

    def record_answer(self, key: str, answer: Answer) -> None:
        """Record what the admission checks have said about an object."""
        self._answers[key] = answer
        self._jobs.pop(key, None)

    def held_because(self, key: str) -> str:
        """Return why an admission check holds an object, for people."""
        answer = self._answers.get(key)
        return answer.because if answer is not None else ""

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
        return ""

    def problem_of(self, entry: Entry) -> str:
        """Return why an object cannot be admitted at all, "" if it can."""
        fault = self.faults.get(entry.key)
        if problem := self.problem_of_queue(entry.namespace, entry.queue) or entry.problem or (fault and fault.because):
            return problem
        queue = self.queue_of(entry)
        assert queue is not None  # the queue has no problem
        for name in entry.priority_classes:
            if name not in queue.priority_classes:
                return f"its pods name PriorityClass {name}, which ClusterJobQueue {queue.queue.name} does not allow"
            if name not in self._priorities:
                return f"its pods name PriorityClass {name}, which does not exist on the host"
        if entry.is_stopped:
            return "its author suspended it; it waits for its turn as soon as that ends"
        if entry.admission is not None and entry.admission.losses > queue.losses_max:
            return f"it lost its cluster {entry.admission.losses} times, and {queue.losses_max} are allowed"
        return ""

    # -- rounds

    def job_of(self, key: str) -> Job:
        """Return the facts of an object for decisions; the same until it or the configuration changes."""
        job = self._jobs.get(key)
        if job is None:
            entry = self.entries[key]
            try:
                job = blame(lambda: self._to_job(entry), lambda: key) if self.faults.get(key) is None else None
            except JobFailed as failed:
                self.record_fault(key, failed.error)
            job = self._jobs[key] = job or self._set_aside(entry)
        return job

    def record_fault(self, key: str, error: BaseException) -> None:
        """Set a job aside, so that it waits and the others do not."""
        self.faults.record(key, error)
        self._jobs.pop(key, None)

    def _set_aside(self, entry: Entry) -> Job:
        """Return a job that waits, or that keeps what it holds if it is admitted."""
        queue, admission = self.queue_of(entry), entry.admission
        name, leaf = queue.queue.name if queue is not None else "", f"{entry.namespace}/{entry.queue}"
        job = Job(entry.key, name, leaf, (), created_s=entry.created_s, problem=self.problem_of(entry))
        if admission is None or admission.phase is not Phase.ADMITTED:
            return job
        queue_name = admission.pays or name
        return replace(job, queue=queue_name, holds=holds_of(admission), cluster=min(entry.placed, default=""))

    def _to_job(self, entry: Entry) -> Job:
        problem, queue, admission = self.problem_of(entry), self.queue_of(entry), entry.admission
        options: tuple[Option, ...] = ()
        answer = self._answers.get(entry.key)
        if queue is not None:
            project = self.projects.of(entry.namespace)
            shape = (queue.queue.name, entry.components, project.name if project is not None else "")
            if shape not in self._options:
                labels = self.clusters.labels()
                if project is not None:
                    labels = {name: each for name, each in labels.items() if project.has(name, each)}
                self._options[shape] = options_for(entry.components, queue, self._flavors, labels)
            options = self._options[shape]
        job = Job(
            entry.key,
            queue.queue.name if queue is not None else "",
            f"{entry.namespace}/{entry.queue}",
            options,
            entry.needs,
            priority=min((self._priorities.get(name, 0) for name in entry.priority_classes), default=0),
            created_s=entry.created_s,
            limit_s=entry.limit_s,
            held_until_s=answer.until_s if answer is not None and not answer.is_ready else 0.0,
            problem=problem,
            bids=self._bids(entry),
        )
        if admission is None:
            return job
        at_s = admission.at.timestamp()
        holds, pays = holds_of(admission), admission.pays or job.queue
        match admission.phase:
            case Phase.ADMITTED if entry.placed or admission.queue == entry.queue:
                return replace(
                    job,
                    queue=pays,
                    is_stopped=entry.is_stopped,
                    holds=holds,
                    cluster=min(entry.placed, default=""),
                    clusters=frozenset(admission.clusters),
                    started_s=at_s,
                    has_grown=has_grown(entry.components, admission.holds),
                )
            case Phase.REFUSED:
                wait_s = min(_BACKOFF_S * 2.0 ** min(admission.refusals - 1, 10), _BACKOFF_S_MAX)
                excluded = frozenset(admission.excluded)
                return replace(job, not_before_s=at_s + wait_s, excluded=excluded, started_s=at_s)
            case Phase.LOST:
                return replace(job, is_front=True, is_leaving=bool(entry.placed))
            case Phase.EVICTED if entry.placed or any(map(self.clusters.is_ready, entry.departed)):
                cluster = min(entry.placed | entry.departed)
                return replace(job, queue=pays, holds=holds, cluster=cluster, is_leaving=True)
        return job

    def _bids(self, entry: Entry) -> Bids | None:
        if entry.deadline is None:
            return None
        request: dict[str, int] = {}
        for component in entry.components:
            for name, amount in component.request:
                request[name] = request.get(name, 0) + amount * component.count
        measure, snapshot = entry.deadline.measure, self.clusters.snapshot()
        offers = [to_offer(cluster, request, measure, None) for cluster in snapshot.clusters]
        return Bids(entry.deadline, tuple(sorted(offers, key=by_cost)))

    def decide(self, now: float) -> Decisions:
        """Return what happens to the objects at `now`, and remember what is kept for whom."""
        queues = {
            name: replace(each.queue, evictions_left=self._left(each, now), mean_s=self.means_s.get(name))
            for name, each in self.queues.items()
        }
        for key in self.faults.due(now):
            self._jobs.pop(key, None)
        for left in range(PER_ROUND_MAX, -1, -1):
            capacity = Capacity(self.rooms(now), self.reserved, self.can_hold)
            try:
                found = admit(queues, self._considered(now), capacity, now)
                break
            except JobFailed as failed:
                self.record_fault(failed.key, failed.error)
                if not left:
                    raise
        self.reserved = found.reserved
        return found

    def given_up(self) -> dict[str, Amounts]:
        """Return what is left to admitted jobs that use less now, in members, than they hold."""
        found = {}
        for key, entry in self.entries.items():
            if entry.has_reported and entry.placed and not entry.has_finished:
                job = self.job_of(key)
                if job.holds and not job.is_leaving and (less_ := find_less(job.options, job.holds)) is not None:
                    found[key] = less_
        return found

    def releases(self) -> dict[str, bool]:
        """Return the jobs whose record of the suspension has to change, with whether it is left to the queue."""
        found = {key: entry.is_suspended for key, entry in self.entries.items() if entry.admission is not None}
        return {
            key: is_left
            for key, is_left in found.items()
            if (released := self.entries[key].released) is None or (released and not is_left)
        }

    def _left(self, queue: ClusterQueue, now: float) -> int:
        times = self._evictions[queue.queue.name]
        while times and times[0] <= now - _HOUR_S:
            times.popleft()
        return max(0, queue.evictions_per_hour - len(times))

    def record_eviction(self, queue: str, at_s: float) -> None:
        """Count an eviction in the budget of its queue."""
        self._evictions[queue].append(at_s)

    def _considered(self, now: float) -> list[Job]:
        """Return the jobs that hold something or wait in order; later ones of a JobQueue that is full are outside."""
        found, waiting = [], defaultdict[str, list[Job]](list)
        for key, entry in self.entries.items():
            job = self.job_of(key)
            if not job.is_waiting:
                if not entry.has_finished:
                    found.append(job)
            elif not entry.is_deleted and not entry.has_finished:
                if job.excluded and now > job.started_s + _EXCLUDED_S:
                    job = replace(job, excluded=frozenset())
                waiting[job.leaf].append(job)
        for listed in waiting.values():
            queue = self.queues.get(listed[0].queue)
            most = queue.pending_max if queue is not None else _LISTED_MAX
            found += listed if len(listed) <= most else heapq.nsmallest(most, listed, key=lambda job: job.order)
        return found

    def can_hold(self, key: str, cluster: str, option: Option) -> bool:
        """Return whether the pods of an object would fit on the nodes of a cluster if these were empty."""
        found = self.clusters.snapshot().by_name.get(cluster)
        pods = on_nodes(self.entries[key].pods, option.nodes)
        return found is not None and find_shortfall(pods, self._emptied(found)) is None

    def _emptied(self, cluster: Cluster) -> Cluster:
        """Return the cluster as if nothing ran there; the same object, with its cached answers, while its nodes are."""
        emptied = to_emptied(cluster)
        known = self._empty.get(cluster.name)
        if known is not None and known.node_classes == emptied.node_classes:
            return known
        self._empty[cluster.name] = emptied
        return emptied

    def flavor_names(self) -> frozenset[str]:
        """Return the names of the flavours in force."""
        return frozenset(self._flavors)

    def rooms(self, now: float) -> dict[str, Room]:
        """Return what the clusters that are ready have, and what is free of it."""
        rooms = {each.name: to_room(each) for each in self.clusters.snapshot().clusters if each.is_ready}
        for key, entry in self.entries.items():
            if entry.placed and not entry.has_finished and now - self.job_of(key).started_s < _UNREPORTED_S:
                for cluster in entry.placed & rooms.keys():
                    free = rooms[cluster].free
                    rooms[cluster] = Room(rooms[cluster].total, less(free, entry.needs))
        return rooms
