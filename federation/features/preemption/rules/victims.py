"""Choose the replicas that give way to a workload of higher priority. Pure; `reconcile.py` acts.

A workload gives way to higher priorities only, and never more replicas than its budget allows. Each chosen replica is
necessary: without it the room would not suffice. If all candidates together make no room for a single replica, none of
them gives way. Reference: docs/reference/preemption.md.

Decision: docs/decisions/0067-preemption-within-budgets.md
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from federation.apimachinery.errors import ConfigurationError
from federation.scheduling.yields import Yields

Resources = Mapping[str, int]
Chosen = dict[str, int]
"""Replicas that give way, by the key of their workload."""
_PODS = "pods"
_INTERVAL_S_MIN = 10.0


@dataclass(frozen=True, slots=True)
class Need:
    """Replicas of a workload that wait for room in a cluster.

    `free` is what nodes have free in sum, perhaps too scattered for one replica; `leaving` are the requests of pods
    that are being removed already, with their number as `pods`.
    """

    replicas: int
    priority: int
    request: Resources
    free: Resources = field(default_factory=dict)
    leaving: Resources = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victim:
    """A workload with replicas in the cluster: at most `most` of them may give way."""

    key: str
    priority: int
    request: Resources
    most: int


def to_interval(interval_s: float) -> float:
    """Return the time between two rounds, 0 for none; ConfigurationError, with the setting's name, if too short."""
    if interval_s and not interval_s >= _INTERVAL_S_MIN:
        raise ConfigurationError(f"preemption-interval-s must be 0, for no preemption, or at least {_INTERVAL_S_MIN:g}")
    return interval_s


def choose_victims(need: Need, victims: Iterable[Victim]) -> Chosen:
    """Return who gives way for as many of the waiting replicas as possible: the lowest priority first."""
    ranked = sorted(
        (v for v in victims if v.priority < need.priority and v.most > 0), key=lambda v: (v.priority, v.key)
    )
    for replicas in range(need.replicas, 0, -1):
        missing = missing_for(need, replicas)
        if all(sum(_each(v, name) * v.most for v in ranked) >= amount for name, amount in missing.items()):
            return _fewest(missing, ranked)
    return {}


def missing_for(need: Need, replicas: int) -> dict[str, int]:
    """Return what must become free for this number of replicas.

    Where the sums suffice and the pods wait nevertheless, what is free is scattered: one replica's request must come.
    """
    missing = {
        name: amount * replicas - max(0, need.free.get(name, 0)) - need.leaving.get(name, 0)
        for name, amount in need.request.items()
    }
    if not any(amount > 0 for amount in missing.values()):
        missing = {name: amount - need.leaving.get(name, 0) for name, amount in need.request.items()}
        missing[_PODS] = 1 - need.leaving.get(_PODS, 0)
    return {name: amount for name, amount in missing.items() if amount > 0}


def most_to_give(
    cluster: str, wanted: int, allowed: int, available: Mapping[str, int], placed: Mapping[str, int], yields: Yields
) -> int:
    """Return how many available replicas a workload may give in a cluster, with `allowed` of `wanted` unavailable.

    Replicas count that members report as available and that stay where they are.
    """
    stay = {
        name: min(available.get(name, 0), count, yields[name].keeps if name in yields else count)
        for name, count in placed.items()
    }
    return max(0, min(stay.get(cluster, 0), allowed - (wanted - sum(stay.values()))))


def _fewest(missing: Resources, ranked: list[Victim]) -> Chosen:
    """Return what frees all that is missing, which the victims can, in their order; then take back what is too much."""
    left, chosen = dict(missing), {}
    for victim in ranked:
        useful = [-(-amount // _each(victim, name)) for name, amount in left.items() if _each(victim, name)]
        if count := min(victim.most, max(useful, default=0)):
            chosen[victim.key] = count
            freed = {name: amount - count * _each(victim, name) for name, amount in left.items()}
            left = {name: amount for name, amount in freed.items() if amount > 0}
    by_key = {victim.key: victim for victim in ranked}
    spare = {name: sum(_each(by_key[key], name) * n for key, n in chosen.items()) - missing[name] for name in missing}
    for victim in reversed([by_key[key] for key in chosen]):
        limits = [spare[name] // _each(victim, name) for name in missing if _each(victim, name)]
        back = min(chosen[victim.key], *limits)
        chosen[victim.key] -= back
        spare = {name: amount - back * _each(victim, name) for name, amount in spare.items()}
    return {key: count for key, count in chosen.items() if count}


def _each(victim: Victim, name: str) -> int:
    return 1 if name == _PODS else victim.request.get(name, 0)
