"""Whether the replicas of a lost cluster find room in the others. Pure arithmetic on requests and free amounts.

The largest requests are placed first, and in the clusters with most free CPU first, as far as the free amounts and
`fits` allow. That is an estimate: the scheduler decides one workload after the other by its policy.

Decision: docs/decisions/0055-capacity-is-an-estimate.md
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_CPU, _PODS = "cpu", "pods"
Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Evacuee:
    """Replicas of one workload that must leave; `fits` returns how many of them a cluster takes at most."""

    name: str
    replicas: int
    request: Amounts
    fits: Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Resettlement:
    """Where the replicas of a workload find room, and how many find none."""

    name: str
    placed: Mapping[str, int]
    homeless: int


def resettle(evacuees: Iterable[Evacuee], free: Mapping[str, Amounts]) -> list[Resettlement]:
    """Return where the replicas find room, in the order in which they were placed.

    `free` has the free amounts of the clusters that are left. A pod counts as one of `pods` where a cluster reports
    that resource.
    """
    left = {cluster: dict(amounts) for cluster, amounts in free.items()}
    emptiest_first = sorted(free, key=lambda name: (-free[name].get(_CPU, 0), -free[name].get("memory", 0), name))
    ordered = sorted(evacuees, key=lambda evacuee: (_sizes(evacuee), evacuee.name))
    return [_place(evacuee, emptiest_first, free, left) for evacuee in ordered]


def _sizes(evacuee: Evacuee) -> tuple[int, ...]:
    return tuple(-evacuee.request.get(name, 0) for name in (_CPU, "memory"))


def _place(
    evacuee: Evacuee, emptiest_first: Iterable[str], free: Mapping[str, Amounts], left: Mapping[str, dict[str, int]]
) -> Resettlement:
    missing, placed, cpu = evacuee.replicas, {}, evacuee.request.get(_CPU, 0)
    for cluster in emptiest_first:
        if not missing or (cpu and free[cluster].get(_CPU, 0) < cpu):
            break  # no later cluster has more
        amounts = left[cluster]
        request = {**evacuee.request, _PODS: 1} if _PODS in amounts else evacuee.request
        count = min(missing, _room(amounts, request))
        if count > 0 and (count := min(count, evacuee.fits(cluster))) > 0:
            placed[cluster] = count
            missing -= count
            for name, amount in request.items():
                amounts[name] -= count * amount
    return Resettlement(evacuee.name, placed, missing)


def _room(amounts: Amounts, request: Amounts) -> int:
    """Return how often the request fits into the amounts; an empty request fits as often as anybody likes."""
    return max(0, min((amounts.get(name, 0) // amount for name, amount in request.items() if amount), default=1 << 31))
