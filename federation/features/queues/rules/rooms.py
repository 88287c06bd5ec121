"""What clusters have for jobs, and what is free of it. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from federation.features.queues.rules.facts import Resources, Room
from federation.scheduling.framework.types import Cluster


def to_room(cluster: Cluster) -> Room:
    """Return what the nodes of a cluster have, and what is free of it; nodes with taints included."""
    if cluster.node_classes is None:
        return Room(dict(cluster.allocatable), {name: max(0, amount) for name, amount in cluster.available.items()})
    room: Room | None = cluster.memo.get(to_room)
    if room is None:
        total: dict[str, int] = {}
        free: dict[str, int] = {}
        for each in cluster.node_classes:
            for name, amount in each.largest.items():
                total[name] = total.get(name, 0) + amount * max(each.size, sum(each.nodes))
            for name, amounts in each.free.items():
                free[name] = free.get(name, 0) + sum(
                    nodes * amount for nodes, amount in zip(each.nodes, amounts, strict=True)
                )
        room = cluster.memoize(to_room, Room(total, free))
    return room


def to_emptied(cluster: Cluster) -> Cluster:
    """Return the cluster with all that its nodes have as free; each node counts as the largest of its class."""
    classes = cluster.node_classes
    if classes is not None:
        classes = tuple(
            replace(each, nodes=(each.size,), free={name: (amount,) for name, amount in each.largest.items()})
            for each in classes
        )
    return Cluster(
        cluster.name,
        cluster.labels,
        allocatable=cluster.allocatable,
        available=cluster.allocatable,
        node_classes=classes,
        omitted_node_labels=cluster.omitted_node_labels,
    )


def less(free: Resources, needs: Resources) -> dict[str, int]:
    """Return what is free without what is needed."""
    return {**free, **{name: free.get(name, 0) - amount for name, amount in needs.items()}}


def most_of(rooms: Iterable[Resources]) -> Resources:
    """Return the largest amount of each resource."""
    found: dict[str, int] = {}
    for room in rooms:
        for name, amount in room.items():
            if amount > found.get(name, 0):
                found[name] = amount
    return found
