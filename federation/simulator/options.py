"""The options of simulated members: nodes, labels and delays.

`describe_members` returns the members of `fedctl up`, in different regions and zones and of different sizes, so that
policies can distinguish them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """Equal devices of one node, which a driver reports in a ResourceSlice."""

    count: int
    model: str = "a100"
    memory: str = "80Gi"
    driver: str = "gpu.example.com"

    def to_slice(self, node: str) -> Mapping[str, Any]:
        """Return the ResourceSlice of the node."""
        devices = [
            {
                "name": f"gpu-{number}",
                "attributes": {"model": {"string": self.model}, "uuid": {"string": f"{node}-gpu-{number}"}},
                "capacity": {"memory": {"value": self.memory}},
            }
            for number in range(self.count)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        return {
            "metadata": {"name": f"{node}-{self.driver}"},
            "spec": {"driver": self.driver, "nodeName": node, "pool": pool, "devices": devices},
        }


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
    devices: NodeDevices | None = None


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
    trusts_federation: bool = False
    """Whether the federation's accounts may do everything in the member, so that every kind can be tried."""
    running_pods: int = 0
    """Pods that run in a new light member from its start."""


def kubeconfig_of(member: str, directory: Path) -> Path:
    """Return the kubeconfig of a member's administrator in the fleet's directory."""
    return directory / f"{member}.kubeconfig"


_MODELS = (("a100", "80Gi"), ("l4", "24Gi"), ("a100", "40Gi"))
"""Models of GPUs and their memory."""
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
    trusts_federation: bool = False,
    running_pods: int = 0,
    devices: int = 0,
) -> list[MemberOptions]:
    """Return `count` members named member-1 … with three nodes each, spread over five zones.

    With `devices`, each node has so many GPUs with ResourceSlices, of different models in different members.
    """
    members = []
    for index in range(count):
        region, zone, provider = _ZONES[index % len(_ZONES)]
        name = f"member-{index + 1}"
        nodes = tuple(
            NodeShape(
                name=f"{name}-node-{number + 1}",
                cpu=str(16 + 8 * (index % 3)),
                pods=pods_per_node,
                devices=NodeDevices(devices, *_MODELS[index % len(_MODELS)]) if devices else None,
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
                trusts_federation=trusts_federation,
                running_pods=running_pods,
            )
        )
    return members
