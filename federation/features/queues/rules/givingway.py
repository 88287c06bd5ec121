"""Choice of running jobs that give way: lower priorities of the same queue, and borrowers of the cohort. Pure.

Nothing is evicted unless the waiting job then has its whole quota and its whole room. What is leaving already counts as
gone, so that a second round evicts nothing more for the same job. Each queue loses at most a number of jobs per hour.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from federation.features.queues.rules.facts import Job, Option, Pair, Queue, Reclaim, Resources
from federation.planning.accounts.usage import Usage


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates for eviction: the jobs of a group, and the cluster that is kept for the waiting job."""

    queue: Queue
    queues: Mapping[str, Queue]
    running: list[Job]
    usage: Usage[Pair]
    free: Resources
    cluster: str
    evicted: Collection[str]
    left: Mapping[str, int]
    """The evictions that each queue still allows."""


def choose_victims(among: Candidates, job: Job, option: Option) -> list[Job]:
    """Return the jobs to evict, [] if none helps or none is needed."""
    queue = among.queue
    if not job.may_displace or (not queue.gives_way_within and queue.reclaim is Reclaim.NEVER):
        return []
    gone = [each for each in among.running if each.is_leaving or each.key in among.evicted]
    state = _State(among, job, option)
    removed: list[Job] = []
    try:
        for each in gone:
            state.remove(each)
            removed.append(each)
        if state.fits():
            return []
        chosen: list[Job] = []
        left = dict(among.left)
        for each in _in_order(among, job, option):
            if left.get(each.queue, 0) > 0 and state.helps(each) and state.may_reclaim(each):
                state.remove(each)
                removed.append(each)
                chosen.append(each)
                left[each.queue] -= 1
                if state.fits():
                    return state.without_needless(chosen, removed)
        return []
    finally:
        for each in removed:
            state.restore(each)


def _in_order(among: Candidates, job: Job, option: Option) -> list[Job]:
    """Return the jobs that may give way: borrowers first, then the lowest priority, then the latest start."""
    queue, found = among.queue, []
    reclaims = queue.reclaim is not Reclaim.NEVER and not among.usage.is_borrowing(queue.name, option.amounts)
    for each in among.running:
        if each.is_leaving or each.key in among.evicted or not each.cluster:
            continue
        if each.queue == queue.name:
            if queue.gives_way_within and each.priority < job.priority:
                found.append(each)
        elif reclaims and (queue.reclaim is Reclaim.ANY or each.priority < job.priority):
            found.append(each)
    return sorted(found, key=lambda each: (each.queue == queue.name, each.priority, -each.started_s, each.key))


class _State:
    """Quota and room while jobs are taken away in thought."""

    def __init__(self, among: Candidates, job: Job, option: Option) -> None:
        self._among, self._job, self._option = among, job, option
        self._free = dict(among.free)

    def fits(self) -> bool:
        among = self._among
        if among.usage.find_excess(among.queue.name, self._option.amounts) is not None:
            return False
        return all(self._free.get(name, 0) >= amount for name, amount in self._job.needs.items())

    def helps(self, each: Job) -> bool:
        """Return whether the job holds something that is short."""
        short = self._among.usage.find_excess(self._among.queue.name, self._option.amounts)
        if short is not None:
            return bool((each.holds or {}).get(short.measure))
        lacking = [name for name, amount in self._job.needs.items() if self._free.get(name, 0) < amount]
        return each.cluster == self._among.cluster and any(each.needs.get(name) for name in lacking)

    def may_reclaim(self, each: Job) -> bool:
        """Return whether the job is of the own queue, or its queue borrows what is short."""
        among = self._among
        return each.queue == among.queue.name or among.usage.borrows_any(each.queue, self._option.amounts)

    def remove(self, each: Job) -> None:
        self._count(each, -1)

    def restore(self, each: Job) -> None:
        self._count(each, 1)

    def _count(self, each: Job, sign: int) -> None:
        self._among.usage.add(each.queue, each.holds or {}, sign)
        if each.cluster == self._among.cluster:
            for name, amount in each.needs.items():
                self._free[name] = self._free.get(name, 0) - sign * amount

    def without_needless(self, chosen: list[Job], removed: list[Job]) -> list[Job]:
        """Return the chosen jobs without those that need not go; the first candidates stay the first to go."""
        needed = list(chosen)
        for each in reversed(chosen):
            self.restore(each)
            if self.fits():
                removed.remove(each)
                needed.remove(each)
            else:
                self.remove(each)
        return needed
