"""Whether clusters can be lost: which divided replicas would find no room in the clusters that are left. Pure.

`planning/placement/headroom.py` has the arithmetic; this module knows which clusters a workload may use. Copies in
every cluster (mode Duplicate) need no other room, and do not count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.selectors import SelectorError
from federation.planning.failover.tolerance import FailoverMode
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.placement.headroom import Evacuee, resettle
from federation.scheduling.framework.capacity import capacity_of
from federation.scheduling.framework.types import Cluster, Effect, SchedulingMode, SchedulingUnit
from federation.scheduling.policyspec import Policy
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.unit import build_unit

_UNKNOWN_ROOM = 1 << 31


@dataclass(frozen=True, slots=True)
class Workload:
    """A divided workload; `may_leave` is False if its policy keeps its replicas in a lost cluster."""

    kind: str
    unit: SchedulingUnit
    replicas: Mapping[str, int]
    may_leave: bool

    @property
    def key(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind} {self.unit.namespace}/{self.unit.name}"


@dataclass(frozen=True, slots=True)
class LostReplicas:
    """A workload in a lost cluster: its replicas there, and how many of them find no room or may not leave."""

    kind: str
    namespace: str
    name: str
    replicas: int
    homeless: int
    staying: int


@dataclass(frozen=True, slots=True)
class Loss:
    """The effect of the loss of a cluster; workloads without room come first."""

    cluster: str
    workloads: tuple[LostReplicas, ...]

    @property
    def replicas(self) -> int:
        """The divided replicas in the cluster."""
        return sum(each.replicas for each in self.workloads)

    @property
    def homeless(self) -> int:
        """The replicas that would find no room."""
        return sum(each.homeless for each in self.workloads)

    @property
    def staying(self) -> int:
        """The replicas that may not leave, and would be down."""
        return sum(each.staying for each in self.workloads)


def to_workload(
    federated: Mapping[str, Any], type_: FederatedType, policy: Policy | None, snapshot: Snapshot
) -> Workload | None:
    """Return the workload of a federated object; None when it has no divided replicas, or no policy."""
    if policy is None:
        return None
    replicas = {name: count for name, count in current_clusters(federated, type_).items() if count}
    unit = build_unit(federated, type_, policy, snapshot) if replicas else None
    if unit is None or unit.mode is not SchedulingMode.DIVIDE:
        return None
    may_leave = not unit.sticky and policy.failover.mode is not FailoverMode.NEVER
    return Workload(type_.resource.kind, unit, replicas, may_leave)


def loss_of(name: str, clusters: Sequence[Cluster], workloads: Iterable[Workload]) -> Loss:
    """Return what the loss of one of the clusters would do to the workloads that are in it."""
    others = {cluster.name: cluster for cluster in clusters if cluster.name != name}
    here = {workload.key: workload for workload in workloads if workload.replicas.get(name)}
    evacuees = [
        Evacuee(key, workload.replicas[name], workload.unit.request, partial(_fits, workload, others))
        for key, workload in here.items()
        if workload.may_leave
    ]
    free = {cluster.name: cluster.available for cluster in others.values() if _takes_new(cluster)}
    homeless = {each.name: each.homeless for each in resettle(evacuees, free)}
    rows = [
        LostReplicas(
            workload.kind,
            workload.unit.namespace,
            workload.unit.name,
            workload.replicas[name],
            homeless.get(key, 0),
            0 if workload.may_leave else workload.replicas[name],
        )
        for key, workload in here.items()
    ]
    rows.sort(key=lambda row: (-row.homeless, -row.staying, row.kind, row.namespace, natural_key(row.name)))
    return Loss(name, tuple(rows))


def _takes_new(cluster: Cluster) -> bool:
    return cluster.is_joined and cluster.is_ready and not cluster.is_terminating


def _fits(workload: Workload, clusters: Mapping[str, Cluster], name: str) -> int:
    """Return how many replicas of the workload a cluster takes, by its nodes and by the policy."""
    unit, cluster = workload.unit, clusters[name]
    if not may_use(unit, cluster):
        return 0
    room = capacity_of(cluster, unit.shape) if unit.request or cluster.node_classes is not None else _UNKNOWN_ROOM
    most = unit.preferences.max_replicas.get(name)
    return room if most is None else min(room, max(0, most - workload.replicas.get(name, 0)))


def may_use(unit: SchedulingUnit, cluster: Cluster) -> bool:
    """Return whether the policy allows new replicas in the cluster: by list, labels, taints and API types."""
    if unit.preferences.cluster_names and cluster.name not in unit.preferences.cluster_names:
        return False
    if cluster.api_types and unit.gvk not in cluster.api_types:
        return False
    if any(cluster.labels.get(key) != value for key, value in unit.affinity.cluster_selector):
        return False
    try:
        if unit.affinity.required is not None and not unit.affinity.required.matches(cluster.name, cluster.labels):
            return False
    except SelectorError:
        return False
    return all(
        any(toleration.tolerates(taint) for toleration in unit.tolerations)
        for taint in cluster.taints
        if taint.effect != Effect.PREFER_NO_SCHEDULE
    )
