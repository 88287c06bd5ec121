"""Copies of a workload that stay for a while in clusters that it has left: one per successor that does not serve.

A workload of copies (`Duplicate`) has all of its replicas in each cluster. When it moves, the old copy is removed once
the new one is available, so that a cluster in which the workload cannot start takes nothing away. A cluster that leaves
without a successor, and a copy that is not available itself, are not kept. Pure.

Decision: docs/decisions/0190-a-copy-waits-for-its-successor.md
"""

from collections.abc import Collection, Iterable

from federation.planning.steps.steps import Step, Target


def plan_copies(arriving: Collection[str], targets: Iterable[Target]) -> dict[str, Step]:
    """Return the steps of the copies that stay, by cluster; `arriving` are the clusters of the successors."""
    found = list(targets)
    awaited = awaited_clusters(arriving, found)
    leaving = [each for each in found if each.is_departing and each.is_answering and each.available]
    leaving.sort(key=lambda each: (-each.available, each.cluster))
    return {each.cluster: Step(each.replicas) for each in leaving[: len(awaited)]}


def awaited_clusters(arriving: Collection[str], targets: Iterable[Target]) -> list[str]:
    """Return the clusters whose copy does not serve yet, sorted: too few available pods, or no answer."""
    return sorted(set(arriving).difference(each.cluster for each in targets if _is_serving(each)))


def _is_serving(target: Target) -> bool:
    """Return whether all pods but the workload's `maxUnavailable` are available, at least one."""
    if not target.exists or not target.is_answering or target.is_departing:
        return False
    enough = target.wanted - target.wanted_strategy.budget(target.wanted).unavailable
    return target.available >= min(target.wanted, max(enough, 1))
