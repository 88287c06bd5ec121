"""The four kinds of workloads that a UnitedDeployment can create, and what differs between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api.resources import ADVANCED_STATEFUL_SETS, CLONE_SETS, KRUISE_GROUP
from federation.apimachinery import dotpaths
from federation.apimachinery.resources import DEPLOYMENTS, STATEFUL_SETS, Resource

ROLLING_UPDATE = "RollingUpdate"
_STRATEGY_TYPE = ("spec", "updateStrategy", "type")


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One kind of workload."""

    template: str
    """The field of `spec.template` with the template of this kind."""
    resource: Resource
    partition_path: tuple[str, ...] = ()
    """The field that keeps pods on the old revision; empty for kinds without partitions."""
    is_stateful: bool = False
    max_unavailable_path: tuple[str, ...] = ()
    """The field that limits unavailable pods during an update, for kinds that can reserve pods."""

    @property
    def is_custom(self) -> bool:
        """Whether only clusters with OpenKruise serve the kind."""
        return self.resource.group == KRUISE_GROUP


_ROLLING = ("spec", "updateStrategy", "rollingUpdate", "partition")
KINDS = (
    WorkloadKind("statefulSetTemplate", STATEFUL_SETS, _ROLLING, is_stateful=True),
    WorkloadKind("advancedStatefulSetTemplate", ADVANCED_STATEFUL_SETS, _ROLLING, is_stateful=True),
    WorkloadKind(
        "cloneSetTemplate",
        CLONE_SETS,
        ("spec", "updateStrategy", "partition"),
        max_unavailable_path=("spec", "updateStrategy", "maxUnavailable"),
    ),
    WorkloadKind(
        "deploymentTemplate",
        DEPLOYMENTS,
        max_unavailable_path=("spec", "strategy", "rollingUpdate", "maxUnavailable"),
    ),
)


def kind_of(template: Mapping[str, Any]) -> WorkloadKind | None:
    """Return the kind of the first template in `spec.template`, None when there is none."""
    return next((kind for kind in KINDS if template.get(kind.template) is not None), None)


def applies_partition(kind: WorkloadKind, workload: Mapping[str, Any]) -> bool:
    """Return True if the workload updates its pods itself and honours a partition."""
    if not kind.is_stateful:
        return bool(kind.partition_path)
    return (dotpaths.get(workload, _STRATEGY_TYPE) or ROLLING_UPDATE) == ROLLING_UPDATE


def updates_on_delete(kind: WorkloadKind, workload: Mapping[str, Any]) -> bool:
    """Return True if the workload updates pods only after somebody deleted them."""
    return kind.is_stateful and not applies_partition(kind, workload)
