"""The inputs of the planner: zones, shards, replicas, and the limits of pods per node and per zone.

A limit comes from a share: less than a third of the pods on a node, less than half of them in a zone. In mode Relaxed
"less than" is "not more than". An explicit limit replaces the computed one.
"""

from dataclasses import dataclass
from enum import StrEnum

_NODE_SHARE, _ZONE_SHARE = 3, 2


class Mode(StrEnum):
    """The planner's answer to limits that the constraints cannot guarantee."""

    STANDARD = "Standard"
    """Report them."""
    STRICT = "Strict"
    """Refuse to plan if the zones have too few nodes for a limit."""
    RELAXED = "Relaxed"
    """Allow shares of exactly a third and half; raise maxSkew instead of pinning shards to zones."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone that pods may use: its number of nodes, its cluster, and the weight of its share of the pods.

    The weight is None for an equal share.
    """

    name: str
    nodes: int
    cluster: str = ""
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A sharded service. Limits are numbers of pods, None for the computed ones."""

    zones: tuple[Zone, ...]
    shards: int
    replicas: int = 2
    """Pods of each shard."""
    mode: Mode = Mode.STANDARD
    node_max: int | None = None
    zone_max: int | None = None
    difference_max: int | None = None
    """The most pods that one zone may have more than another; None for the limit of a zone."""

    @property
    def pods(self) -> int:
        """All pods of all shards."""
        return self.shards * self.replicas

    @property
    def nodes(self) -> int:
        """The nodes of all zones."""
        return sum(zone.nodes for zone in self.zones)

    @property
    def is_weighted(self) -> bool:
        """Whether zones get unequal shares on purpose."""
        return any(zone.weight is not None for zone in self.zones)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters of the zones, each once, in the order of the zones."""
        return tuple(dict.fromkeys(zone.cluster for zone in self.zones))


@dataclass(frozen=True, slots=True)
class Limits:
    """The most pods of the service on one node and in one zone; `zone` is None for a service in one zone.

    A limit of 0 cannot hold, because a pod needs a node.
    """

    node: int
    zone: int | None

    @property
    def skews(self) -> "Skews":
        """The limits as values of maxSkew, which Kubernetes requires to be at least 1."""
        return Skews(max(1, self.node), None if self.zone is None else max(1, self.zone))


@dataclass(frozen=True, slots=True)
class Skews:
    """The values of maxSkew of the hard constraints; `zone` is None for a service in one zone."""

    node: int
    zone: int | None


def compute_limits(
    pods: int, zones: int, *, is_relaxed: bool = False, node_max: int | None = None, zone_max: int | None = None
) -> Limits:
    """Return the limits for a number of pods and zones."""
    below = 0 if is_relaxed else 1
    node = max(0, pods - below) // _NODE_SHARE if node_max is None else node_max
    zone = max(0, pods - below) // _ZONE_SHARE if zone_max is None else zone_max
    return Limits(node, zone if zones > 1 else None)


def limits_of(service: Service, *, is_relaxed: bool | None = None) -> Limits:
    """Return the limits of a service, for its own mode unless `is_relaxed` is given."""
    relaxed = service.mode is Mode.RELAXED if is_relaxed is None else is_relaxed
    return compute_limits(
        service.pods,
        len(service.zones),
        is_relaxed=relaxed,
        node_max=service.node_max,
        zone_max=service.zone_max,
    )
