"""The options of simulated members: nodes, labels and delays.

`describe_members` returns the members of `fedctl up`, in different regions and zones and of different sizes, so that
policies can distinguish them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NodeShape:
    """One node: name, allocatable resources (Kubernetes quantities), labels and taints."""

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
    """Seconds from binding to Running and Ready: image pull and container start together."""
    pod_stop_s: float = 0.1
    """Seconds from deletionTimestamp to the pod's removal."""
    workers: int = 4
    """Concurrent reconciles per controller."""
    has_workload_spreads: bool = False
    """Whether the member serves WorkloadSpreads and UnitedDeployments."""
    running_pods: int = 0
    """Pods that run in a new light member from its start."""


def kubeconfig_of(member: str, directory: Path) -> Path:
    """Return the kubeconfig of a member's administrator in the fleet's directory."""
    return directory / f"{member}.kubeconfig"


_ZONES = (
    ("beijing", "zone1", "volcengine"),
    ("beijing", "zone2", "volcengine"),
    ("shanghai", "zone1", "alicloud"),
    ("singapore", "zone1", "aws"),
    ("frankfurt", "zone1", "gcp"),
)


def describe_members(
    count: int,
    *,
    pod_start_s: float = 0.3,
    pods_per_node: int = 110,
    has_workload_spreads: bool = False,
    running_pods: int = 0,
) -> list[MemberOptions]:
    """Return `count` members named member-1 … with three nodes each, spread over five zones."""
    members = []
    for index in range(count):
        region, zone, provider = _ZONES[index % len(_ZONES)]
        name = f"member-{index + 1}"
        nodes = tuple(
            NodeShape(
                name=f"{name}-node-{number + 1}",
                cpu=str(16 + 8 * (index % 3)),
                pods=pods_per_node,
                labels={
                    "topology.kubernetes.io/region": region,
                    "topology.kubernetes.io/zone": zone,
                },
            )
            for number in range(3)
        )
        labels = {"region": region, "az": zone, "provider": provider, "simulated": "true"}
        members.append(
            MemberOptions(
                name=name,
                nodes=nodes,
                labels=labels,
                pod_start_s=pod_start_s,
                has_workload_spreads=has_workload_spreads,
                running_pods=running_pods,
            )
        )
    return members
