"""Whether the replicas of a lost cluster find room in the others. Pure arithmetic on requests and free amounts.

The largest requests are placed first, each replica where most room is left, as far as the free amounts and `fits`
allow. That is an estimate: the scheduler decides one workload after the other by its policy, and counts on nodes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

_PODS = "pods"
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
    ordered = sorted(evacuees, key=lambda evacuee: (_sizes(evacuee), evacuee.name))
    return [_place(evacuee, left) for evacuee in ordered]


def _sizes(evacuee: Evacuee) -> tuple[int, ...]:
    return tuple(-evacuee.request.get(name, 0) for name in ("cpu", "memory"))


def _place(evacuee: Evacuee, left: Mapping[str, dict[str, int]]) -> Resettlement:
    missing, placed = evacuee.replicas, {}
    for cluster in _emptiest_first(left):
        if not missing:
            break
        amounts = left[cluster]
        request = {**evacuee.request, _PODS: 1} if _PODS in amounts else evacuee.request
        count = min(missing, _room(amounts, request))
        if count > 0 and (count := min(count, evacuee.fits(cluster))) > 0:
            placed[cluster] = count
            missing -= count
            for name, amount in request.items():
                amounts[name] -= count * amount
    return Resettlement(evacuee.name, placed, missing)


def _emptiest_first(left: Mapping[str, Amounts]) -> Sequence[str]:
    return sorted(left, key=lambda name: (-left[name].get("cpu", 0), -left[name].get("memory", 0), name))


def _room(amounts: Amounts, request: Amounts) -> int:
    """Return how often the request fits into the amounts; an empty request fits as often as anybody likes."""
    return max(0, min((amounts.get(name, 0) // amount for name, amount in request.items() if amount), default=1 << 31))
