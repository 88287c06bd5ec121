"""What a simulated member looks like and how fast its parts react.

`describe_members` gives the fleet that `fedctl up` starts: different regions, zones and sizes, so that policies have
something to choose from. Everything is an input; nothing here reads a clock or draws a random number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NodeShape:
    """One node: its name, what it can hold (Kubernetes quantities) and its labels and taints."""

    name: str
    cpu: str = "16"
    memory: str = "64Gi"
    pods: int = 110
    extended: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """One simulated member cluster."""

    name: str
    nodes: tuple[NodeShape, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels for the FederatedCluster that joins this member."""
    pod_start_s: float = 0.3
    """From binding to Running and Ready: image pull and container start together."""
    pod_stop_s: float = 0.1
    """From deletionTimestamp to gone."""
    workers: int = 4
    """Concurrent reconciles per controller."""


_PLACES = (
    ("beijing", "zone1", "volcengine"),
    ("beijing", "zone2", "volcengine"),
    ("shanghai", "zone1", "alicloud"),
    ("singapore", "zone1", "aws"),
    ("frankfurt", "zone1", "gcp"),
)


def describe_members(count: int, *, pod_start_s: float = 0.3, pods_per_node: int = 110) -> list[MemberOptions]:
    """Return `count` members named member-1 … with three nodes each, spread over five places."""
    members = []
    for index in range(count):
        region, zone, provider = _PLACES[index % len(_PLACES)]
        name = f"member-{index + 1}"
        nodes = tuple(
            NodeShape(
                name=f"{name}-node-{number + 1}",
                cpu=str(16 + 8 * (index % 3)),
                pods=pods_per_node,
                labels={
                    "kubernetes.io/hostname": f"{name}-node-{number + 1}",
                    "topology.kubernetes.io/region": region,
                    "topology.kubernetes.io/zone": zone,
                },
            )
            for number in range(3)
        )
        labels = {"region": region, "az": zone, "provider": provider, "simulated": "true"}
        members.append(MemberOptions(name=name, nodes=nodes, labels=labels, pod_start_s=pod_start_s))
    return members
