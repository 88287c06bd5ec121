"""The share of a Job in each cluster: `parallelism`, which the scheduler divides, and `completions`. Pure.

Kubernetes does not let the completions of a Job change. They are divided when the Job is placed; later decisions only
change the parallelism, and the completions of a cluster that leaves go to clusters that are new. The Jobs of a CronJob
are made from the template each time, so each Job is divided by itself.

Decision: docs/decisions/0166-indexed-jobs-are-not-divided.md
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.planning.placement.apportionment import apportion
from federation.planning.placement.replicas import Preference

_TO_RUN_IT = "set schedulingMode to Duplicate to run all of it in each cluster, or maxClusters to 1"


@dataclass(frozen=True, slots=True)
class JobShares:
    """Parallelism and completions by cluster; no completions if the Job has none or they are not divided."""

    parallelism: Mapping[str, int]
    completions: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    """Why it cannot be divided, "" if it can."""


def divide_job(
    spec: Mapping[str, Any],
    parallelism: Mapping[str, int],
    *,
    placed: Mapping[str, int] | None = None,
    current: Collection[str] = (),
) -> JobShares:
    """Return the shares of a Job for the scheduler's division of its parallelism.

    `placed` are the completions of the clusters that run it, `current` its clusters; None for a CronJob.
    """
    if spec.get("completionMode") == "Indexed":
        problem = f"the indexes of an Indexed Job cannot be divided: {_TO_RUN_IT}" if len(parallelism) > 1 else ""
        return JobShares(parallelism, problem=problem)
    completions = spec.get("completions")
    if type(completions) is not int or not completions or not parallelism:
        return JobShares(parallelism)
    if placed is None:
        return JobShares(parallelism, _apportion(completions, _weights(parallelism)))
    if not placed and not parallelism.keys().isdisjoint(current):
        is_same = len(current) == 1 and set(current) == parallelism.keys()
        text = "the Job was placed with all its completions, which Kubernetes does not let change: create it again"
        return JobShares(parallelism, problem="" if is_same else text)
    if not placed:
        if not any(parallelism.values()):
            return JobShares(parallelism, problem="spec.parallelism is 0, so nothing says how to divide completions")
        return JobShares(parallelism, _apportion(completions, parallelism))
    return _divide_again(parallelism, placed)


def _divide_again(parallelism: Mapping[str, int], placed: Mapping[str, int]) -> JobShares:
    """Return the shares of a Job that is placed: what clusters have stays, what others lost goes to new ones."""
    kept = {cluster: count for cluster, count in placed.items() if cluster in parallelism}
    lost = sum(placed.values()) - sum(kept.values())
    fresh = {cluster: count for cluster, count in parallelism.items() if cluster not in placed}
    if lost and not fresh:
        left = ", ".join(sorted(placed.keys() - kept.keys()))
        problem = (
            f"the completions of {left} cannot move to clusters that run the Job, because Kubernetes does not let them"
            " change: create the Job again, or allow another cluster"
        )
        return JobShares(parallelism, problem=problem)
    taken_over = _apportion(lost, _weights(fresh)) if lost else {}
    completions = kept | {cluster: count for cluster, count in taken_over.items() if count}
    total = sum(parallelism.values())
    # A cluster without completions would run nothing, so its pods go to the others.
    weights = {cluster: parallelism.get(cluster, 0) for cluster in completions}
    shares = weights if sum(weights.values()) == total else _apportion(total, _weights(weights))
    return JobShares(shares, completions)


def _weights(counts: Mapping[str, int]) -> Mapping[str, int]:
    return counts if any(counts.values()) else dict.fromkeys(counts, 1)


def _apportion(total: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Return whole shares of the total in proportion to the weights."""
    return apportion(total, {cluster: Preference(weight) for cluster, weight in weights.items()})
