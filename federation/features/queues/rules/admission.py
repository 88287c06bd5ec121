"""`admit`: which jobs may start now, which give way, and what is kept for the next one. Pure.

A round looks at queues that need nothing borrowed first, then at the smallest dominant share; in a queue at priority,
then at the JobQueue with the smallest share, then at age. The first job of each queue that finds no quota or no room
becomes its *holder*: its quota counts as used for everything after it, and one cluster that can hold it is kept for
it. Other jobs pass only if what they need is left beside that, or if they end before the holder can start. So a large
job starts when those that run have ended, and small ones fill what it does not need.

The cost of a round is linear in the number of jobs, apart from the sorting of lists that are nearly sorted: jobs of the
same shape are checked once, and at most `DEPTH` jobs of a JobQueue are checked at all.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from federation.features.queues.rules.facts import (
    Admitted,
    Amounts,
    Capacity,
    Decisions,
    Eviction,
    Job,
    Lack,
    Option,
    Pair,
    Queue,
    Reservation,
    Resources,
    Waits,
)
from federation.features.queues.rules.givingway import Candidates, choose_victims
from federation.features.queues.rules.keeping import Holding, ends_needed, quota_to_keep
from federation.features.queues.rules.usage import Usage

DEPTH = 1_000
"""Jobs of one JobQueue that are checked in a round, the first of its order."""
_NEVER = float("inf")
_Name = TypeVar("_Name", Pair, str)


def admit(queues: Mapping[str, Queue], jobs: Iterable[Job], capacity: Capacity, now: float) -> Decisions:
    """Return what happens to the jobs at `now`; the result does not depend on their order."""
    return _Round(queues, jobs, capacity, now).run()


def fits(needs: Resources, room: Resources) -> bool:
    """Return whether a cluster with this room has all that is needed."""
    return all(room.get(name, 0) >= amount for name, amount in needs.items())


@dataclass(slots=True)
class _Leaf:
    """The waiting jobs of one JobQueue, and what its jobs hold by resource."""

    name: str
    waiting: list[Job] = field(default_factory=list)
    at: int = 0
    used: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def head(self) -> Job | None:
        return self.waiting[self.at] if self.at < min(len(self.waiting), DEPTH) else None

    def add(self, amounts: Amounts) -> None:
        for (_, resource), amount in amounts.items():
            self.used[resource] += amount


_Key = tuple[bool, int, float, float, str]


class _QueueHeads:
    """The JobQueues of a queue, the next one to look at first."""

    def __init__(self, queue: Queue, leaves: Iterable[_Leaf], usage: Usage) -> None:
        self.queue, self._usage = queue, usage
        self._heap = [(self._key(leaf, head), leaf.name, leaf) for leaf in leaves if (head := leaf.head) is not None]
        heapq.heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def leaf(self) -> _Leaf:
        return self._heap[0][2]

    @property
    def head(self) -> Job:
        head = self.leaf.head
        assert head is not None
        return head

    def advance(self) -> None:
        """Go on to the next job; the share of its JobQueue may have changed."""
        _, name, leaf = self._heap[0]
        leaf.at += 1
        if (head := leaf.head) is None:
            heapq.heappop(self._heap)
        else:
            heapq.heapreplace(self._heap, (self._key(leaf, head), name, leaf))

    def key(self) -> tuple[bool, float, float, str]:
        """Return the place of the queue among all: without borrowing first, then by share."""
        head, name = self.head, self.queue.name
        borrows = all(self._usage.is_borrowing(name, option.amounts) for option in head.options)
        return (borrows, self._usage.share(name), head.created_s, name)

    def _key(self, leaf: _Leaf, head: Job) -> _Key:
        share = self._usage.share_of(self.queue, leaf.used)
        return (not head.is_front, -head.priority, share, head.created_s, head.key)


class _Round:
    def __init__(self, queues: Mapping[str, Queue], jobs: Iterable[Job], capacity: Capacity, now: float) -> None:
        self._queues, self._capacity, self._now = queues, capacity, now
        self._all = sorted(jobs, key=lambda job: job.order)
        self._usage, self._real = Usage(queues), Usage(queues)
        """With and without what is kept for holders."""
        self._free = {name: dict(room.free) for name, room in capacity.clusters.items()}
        self._holders: dict[str, str] = {}
        self._reserved: dict[str, Reservation] = {}
        self._refused: dict[tuple[object, ...], Waits] = {}
        self._admitted: dict[str, Admitted] = {}
        self._evicted: dict[str, Eviction] = {}
        self._waits: dict[str, Waits] = {}
        self._in_group: dict[str, list[Job]] = defaultdict(list)
        self._in_cluster: dict[str, list[Job]] = defaultdict(list)
        self._leaves: dict[str, dict[str, _Leaf]] = {name: {} for name in queues}
        self._evictions = {name: queue.evictions_left for name, queue in queues.items()}
        for job in self._all:
            self._count(job)

    def _count(self, job: Job) -> None:
        """Count what a job holds, or put it into the list of its JobQueue."""
        if job.queue not in self._queues:
            if job.is_waiting:
                self._waits[job.key] = Waits(Lack.PROBLEM)
            return
        leaves = self._leaves[job.queue]
        leaf = leaves.get(job.leaf)
        if leaf is None:
            leaf = leaves[job.leaf] = _Leaf(job.leaf)
        if job.is_waiting:
            leaf.waiting.append(job)
            return
        holds = job.holds or {}
        if job.has_grown and job.cluster and not job.is_leaving:
            self._evicted[job.key] = Eviction("", "it has grown beyond what it was admitted for")
        self._usage.add(job.queue, holds)
        self._real.add(job.queue, holds)
        leaf.add(holds)
        self._in_group[self._queues[job.queue].group].append(job)
        if job.cluster:
            self._in_cluster[job.cluster].append(job)
        else:
            self._take(job.needs, job.clusters)

    def _take(self, needs: Resources, clusters: Iterable[str]) -> None:
        """Count a job that has no place yet in every cluster that may get it."""
        for name in clusters:
            if (free := self._free.get(name)) is not None:
                for resource, amount in needs.items():
                    free[resource] = free.get(resource, 0) - amount

    def run(self) -> Decisions:
        heads = [
            _QueueHeads(queue, self._leaves[name].values(), self._usage) for name, queue in sorted(self._queues.items())
        ]
        heap = [(each.key(), each.queue.name, each) for each in heads if each]
        heapq.heapify(heap)
        while heap:
            key, name, heads_of = heapq.heappop(heap)
            if (current := heads_of.key()) != key and heap and current > heap[0][0]:
                heapq.heappush(heap, (current, name, heads_of))  # others have come before it in the meantime
                continue
            self._look_at(heads_of.queue, heads_of.leaf, heads_of.head)
            heads_of.advance()
            if heads_of:
                heapq.heappush(heap, (heads_of.key(), name, heads_of))
        for name in sorted(self._leaves):
            for leaf in self._leaves[name].values():
                for job in leaf.waiting[DEPTH:]:
                    self._waits[job.key] = Waits(Lack.TURN, needed=DEPTH)
        return Decisions(self._admitted, self._evicted, self._waits, self._reserved)

    def _look_at(self, queue: Queue, leaf: _Leaf, job: Job) -> None:
        """Admit a job, or record why it waits."""
        if job.problem or queue.is_held:
            self._waits[job.key] = Waits(Lack.PROBLEM if job.problem else Lack.HELD)
            return
        if self._now < job.held_until_s:
            self._waits[job.key] = Waits(Lack.CHECK)
            return
        is_early = self._now < job.not_before_s
        shape = (*job.shape, is_early)
        waits = self._refused.get(shape)
        if waits is not None:  # Nothing is released in a round, so what was refused once is refused again.
            self._waits[job.key] = waits
            return
        waits = Waits(Lack.RETRY) if is_early else None
        for option in job.options if not is_early else ():
            found = self._try(queue, job, option)
            if isinstance(found, Admitted):
                self._start(job, leaf, found)
                return
            waits = found if waits is None or _severity(found) > _severity(waits) else waits
        self._waits[job.key] = self._refused[shape] = waits or Waits(Lack.NO_QUOTA)
        if queue.name not in self._holders and self._waits[job.key].lack not in (Lack.TOO_LARGE, Lack.NO_QUOTA):
            self._hold(queue, job)

    def _try(self, queue: Queue, job: Job, option: Option) -> Admitted | Waits:
        for pair, amount in option.amounts.items():
            if pair not in queue.limits:
                return Waits(Lack.NO_QUOTA, *pair, amount)
            if amount > (most := self._real.most(queue, pair)):
                return Waits(Lack.TOO_LARGE, *pair, amount, most)
        end_s = _NEVER if job.limit_s is None else self._now + job.limit_s
        if (short := self._real.shortage(queue.name, option.amounts)) is not None:
            return short
        if (short := self._usage.shortage(queue.name, option.amounts)) is not None:
            kept = [self._reserved[f"queue {each}"] for each in self._group_holders(queue)]
            if not kept or any(end_s > each.until_s for each in kept):
                return Waits(Lack.BEHIND, short.flavor, short.resource, short.needed, short.found)
        return self._find_room(job, option, end_s)

    def _group_holders(self, queue: Queue) -> Iterator[str]:
        return (name for name in self._holders if self._queues[name].group == queue.group)

    def _find_room(self, job: Job, option: Option, end_s: float) -> Admitted | Waits:
        """Return the clusters that may have the job now, or what the best one lacks."""
        clusters = [name for name in sorted(option.clusters - job.excluded) if name in self._free]
        if not clusters:
            return Waits(Lack.TOO_LARGE)
        if not any(fits(job.needs, self._capacity.clusters[name].total) for name in clusters):
            totals = {name: self._capacity.clusters[name].total for name in clusters}
            return self._lack(job, clusters, Lack.TOO_LARGE, totals)
        roomy = [name for name in clusters if fits(job.needs, self._free[name])]
        if not roomy:
            return self._lack(job, clusters, Lack.ROOM, self._free)
        open_ = [
            name
            for name in roomy
            if (kept := self._reserved.get(f"cluster {name}")) is None or kept.key == job.key or end_s <= kept.until_s
        ]
        return Admitted(option.amounts, frozenset(open_), option.nodes) if open_ else Waits(Lack.RESERVED)

    def _lack(self, job: Job, clusters: list[str], lack: Lack, rooms: Mapping[str, Resources]) -> Waits:
        """Return the resource of which even the best cluster has too little."""
        worst = Waits(lack)
        ratio = 1.0
        for name, amount in sorted(job.needs.items()):
            most = max((rooms[cluster].get(name, 0) for cluster in clusters), default=0)
            if amount > most and (most / amount) < ratio:
                ratio, worst = most / amount, Waits(lack, "", name, amount, max(0, most))
        return worst

    def _start(self, job: Job, leaf: _Leaf, found: Admitted) -> None:
        self._admitted[job.key] = found
        self._usage.add(job.queue, found.holds)
        self._real.add(job.queue, found.holds)
        leaf.add(found.holds)
        self._take(job.needs, found.clusters)

    # -- the holder of a queue

    def _hold(self, queue: Queue, job: Job) -> None:
        """Keep quota and a cluster for the first job of a queue that cannot start, and let others give way to it."""
        for option in job.options:
            if any(
                pair not in queue.limits or amount > self._real.most(queue, pair)
                for pair, amount in option.amounts.items()
            ):
                continue
            cluster = self._choose_cluster(job, option)
            if cluster is None:
                continue
            self._give_way(queue, job, option, cluster)
            self._holders[queue.name] = job.key
            key = f"queue {queue.name}"
            self._reserved[key] = self._reservation(key, job, self._quota_until(queue, option.amounts))
            kept = quota_to_keep(job, option.amounts, self._holding(cluster)) if cluster else option.amounts
            self._usage.add(queue.name, kept)
            if cluster:
                key = f"cluster {cluster}"
                self._reserved[key] = self._reservation(key, job, self._room_until(cluster, job.needs))
            return

    def _choose_cluster(self, job: Job, option: Option) -> str | None:
        """Return the cluster to keep: the same as before, or that which is free soonest. "" if none has to be kept."""
        if not job.needs:
            return ""
        able = [
            name
            for name in sorted(option.clusters - job.excluded)
            if name in self._free
            and f"cluster {name}" not in self._reserved
            and fits(job.needs, self._capacity.clusters[name].total)
            # Nothing is kept for pods that would not fit on the nodes of an empty cluster: they would hold it for ever.
            and self._capacity.can_hold(job.key, name, option)
        ]
        if not able:
            return None
        for name in able:
            kept = self._capacity.reserved.get(f"cluster {name}")
            if kept is not None and kept.key == job.key:
                return name
        return min(
            able,
            key=lambda name: (ends_needed(job.needs, self._holding(name)), -_part(self._free[name], job.needs), name),
        )

    def _holding(self, cluster: str) -> Holding:
        return Holding(self._capacity.clusters[cluster].total, self._free[cluster], self._in_cluster[cluster])

    def _reservation(self, key: str, job: Job, until_s: float) -> Reservation:
        """Return the reservation; its end never moves to a later time while it is for the same job."""
        before = self._capacity.reserved.get(key)
        if before is not None and before.key == job.key:
            return before
        return Reservation(job.key, self._now if until_s == _NEVER else until_s)

    def _quota_until(self, queue: Queue, amounts: Amounts) -> float:
        """Return when the quota is free at the latest, if all jobs that run end at their limits."""
        missing = {pair: amount - self._real.free(queue, pair) for pair, amount in amounts.items()}
        return self._until(missing, [(job, job.holds or {}) for job in self._in_group[queue.group]])

    def _room_until(self, cluster: str, needs: Resources) -> float:
        free = self._free[cluster]
        missing = {name: amount - free.get(name, 0) for name, amount in needs.items()}
        return self._until(missing, [(job, job.needs) for job in self._in_cluster[cluster]])

    def _until(self, missing: dict[_Name, int], running: Iterable[tuple[Job, Mapping[_Name, int]]]) -> float:
        """Return when running jobs with a limit have released what is missing, at the latest."""
        if all(amount <= 0 for amount in missing.values()):
            return self._now
        ends = [(job.started_s + job.limit_s, job.key, held) for job, held in running if job.limit_s is not None]
        for end_s, _, held in sorted(ends, key=lambda end: end[:2]):
            for name, amount in held.items():
                if name in missing:
                    missing[name] -= amount
            if all(amount <= 0 for amount in missing.values()):
                return max(end_s, self._now)
        return _NEVER

    def _give_way(self, queue: Queue, job: Job, option: Option, cluster: str) -> None:
        candidates = Candidates(
            queue,
            self._queues,
            self._in_group[queue.group],
            self._usage,
            self._free.get(cluster, {}),
            cluster,
            self._evicted.keys(),
            self._evictions,
        )
        for victim in choose_victims(candidates, job, option):
            self._evicted[victim.key] = Eviction(job.key, f"it gave way to {job.key}")
            self._evictions[victim.queue] -= 1


_SEVERITY = {
    lack: at
    for at, lack in enumerate(
        (
            Lack.NO_QUOTA,
            Lack.TOO_LARGE,
            Lack.RETRY,
            Lack.QUOTA,
            Lack.BEHIND,
            Lack.ROOM,
            Lack.RESERVED,
        )
    )
}
"""How near to a start a job is; of several flavours the nearest one is reported."""


def _severity(waits: Waits) -> int:
    return _SEVERITY.get(waits.lack, 0)


def _part(free: Resources, needs: Resources) -> float:
    """Return the smallest part of what is needed that is free."""
    return min((max(0, free.get(name, 0)) / max(1, amount) for name, amount in needs.items()), default=1.0)
