"""`QueueState`: all queues and the objects in them, as the facts that `admission.py` decides about. Pure.

It is rebuilt from the host's objects after a restart: what is admitted is in the annotations of federated objects, and
the order of what waits follows from their age. What an object holds is its claim on the ledger
(`planning/accounts/accountledger.py`): an admission counts from the decision on, and quota is free as soon as the
object has finished or is gone. A change of one object costs a time that does not depend on the others.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from federation.api import names
from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.checks import Answer
from federation.features.queues.rules.configuration import (
    ClusterQueue,
    options_for,
)
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.facts import (
    Amounts,
    Bids,
    Capacity,
    Decisions,
    Job,
    Option,
    Pair,
    Reservation,
    Room,
)
from federation.features.queues.rules.faults import PER_ROUND_MAX, Faults, JobFailed, blame
from federation.features.queues.rules.heldquota import find_less, has_grown, held_with
from federation.features.queues.rules.queueobjects import QueueObjects
from federation.features.queues.rules.records import Record, to_admitted, to_evicted, to_released, to_smaller
from federation.features.queues.rules.rooms import less, to_emptied, to_room
from federation.planning.accounts.accountledger import Ledger
from federation.scheduling.deadlines import by_cost, to_offer
from federation.scheduling.framework.gangfit import find_shortfall
from federation.scheduling.framework.types import Cluster
from federation.scheduling.jobqueues import Admission, Phase, on_nodes

_HOUR_S = 3600.0
_NEVER = float("inf")
_PODS_S = 60.0
"""How long the cluster of an admitted Job may take to create the first of its pods."""
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


class QueueState(QueueObjects):
    """The objects with a queue; `decide` runs a round."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[str, Entry] = {}
        """With the admission that is decided, before it is observed."""
        self._ledger: Ledger[Admission] = Ledger()
        self._unwritten: dict[str, Record] = {}
        """Decisions that are not observed yet, by object."""
        self.reserved: Mapping[str, Reservation] = {}
        self.means_s: dict[str, float] = {}
        """The mean time that jobs ran, by ClusterJobQueue."""
        self._empty: dict[str, Cluster] = {}
        self._evictions: dict[str, deque[float]] = defaultdict(deque)
        self._answers: dict[str, Answer] = {}
        """Of admission checks, by object."""
        self.faults = Faults()

    def put_queue(self, name: str, source: Mapping[str, Any] | None) -> None:
        """Add, replace or remove a ClusterJobQueue; the answers of other admission checks than its own do not count."""
        before = self.queues.get(name)
        super().put_queue(name, source)
        after = self.queues.get(name)
        if before is not None and (after is None or after.checks != before.checks):
            self._answers.clear()

    # -- objects

    def put(self, entry: Entry, now: float, version: int = 0) -> bool:
        """Add or replace an object with a queue; return whether that changed anything."""
        before, has_changed = self.entries.get(entry.key), self._ledger.report(entry.key, entry.admission, version)
        if (assumed := self._ledger.assumed(entry.key)) is not None:
            entry = replace(entry, admission=assumed)
        else:
            self._unwritten.pop(entry.key, None)
        if not has_changed and entry == before:
            return False
        if before is not None and before.has_finished < entry.has_finished and entry.admission is not None:
            self._record_length(entry, now)
        if before is not None and (before.components, before.queue) != (entry.components, entry.queue):
            self._answers.pop(entry.key, None)
        self.entries[entry.key] = entry
        self._forget(entry.key)
        return True

    def assume(self, key: str, record: Record, version: int) -> None:
        """Count a decision that is written to a version of an object, until that is observed."""
        entry, queue = self.entries[key], self.queue_of(self.entries[key])
        if record.admission.phase is Phase.EVICTED and entry.admission != record.admission and queue is not None:
            self._evictions[queue.queue.name].append(record.admission.at.timestamp())
        self._ledger.assume(key, record.admission, version)
        if self._ledger.assumed(key) is not None:
            self._unwritten[key] = record
            self.entries[key] = replace(entry, admission=record.admission)
            self._forget(key)

    def revoke(self, key: str) -> None:
        """Forget a decision that was certainly not written."""
        self._ledger.revoke(key)
        self._unwritten.pop(key, None)
        if (entry := self.entries.get(key)) is not None:
            self.entries[key] = replace(entry, admission=next(reversed(self._ledger.claims(key)), None))
            self._forget(key)

    def remove(self, key: str, now: float) -> bool:
        """Remove an object that is gone or has no queue any more; return whether it was known."""
        entry = self.entries.pop(key, None)
        self._answers.pop(key, None)
        self._ledger.remove(key)
        self._unwritten.pop(key, None)
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
        lacking = self.lacking(entry)
        if lacking and lacking.keys() >= self.clusters.labels().keys():
            return f"its pods name {next(iter(lacking.values()))}, which no cluster has"
        if entry.is_held:
            return f"its author stopped it with annotation {names.QUEUE_STOP}; without it, it waits for its turn"
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
        holds = self._held(entry)
        if admission is None or holds is None:
            return job
        cluster, is_leaving = min(entry.placed, default=""), admission.phase is not Phase.ADMITTED
        return replace(job, queue=admission.pays or name, holds=holds, cluster=cluster, is_leaving=is_leaving)

    def _held(self, entry: Entry) -> dict[Pair, int] | None:
        return self._ledger.paid(entry.key, partial(held_with, entry, self.clusters.is_ready))

    def _to_job(self, entry: Entry) -> Job:
        problem, queue, admission = self.problem_of(entry), self.queue_of(entry), entry.admission
        options: tuple[Option, ...] = ()
        answer, lacking = self._answers.get(entry.key), frozenset(self.lacking(entry))
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
            excluded=lacking,
            lacking=lacking,
            problem=problem,
            bids=self._bids(entry),
        )
        if admission is None:
            return job
        at_s, excluded = admission.at.timestamp(), lacking.union(admission.excluded)
        holds, pays = self._held(entry), admission.pays or job.queue
        match admission.phase:
            case Phase.ADMITTED if holds is not None:
                return replace(
                    job,
                    queue=pays,
                    stopped=self.stopped(entry, pays),
                    holds=holds,
                    cluster=min(entry.placed, default=""),
                    clusters=frozenset(admission.clusters),
                    started_s=at_s,
                    has_grown=has_grown(entry.components, admission.holds),
                    pods_due_s=self._pods_due_s(entry, at_s),
                )
            case Phase.REFUSED:
                wait_s = min(_BACKOFF_S * 2.0 ** min(admission.refusals - 1, 10), _BACKOFF_S_MAX)
                return replace(job, not_before_s=at_s + wait_s, excluded=excluded, started_s=at_s)
            case Phase.LOST:
                return replace(job, is_front=True, is_leaving=bool(entry.placed))
            case Phase.EVICTED if holds is not None:
                cluster = min(entry.placed | entry.departed, default="")
                return replace(job, queue=pays, holds=holds, cluster=cluster, is_leaving=True)
            case Phase.EVICTED:
                return replace(job, excluded=excluded, started_s=at_s, may_displace=not admission.excluded)
        return job

    @property
    def has_unstarted(self) -> bool:
        """Return whether a job may be due to leave its cluster by time alone."""
        return any(job.pods_due_s != _NEVER for job in self._jobs.values())

    def _pods_due_s(self, entry: Entry, admitted_s: float) -> float:
        """Return when the cluster of an admitted object must have created a pod of it; for ever if it has, or is lost.

        What refuses the pods of an object is known to its cluster only: a quota, a webhook, a class.
        """
        if entry.unstarted_s is None or not entry.placed or not all(map(self.clusters.is_ready, entry.placed)):
            return _NEVER
        return max(entry.unstarted_s, admitted_s) + _PODS_S

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

    def records(self, decisions: Decisions, now: datetime) -> dict[str, Record]:
        """Return what has to be written about objects, and the decisions of which it is not known if they are."""
        found, entries = dict(self._unwritten), self.entries
        for key, admitted in decisions.admitted.items():
            if not self.must_ask(key, now.timestamp()):
                queue = self.queue_of(entries[key])
                pays, alternatives = queue.queue.name if queue is not None else "", decisions.alternatives.get(key, ())
                found[key] = to_admitted(entries[key], pays, admitted, alternatives, now)
        for key, entry in entries.items():
            if key in found or (before := entry.admission) is None:
                continue
            if (eviction := decisions.evicted.get(key)) is not None:
                found[key] = to_evicted(before, eviction.because, now, eviction.refused_by)
            elif (holds := self._left_to(entry)) is not None:
                found[key] = to_smaller(before, holds)
            elif entry.released is None or (entry.released and not entry.is_suspended):
                found[key] = to_released(before, is_left=entry.is_suspended)
        return found

    def _left_to(self, entry: Entry) -> Amounts | None:
        """Return what is left to an admitted job that uses less now, in members, than it holds; None for all of it."""
        if not entry.has_reported or not entry.placed or entry.has_finished:
            return None
        job = self.job_of(entry.key)
        return find_less(job.options, job.holds) if job.holds and not job.is_leaving else None

    def _left(self, queue: ClusterQueue, now: float) -> int:
        times = self._evictions[queue.queue.name]
        while times and times[0] <= now - _HOUR_S:
            times.popleft()
        return max(0, queue.evictions_per_hour - len(times))

    def _considered(self, now: float) -> list[Job]:
        """Return the jobs that hold something or wait in order; later ones of a JobQueue that is full are outside."""
        found, waiting = [], defaultdict[str, list[Job]](list)
        for key, entry in self.entries.items():
            job = self.job_of(key)
            if not job.is_waiting:
                if not entry.has_finished:
                    found.append(job)
            elif not entry.is_deleted and not entry.has_finished:
                if job.excluded != job.lacking and now > job.started_s + _EXCLUDED_S:
                    job = replace(job, excluded=job.lacking)
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

    def rooms(self, now: float) -> dict[str, Room]:
        """Return what the clusters that are ready have, and what is free of it."""
        rooms = {each.name: to_room(each) for each in self.clusters.snapshot().clusters if each.is_ready}
        for key, entry in self.entries.items():
            if entry.placed and not entry.has_finished and now - self.job_of(key).started_s < _UNREPORTED_S:
                for cluster in entry.placed & rooms.keys():
                    free = rooms[cluster].free
                    rooms[cluster] = Room(rooms[cluster].total, less(free, entry.needs))
        return rooms
