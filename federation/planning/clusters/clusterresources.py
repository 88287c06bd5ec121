"""Sum the resources of a member cluster from its nodes and pods (docs/reference/clusters.md). Pure.

Schedulable nodes count. Every pod that has not ended counts against them, even on other nodes, as in KubeAdmiral, so
`available` may be negative. What a cluster could never run counts nowhere (`outofreach.py`): a single pod of 10,000
cores would make it look full to everybody. Full objects and those of
`runtime/transforms.py` give the same sums. `Collector` keeps the sums of a member event by event, and nothing of a
single pod that runs; `nodeclasses.py` computes the histogram of its nodes.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from federation.apimachinery.quantity import NANOS, ZERO, Quantity, parse
from federation.apimachinery.resources import Object
from federation.planning.clusters import nodeclasses
from federation.planning.clusters.deviceinventory import DeviceInventory, NodeDevices, Selects
from federation.planning.clusters.nodeclasses import to_quantity
from federation.planning.clusters.outofreach import OutOfReach, compute_out_of_reach, merged
from federation.planning.clusters.podsums import PodSums

Amounts = dict[str, Quantity]
NodeFilter = Callable[[Mapping[str, str]], bool]
"""Returns True for the labels of a node that does not count."""

IsSuitable = Callable[[str, Mapping[str, str], nodeclasses.Taints], bool]
"""Returns True if the pods in question can run on a node with this name, labels and taints."""

_ENDED = ("Succeeded", "Failed")
_TAINT_EFFECTS = ("NoSchedule", "NoExecute")
_HOLDS_SPARE = 1024
_RESOURCES_MAX = 256
"""Resources of one cluster: their names are the member's, and the histogram's cost grows with their number."""


@dataclass(frozen=True, slots=True)
class ClusterResources:
    """The sums of one cluster, and its nodes by class (`nodeclasses.py`)."""

    schedulable_nodes: int = 0
    allocatable: Amounts = field(default_factory=dict)
    available: Amounts = field(default_factory=dict)
    by_node: Object = field(default_factory=dict)
    devices: list[Object] = field(default_factory=list)
    """The kinds of devices (`devicekinds.py`)."""

    def to_status(self) -> Object:
        """Return `status.resources` of a FederatedCluster."""
        return {
            "schedulableNodes": self.schedulable_nodes,
            "allocatable": {name: str(amount) for name, amount in sorted(self.allocatable.items())},
            "available": {name: str(amount) for name, amount in sorted(self.available.items())},
            **self.by_node,
            **({"devices": self.devices} if self.devices else {}),
        }


def is_open(node: Mapping[str, Any]) -> bool:
    """Return True if the node is neither cordoned nor unready; taints are not considered."""
    if (node.get("spec") or {}).get("unschedulable"):
        return False
    conditions = (node.get("status") or {}).get("conditions") or ()
    return all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")


def taints_of(node: Mapping[str, Any]) -> nodeclasses.Taints:
    """Return the node's taints with effect NoSchedule or NoExecute."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return tuple(
        sorted(
            (t.get("key") or "", t.get("value") or "", t["effect"]) for t in taints if t.get("effect") in _TAINT_EFFECTS
        )
    )


