"""What a scheduler plugin sees: the unit to place, the clusters, and the answers it may give.

Part of the public plugin API (STYLE 8). Everything here is a fact: made once, never changed. A `Cluster` is a light
view of a FederatedCluster, computed once per change of what scheduling looks at, so that a plugin never parses a
quantity or a label list. Quantities are integers: `cpu` in thousandths of a core, everything else in whole units, both
rounded up. Read `interfaces.py` next, then any file of `plugins/federation_plugins`.
"""

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Flag, StrEnum, auto
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from federation.api import names
from federation.api.selectors import ClusterTerms
from federation.planning.placement.failback import Offers
from federation.planning.placement.tree import SpreadConstraint

T = TypeVar("T")
CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
NVIDIA_GPU = "nvidia.com/gpu"
KATALYST_PREFIX = names.KATALYST_PREFIX

_KEPT_MAX = 1024
"""Values that are kept with one cluster: about shapes of pods, sets of labels, what plugins over HTTP are told."""
Resources = Mapping[str, int]
"""Resource name → amount; `cpu` in thousandths, the rest in whole units."""


class Code(StrEnum):
    """How an extension point ended."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    """Not here, for a reason that the user can read. The decision goes on without this cluster."""
    ERROR = "Error"
    """The plugin could not answer. The decision fails; the last placement stays."""


@dataclass(frozen=True, slots=True)
class Status:
    """An answer: a code and reasons that complete "0/3 clusters are available: 2 …". The framework fills `plugin`."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS


SUCCESS = Status()


def unschedulable(*reasons: str) -> Status:
    """Return the answer "not here"."""
    return Status(Code.UNSCHEDULABLE, reasons)


def error(*reasons: str) -> Status:
    """Return the answer "I cannot tell"."""
    return Status(Code.ERROR, reasons)


class Change(Flag):
    """What of a cluster changed, as far as decisions depend on it; `Change.ANY` is all of it."""

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
    """Of these only plugins that ask for them depend."""
    ANY = MEMBERSHIP | LABELS | TAINTS | API_TYPES | READINESS | TERMINATION | RESOURCES | ANNOTATIONS


class SchedulingMode(StrEnum):
    """Copy the object to every selected cluster, or divide its replicas between them."""

    DUPLICATE = "Duplicate"
    DIVIDE = "Divide"


class ReplicasStrategy(StrEnum):
    """How Divide divides."""

    SPREAD = "Spread"
    BINPACK = "Binpack"


class Effect(StrEnum):
    """What a taint does to units that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(NamedTuple):
    """A taint of a cluster (`timeAdded` plays no part in scheduling)."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """A toleration with Kubernetes' meaning: no key and Exists tolerates all, no effect means every effect.

    No operator means Equal. `seconds` plays no part in scheduling, but plugins may be told of it.
    """

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Say whether this toleration covers the taint."""
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
    """Which nodes a unit's pods can go to: node selector, required node affinity (None: any) and tolerations."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: ClusterTerms | None = None
    tolerations: tuple[Toleration, ...] = ()

    def admit(self, name: str, labels: Mapping[str, str], taints: Iterable[tuple[str, str, str]]) -> bool:
        """Say whether the pods can go to one node; `taints` are (key, value, effect) of those that keep pods away.

        SelectorError when the affinity cannot be read.
        """
        return (
            all(labels.get(key) == value for key, value in self.selector)
            and (self.terms is None or self.terms.matches(name, labels))
            and all(any(toleration.tolerates(Taint(*taint)) for toleration in self.tolerations) for taint in taints)
        )


ANY_NODE = NodeNeeds()


@dataclass(frozen=True, slots=True, eq=False)
class PodShape:
    """What decides how many replicas fit somewhere: a replica's sorted request and the nodes that it can go to.

    Made by `pod_shape`, so that equal shapes are the same object and a look-up by shape costs next to nothing.
    """

    request: tuple[tuple[str, int], ...]
    needs: NodeNeeds = ANY_NODE


@lru_cache(maxsize=4096)
def pod_shape(request: tuple[tuple[str, int], ...], needs: NodeNeeds = ANY_NODE) -> PodShape:
    """Return the shape of such a pod."""
    return PodShape(request, needs)


Reserved = Mapping[str, Mapping[tuple[tuple[str, int], ...], int]]
"""Cluster → sorted request → replicas that were decided on and that the cluster's report does not show yet."""


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes of a cluster that have these labels and taints. `largest` is the most that any of them offers.

    They come in groups with alike free resources: `nodes` is how many are in each group, `free` maps each resource to
    what is free of it on every node of each group, at least and in the same order; `pods` among them is how many more
    pods a node takes, however small.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    largest: Resources = field(default_factory=dict)
    nodes: tuple[int, ...] = ()
    free: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AutoMigration:
    """Feedback about replicas that a member could not run (spec §13)."""

    keep_unschedulable: bool = False
    estimated_capacity: Mapping[str, int] = field(default_factory=dict)
    scheduled_replicas: Mapping[str, int] = field(default_factory=dict)
    offers: Offers = field(default_factory=Offers)
    """Room that has returned and may be tried."""
    ready_replicas: Mapping[str, int] = field(default_factory=dict)
    openings: Mapping[str, int] = field(default_factory=dict)
    """Replicas of those that wait that were counted to fit, exactly, where the rounded report may show less room."""


