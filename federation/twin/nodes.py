"""Rebuild the nodes of a cluster from `status.resources` of its FederatedCluster. Pure.

The status has classes of nodes with what is free on each, and sums (`planning/clusters/nodeclasses.py`). The rebuilt
nodes have the same labels, taints and free resources, and together the same allocatable ones. How the allocatable
resources are divided among the nodes of a class is not in the status: each gets the same share of what lies between
its free resources and those of the largest node.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.quantity import parse
from federation.planning.clusters.nodeclasses import PODS, Amounts, floor_amounts, to_texts
from federation.simulator.options import NodeShape

_Class = tuple[Mapping[str, Any], list[Amounts], Amounts]
"""A class of nodes, what is free on each of them, and the largest amounts of any."""


@dataclass(frozen=True, slots=True)
class CopiedNode:
    """A node, and what is free on it: cpu in thousandths, everything else in whole units."""

    shape: NodeShape
    allocatable: Amounts
    free: Amounts


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
