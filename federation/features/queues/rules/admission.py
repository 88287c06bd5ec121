"""`admit`: which jobs may start now, which give way, and what is kept for the next one. Pure.

A round looks at queues that need nothing borrowed first, then at the smallest dominant share; in a queue at priority,
then at the JobQueue with the smallest share, then at age. The first job of each queue that finds no quota or no room
becomes its *holder*: its quota counts as used for everything after it, and one cluster that can hold it is kept for
it. Other jobs pass only if what they need is left beside that, or if they end before the holder can start. So a large
job starts when those that run have ended, and small ones fill what it does not need.

The cost of a round is linear in the number of jobs, apart from the sorting of lists that are nearly sorted. Nothing is
released in a round, so what was refused once is refused again: jobs of one shape are checked once, and the others of a
JobQueue are passed over. At most `DEPTH` jobs of a JobQueue are checked at all.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from federation.features.queues.rules.bidding import End, choose, compare, ends_of, start_after
from federation.features.queues.rules.facts import (
    Admitted,
    Amounts,
    Bids,
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
    Shape,
    Waits,
    short_of,
)
from federation.features.queues.rules.faults import blame
from federation.features.queues.rules.givingway import Candidates, choose_victims
from federation.features.queues.rules.heads import DEPTH, Leaf, QueueHeads
from federation.features.queues.rules.keeping import Holding, ends_needed, quota_to_keep
from federation.features.queues.rules.rooms import most_of
from federation.features.queues.rules.shares import Shares
from federation.planning.accounts.usage import Usage
from federation.scheduling.deadlines import SHOWN_MAX, Alternative

_NEVER = float("inf")
_Name = TypeVar("_Name", Pair, str)


def admit(queues: Mapping[str, Queue], jobs: Iterable[Job], capacity: Capacity, now: float) -> Decisions:
    """Return what happens to the jobs at `now`; the result does not depend on their order. JobFailed (`faults.py`)."""
    round_ = _Round(queues, capacity, now)
    return blame(lambda: round_.run(jobs), lambda: round_.job)


def fits(needs: Resources, room: Resources) -> bool:
    """Return whether a cluster with this room has all that is needed."""
    for name, amount in needs.items():  # noqa: SIM110  # all() with a generator takes three times as long
        if amount > room.get(name, 0):
            return False
    return True


@dataclass(slots=True)
class _Refusal:
    """Why jobs of a shape wait that may run for `limit_s` or longer."""

    waits: Waits
    limit_s: float


@dataclass(slots=True)
class _Choice:
    """The clusters that may have a job and are ready; the most that one has, and has free, of each resource."""

    names: list[str]
    total: Resources
    free: Resources
    at: int
    """The admissions of the round that `free` has counted."""


class _Round:
    def __init__(self, queues: Mapping[str, Queue], capacity: Capacity, now: float) -> None:
        self._queues, self._capacity, self._now = queues, capacity, now
        self.job = ""
        """The key of the job that the round looks at."""
        self._free = {name: dict(room.free) for name, room in capacity.clusters.items()}
        self._choices: dict[tuple[frozenset[str], frozenset[str]], _Choice] = {}
        self._takes = 0
        self._holders: dict[str, str] = {}
        self._reserved: dict[str, Reservation] = {}
        self._refused: dict[Shape, _Refusal] = {}
        self._early: dict[Shape, _Refusal] = {}
        """Refusals of jobs that are not tried yet."""
        self._admitted: dict[str, Admitted] = {}
        self._evicted: dict[str, Eviction] = {}
        self._waits: dict[str, Waits] = {}
        self._alternatives: dict[str, Sequence[Alternative]] = {}
        self._ends: dict[str, list[End]] = {}
        self._in_group: dict[str, list[Job]] = defaultdict(list)
        self._in_cluster: dict[str, list[Job]] = defaultdict(list)
        self._leaves: dict[str, dict[str, Leaf]] = {name: {} for name in queues}
        self._evictions = {name: queue.evictions_left for name, queue in queues.items()}
        self._usage = self._real = Usage[Pair](queues)

    def _sort_in(self, jobs: Iterable[Job]) -> None:
        """Put each job in its JobQueue, or count what it holds."""
        held: dict[str, dict[Pair, int]] = {name: defaultdict(int) for name in self._queues}
        for job in sorted(jobs, key=lambda job: job.order):
            self.job = job.key
            leaves = self._leaves.get(job.queue)
            if leaves is None:
                if job.is_waiting:
                    self._waits[job.key] = Waits(Lack.PROBLEM)
                continue
            leaf = leaves.get(job.leaf)
            if leaf is None:
                leaf = leaves[job.leaf] = Leaf(job.leaf)
            if job.is_waiting:
                leaf.waiting.append(job)
            else:
                self._count(job, held[job.queue], leaf.used)
        self.job = ""
        for name, amounts in held.items():
            self._usage.add(name, amounts)
        self._real = self._usage.copy()
        """Without what is kept for holders."""

    def _count(self, job: Job, of_queue: dict[Pair, int], of_leaf: dict[str, int]) -> None:
        """Count what a job holds."""
        if because := job.ends_because(self._now):
            self._evicted[job.key] = Eviction("", because, job.cluster if job.is_refused(self._now) else "")
        for pair, amount in (job.holds or {}).items():
            of_queue[pair] += amount
            of_leaf[pair[1]] += amount
        self._in_group[self._queues[job.queue].group].append(job)
        if job.cluster:
            self._in_cluster[job.cluster].append(job)
        else:
            self._take(job.needs, job.clusters)

    def _take(self, needs: Resources, clusters: Iterable[str]) -> None:
        """Count a job that has no place yet in every cluster that may get it."""
        self._takes += 1
        for name in clusters:
            if (free := self._free.get(name)) is not None:
                for resource, amount in needs.items():
                    free[resource] = free.get(resource, 0) - amount

    def run(self, jobs: Iterable[Job]) -> Decisions:
        self._sort_in(jobs)
        shares = Shares(self._queues)
        heads = [
            QueueHeads(queue, self._leaves[name].values(), self._usage, shares)
            for name, queue in sorted(self._queues.items())
        ]
        heap = [(each.key(), each.queue.name, each) for each in heads if each]
        heapq.heapify(heap)
        while heap:
            key, name, heads_of = heapq.heappop(heap)
            self.job = heads_of.head.key
            if (current := heads_of.key()) != key and heap and current > heap[0][0]:
                heapq.heappush(heap, (current, name, heads_of))  # others have come before it in the meantime
                continue
            self._look_at(heads_of.queue, heads_of.leaf, heads_of.head)
            self._pass_refused(heads_of.leaf)
            heads_of.advance()
            if heads_of:
                self.job = heads_of.head.key
                heapq.heappush(heap, (heads_of.key(), name, heads_of))
        for name in sorted(self._leaves):
            for leaf in self._leaves[name].values():
                for job in leaf.waiting[DEPTH:]:
                    self._waits[job.key] = Waits(Lack.TURN, needed=DEPTH)
        return Decisions(self._admitted, self._evicted, self._waits, self._reserved, self._alternatives)

    def _look_at(self, queue: Queue, leaf: Leaf, job: Job) -> None:
        """Admit a job, or record why it waits."""
        if job.problem or queue.is_held:
            self._waits[job.key] = Waits(Lack.PROBLEM if job.problem else Lack.HELD)
            return
        if self._now < job.held_until_s:
            self._waits[job.key] = Waits(Lack.CHECK)
            return
        is_early, limit_s = self._now < job.not_before_s, _limit_of(job)
        known = self._early if is_early else self._refused
        refusal = known.get(job.shape)
        if refusal is not None and limit_s >= refusal.limit_s:
            self._waits[job.key] = refusal.waits
            return
        waits = Waits(Lack.RETRY) if is_early else None
        is_of_any_limit = True
        for option in job.options if not is_early else ():
            found = self._try(queue, job, option)
            if isinstance(found, Admitted):
                self._start(job, leaf, found)
                return
            is_of_any_limit &= found.lack not in _OF_LIMITS
            waits = found if waits is None or _severity(found) > _severity(waits) else waits
        waits = waits or Waits(Lack.NO_QUOTA)
        self._waits[job.key] = waits
        known[job.shape] = _Refusal(waits, 0.0 if is_of_any_limit else limit_s)
        if queue.name not in self._holders and waits.lack not in _HOLD_NOTHING:
            self._hold(queue, job)

    def _pass_refused(self, leaf: Leaf) -> None:
        """Go on to the last one of the jobs after the head that are refused because their shape is."""
        refused, waits, now = self._refused, self._waits, self._now
        for at in range(leaf.at + 1, leaf.end):
            job = leaf.waiting[at]
            refusal = refused.get(job.shape)
            if refusal is None or _limit_of(job) < refusal.limit_s or now < job.held_until_s or now < job.not_before_s:
                return
            waits[job.key] = refusal.waits
            leaf.at = at

    def _try(self, queue: Queue, job: Job, option: Option) -> Admitted | Waits:
        for pair, amount in option.amounts.items():
            if pair not in queue.limits:
                return Waits(Lack.NO_QUOTA, *pair, amount)
            if amount > (most := self._real.most(queue.name, pair)):
                return Waits(Lack.TOO_LARGE, *pair, amount, most)
        end_s = self._now + _limit_of(job)
        if (short := self._real.find_excess(queue.name, option.amounts)) is not None:
            return short_of(Lack.QUOTA, short, option)
        if (short := self._usage.find_excess(queue.name, option.amounts)) is not None:
            kept = [self._reserved[f"queue {each}"] for each in self._group_holders(queue)]
            if not kept or any(end_s > each.until_s for each in kept):
                return short_of(Lack.BEHIND, short, option)
        return self._find_room(job, option, end_s)

    def _group_holders(self, queue: Queue) -> Iterator[str]:
        kept = (name for name in self._holders if f"queue {name}" in self._reserved)
        return (name for name in kept if self._queues[name].group == queue.group)

    def _find_room(self, job: Job, option: Option, end_s: float) -> Admitted | Waits:
        """Return the clusters that may have the job now, or what the best one lacks."""
        found = self._open_clusters(job, option, end_s)
        if job.bids is not None and not (isinstance(found, Waits) and found.lack is Lack.TOO_LARGE):
            found = self._cheapest(job, job.bids, option, found)
        return found if isinstance(found, Waits) else Admitted(option.amounts, found, option.nodes)

    def _cheapest(self, job: Job, bids: Bids, option: Option, found: Waits | frozenset[str]) -> Waits | frozenset[str]:
        """Return those of the clusters with room in which the job costs least, or the better one that it waits for."""
        open_ = frozenset[str]() if isinstance(found, Waits) else found
        rooms = self._capacity.clusters
        able = {n for n in self._choice(option.clusters, job.excluded).names if fits(job.needs, rooms[n].total)}
        alternatives = compare(bids, able, open_, lambda name: self._start_in(name, job.needs), self._now)
        self._alternatives[job.key] = alternatives[:SHOWN_MAX]
        if isinstance(found, Waits):
            return found
        return choose(alternatives, open_) or Waits(Lack.CHEAPER, alternatives[0].cluster)

    def _start_in(self, cluster: str, needs: Resources) -> float | None:
        """Return when a cluster without room is expected to have it; not known while it is kept for another job."""
        if f"cluster {cluster}" in self._reserved:
            return None
        ends = self._ends.get(cluster)
        if ends is None:
            ends = self._ends[cluster] = ends_of(self._in_cluster[cluster], self._queues, self._now)
        return start_after(ends, needs, self._free[cluster])

    def _open_clusters(self, job: Job, option: Option, end_s: float) -> Waits | frozenset[str]:
        choice = self._choice(option.clusters, job.excluded)
        if not choice.names:
            return Waits(Lack.TOO_LARGE)
        rooms, free = self._capacity.clusters, self._free
        if (short := _lack(job.needs, choice.total, Lack.TOO_LARGE)) is not None:
            return short
        if not any(fits(job.needs, rooms[name].total) for name in choice.names):
            return Waits(Lack.TOO_LARGE)
        if (short := _lack(job.needs, choice.free, Lack.ROOM)) is not None:
            return short
        roomy = [name for name in choice.names if fits(job.needs, free[name])]
        if not roomy:
            return Waits(Lack.ROOM)
        open_ = [
            name
            for name in roomy
            if (kept := self._reserved.get(f"cluster {name}")) is None or kept.key == job.key or end_s <= kept.until_s
        ]
        return frozenset(open_) or Waits(Lack.RESERVED)

    def _choice(self, clusters: frozenset[str], excluded: frozenset[str]) -> _Choice:
        choice = self._choices.get((clusters, excluded))
        if choice is None:
            names = [name for name in sorted(clusters - excluded) if name in self._free]
            total = most_of(self._capacity.clusters[name].total for name in names)
            choice = self._choices[clusters, excluded] = _Choice(names, total, {}, -1)
        if choice.at != self._takes:
            choice.at, choice.free = self._takes, most_of(self._free[name] for name in choice.names)
        return choice

    def _start(self, job: Job, leaf: Leaf, found: Admitted) -> None:
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
                pair not in queue.limits or amount > self._real.most(queue.name, pair)
                for pair, amount in option.amounts.items()
            ):
                continue
            cluster = self._choose_cluster(job, option)
            if cluster is None:
                continue
            gives_way = self._give_way(queue, job, option, cluster)
            self._holders[queue.name] = job.key
            if not (queue.keeps or gives_way):
                return
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
        missing = {pair: amount - self._real.free(queue.name, pair) for pair, amount in amounts.items()}
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

    def _give_way(self, queue: Queue, job: Job, option: Option, cluster: str) -> bool:
        """Let others give way to a job; return whether any job of its group is leaving."""
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
            named = job.key if victim.namespace == job.namespace else "a job of another namespace"
            self._evicted[victim.key] = Eviction(job.key, f"it gave way to {named}")
            self._evictions[victim.queue] -= 1
        return any(each.is_leaving or each.key in self._evicted for each in self._in_group[queue.group])


_OF_LIMITS = frozenset((Lack.BEHIND, Lack.RESERVED))
"""Causes that do not count for jobs that end early enough."""
_HOLD_NOTHING = frozenset((Lack.TOO_LARGE, Lack.NO_QUOTA, Lack.CHEAPER))
"""Causes for which nothing is kept for a job."""
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
            Lack.CHEAPER,
        )
    )
}
"""How near to a start a job is; of several flavours the nearest one is reported."""


def _severity(waits: Waits) -> int:
    return _SEVERITY.get(waits.lack, 0)


def _part(free: Resources, needs: Resources) -> float:
    """Return the smallest part of what is needed that is free."""
    return min((max(0, free.get(name, 0)) / max(1, amount) for name, amount in needs.items()), default=1.0)


def _limit_of(job: Job) -> float:
    return _NEVER if job.limit_s is None else job.limit_s


def _lack(needs: Resources, most: Resources, lack: Lack) -> Waits | None:
    """Return the resource of which even the best cluster has too little, the scarcest one."""
    found, ratio = None, 1.0
    for name, amount in sorted(needs.items()):
        if amount > (has := most.get(name, 0)) and has / amount < ratio:
            found, ratio = Waits(lack, "", name, amount, has), has / amount
    return found