@dataclass(frozen=True, slots=True)
class CustomMigration:
    """A migration that the user asked for (spec §5.6): caps per cluster, and clusters closed until a moment."""

    limited_capacity: Mapping[str, int] = field(default_factory=dict)
    unavailable_until: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class SchedulingUnit:
    """What is to be placed: identity, what it needs, where it is, and what policy and annotations ask for.

    `desired_replicas` is None for kinds without replicas. `current` maps each cluster that holds it now to its replicas
    (None: as in the template). `required` is None when any cluster will do. `priorities` is None
    when the policy gives none. `max_clusters` is None when unlimited. `reserved` is what decisions of the last seconds
    promised to units, this one included: only Replicas plugins may look at it, because it differs at every decision.
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
    reserved: Reserved = field(default_factory=dict)
    current: Mapping[str, int | None] = field(default_factory=dict)
    mode: SchedulingMode = SchedulingMode.DUPLICATE
    strategy: ReplicasStrategy = ReplicasStrategy.SPREAD
    sticky: bool = False
    avoid_disruption: bool = True
    cluster_selector: tuple[tuple[str, str], ...] = ()
    cluster_names: frozenset[str] = frozenset()
    required: ClusterTerms | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    max_clusters: int | None = None
    min_replicas: Mapping[str, int] = field(default_factory=dict)
    max_replicas: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    priorities: Mapping[str, int] | None = None
    topology_spread: tuple[SpreadConstraint, ...] = ()
    auto_migration: AutoMigration | None = None
    custom_migration: CustomMigration | None = None
    template: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The object's manifest, read-only, for plugins that need a field of their own."""

    shape: PodShape = field(init=False, repr=False)
    """What decides how many of its replicas fit somewhere: made of `request` and `node_needs`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", pod_shape(tuple(sorted(self.request.items())), self.node_needs))

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` when cluster-scoped."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def tolerates(self, taint: Taint) -> bool:
        """Say whether any of the unit's tolerations covers the taint."""
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A member as scheduling sees it; compared by identity: an unchanged cluster is the same object in every snapshot.

    `allocatable` and `available` are what all its nodes offer and what is free of it (may be negative); empty when the
    member has not reported. `node_classes` says what is free node by node (`capacity.py` reads it), None when the
    member does not tell; labels with an omitted key are unknown. `waiting` is what pods without a node request.
    `source` is the FederatedCluster it was made from: read-only, for plugins that need a field of their own. `memo`
    has what was computed from the cluster; `keep` adds to it.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    api_types: frozenset[GroupVersionKind] = frozenset()
    is_joined: bool = True
    is_ready: bool = True
    is_terminating: bool = False
    allocatable: Resources = field(default_factory=dict)
    available: Resources = field(default_factory=dict)
    node_classes: tuple[NodeClass, ...] | None = None
    omitted_node_labels: frozenset[str] = frozenset()
    waiting: Resources = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    def used(self, resource: str) -> int:
        """Return how much of the resource is taken: allocatable less available."""
        return self.allocatable.get(resource, 0) - self.available.get(resource, 0)

    def keep(self, key: Hashable, value: T) -> T:
        """Put a value that follows from the cluster into its memo, and return it; a full memo is emptied first."""
        if len(self.memo) >= _KEPT_MAX:
            self.memo.clear()
        self.memo[key] = value
        return value


class ClusterScore(NamedTuple):
    """A feasible cluster and the sum of its normalised, weighted scores."""

    cluster: Cluster
    score: int


@dataclass(frozen=True, slots=True)
class Division:
    """Replicas per cluster (clusters left out get none) and how they came about (JSON-able)."""

    replicas: Mapping[str, int]
    explanation: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""
    """What kept the rest from being placed; completes "replicas have no place within …"."""
    awaits: Change = Change.ANY
    """Which changes of a cluster that was offered can give the rest a place."""


@dataclass(frozen=True, slots=True)
class PluginTLS:
    """How a call over https is secured: PEM texts or b""; without `ca_data` the system's authorities count."""

    ca_data: bytes = field(default=b"", repr=False)
    cert_data: bytes = field(default=b"", repr=False)
    key_data: bytes = field(default=b"", repr=False)
    server_name: str = ""
    """The name that the certificate is verified against instead of the host."""
    insecure: bool = False
    """Do not verify the certificate."""


DEFAULT_TLS = PluginTLS()


@dataclass(frozen=True, slots=True)
class PluginRequest:
    """A call that a remote plugin wants made: POST `body` to `url` within `timeout_s` seconds (sans-I/O)."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 5.0
    """For all attempts together."""
    tls: PluginTLS = DEFAULT_TLS
    plugin: str = ""
    """Whose request it is: a plugin that does not answer is left alone for a while."""
    retries_max: int = 0
    """How often it may be repeated when there was no answer."""


@dataclass(frozen=True, slots=True)
class PluginResponse:
    """What came back: HTTP status and body, or status 0 and why there was no answer."""

    status: int
    body: bytes = b""
    error: str = ""


Exchange = Generator[Sequence[PluginRequest], Sequence[PluginResponse], T]
"""A run that may ask remote plugins on the way to its result."""
