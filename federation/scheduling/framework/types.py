"""Arguments and results of scheduler plugins: the unit to place, the clusters, and statuses.

Part of the public plugin API. Everything here is immutable. A `Cluster` is a view of a FederatedCluster, computed once
per relevant change, so that a plugin never parses a quantity or a label list. Quantities are integers: `cpu` in
thousandths of a core, everything else in whole units, both rounded up. Read `interfaces.py` next, then any file of
`plugins/federation_plugins`.
"""

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Flag, StrEnum, auto
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, TypeVar

from federation.api import names
from federation.api.selectors import ClusterTerms
from federation.planning.clusters.deviceclaims import DeviceNeed
from federation.planning.clusters.devicekinds import Kind

T = TypeVar("T")
CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
NVIDIA_GPU = "nvidia.com/gpu"
KATALYST_PREFIX = names.KATALYST_PREFIX

_MEMO_MAX = 1024
"""Size limit of a cluster's memo: capacities by pod shape, label values, webhook payloads."""
Resources = Mapping[str, int]
"""Resource name → amount; `cpu` in thousandths, the rest in whole units."""


class Code(StrEnum):
    """The status code of a plugin's result."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    """The cluster is rejected; the reasons are shown to the user. The cycle continues without it."""
    ERROR = "Error"
    """The plugin failed. The decision fails; the last placement stays."""


@dataclass(frozen=True, slots=True)
class Status:
    """A code, and reasons that complete "0/3 clusters are available: 2 …". The framework sets `plugin`."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS


SUCCESS = Status()


def unschedulable(*reasons: str) -> Status:
    """Return a rejection."""
    return Status(Code.UNSCHEDULABLE, reasons)


def error(*reasons: str) -> Status:
    """Return a failure."""
    return Status(Code.ERROR, reasons)


class ClusterChange(Flag):
    """The parts of a cluster that changed, as far as decisions depend on them."""

    NOTHING = 0
    MEMBERSHIP = auto()
    """Joined, added or removed."""
    LABELS = auto()
    TAINTS = auto()
    API_TYPES = auto()
    READINESS = auto()
    TERMINATION = auto()
    RESOURCES = auto()
    ANNOTATIONS = auto()
    """Only webhook plugins that declare `fields.cluster: [annotations]` depend on them."""
    ANY = MEMBERSHIP | LABELS | TAINTS | API_TYPES | READINESS | TERMINATION | RESOURCES | ANNOTATIONS


class SchedulingMode(StrEnum):
    """Propagate the object to every selected cluster, or divide its replicas between them."""

    DUPLICATE = "Duplicate"
    DIVIDE = "Divide"


class ReplicasStrategy(StrEnum):
    """How replicas are divided in Divide mode."""

    SPREAD = "Spread"
    BINPACK = "Binpack"


class Effect(StrEnum):
    """The effect of a taint on units that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(NamedTuple):
    """A taint of a cluster; its `timeAdded` is in `Cluster.taint_times`."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """A toleration with Kubernetes' meaning: no key and Exists tolerates all, no effect means every effect.

    No operator means Equal. `seconds` limits how long a NoExecute taint is tolerated after it was added, None for ever.
    """

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this toleration matches the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class PreferredTerm(NamedTuple):
    """A term that adds `weight` to the score of clusters that match it."""

    weight: int
    term: ClusterTerms


class GroupVersionKind(NamedTuple):
    """The kind of the object that is scheduled."""

    group: str
    version: str
    kind: str


NO_KIND = GroupVersionKind("", "", "")


@dataclass(frozen=True, slots=True)
class NodeNeeds:
    """The nodes that a unit's pods can run on: node selector, required node affinity (None: any) and tolerations.

    `devices` are needs that a class and a number do not say, and how often a pod has them (`devicerooms.py`).
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: ClusterTerms | None = None
    tolerations: tuple[Toleration, ...] = ()
    devices: tuple[tuple[DeviceNeed, int], ...] = ()

    def admit(self, name: str, labels: Mapping[str, str], taints: Iterable[tuple[str, str, str]]) -> bool:
        """Return whether the pods can run on a node; `taints` are (key, value, effect) without PreferNoSchedule.

        SelectorError when the affinity is malformed.
        """
        return (
            all(labels.get(key) == value for key, value in self.selector)
            and (self.terms is None or self.terms.matches(name, labels))
            and all(any(toleration.tolerates(Taint(*taint)) for toleration in self.tolerations) for taint in taints)
        )


ANY_NODE = NodeNeeds()


