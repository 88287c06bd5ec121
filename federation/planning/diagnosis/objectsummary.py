"""One federated object in a list: how far it has come, where it is, and what needs attention, by cause. Pure.

`/federation/v1/objects` returns these rows for the web UI, and counts the causes over all objects: one dead cluster is
one cause of many objects. The whole delivery, cluster by cluster, is in `planning/status/delivery.py`.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions, dotpaths
from federation.apimachinery.amounts import first_of
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.naturalorder import natural_key
from federation.planning.diagnosis.clusterstanding import Standing, clusters_standing, words_for
from federation.planning.diagnosis.deliverystage import Stage, stage_of, unplaced_replicas
from federation.planning.federatedobject.placements import current_clusters, effective_placement
from federation.planning.guard.record import held_moves
from federation.planning.status.sourceconditions import refused_followers

_CLUSTERS_NAMED_MAX = 5
_THERE = (Stage.APPLIED, Stage.SILENT, Stage.PROPAGATING)
_START_TIME = timedelta(seconds=60)
"""How long replicas may take to start before an object needs attention because of them."""


class Attention(StrEnum):
    """Why somebody should look at an object."""

    NOT_PLACED = "not-placed"
    """No cluster takes it, some of its replicas have no cluster, or it is a workload that no policy selects."""
    NOT_DELIVERED = "not-delivered"
    """A cluster refuses it or a follower of it, or it cannot be rendered for a cluster."""
    NOT_READY = "not-ready"
    """It is where it should be, and its replicas do not become ready, or its Job has failed."""
    STALE = "stale"
    """A cluster that has it does not answer, so its status there is the last known one."""
    HELD = "held"
    """The guard holds a move of it until somebody approves."""


class Cause(NamedTuple):
    """The cause of a problem: objects with the same attention and subject have the same cause."""

    attention: Attention
    subject: str
    """The cluster, the hold, or a text that is the same for all objects with this cause."""
    title: str

    @property
    def key(self) -> str:
        """The cause as a parameter of an address."""
        return f"{self.attention}:{self.subject}"


class Problem(NamedTuple):
    """Why to look at an object, a sentence about it, and its causes: one, or one per cluster that is silent.

    `reason` is that of the condition that says so, "" where none does.
    """

    attention: Attention
    text: str
    causes: tuple[Cause, ...]
    reason: str = ""


class Outcome(StrEnum):
    """How an object ended that runs once."""

    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ObjectSummary:
    """A row: `wanted` and `ready` are replicas, None for kinds without them and for objects that have ended."""

    stage: Stage
    clusters: tuple[str, ...]
    wanted: int | None
    ready: int | None
    outcome: Outcome | None
    problems: tuple[Problem, ...]


def summarize(
    federated: Mapping[str, Any],
    source: Mapping[str, Any] | None,
    type_: FederatedType,
    silent: AbstractSet[str],
    now: datetime,
) -> ObjectSummary:
    """Return the row of a federated object; `source` is the user's object, `silent` the clusters that are not ready."""
    stage, placed = stage_of(federated), effective_placement(federated)
    template = (federated.get("spec") or {}).get("template") or {}
    outcome = outcome_of(source or {})
    wanted = None if outcome else _wanted(federated, type_, template)
    ready = dotpaths.get(source or {}, type_.paths.ready_replicas_status) if type_.paths.ready_replicas_status else None
    found = problems_of(federated, type_, stage, placed & silent)
    ready = None if wanted is None else ready if isinstance(ready, int) else 0
    is_there = stage in _THERE and all(problem.attention in (Attention.STALE, Attention.HELD) for problem in found)
    if is_there and (text := _trouble(source or {}, wanted, ready, outcome, now)):
        found.append(_problem(Attention.NOT_READY, text, text if outcome else "replicas do not become ready"))
    return ObjectSummary(stage, tuple(sorted(placed, key=natural_key)), wanted, ready, outcome, tuple(found))


def changes_at(summary: ObjectSummary, source: Mapping[str, Any] | None, now: datetime) -> datetime | None:
    """Return when time alone changes a row, None for never: replicas that are missing are a problem after a while."""
    if summary.wanted is None or (summary.ready or 0) >= summary.wanted:
        return None
    since = _since(conditions.find(((source or {}).get("status") or {}).get("conditions"), "Available"))
    return since + _START_TIME if since is not None and now - since < _START_TIME else None


def _wanted(federated: Mapping[str, Any], type_: FederatedType, template: Mapping[str, Any]) -> int | None:
    """Return the replicas that all clusters together should have; each has all of them unless they are divided."""
    replicas = type_.replicas(template)
    if replicas is None:
        return None
    counts = current_clusters(federated, type_).values()
    is_copied = bool(counts) and all(count is None for count in counts)
    return replicas * len(counts) if is_copied else replicas


