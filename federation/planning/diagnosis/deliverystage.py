"""How far the delivery of an object has come, for the metrics of the fleet. Pure."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from federation.api import names
from federation.apimachinery import conditions, dotpaths
from federation.planning.diagnosis.clusterstanding import Standing, clusters_standing
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.schedulingfeedback import last_placement
from federation.planning.status.sourceconditions import is_undelivered


class Stage(StrEnum):
    """Each federated object is in exactly one stage."""

    PENDING = "pending"
    """Schedule, override or another controller of the pipeline has not decided yet."""
    UNPLACED = "unplaced"
    """No cluster was found for it."""
    UNSELECTED = "unselected"
    """No policy selects it."""
    PROPAGATING = "propagating"
    """It is on its way to its clusters."""
    FAILING = "failing"
    """A cluster refuses it, or it could not be scheduled."""
    SILENT = "silent"
    """No cluster refuses it, and one does not answer: its state there is the last known one."""
    APPLIED = "applied"
    """Every cluster has it as it should be."""
    DELETING = "deleting"


def stage_of(federated: Mapping[str, Any]) -> Stage:
    """Return the stage of a federated object."""
    if federated["metadata"].get("deletionTimestamp"):
        return Stage.DELETING
    status = federated.get("status") or {}
    scheduled = conditions.find(status.get("conditions"), names.SCHEDULED)
    is_decided = pendingcontrollers.is_ready_for_dispatch(federated)
    if not effective_placement(federated):
        if scheduled is not None and scheduled.get("status") != "True":
            return Stage.UNSELECTED if scheduled.get("reason") == names.REASON_NO_POLICY else Stage.UNPLACED
        return Stage.UNSELECTED if is_decided else Stage.PENDING
    if not is_decided:
        return Stage.PENDING
    if conditions.is_true(status.get("conditions"), names.PROPAGATED):
        return Stage.APPLIED
    if not is_undelivered(federated):
        return Stage.PROPAGATING
    if (scheduled is not None and scheduled.get("status") != "True") or clusters_standing(federated, Standing.REFUSED):
        return Stage.FAILING
    if clusters_standing(federated, Standing.SILENT):
        return Stage.SILENT
    return Stage.PROPAGATING if clusters_standing(federated, Standing.UNDERWAY) else Stage.FAILING


def unplaced_replicas(federated: Mapping[str, Any], replicas_path: dotpaths.Path, stage: Stage) -> int:
    """Return how many replicas of a workload the last decision left without a cluster."""
    wanted = dotpaths.get((federated.get("spec") or {}).get("template") or {}, replicas_path) if replicas_path else None
    if stage is Stage.UNPLACED:
        return wanted if isinstance(wanted, int) else 0
    counts = last_placement(federated).values()
    replicas = [count for count in counts if count is not None]
    if not isinstance(wanted, int) or not counts or len(replicas) < len(counts):
        return 0  # not decided yet, or every cluster has all replicas
    return max(wanted - sum(replicas), 0)


def is_ready(source: Mapping[str, Any]) -> bool:
    """Return whether all replicas of a source workload are ready in its clusters, after its newest change."""
    spec, status = source.get("spec") or {}, source.get("status") or {}
    wanted = spec.get("replicas")
    return (
        isinstance(wanted, int)
        and status.get("observedGeneration") == source["metadata"].get("generation")
        and status.get("readyReplicas", 0) == wanted
    )