@dataclass(frozen=True, slots=True, eq=False)
class PodShape:
    """A replica's sorted request and node needs, which determine how many replicas fit into a cluster.

    `parts` are the pods of a replica that has several, () for one pod. Created by `pod_shape`: equal shapes are the
    same object, and a look-up by shape hashes an identity.
    """

    request: tuple[tuple[str, int], ...]
    needs: NodeNeeds = ANY_NODE
    parts: tuple["PodSet", ...] = ()


@lru_cache(maxsize=4096)
def pod_shape(
    request: tuple[tuple[str, int], ...], needs: NodeNeeds = ANY_NODE, parts: tuple["PodSet", ...] = ()
) -> PodShape:
    """Return the shape for a request, node needs and the pods of a replica."""
    return PodShape(request, needs, parts)


@dataclass(frozen=True, slots=True)
class PodSet:
    """Equal pods of a component: `count` are started, and `least` must run at the same time."""

    name: str
    count: int
    least: int
    shape: PodShape


Assumed = Mapping[str, Mapping[tuple[tuple[str, int], ...], int]]
"""Cluster → sorted request → replicas of recent decisions that the cluster's report does not show yet."""


@dataclass(frozen=True, slots=True)
class NodeClass:
    """The `size` nodes of a cluster with equal labels and taints. `largest` is the largest allocatable amount of any.

    Nodes with similar free resources form groups: `nodes` is the size of each group; `free` maps each resource to the
    least free amount per node of each group, in the same order. `free["pods"]` is the number of pods a node can add.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    largest: Resources = field(default_factory=dict)
    nodes: tuple[int, ...] = ()
    free: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of a unit, if a replica is not one pod or all start together.

    `sets` are those of a gang, or of an object with components: the unit's request is for `per_replica` of them.
    `replica_parts` are the pods of one replica, each of which is placed whole; () if a replica is one pod, or not
    divided. `uncounted` says why there are none.
    """

    sets: tuple[PodSet, ...] = ()
    per_replica: int = 1
    replica_parts: tuple[PodSet, ...] = ()
    is_gang: bool = False
    uncounted: str = ""


ONE_POD = Pods()


@dataclass(frozen=True, slots=True)
class ClusterAffinity:
    """The clusters that a policy or object asks for: by labels, by terms (None: any), and by weighted terms."""

    cluster_selector: tuple[tuple[str, str], ...] = ()
    required: ClusterTerms | None = None
    preferred: tuple[PreferredTerm, ...] = ()


ANY_CLUSTER = ClusterAffinity()
_NO_NUMBERS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Preferences:
    """`placement` of a policy or object: the clusters that it lists, none for all, and one map per preference."""

    cluster_names: frozenset[str] = frozenset()
    min_replicas: Mapping[str, int] = field(default_factory=lambda: _NO_NUMBERS)
    max_replicas: Mapping[str, int] = field(default_factory=lambda: _NO_NUMBERS)
    weights: Mapping[str, int] = field(default_factory=lambda: _NO_NUMBERS)
    priorities: Mapping[str, int] = field(default_factory=lambda: _NO_NUMBERS)


NO_PREFERENCES = Preferences()


