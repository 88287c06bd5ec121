"""Whether all pods of a gang fit into one cluster at the same time, node by node. Pure; part of the public plugin API.

A member's own scheduler places one pod after the other and knows no gang. So it is not enough that some arrangement of
the pods exists: a cluster is accepted if every pod finds a node however the scheduler arranges the others. That is
proved by counting, and otherwise by placing the pods as schedulers do, on the emptiest and on the fullest nodes, in
their order and in the reverse one; each of these must succeed.

Replicas that recent decisions placed, and that the report does not show yet, may be on any node. With them only the
count decides, so that two gangs are never promised the same room.

Decision: docs/decisions/0109-gangs-fit-whole.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import mul

from federation.planning.clusters.deviceclaims import device_text
from federation.scheduling.framework.assumed import replicas_displaced_by
from federation.scheduling.framework.nodecapacity import pod_capacity, suits
from federation.scheduling.framework.types import PODS, Cluster, NodeClass, PodSet, PodShape, Resources

_Request = tuple[tuple[str, int], ...]
_Free = tuple[tuple[str, int], ...]
"""The free amounts of a node, sorted by resource."""


_PAIRS_MAX = 64
"""Components that are compared in pairs."""
_LOOKS_MAX = 10_000
"""Groups of nodes that one trial looks at: some hundredths of a second."""


class Lack(Enum):
    """Why a gang does not fit into a cluster."""

    NO_NODE = "no node could run one of its pods even if it were empty"
    SIZE = "the whole cluster has less than it needs"
    ROOM = "less is free than it needs"
    NODES = "enough is free, but not on the same nodes"
    DECISIONS = "recent decisions may use the room"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The shortage of a cluster for a gang: of a resource for SIZE and ROOM, of nodes for a component otherwise."""

    lack: Lack
    component: str = ""
    resource: str = ""
    needed: int = 0
    found: int = 0

    def describe(self) -> str:
        """Return what the cluster lacks, for people."""
        match self.lack:
            case Lack.NO_NODE:
                if self.resource:
                    needed = amount_text(self.resource, self.needed)
                    found = amount_number(self.resource, self.found)
                    return f"a pod of {self.component} needs {needed} on one node, the largest has {found}"
                return f"no node could run a pod of {self.component}"
            case Lack.SIZE | Lack.ROOM:
                needed, found = amount_text(self.resource, self.needed), amount_number(self.resource, self.found)
                return f"needs {needed}, the cluster has {found}{' free' if self.lack is Lack.ROOM else ''}"
            case Lack.NODES:
                return f"its nodes have room for {self.found} of {self.needed} pods of {self.component}"
            case Lack.DECISIONS:
                return f"recent decisions may use the room of {self.component}"


def find_shortfall(
    pods: Sequence[PodSet], cluster: Cluster, assumed: Mapping[_Request, int] | None = None
) -> Shortfall | None:
    """Return what the cluster lacks for the gang, None if it fits. `assumed` replicas have not been reported yet."""
    if assumed:
        return _known_shortfall(pods, cluster) or _by_count(pods, cluster, assumed)
    key = (find_shortfall, tuple(pods))
    if key in cluster.memo:
        known: Shortfall | None = cluster.memo[key]
        return known
    return cluster.memoize(key, _known_shortfall(pods, cluster))


