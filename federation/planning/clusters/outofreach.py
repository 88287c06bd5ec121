"""Requests of pods that say nothing about the room of a cluster: it could never run them. Pure.

The room of a cluster is a signal to all: scores, fleet rules and the web UI follow it. So one user's pods must not
decide it by what they ask for. Nowhere count pods without a node that ask for more of a resource than any open node
has, what pods on a node request beyond that node, and pods on nodes that do not exist. What pods of one namespace wait
for counts up to `SHARE` of what open nodes have; a pod with a selector that no node has waits for ever. Pods without
a namespace belong to no user, and count whole.

`clusterresources.py` subtracts these sums. Decision: docs/decisions/0255-a-namespace-has-a-share-of-a-signal.md
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from federation.planning.clusters import nodeclasses
from federation.planning.clusters.podsums import Waiting

SHARE = Fraction(1, 4)
"""Of what the open nodes of a cluster have of a resource, for how much the waiting pods of one namespace count."""


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """What is not counted, in the integers of `nodeclasses`: of all pods, and of those without a node."""

    used: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)


def compute_out_of_reach(
    open_nodes: Sequence[Mapping[str, int]],
    waiting: Mapping[Waiting, int],
    loads: Iterable[tuple[Mapping[str, int], Mapping[str, int]]],
) -> OutOfReach:
    """Return the sums. `loads` has for each node with pods what they request, and what it has; {} for an unknown one.

    `pods` is the number of pods, and is limited for nodes only.
    """
    never = _never_running(open_nodes, waiting) if waiting and open_nodes else Counter[str]()
    used = Counter(never)
    for load, whole in loads:
        used.update({name: amount - whole.get(name, 0) for name, amount in load.items() if amount > whole.get(name, 0)})
    return OutOfReach(used, never)


def _never_running(open_nodes: Sequence[Mapping[str, int]], waiting: Mapping[Waiting, int]) -> Counter[str]:
    """Return what pods ask for that are larger than any node, and what is beyond the share of each namespace."""
    largest, total = dict[str, int](), Counter[str]()
    for node in open_nodes:
        total.update(node)
        for name, amount in node.items():
            largest[name] = max(amount, largest.get(name, 0))
    never = Counter[str]()
    by_namespace: dict[str, Counter[str]] = {}
    for (namespace, requests), count in waiting.items():
        asked = nodeclasses.ceil_amounts(requests)
        if any(amount > largest.get(name, 0) for name, amount in asked.items()):
            never.update({name: amount * count for name, amount in asked.items()} | {nodeclasses.PODS: count})
        elif namespace:
            fitting = by_namespace.setdefault(namespace, Counter())
            fitting.update({name: amount * count for name, amount in asked.items()})
    for fitting in by_namespace.values():
        over = {name: amount - int(total[name] * SHARE) for name, amount in fitting.items()}
        never.update({name: amount for name, amount in over.items() if amount > 0})
    return never


def merged(*parts: Mapping[Waiting, int]) -> Mapping[Waiting, int]:
    """Return the numbers of pods in all parts."""
    found = [part for part in parts if part]
    if len(found) <= 1:
        return found[0] if found else {}
    total = Counter[Waiting]()
    for part in found:
        total.update(part)
    return total
