"""One federated object in a list: how far it has come, where it is, and what needs attention. Pure.

`/federation/v1/objects` returns these rows for the web UI. The whole delivery, cluster by cluster, is in
`planning/status/delivery.py`.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions, dotpaths
from federation.planning.diagnosis.deliverystage import Stage, stage_of, unplaced_replicas
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.guard.record import held_moves
from federation.planning.status.sourceconditions import refused_followers

_CLUSTERS_NAMED_MAX = 5


class Attention(StrEnum):
    """Why somebody should look at an object."""

    NOT_PLACED = "not-placed"
    """No cluster takes it, some of its replicas have no cluster, or it is a workload that no policy selects."""
    NOT_DELIVERED = "not-delivered"
    """A cluster refuses it or a follower of it, or it cannot be rendered for a cluster."""
    STALE = "stale"
    """A cluster that has it does not answer, so its status there is the last known one."""
    HELD = "held"
    """The guard holds a move of it until somebody approves."""


class Problem(NamedTuple):
    """One reason to look at an object, and a sentence about it."""

    attention: Attention
    text: str


@dataclass(frozen=True, slots=True)
class ObjectSummary:
    """A row: `wanted` and `ready` are replicas, None for kinds without them."""

    stage: Stage
    clusters: tuple[str, ...]
    wanted: int | None
    ready: int | None
    problems: tuple[Problem, ...]


def summarize(
    federated: Mapping[str, Any], source: Mapping[str, Any] | None, type_: FederatedType, silent: AbstractSet[str]
) -> ObjectSummary:
    """Return the row of a federated object; `source` is the user's object, `silent` the clusters that are not ready."""
    stage, placed = stage_of(federated), effective_placement(federated)
    template = (federated.get("spec") or {}).get("template") or {}
    wanted = type_.replicas(template)
    ready = dotpaths.get(source or {}, type_.paths.ready_replicas_status) if type_.paths.ready_replicas_status else None
    return ObjectSummary(
        stage,
        tuple(sorted(placed)),
        wanted,
        None if wanted is None else ready if isinstance(ready, int) else 0,
        tuple(problems_of(federated, type_, stage, placed & silent)),
    )


def problems_of(
    federated: Mapping[str, Any], type_: FederatedType, stage: Stage, silent: AbstractSet[str]
) -> list[Problem]:
    """Return what needs attention; `silent` are those of the object's clusters that are not ready."""
    found = []
    missing = unplaced_replicas(federated, type_.paths.replicas_spec, stage)
    # Other kinds than workloads may well be meant for the host alone.
    if stage is Stage.UNPLACED or (stage is Stage.UNSELECTED and type_.paths.replicas_spec):
        found.append(Problem(Attention.NOT_PLACED, _condition_text(federated, names.SCHEDULED, names.PROPAGATED)))
    elif missing:
        found.append(Problem(Attention.NOT_PLACED, f"{missing} of its replicas fit into no cluster"))
    if stage is Stage.FAILING:
        found.append(Problem(Attention.NOT_DELIVERED, _delivery_text(federated)))
    if refusal := refused_followers(federated):
        found.append(Problem(Attention.NOT_DELIVERED, refusal))
    if silent:
        found.append(Problem(Attention.STALE, f"last known status: {_named(silent)} does not answer"))
    found += [
        Problem(Attention.HELD, f"hold {move.hold}: its move away from {_named(move.clusters)} waits for approval")
        for move in held_moves(federated)
    ]
    return found


def _delivery_text(federated: Mapping[str, Any]) -> str:
    """Return the message of the first cluster that has one, else that of a condition."""
    for entry in (federated.get("status") or {}).get("clusters") or ():
        if entry.get("message"):
            return f"{entry.get('cluster')}: {entry['message']}"
    return _condition_text(federated, names.SCHEDULED, names.PROPAGATED)


def _condition_text(federated: Mapping[str, Any], *types: str) -> str:
    held = (federated.get("status") or {}).get("conditions")
    for type_ in types:
        condition = conditions.find(held, type_)
        if condition is not None and condition.get("status") != "True":
            return str(condition.get("message") or condition.get("reason") or "")
    return "no policy selects it"


def _named(clusters: AbstractSet[str]) -> str:
    listed = sorted(clusters)
    more = len(listed) - _CLUSTERS_NAMED_MAX
    return ", ".join(listed[:_CLUSTERS_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
