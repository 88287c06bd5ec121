"""Score nodes as kube-scheduler's default profile does: free resources, their balance, and the spread of pods. Pure.

Each score is an integer from 0 to 100, as there, so that the same nodes are equally good: kube-scheduler chooses one
of them by chance, the simulator the first by name. Preferences for nodes, taints, other pods and images do not count.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Amounts = dict[str, int]
"""Resource name → amount; cpu in millicores, everything else in whole units."""
SPREAD_WEIGHT = 2
"""Of the spread of pods; that of the other scores is 1."""
_MAX = 100
_DEFAULTS = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""The requests that a container without them is taken to have when free resources are compared."""
_SCORED = tuple(_DEFAULTS)


def scored_request(spec: Mapping[str, Any], request: Amounts) -> Amounts:
    """Return cpu and memory of a pod that requests `request`, with defaults for containers that do not say."""
    found = {key: request.get(key, 0) for key in _SCORED}
    for container in spec.get("containers", ()):
        requests = (container.get("resources") or {}).get("requests") or {}
        for key, amount in _DEFAULTS.items():
            if key not in requests:
                found[key] += amount
    return found


def resource_score(allocatable: Amounts, used: Amounts, scored_used: Amounts, request: Amounts, scored: Amounts) -> int:
    """Return the sum of the scores for free cpu and memory and for their balance on one node."""
    free, count = 0, 0
    for key in _SCORED:
        if capacity := allocatable.get(key, 0):
            free += max(capacity - scored_used.get(key, 0) - scored[key], 0) * _MAX // capacity
            count += 1
    score = free // count if count else 0
    if not any(request.get(key) for key in _SCORED):
        return score
    before = _balance(allocatable, used, {})
    return score + _MAX // 2 + (_MAX // 2 + _balance(allocatable, used, request) - before) // 2


def _balance(allocatable: Amounts, used: Amounts, more: Amounts) -> int:
    """Return how alike the used shares of cpu and memory are, 50 to 100."""
    shares = [
        min((used.get(key, 0) + more.get(key, 0)) / capacity, 1.0)
        for key in _SCORED
        if (capacity := allocatable.get(key, 0))
    ]
    return int((1 - abs(shares[0] - shares[1]) / 2) * _MAX) if len(shares) == len(_SCORED) else _MAX


@dataclass(frozen=True, slots=True)
class Spread:
    """One soft constraint over the feasible nodes: the pods that it counts in the domain of each."""

    max_skew: int
    counts: Sequence[int | None]
    """In the order of the nodes; None where a node is in no domain."""
    domains: int


def spread_scores(spreads: Sequence[Spread]) -> list[int]:
    """Return the score of each feasible node, best where the fewest pods are.

    A constraint weighs more the more domains it has. A node without a domain gets nothing for that constraint.
    """
    rows = []
    for spread in spreads:
        weight = math.log(spread.domains + 2)
        rows.append([0.0 if count is None else count * weight + spread.max_skew - 1 for count in spread.counts])
    # Halves go up, not to the even number.
    sums = [math.floor(sum(column) + 0.5) for column in zip(*rows, strict=True)]
    most, least = max(sums), min(sums)
    return [_MAX * (most + least - each) // most if most else _MAX for each in sums]
