"""Room and quota that are kept for a job which waits for others to leave a cluster. Pure.

Decision: docs/decisions/0143-jobs-of-queues-are-packed.md
"""

from collections.abc import Sequence
from dataclasses import dataclass

from federation.features.queues.rules.facts import Amounts, Job, Resources


@dataclass(frozen=True, slots=True)
class Holding:
    """A cluster: what it has, what is free, and the jobs of queues that run there."""

    total: Resources
    free: Resources
    running: Sequence[Job]


def ends_needed(needs: Resources, cluster: Holding) -> int:
    """Return how many running jobs have to end, at the least, until a cluster has room for what is needed.

    Large jobs count as the first to end. Pods that no queue knows count as the last.
    """
    most = 0
    for name, amount in needs.items():
        missing, count = amount - cluster.free.get(name, 0), 0
        for held in sorted((each.needs.get(name, 0) for each in cluster.running), reverse=True):
            if missing <= 0:
                break
            missing, count = missing - held, count + 1
        most = max(most, count if missing <= 0 else len(cluster.running) + 1)
    return most


def quota_to_keep(job: Job, amounts: Amounts, cluster: Holding) -> Amounts:
    """Return the quota to keep for a job now.

    The rest is released by jobs of the same queue that have to leave the kept cluster before the job can start: quota
    that is free elsewhere need not stay unused for it.
    """
    mine = [each for each in cluster.running if each.queue == job.queue]
    kept = {}
    for pair, amount in amounts.items():
        free = cluster.free.get(pair[1], 0)
        own = sum((each.holds or {}).get(pair, 0) for each in mine)
        others = max(0, cluster.total.get(pair[1], 0) - free - own)
        kept[pair] = max(0, amount - max(0, job.needs.get(pair[1], 0) - free - others))
    return kept
