"""Rebuild the nodes of a cluster from `status.resources` of its FederatedCluster, and what is used on them. Pure.

The status has classes of nodes with what is free on each, and sums (`planning/clusters/nodeclasses.py`). The rebuilt
nodes have the same labels, taints and free resources, and together the same allocatable ones. How the allocatable
resources are divided among the nodes of a class is not in the status: each gets the same share of what lies between
its free resources and those of the largest node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.quantity import parse
from federation.planning.clusters.nodeclasses import PODS, Amounts, floor_amounts, to_texts
from federation.simulator.options import NodeShape

PodKey = tuple[str, str]
"""The namespace and name of a pod."""
_Class = tuple[Mapping[str, Any], list[Amounts], Amounts]
"""A class of nodes, what is free on each of them, and the largest amounts of any."""


@dataclass(frozen=True, slots=True)
class CopiedNode:
    """A node, and what is free on it: cpu in thousandths, everything else in whole units."""

    shape: NodeShape
    allocatable: Amounts
    free: Amounts


@dataclass(frozen=True, slots=True)
class FilledNode:
    """What a node has in the end, what other pods request on it, and the copied pods that are put on it."""

    allocatable: Amounts
    others: Amounts
    bound: Sequence[PodKey]


def copied_nodes(cluster: str, resources: Mapping[str, Any]) -> list[CopiedNode]:
    """Return the schedulable nodes of a cluster that reported these resources."""
    classes = [
        (each, list(_free_of(each)), amounts_of(each.get("largest"))) for each in resources.get("nodeClasses") or ()
    ]
    shares = _shares([each for each in classes if not each[0].get("taints")], amounts_of(resources.get("allocatable")))
    nodes: list[CopiedNode] = []
    left: dict[str, float] = {}  # of a unit, by rounding: the next node has it
    for node_class, frees, largest in classes:
        used = {} if node_class.get("taints") else shares
        top = _largest_nodes(frees, largest)
        for place, free in enumerate(frees):
            allocatable = dict(largest)
            for name, share in used.items():
                if name in largest and place != top[name]:
                    least = free.get(name, 0)
                    exact = least + (largest[name] - least) * share + left.get(name, 0.0)
                    allocatable[name] = round(exact)
                    left[name] = exact - allocatable[name]
            nodes.append(
                CopiedNode(_shape(f"{cluster}-node-{len(nodes) + 1}", node_class, allocatable), allocatable, free)
            )
    return nodes


def filled_nodes(
    nodes: Sequence[CopiedNode],
    held: Mapping[str, Amounts],
    pending: Iterable[tuple[PodKey, Mapping[str, int]]],
    waiting: Amounts,
) -> dict[str, FilledNode]:
    """Return how each node has just so much free as the original, and all of them together so much allocatable.

    `held` is what copied pods request on a node. `pending` are those that found no node: which pods share a node in
    the original is not known, so they may not fit into what is used on any of them. They are put on the nodes with
    most left of that, and what is too much there is allocatable there instead of elsewhere. As much as `waiting` stays
    pending.
    """
    slack = {
        node.shape.name: {
            name: amount - node.free.get(name, 0) - held.get(node.shape.name, {}).get(name, 0)
            for name, amount in node.allocatable.items()
            if name != PODS
        }
        for node in nodes
    }
    bound: dict[str, list[PodKey]] = {name: [] for name in slack}
    left = dict(waiting)
    for key, request in sorted(pending, key=lambda each: -each[1].get("cpu", 0)):
        wanted = {name: amount for name, amount in request.items() if amount}
        if wanted and all(left.get(name, 0) >= amount for name, amount in wanted.items()):
            left = {name: amount - wanted.get(name, 0) for name, amount in left.items()}
        elif slack and all(_sum(slack, name) >= amount for name, amount in wanted.items()):
            chosen = max(slack, key=lambda node: slack[node].get("cpu", 0))
            bound[chosen].append(key)
            slack[chosen] = {name: amount - wanted.get(name, 0) for name, amount in slack[chosen].items()}
    moved = {name: dict.fromkeys(amounts, 0) for name, amounts in slack.items()}
    for is_tainted in (False, True):
        group = [node.shape.name for node in nodes if bool(node.shape.taints) is is_tainted]
        for name in {name for each in group for name in slack[each]}:
            _move_allocatable({each: slack[each][name] for each in group if name in slack[each]}, name, moved)
    return {
        node.shape.name: FilledNode(
            {name: amount + moved[node.shape.name].get(name, 0) for name, amount in node.allocatable.items()},
            {name: max(0, amount + moved[node.shape.name][name]) for name, amount in slack[node.shape.name].items()},
            bound[node.shape.name],
        )
        for node in nodes
    }


def _sum(slack: Mapping[str, Amounts], name: str) -> int:
    return sum(max(0, amounts.get(name, 0)) for amounts in slack.values())


def _move_allocatable(slack: Mapping[str, int], name: str, moved: Mapping[str, dict[str, int]]) -> None:
    """Move a resource from nodes with some to spare to those that lack it, as far as there is enough."""
    spare = sum(amount for amount in slack.values() if amount > 0)
    given = lacking = min(spare, -sum(amount for amount in slack.values() if amount < 0))
    for node, amount in slack.items():
        if amount > 0:
            taken = min(amount, given)
            given -= taken
            moved[node][name] -= taken
        elif amount < 0:
            got = min(-amount, lacking)
            lacking -= got
            moved[node][name] += got


def _shape(name: str, node_class: Mapping[str, Any], allocatable: Amounts) -> NodeShape:
    texts = to_texts(allocatable)
    return NodeShape(
        name,
        texts.pop("cpu", "0"),
        texts.pop("memory", "0"),
        allocatable.get(PODS, 0),
        {key: text for key, text in texts.items() if key != PODS},
        node_class.get("labels") or {},
        tuple(node_class.get("taints") or ()),
    )


def _free_of(node_class: Mapping[str, Any]) -> Iterator[Amounts]:
    """Yield what is free on each node of a class, most first; nodes that are full have no entry."""
    left = int(node_class.get("nodes") or 0)
    for entry in node_class.get("free") or ():
        count = min(left, int(entry.get("nodes") or 0))
        left -= count
        free = amounts_of(entry.get("resources"))
        for _ in range(count):
            yield free
    for _ in range(left):
        yield {}


def _largest_nodes(frees: Sequence[Amounts], largest: Amounts) -> dict[str, int]:
    """Return for each resource the place of the node that has the largest amount: the one with most of it free."""
    return {name: max(range(len(frees)), key=lambda at: frees[at].get(name, 0), default=0) for name in largest}


def _shares(classes: Sequence[_Class], total: Amounts) -> dict[str, float]:
    """Return for each resource how far all nodes but the largest of a class are from free (0) to the largest (1)."""
    fixed: dict[str, int] = {}
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for _, frees, largest in classes:
        top = _largest_nodes(frees, largest)
        for place, free in enumerate(frees):
            for name, amount in largest.items():
                if place == top[name]:
                    fixed[name] = fixed.get(name, 0) + amount
                else:
                    least[name] = least.get(name, 0) + free.get(name, 0)
                    most[name] = most.get(name, 0) + amount
    shares = {}
    for name, upper in most.items():
        if name in total and upper > least[name]:
            wanted = total[name] - fixed[name] - least[name]
            shares[name] = min(1.0, max(0.0, wanted / (upper - least[name])))
    return shares


def amounts_of(texts: Mapping[str, str] | None) -> Amounts:
    """Return a ResourceList as integers, without malformed amounts: cpu in thousandths, others in whole units."""
    found = []
    for name, text in (texts or {}).items():
        try:
            found.append((name, parse(text)))
        except ValueError:
            continue
    return floor_amounts(found)