@dataclass(frozen=True, slots=True, eq=False)
class SchedulingUnit:
    """An object to place: identity, requests, current placement, settings of policy and annotations, and shapes.

    `desired_replicas` is None for kinds without replicas. `current` maps current clusters to replicas (None: as in the
    template). `max_clusters` is None when unlimited. `assumed` are replicas of recent decisions, for Replicas plugins.
    """

    gvk: GroupVersionKind = NO_KIND
    plural: str = ""
    namespace: str = ""
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    desired_replicas: int | None = None
    request: Resources = field(default_factory=dict)
    node_needs: NodeNeeds = ANY_NODE
    pods: Pods = ONE_POD
    assumed: Assumed = field(default_factory=dict)
    current: Mapping[str, int | None] = field(default_factory=dict)
    mode: SchedulingMode = SchedulingMode.DUPLICATE
    strategy: ReplicasStrategy = ReplicasStrategy.SPREAD
    sticky: bool = False
    avoid_disruption: bool = True
    affinity: ClusterAffinity = ANY_CLUSTER
    tolerations: tuple[Toleration, ...] = ()
    max_clusters: int | None = None
    preferences: Preferences = NO_PREFERENCES
    shapes: Mapping[str, Any] = field(default_factory=dict)
    """By name of its `ShapeKey`, each addition of a feature."""
    template: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The object's manifest, read-only, for plugins that need a field of their own."""

    shape: PodShape = field(init=False, repr=False)
    """Made from `request` and `node_needs`."""

    def __post_init__(self) -> None:
        shape = pod_shape(tuple(sorted(self.request.items())), self.node_needs, self.pods.replica_parts)
        object.__setattr__(self, "shape", shape)

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` when cluster-scoped."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def tolerates(self, taint: Taint) -> bool:
        """Return whether any of the unit's tolerations matches the taint."""
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A member cluster; compared by identity: an unchanged cluster is the same object in every snapshot.

    `allocatable` and `available` are sums over its nodes (`available` may be negative); empty without a report.
    `node_classes` has the free resources node by node (see `capacity.py`), None when the member does not report
    them; labels with an omitted key are unknown. `taint_times` has the `timeAdded` of NoExecute taints. `is_silent`
    is True if a cluster has stopped answering; it is False for a new cluster, whose readiness is not known yet.
    `waiting` is requested by pods without a node. `devices` are kinds of devices by the resource of their amounts.
    `source` is the read-only FederatedCluster. `memo` caches values computed from the cluster; `memoize` adds to
    it. `lasting` caches values that do not depend on resources: versions of a cluster that differ only in resources
    share it, and are recognised by it. `version` is another number for every object, so that caches can compare
    clusters without keeping them in memory.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    taint_times: Mapping[Taint, datetime] = field(default_factory=dict)
    api_types: frozenset[GroupVersionKind] = frozenset()
    is_joined: bool = True
    is_ready: bool = True
    is_silent: bool = False
    is_terminating: bool = False
    allocatable: Resources = field(default_factory=dict)
    available: Resources = field(default_factory=dict)
    node_classes: tuple[NodeClass, ...] | None = None
    omitted_node_labels: frozenset[str] = frozenset()
    devices: Mapping[str, Kind] = field(default_factory=dict)
    waiting: Resources = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)
    lasting: dict[Any, Any] = field(default_factory=dict, repr=False)
    version: int = field(default_factory=count(1).__next__, init=False, repr=False)

    def used(self, resource: str) -> int:
        """Return the used amount of the resource: allocatable less available."""
        return self.allocatable.get(resource, 0) - self.available.get(resource, 0)

    def memoize(self, key: Hashable, value: T) -> T:
        """Store a value computed from the cluster in its memo, and return it; a full memo is cleared first."""
        return _store(self.memo, key, value)

    def memoize_lasting(self, key: Hashable, value: T) -> T:
        """Store a value that does not depend on resources in `lasting`, and return it."""
        return _store(self.lasting, key, value)


def _store(memo: dict[Any, Any], key: Hashable, value: T) -> T:
    if len(memo) >= _MEMO_MAX:
        memo.clear()
    memo[key] = value
    return value


class ClusterScore(NamedTuple):
    """A feasible cluster and the sum of its normalized, weighted scores."""

    cluster: Cluster
    score: int


@dataclass(frozen=True, slots=True)
class Division:
    """Replicas per cluster (none for missing ones), and a JSON explanation of the steps."""

    replicas: Mapping[str, int]
    explanation: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""
    """The limit that left replicas unplaced; completes "replicas have no place within …"."""
    requeue_on: ClusterChange = ClusterChange.ANY
    """Changes of a selected cluster that can make unplaced replicas schedulable."""


@dataclass(frozen=True, slots=True)
class PluginTLS:
    """TLS settings of a call: PEM texts or b""; without `ca_data` the system's authorities are used."""

    ca_data: bytes = field(default=b"", repr=False)
    cert_data: bytes = field(default=b"", repr=False)
    key_data: bytes = field(default=b"", repr=False)
    server_name: str = ""
    """The name in the certificate, when it is not the host."""
    insecure: bool = False
    """Skip certificate verification."""


DEFAULT_TLS = PluginTLS()


@dataclass(frozen=True, slots=True)
class PluginRequest:
    """A request of a remote plugin: POST `body` to `url` within `timeout_s` seconds."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 5.0
    """For all attempts together."""
    tls: PluginTLS = DEFAULT_TLS
    plugin: str = ""
    """The plugin that sends it; circuit breakers are per plugin."""
    retries_max: int = 0
    """Retries when there is no response."""


@dataclass(frozen=True, slots=True)
class PluginResponse:
    """HTTP status and body, or status 0 and the error when there is no response."""

    status: int
    body: bytes = b""
    error: str = ""


Exchange = Generator[Sequence[PluginRequest], Sequence[PluginResponse], T]
"""A generator that yields the requests of remote plugins, is sent their responses, and returns its result."""