def count_groups(pods: Sequence[PodSet], cluster: Cluster) -> int:
    """Return how many groups of these pods the cluster has room for, each of them whole.

    It is found by bisection between none and what its sums have room for.
    """
    least, most = (
        0,
        min(pod_capacity(cluster, component.shape).room // component.least for component in pods if component.least),
    )
    while least < most:
        middle = (least + most + 1) // 2
        groups = [replace(each, count=each.count * middle, least=each.least * middle) for each in pods]
        if _known_shortfall(groups, cluster) is None:
            least = middle
        else:
            most = middle - 1
    return least


def total_of(pods: Iterable[PodSet]) -> dict[str, int]:
    """Return what all pods that must run at the same time request."""
    total: dict[str, int] = {}
    for component in pods:
        for name, amount in component.shape.request:
            total[name] = total.get(name, 0) + amount * component.least
    return total


def size_for(pods: Sequence[PodSet], cluster: Cluster) -> dict[str, int]:
    """Return what all nodes that the pods can run on have together, if they were empty; never less than that.

    The sums of a report leave out nodes with taints. For these, all nodes of a class count as its largest one.
    """
    classes = cluster.node_classes
    if classes is None or all(
        _suits_any(each, pods, cluster, is_sure=False) is not bool(each.taints) for each in classes
    ):
        return dict(cluster.allocatable)
    total: dict[str, int] = {}
    for each in classes:
        if _suits_any(each, pods, cluster, is_sure=False):
            for name, amount in each.largest.items():
                total[name] = total.get(name, 0) + amount * max(each.size, sum(each.nodes))
    return total


def room_for(pods: Sequence[PodSet], cluster: Cluster) -> dict[str, int]:
    """Return what is free on all nodes that the pods can run on; the sums where the cluster reports no nodes.

    The sums of a report count pods on any node, and leave out nodes with taints.
    """
    if cluster.node_classes is None:
        return {name: max(0, amount) for name, amount in cluster.available.items()}
    total: dict[str, int] = {}
    for each in cluster.node_classes:
        if _suits_any(each, pods, cluster, is_sure=True):
            for name, amounts in each.free.items():
                total[name] = total.get(name, 0) + sum(map(mul, each.nodes, amounts))
    return total


def _suits_any(each: NodeClass, pods: Sequence[PodSet], cluster: Cluster, *, is_sure: bool) -> bool:
    omitted = cluster.omitted_node_labels
    needs = dict.fromkeys(component.shape.needs for component in pods if component.least)
    return any(suits(each, some, omitted, is_sure=is_sure) for some in needs)


def amount_text(resource: str, amount: int) -> str:
    """Return an amount with its unit: "120 cores", "8Gi memory", "4 nvidia.com/gpu", "2 devices of class …"."""
    if text := device_text(resource, amount):
        return text
    number = amount_number(resource, amount)
    if resource == "cpu":
        return f"{number} core" if number == "1" else f"{number} cores"
    return f"{number} {resource}"


def amount_number(resource: str, amount: int) -> str:
    """Return an amount as people write it, without its unit of measure for cores."""
    if resource == "cpu":
        return f"{amount / 1000:g}"
    if resource in ("memory", "ephemeral-storage") and amount >= _MEBIBYTE:
        is_large = amount % _GIBIBYTE == 0 or amount >= 10 * _GIBIBYTE
        return f"{round(amount / _GIBIBYTE, 1):g}Gi" if is_large else f"{round(amount / _MEBIBYTE, 1):g}Mi"
    return str(amount)


_MEBIBYTE, _GIBIBYTE = 2**20, 2**30


def _known_shortfall(pods: Sequence[PodSet], cluster: Cluster) -> Shortfall | None:
    """Return what the cluster lacks by its report."""
    for component in pods:
        if component.least and not pod_capacity(cluster, component.shape).could_run:
            return _of_node(component, cluster)
    total = total_of(pods)
    for lack, amounts in ((Lack.SIZE, size_for(pods, cluster)), (Lack.ROOM, room_for(pods, cluster))):
        missing = [(needed / max(1, amounts.get(name, 0)), name) for name, needed in total.items()]
        missing = [(ratio, name) for ratio, name in missing if total[name] > amounts.get(name, 0)]
        if missing:
            name = max(missing)[1]
            return Shortfall(lack, "", name, total[name], amounts.get(name, 0))
    if cluster.node_classes is None:
        return None  # It reports sums only.
    for component in pods:
        if (room := pod_capacity(cluster, component.shape).room) < component.least:
            return Shortfall(Lack.NODES, component.name, "", component.least, room)
    if _by_count(pods, cluster, {}) is None:
        return None
    return _by_trial(pods, cluster)


def _of_node(component: PodSet, cluster: Cluster) -> Shortfall:
    """Return what no node has for a pod: the scarcest resource, none if nodes have enough of each."""
    omitted = cluster.omitted_node_labels
    largest = [
        each.largest
        for each in cluster.node_classes or ()
        if suits(each, component.shape.needs, omitted, is_sure=False)
    ]
    most = {name: max((each.get(name, 0) for each in largest), default=0) for name, _ in component.shape.request}
    short = [(amount / max(1, most[name]), name) for name, amount in component.shape.request if amount > most[name]]
    if not short or not largest:
        return Shortfall(Lack.NO_NODE, component.name)
    name = max(short)[1]
    return Shortfall(Lack.NO_NODE, component.name, name, dict(component.shape.request)[name], most[name])


def _by_count(pods: Sequence[PodSet], cluster: Cluster, assumed: Mapping[_Request, int]) -> Shortfall | None:
    """Return the first component that may lack room if all others and the assumed replicas take as much as they can.

    However pods are arranged, one of them takes the place of at most so many others (`replicas_displaced_by`). So what
    is left is room that every arrangement leaves.
    """
    for component in pods:
        if not component.least:
            continue
        request = component.shape.request
        room = pod_capacity(cluster, component.shape).room
        room -= sum(count * replicas_displaced_by(other, request) for other, count in assumed.items())
        room -= _displaced_by_others(component, pods, cluster)
        if room < component.least:
            lack = Lack.DECISIONS if assumed else Lack.NODES
            return Shortfall(lack, component.name, "", component.least, max(0, room))
    return None


def _displaced_by_others(component: PodSet, pods: Sequence[PodSet], cluster: Cluster) -> int:
    """Return how many pods of a component the others may displace; a larger number for gangs of many components."""
    request, others = component.shape.request, [other for other in pods if other is not component]
    if len(pods) > _PAIRS_MAX:
        # What a pod displaces is at most 1 and the sum of its fractions of the request: linear in the components.
        total: dict[str, int] = {}
        for other in others:
            for name, amount in other.shape.request:
                total[name] = total.get(name, 0) + amount * other.count
        fractions = sum(-(-total.get(name, 0) // amount) for name, amount in request if amount)
        return sum(other.count for other in others) + fractions
    return sum(
        other.count * replicas_displaced_by(other.shape.request, request)
        for other in others
        if _share_nodes(cluster, other.shape, component.shape)
    )


def _share_nodes(cluster: Cluster, one: PodShape, other: PodShape) -> bool:
    """Return whether there are nodes on which both may run."""
    if cluster.node_classes is None or one.needs == other.needs:
        return True
    omitted = cluster.omitted_node_labels
    return any(
        suits(each, one.needs, omitted, is_sure=False) and suits(each, other.needs, omitted, is_sure=True)
        for each in cluster.node_classes
    )


def _by_trial(pods: Sequence[PodSet], cluster: Cluster) -> Shortfall | None:
    """Return the first component without room when the pods are placed one after the other, in several ways.

    A gang for which this is too much work counts as one without room.
    """
    for ordered in (pods, tuple(reversed(pods))):
        for is_packed in (False, True):
            shortfall = _Trial(cluster).place_all(ordered, is_packed=is_packed)
            if shortfall is not None:
                return shortfall
    return None


class _Trial:
    """The nodes of a cluster while pods are placed: by class, and then by what they have free."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._looks = 0
        self._classes = cluster.node_classes or ()
        self._nodes: list[dict[_Free, int]] = []
        for each in self._classes:
            groups: dict[_Free, int] = {}
            for at, size in enumerate(each.nodes):
                free = tuple(sorted((name, amounts[at]) for name, amounts in each.free.items()))
                groups[free] = groups.get(free, 0) + size
            self._nodes.append(groups)

    def place_all(self, pods: Sequence[PodSet], *, is_packed: bool) -> Shortfall | None:
        for component in pods:
            placed = self._place(component, is_packed=is_packed)
            if placed < component.least:
                return Shortfall(Lack.NODES, component.name, "", component.least, placed)
        return None

    def _place(self, component: PodSet, *, is_packed: bool) -> int:
        """Place the pods of a component; return how many found a node.

        Pods beyond those that must run are placed too: they may take the room of the next component.
        """
        needs = {name: amount for name, amount in component.shape.request if amount} | {PODS: 1}
        open_classes = [
            groups
            for each, groups in zip(self._classes, self._nodes, strict=True)
            if suits(each, component.shape.needs, self._cluster.omitted_node_labels, is_sure=True)
        ]
        left = component.count
        while left:
            best: tuple[float, _Free] | None = None
            owner: dict[_Free, int] = {}
            self._looks += sum(map(len, open_classes))
            if self._looks > _LOOKS_MAX:
                break
            for groups in open_classes:
                for free in groups:
                    if _fits(free, needs):
                        level = _level(free, self._cluster.allocatable)
                        rank = -level if is_packed else level
                        if best is None or (rank, free) > best:
                            best, owner = (rank, free), groups
            if best is None:
                break
            left -= self._fill(owner, best[1], needs, left, is_packed=is_packed)
        return component.count - left

    def _fill(self, groups: dict[_Free, int], free: _Free, needs: Resources, left: int, *, is_packed: bool) -> int:
        """Place pods on the nodes of a group: as many as fit on each, or one on each; return how many."""
        size = groups.pop(free)
        each = min(_fits(free, needs), left) if is_packed else 1
        used = min(size, left // each)
        rest = tuple((name, amount - each * needs.get(name, 0)) for name, amount in free)
        for number, amounts in ((used, rest), (size - used, free)):
            if number:
                groups[amounts] = groups.get(amounts, 0) + number
        return used * each


def _fits(free: _Free, needs: Resources) -> int:
    """Return how many pods fit on a node; a resource that the node does not have counts as 0."""
    fits, found = 2**31, 0
    for name, amount in free:
        wanted = needs.get(name)
        if wanted:
            fits, found = min(fits, amount // wanted), found + 1
    return fits if found == len(needs) else 0


def _level(free: _Free, allocatable: Resources) -> float:
    """Return how empty a node is, as the sum of the fractions of the cluster that it has free."""
    return sum(amount / total for name, amount in free if name != PODS and (total := allocatable.get(name, 0)) > 0)
