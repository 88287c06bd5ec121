"""Rows of the list of objects: their order, pages of them, and the causes behind their problems. Pure.

`objectlist.py` serves them.
"""

import base64
import binascii
import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from federation.api.federatedtype import FederatedType
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import Object
from federation.planning.diagnosis.deliverystage import Stage
from federation.planning.diagnosis.objectsummary import Cause, ObjectSummary
from federation.planning.federatedobject.builder import source_key

_CAUSES_MAX = 100
_SAMPLES_MAX = 3
"""Objects that are named with a cause."""
_TOKEN_LENGTH_MAX = 4096
_KEY_PARTS = 2
"""Of the key of a row: what the list is sorted by, and the usual place."""


@dataclass(frozen=True, slots=True)
class Row:
    """An object that matches, and its place in the order without another one."""

    place: tuple[Any, ...]
    type_: FederatedType
    federated: Object
    summary: ObjectSummary


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
    "name": lambda row: natural_key(source_key(row.federated)[3]),
    "kind": lambda row: row.type_.resource.kind,
    "namespace": lambda row: natural_key(source_key(row.federated)[2]),
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
                counted.samples.append({**identity_of(row.type_, row.federated), "clusters": row.summary.clusters})


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


def identity_of(type_: FederatedType, federated: Object) -> dict[str, str]:
    """Return what names the source of a federated object."""
    _, _, namespace, name = source_key(federated)
    resource = type_.resource
    return {
        "group": resource.group,
        "version": resource.version,
        "plural": resource.plural,
        "kind": resource.kind,
        "namespace": namespace,
        "name": name,
    }
