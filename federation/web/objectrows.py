"""Rows of the list of objects: their order, pages of them, and the causes behind their problems. Pure.

`objectlist.py` serves them.
"""

import base64
import binascii
import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from federation.api.federatedtype import FederatedType
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import Object
from federation.planning.diagnosis.deliverystage import Stage
from federation.planning.diagnosis.holdingrules import holding_rules
from federation.planning.diagnosis.objectsummary import Cause, ObjectSummary, changes_at, summarize
from federation.planning.federatedobject.builder import source_key
from federation.planning.federatedobject.provenance import is_hand_written
from federation.planning.guard.record import HeldMove, held_moves
from federation.runtime.controller import Key

_CAUSES_MAX = 100
_SAMPLES_MAX = 3
"""Objects that are named with a cause."""
_TOKEN_LENGTH_MAX = 4096
_KEY_PARTS = 2
"""Of the key of a row: what the list is sorted by, and the usual place."""
_LAST = "~"
"""Sorts behind every namespace: cluster-scoped objects come last, because users look for workloads."""


@dataclass(frozen=True, slots=True)
class Row:
    """What lists show of an object, and what they are filtered and sorted by."""

    key: Key
    """Of the federated object."""
    place: tuple[Any, ...]
    """In the order without another one."""
    type_: FederatedType
    name: str
    summary: ObjectSummary
    held: tuple[HeldMove, ...]
    held_by: frozenset[str]
    """The freezes and suspensions that it waits for."""
    is_hand_written: bool
    silent: frozenset[str]
    """The clusters that were not ready when the row was made."""
    changes_at: datetime | None
    """When time alone changes the row, None for never."""

    def holds(self, type_: FederatedType, silent: frozenset[str], now: datetime) -> bool:
        """Return whether the row is the same with this type and silent clusters, while its object did not change."""
        if self.type_ is not type_ or (self.changes_at is not None and now >= self.changes_at):
            return False
        if silent is self.silent:
            return True
        here = self.summary.clusters
        return silent.isdisjoint(here) and self.silent.isdisjoint(here)


def to_row(
    key: Key,
    type_: FederatedType,
    federated: Object,
    source: Object | None,
    silent: frozenset[str],
    now: datetime,
) -> Row:
    """Return the row of a federated object; `source` is the user's object, `silent` the clusters that are not ready."""
    _, _, namespace, name = source_key(federated)
    resource, summary = type_.resource, summarize(federated, source, type_, silent, now)
    return Row(
        key,
        (namespace or _LAST, resource.kind, natural_key(name), resource.group),
        type_,
        name,
        summary,
        tuple(held_moves(federated)),
        holding_rules(federated),
        is_hand_written(federated),
        silent,
        changes_at(summary, source, now),
    )


_SEVERITY: dict[Stage, int] = {
    stage: rank
    for rank, stage in enumerate(
        (
            Stage.FAILING,
            Stage.UNPLACED,
            Stage.SILENT,
            Stage.UNSELECTED,
            Stage.PENDING,
            Stage.PROPAGATING,
            Stage.DELETING,
            Stage.APPLIED,
        )
    )
}
SORTS: dict[str, Callable[[Row], Any]] = {
    "": lambda _: 0,
    "name": lambda row: natural_key(row.name),
    "kind": lambda row: row.type_.resource.kind,
    "namespace": lambda row: natural_key(row.key.namespace),
    "state": lambda row: _SEVERITY[row.summary.stage] * 10 - len(row.summary.problems),
    "ready": lambda row: (row.summary.wanted or 0) - min(row.summary.ready or 0, row.summary.wanted or 0),
    "clusters": lambda row: len(row.summary.clusters),
}
"""The columns by which a list can be sorted; a `-` before the name turns the order around.

Rows that are equal keep their usual order.
"""


def page_of(rows: Iterable[Row], sort: str, limit: int, token: str) -> tuple[list[Row], str]:
    """Return a page of the sorted rows and the token of the next one, "" without one; BadRequest for a bad `token`."""
    to_key, is_reversed = SORTS[sort.removeprefix("-")], sort.startswith("-")
    keyed = [((to_key(row), row.place), row) for row in rows]
    if token:
        after = _from_token(token)
        try:
            keyed = [each for each in keyed if (each[0] < after if is_reversed else each[0] > after)]
        except TypeError as error:
            raise BadRequest("continue: not a token of this list and order") from error
    pick = heapq.nlargest if is_reversed else heapq.nsmallest  # a page is short, and a list may be long
    page = pick(limit, keyed, key=lambda each: each[0])
    return [row for _, row in page], _to_token(page[-1][0]) if len(keyed) > limit else ""


def _to_token(key: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


def _from_token(token: str) -> Any:
    if len(token) > _TOKEN_LENGTH_MAX:
        raise BadRequest("continue: too long")
    try:
        key = _as_tuples(orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise BadRequest("continue: not a token of a list") from error
    if not (isinstance(key, tuple) and len(key) == _KEY_PARTS and isinstance(key[1], tuple)):
        raise BadRequest("continue: not a token of a list")
    return key


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


@dataclass(slots=True)
class CauseCount:
    """How many objects have a cause, and some of them; `text` is the problem of the first one."""

    cause: Cause
    text: str
    count: int = 0
    samples: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class NamespaceCount:
    """Objects of one namespace: all of them, those that need attention, and their clusters."""

    objects: int = 0
    attention: int = 0
    clusters: set[str] = field(default_factory=set)

    def add(self, summary: ObjectSummary) -> None:
        """Count one more object."""
        self.objects += 1
        self.attention += bool(summary.problems)
        self.clusters.update(summary.clusters)

    def to_json(self) -> dict[str, int]:
        """Return the numbers."""
        return {"objects": self.objects, "attention": self.attention, "clusters": len(self.clusters)}


def count_causes(found: dict[str, CauseCount], row: Row) -> None:
    """Count the causes of an object."""
    for problem in row.summary.problems:
        for cause in problem.causes:
            counted = found.setdefault(cause.key, CauseCount(cause, problem.text))
            counted.count += 1
            if len(counted.samples) < _SAMPLES_MAX:
                counted.samples.append({**identity_of(row), "clusters": row.summary.clusters})


def causes_to_json(found: Iterable[CauseCount]) -> list[dict[str, Any]]:
    """Return the causes, those of most objects first."""
    ordered = sorted(found, key=lambda each: (-each.count, each.cause.key))[:_CAUSES_MAX]
    return [
        {
            "key": each.cause.key,
            "attention": each.cause.attention,
            "subject": each.cause.subject,
            "title": each.cause.title,
            "text": each.text,
            "count": each.count,
            "samples": each.samples,
        }
        for each in ordered
    ]


def identity_of(row: Row) -> dict[str, str]:
    """Return what names the object."""
    resource = row.type_.resource
    return {
        "group": resource.group,
        "version": resource.version,
        "plural": resource.plural,
        "kind": resource.kind,
        "namespace": row.key.namespace,
        "name": row.name,
    }


def to_item(row: Row) -> dict[str, Any]:
    """Return the row as the list shows it."""
    summary = row.summary
    return {
        **identity_of(row),
        "stage": summary.stage,
        "clusters": summary.clusters,
        "wanted": summary.wanted,
        "ready": summary.ready,
        "outcome": summary.outcome,
        "held": [{"hold": move.hold, "clusters": sorted(move.clusters)} for move in row.held],
        "problems": [
            {"attention": problem.attention, "reason": problem.reason, "text": problem.text}
            for problem in summary.problems
        ],
    }