def outcome_of(source: Mapping[str, Any]) -> Outcome | None:
    """Return how a Job ended, by its conditions; None while it runs, and for other kinds."""
    held = (source.get("status") or {}).get("conditions")
    for type_, outcome in (("Complete", Outcome.COMPLETE), ("Failed", Outcome.FAILED)):
        if conditions.is_true(held, type_):
            return outcome
    return None


def _trouble(
    source: Mapping[str, Any], wanted: int | None, ready: int | None, outcome: Outcome | None, now: datetime
) -> str:
    """Return what is wrong with the pods of a delivered object, "" for nothing; starting is not wrong for a while."""
    status = source.get("status") or {}
    held = status.get("conditions")
    if outcome is Outcome.FAILED:
        reason = (conditions.find(held, "Failed") or {}).get("reason")
        return "the Job has failed" + (f": {reason}" if reason else "")
    if wanted is None or ready is None or ready >= wanted:
        return ""
    progress = conditions.find(held, "Progressing") or {}
    since = _since(conditions.find(held, "Available"))
    if progress.get("status") != "False" and (since is None or now - since < _START_TIME):
        return ""
    return f"{ready} of {wanted} replicas are ready"


def _since(condition: Mapping[str, Any] | None) -> datetime | None:
    if condition is None or condition.get("status") != "False":
        return None
    return parse_rfc3339(condition.get("lastTransitionTime"))


def problems_of(
    federated: Mapping[str, Any], type_: FederatedType, stage: Stage, silent: AbstractSet[str]
) -> list[Problem]:
    """Return what needs attention; `silent` are those of the object's clusters that are not ready."""
    found = []
    missing = unplaced_replicas(federated, type_.paths.replicas_spec, stage)
    # Other kinds than workloads may well be meant for the host alone.
    if stage is Stage.UNPLACED or (stage is Stage.UNSELECTED and type_.paths.replicas_spec):
        found.append(_told(Attention.NOT_PLACED, federated))
    elif missing:
        found.append(
            _problem(Attention.NOT_PLACED, f"{missing} of its replicas fit into no cluster", "replicas fit nowhere")
        )
    if stage is Stage.FAILING:
        found.append(_refusal(federated))
    if refusal := refused_followers(federated):
        found.append(_problem(Attention.NOT_DELIVERED, refusal, refusal))
    if silent:
        causes = tuple(Cause(Attention.STALE, name, f"{name} does not answer") for name in _in_order(silent))
        found.append(Problem(Attention.STALE, f"last known status: {_named(silent)} does not answer", causes))
    found += [
        Problem(
            Attention.HELD,
            f"its move away from {_named(move.clusters)} waits for approval",
            (Cause(Attention.HELD, move.hold, f"hold {move.hold} waits for approval"),),
        )
        for move in held_moves(federated)
    ]
    return found


def _problem(attention: Attention, text: str, title: str) -> Problem:
    return Problem(attention, text, (Cause(attention, title, title),))


def _refusal(federated: Mapping[str, Any]) -> Problem:
    """Return what the clusters refuse, with one cause per cluster and kind of refusal, else a condition's message."""
    refused = clusters_standing(federated, Standing.REFUSED)
    if not refused:
        return _told(Attention.NOT_DELIVERED, federated)
    texts = [f"{entry.get('cluster')}: {entry.get('message') or words_for(_status(entry))}" for entry in refused]
    more = f" and {len(texts) - 1} more clusters" if len(texts) > 1 else ""
    causes = tuple(
        Cause(Attention.NOT_DELIVERED, f"{entry.get('cluster')}/{_status(entry)}", _title(entry)) for entry in refused
    )
    reason, _ = _open_condition(federated)
    return Problem(Attention.NOT_DELIVERED, texts[0] + more, causes, reason)


def _told(attention: Attention, federated: Mapping[str, Any]) -> Problem:
    """Return the problem that a condition tells."""
    reason, text = _open_condition(federated)
    return _problem(attention, text, text)._replace(reason=reason)


def _status(entry: Mapping[str, Any]) -> str:
    return str(entry.get("status") or "")


def _title(entry: Mapping[str, Any]) -> str:
    words = words_for(_status(entry))
    return f"{entry.get('cluster')}: {words[:1].lower()}{words[1:]}"


def _open_condition(federated: Mapping[str, Any]) -> tuple[str, str]:
    """Return reason and message of the first condition that is not fulfilled."""
    held = (federated.get("status") or {}).get("conditions")
    for type_ in (names.SCHEDULED, names.PROPAGATED):
        condition = conditions.find(held, type_)
        if condition is not None and condition.get("status") != "True":
            reason = str(condition.get("reason") or "")
            return reason, str(condition.get("message") or reason)
    return "", "no policy selects it"


def _in_order(clusters: AbstractSet[str]) -> list[str]:
    return sorted(clusters, key=natural_key)


def _named(clusters: AbstractSet[str]) -> str:
    return first_of(_in_order(clusters), _CLUSTERS_NAMED_MAX)