class Collector:
    """The sums of one cluster, updated event by event: a change first subtracts the old state of a node or pod.

    The cost of an event does not depend on the number of pods; `resources` reads every node and no pod. Pods are added
    by key, or only counted: then memory does not depend on their number.
    """

    def __init__(self, is_left_out: NodeFilter | None = None, selects: Selects = lambda _text, _kind: False) -> None:
        self._is_left_out = is_left_out
        self.devices = DeviceInventory(selects)
        """The devices of the nodes; objects are added to it directly."""
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[Hashable, _Hold] = {}
        self._holds: dict[_Hold, _Hold] = {}
        """One instance per node and request, shared by all its pods."""
        self._known = PodSums()
        self._counted_only = PodSums()
        self._names: set[str] = set()
        self._classes: dict[str, nodeclasses.ClassKey] | None = None
        self._omitted: list[str] = []

    def set_node(self, name: str, node: Mapping[str, Any] | None) -> None:
        """Add or update a node; None removes it."""
        old = self._nodes.pop(name, None)
        new = None
        if node is not None:
            labels = (node.get("metadata") or {}).get("labels") or {}
            is_counted = is_open(node) and not (self._is_left_out and self._is_left_out(labels))
            allocatable = self._counted(_readable((node.get("status") or {}).get("allocatable")))
            whole = nodeclasses.floor_amounts(allocatable.items())
            self._nodes[name] = new = _Node(is_counted, labels, taints_of(node), allocatable, whole)
        if old is None or new is None or (old.is_open, old.labels, old.taints) != (new.is_open, new.labels, new.taints):
            self._classes = None

    def set_pod(self, key: Hashable, pod: Mapping[str, Any] | None) -> None:
        """Add or update a pod; None removes it. A pod that has ended requests nothing."""
        old, new = self._pods.get(key), None
        if pod is not None and not has_ended(pod):
            hold = self._hold_of(pod)
            new = self._holds.setdefault(hold, hold)
        if old is new:
            return
        if old is not None:
            del self._pods[key]
            self._known.count(*old, -1)
            if len(self._holds) > 2 * len(self._pods) + _HOLDS_SPARE:
                self._holds = {hold: hold for hold in self._pods.values()}
        if new is not None:
            self._pods[key] = new
            self._known.count(*new, 1)

    def count_pod(self, pod: Mapping[str, Any], sign: int) -> None:
        """Add a pod that has not ended with sign 1, subtract it with -1; its requests must be the same then."""
        self._counted_only.count(*self._hold_of(pod), sign)

    def reset_counted(self) -> None:
        """Subtract every pod that was only counted."""
        self._counted_only = PodSums()

    def _hold_of(self, pod: Mapping[str, Any]) -> "_Hold":
        spec = pod.get("spec") or {}
        requests = self._counted(spec_requests(spec))
        node = spec.get("nodeName") or ""
        namespace = "" if node else str((pod.get("metadata") or {}).get("namespace") or "")
        return _Hold(node, tuple(sorted(requests.items(), key=itemgetter(0))), namespace)

    def _load(self, node: str) -> Mapping[str, int]:
        known, counted = self._known.load(node), self._counted_only.load(node)
        if not known or not counted:
            return known or counted
        return {name: known.get(name, 0) + counted.get(name, 0) for name in known.keys() | counted.keys()}

    def count_fitting(self, request: Iterable[tuple[str, int]], is_suitable: IsSuitable) -> int:
        """Return the exact number of further pods of the request that fit on suitable nodes; cpu is in thousandths."""
        wanted = [(nodeclasses.PODS, 1), *((name, amount) for name, amount in request if amount > 0)]
        total = 0
        for name, node in self._nodes.items():
            if node.is_open and is_suitable(name, node.labels, node.taints):
                load = self._load(name)
                total += max(0, min([(node.whole.get(key, 0) - load.get(key, 0)) // amount for key, amount in wanted]))
        return total

    def free_by_node(self, is_suitable: IsSuitable) -> dict[str, dict[str, int]]:
        """Return what suitable nodes have free, by node; cpu is in thousandths."""
        free: dict[str, dict[str, int]] = {}
        for name, node in self._nodes.items():
            if node.is_open and is_suitable(name, node.labels, node.taints):
                load = self._load(name)
                free[name] = {key: whole - load.get(key, 0) for key, whole in node.whole.items()}
        return free

    def resources(self) -> ClusterResources:
        """Return the sums as of now."""
        counted = [node for node in self._nodes.values() if node.is_open and not node.taints]
        allocatable: Amounts = {}
        for node in counted:
            _add(allocatable, node.allocatable)
        allocatable.pop(nodeclasses.PODS, None)
        known, counted_only, never = self._known, self._counted_only, self._out_of_reach()
        available = {
            name: amount - known.used(name) - counted_only.used(name) + to_quantity(name, never.used.get(name, 0))
            for name, amount in allocatable.items()
        }
        devices = self.devices.devices()
        if devices is None:
            return ClusterResources(len(counted), allocatable, available, self._by_node({}, never.waiting))
        for name, own in devices.nodes.items():
            found = self._nodes.get(name)
            if found is not None and found.is_open and not found.taints:
                _add(allocatable, {key: Quantity(amount * NANOS) for key, amount in own.whole.items()})
                _add(
                    available,
                    {key: Quantity((amount - own.used.get(key, 0)) * NANOS) for key, amount in own.whole.items()},
                )
        by_node = self._by_node(devices.nodes, never.waiting)
        return ClusterResources(len(counted), allocatable, available, by_node, devices.to_status())

    def _counted(self, amounts: Amounts) -> Amounts:
        """Return the amounts of the first `_RESOURCES_MAX` resources of the cluster."""
        if not amounts.keys() <= self._names:
            spare = _RESOURCES_MAX - len(self._names)
            self._names.update(sorted(amounts.keys() - self._names)[:spare])
            amounts = {name: amount for name, amount in amounts.items() if name in self._names}
        return amounts

    def _by_node(self, devices: Mapping[str, NodeDevices], never: Mapping[str, int]) -> Object:
        if self._classes is None:
            telling = {name: (node.labels, node.taints) for name, node in self._nodes.items() if node.is_open}
            self._classes, self._omitted = nodeclasses.classify(telling)
        classes: dict[nodeclasses.ClassKey, list[nodeclasses.Amount]] = {}
        for name, key in self._classes.items():
            whole, load = self._nodes[name].whole, self._load(name)
            if (own := devices.get(name)) is not None:
                whole, load = {**whole, **own.whole}, {**load, **own.used}
            free = {key: amount - load.get(key, 0) for key, amount in whole.items()} if load else whole
            classes.setdefault(key, []).append((whole, free))
        by_node = nodeclasses.compute_node_classes(classes, self._omitted) if classes else {}
        if waiting := self._load(""):
            waiting = {name: amount - never.get(name, 0) for name, amount in waiting.items()}
            if waiting[nodeclasses.PODS]:
                by_node["waiting"] = nodeclasses.to_texts(waiting)
        return by_node

    def _out_of_reach(self) -> OutOfReach:
        """Return the sums of what the cluster could never run."""
        open_nodes = [node.whole for node in self._nodes.values() if node.is_open]
        waiting = merged(self._known.waiting, self._counted_only.waiting)
        nodes = self._known.loads.keys() | self._counted_only.loads.keys()
        loads = ((self._load(name), _whole_of(self._nodes.get(name))) for name in nodes if name)
        return compute_out_of_reach(open_nodes, waiting, loads)


class Collectors:
    """The collectors of all members; the cluster controller feeds them, other controllers read them."""

    def __init__(self, selects: Selects = lambda _text, _kind: False) -> None:
        self._selects = selects
        self._collectors: dict[str, Collector] = {}

    def add(self, cluster: str) -> Collector:
        """Return a new collector for a cluster."""
        collector = self._collectors[cluster] = Collector(selects=self._selects)
        return collector

    def get(self, cluster: str) -> Collector | None:
        """Return the cluster's collector, None without one."""
        return self._collectors.get(cluster)

    def remove(self, cluster: str) -> None:
        """Remove the cluster's collector."""
        self._collectors.pop(cluster, None)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node; `is_open` is False for nodes that do not count, `whole` is `allocatable` in integers."""

    is_open: bool
    labels: Mapping[str, str]
    taints: nodeclasses.Taints
    allocatable: Mapping[str, Quantity]
    whole: Mapping[str, int]


def _whole_of(node: _Node | None) -> Mapping[str, int]:
    return {} if node is None else node.whole


_OF_PODS = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


class _Hold(NamedTuple):
    """The requests of a pod on its node, "" while it has none; then its namespace, too."""

    node: str
    requests: tuple[tuple[str, Quantity], ...]
    namespace: str


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Return True if the pod has succeeded or failed."""
    return (pod.get("status") or {}).get("phase") in _ENDED


def spec_requests(spec: Mapping[str, Any]) -> Amounts:
    """Return a pod spec's request: the sum of its containers, at least each init container's, plus the overhead.

    A limit replaces a missing request. Init containers that always restart (sidecars) run beside the containers. A
    request of the pod as a whole replaces those of its containers. Its limit counts where neither requests anything,
    because members set it as the request.
    """
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _container_requests(container))
    for container in spec.get("initContainers") or ():
        wanted = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
            wanted = sidecars
        else:
            wanted = {name: amount + sidecars.get(name, ZERO) for name, amount in wanted.items()}
        for name, amount in wanted.items():
            peak[name] = max(peak.get(name, ZERO), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, ZERO), amount)
    total |= whole_pod_requests(spec)
    total = _whole_pod(spec, "limits") | total
    _add(total, _readable(spec.get("overhead")))
    return total


def whole_pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Return what a pod spec requests for the pod as a whole, whatever its containers request."""
    return _whole_pod(spec, "requests")


def _whole_pod(spec: Mapping[str, Any], part: str) -> Amounts:
    amounts = _readable((spec.get("resources") or {}).get(part))
    return {name: amounts[name] for name in amounts if name in _OF_PODS or name.startswith(_HUGE_PAGES)}


def _container_requests(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return _readable(wanted)


def _readable(quantities: Mapping[str, Any] | None) -> Amounts:
    """Return the amounts without malformed ones, and without negative ones, which would make room for others."""
    amounts: Amounts = {}
    for name, text in (quantities or {}).items():
        try:
            amount = parse(text)
        except ValueError:
            continue
        if amount.nanos >= 0:
            amounts[name] = amount
    return amounts


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount
