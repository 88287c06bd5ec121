"""The choice of a cluster for a job with a deadline: wait for a cheaper one, or start now. Pure.

Decision: docs/decisions/0165-jobs-wait-for-the-cheapest-cluster-in-time.md
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from federation.features.queues.rules.estimate import expected_end
from federation.features.queues.rules.facts import Bids, Job, Queue, Resources
from federation.scheduling.deadlines import Alternative, to_alternatives

COMPARED_MAX = 32
"""Clusters that are compared for one job: the cheapest ones, and of those with room the cheapest ones."""

End = tuple[float, str, Resources]
"""When a running job is expected to end, its key, and what it releases."""


def compare(
    bids: Bids, clusters: Collection[str], open_: Collection[str], start_in: Callable[[str], float | None], now: float
) -> list[Alternative]:
    """Return the alternatives of a job, the best one first. `open_` are the clusters that have room for it now."""
    able = [offer for offer in bids.offers if offer.cluster in clusters]
    starting = [replace(each, start_s=now) for each in able if each.cluster in open_][:COMPARED_MAX]
    later = [replace(each, start_s=start_in(each.cluster)) for each in able[:COMPARED_MAX] if each.cluster not in open_]
    return to_alternatives(bids.deadline, [*starting, *later], now)


def choose(alternatives: Sequence[Alternative], open_: Collection[str]) -> frozenset[str]:
    """Return the clusters where a job starts now, all equally good; none if it is to wait for the best one."""
    starting = [each for each in alternatives if each.cluster in open_]
    if not starting or (alternatives[0].is_met and alternatives[0] is not starting[0]):
        return frozenset()
    first = starting[0]
    if not first.is_met:
        return frozenset((first.cluster,))
    return frozenset(each.cluster for each in starting if each.is_met and each.cost == first.cost)


def ends_of(running: Iterable[Job], queues: Mapping[str, Queue], now: float) -> list[End]:
    """Return when the jobs of a cluster are expected to end, the first one first, if that is known."""
    found = []
    for job in running:
        declared_s = job.bids.deadline.run_s if job.bids is not None else job.limit_s
        mean_s = queues[job.queue].mean_s if job.bids is None else None
        end_s = expected_end(job.started_s, declared_s, mean_s, now)
        if end_s is not None:
            found.append((end_s, job.key, job.needs))
    return sorted(found, key=lambda each: each[:2])


def start_after(ends: Iterable[End], needs: Resources, free: Resources) -> float | None:
    """Return when jobs that run have released what is missing, None if that is not known."""
    missing = {name: amount - free.get(name, 0) for name, amount in needs.items()}
    for end_s, _, released in ends:
        for name in missing:
            missing[name] -= released.get(name, 0)
        if all(amount <= 0 for amount in missing.values()):
            return end_s
    return None
