"""The decision journal at `/federation/v1/decisions`: a user who may read an object may read the decisions about it.

Without a kind, a user who may not get the path sees the decisions about the kinds that he may list, in his namespaces.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict, cast

import msgspec
import orjson
from fastapi import FastAPI, Query, Request, Response

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import to_rfc3339_micro
from federation.apimachinery.errors import BadRequest, Forbidden
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.journal.decisions import DecisionFilter, DecisionRecord, Journal
from federation.planning.projects.projectindex import ProjectIndex
from federation.scheduling.explanations import in_force
from federation.scheduling.triggerwords import describe_triggers
from federation.web.objectlist import ObjectListView, visible_types
from federation.web.requests import ServedKinds, json_response, may_list, required_permissions

DECISIONS_PATH = "/federation/v1/decisions"
_LIMIT_MAX = 500
_READ_ROWS_MAX = 50
"""Decisions read from the journal at once."""
_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of explanations in one response; `metadata.continue` leads to the rest."""
_EXAMINED_MAX = 2_000
"""Decisions examined for one response with `cluster` or `changed`; `metadata.continue` leads to the rest."""


@dataclass(frozen=True, slots=True)
class ExplanationFilter:
    """Selects decisions by their explanations; "" means any.

    `cluster` has the object before or after the decision; `changed` is part of what `fedctl why` prints as changed.
    """

    cluster: str = ""
    changed: str = ""

    def matches(self, explanation: bytes) -> bool:
        """Return whether the filter selects a decision."""
        if not (self.cluster or self.changed):
            return True
        if self.cluster and orjson.dumps(self.cluster) not in explanation:
            return False  # parsing explanations of many clusters is expensive
        found = orjson.loads(explanation)
        is_there = self.cluster in in_force(found) or self.cluster in (found.get("previous") or {})
        has_changed = self.changed in describe_triggers(found.get("because") or ())
        return (is_there or not self.cluster) and (has_changed or not self.changed)


def add_routes(web: FastAPI, journal: Journal, kinds: ServedKinds, listed: ObjectListView | None) -> None:
    """Serve the journal; without `listed`, requests without a kind need the permission for the path."""

    @web.get(DECISIONS_PATH)
    async def decisions(
        request: Request,
        kind: str | None = None,
        name: str | None = None,
        namespace: str | None = None,
        group: str | None = None,
        outcome: str | None = None,
        cluster: str = "",
        changed: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        part: Literal["", "moves"] = "",
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = 1,
        below: Annotated[int | None, Query(alias="continue", ge=1)] = None,
    ) -> Response:
        """Return the decisions that match all parameters, newest first; `since` and `until` are inclusive.

        With the part `moves`, explanations say what changed and why, without scores and rejections.
        """
        for parameter, at in (("since", since), ("until", until)):
            if at is not None and at.tzinfo is None:
                raise BadRequest(f"{parameter}: a time needs a time zone, for example 2026-01-01T00:00:00Z")
        hidden: list[str] = []
        readable: frozenset[tuple[str, str, str]] | None = None
        try:
            await request.scope[AUTHORIZE](required_permissions(kinds, kind, group, namespace, name))
        except Forbidden:
            if kind or listed is None:
                raise
            visible, hidden = await visible_types(request, listed, namespace or "")
            if not visible:
                raise
            readable = frozenset(
                (type_.resource.group, type_.resource.kind, where) for type_, places in visible for where in places
            )
        selection = DecisionFilter(group, kind, namespace, name, outcome, since, until, readable)
        shown = await _shown(request, listed)
        records, next_below = await _read(journal, selection, ExplanationFilter(cluster, changed), limit, below, shown)
        metadata = {"continue": str(next_below)} if next_below is not None else {}
        items = [_to_item(record, is_short=part == "moves") for record in records]
        return json_response(
            200, {"kind": "DecisionList", "metadata": metadata, "hiddenResources": hidden, "items": items}
        )


async def _shown(request: Request, listed: ObjectListView | None) -> Callable[[DecisionRecord], DecisionRecord]:
    """Return what makes of a record what the user may see of it.

    Decisions from before a namespace was in its project name clusters of others.
    """
    projects = listed.projects() if listed is not None else ProjectIndex()
    if not len(projects) or await may_list(request, FEDERATED_CLUSTERS, ""):
        return lambda record: record

    def shown(record: DecisionRecord) -> DecisionRecord:
        project = projects.of(record.namespace)
        if project is None or orjson.loads(record.explanation).get("project") == project.name:
            return record
        reason = f"the decision was made before the namespace was in project {project.name}"
        return replace(record, explanation=orjson.dumps({"outcome": record.outcome, "reason": reason}))

    return shown


async def _read(
    journal: Journal,
    selection: DecisionFilter,
    wanted: ExplanationFilter,
    limit: int,
    below: int | None,
    shown: Callable[[DecisionRecord], DecisionRecord],
) -> tuple[list[DecisionRecord], int | None]:
    """Return a page and, when there are more decisions, the number below which the next page begins."""
    records: list[DecisionRecord] = []
    size = examined = 0
    while True:
        rows = _READ_ROWS_MAX if wanted != ExplanationFilter() else min(_READ_ROWS_MAX, limit + 1 - len(records))
        page = await journal.query(selection, limit=rows, below=below)
        for record in map(shown, page):
            if examined == _EXAMINED_MAX:
                return records, below
            if wanted.matches(record.explanation):
                if len(records) == limit or size > _BYTES_MAX:
                    return records, below
                records.append(record)
                size += len(record.explanation)
            examined += 1
            below = record.number
        if len(page) < rows:
            return records, None


class _Short(TypedDict, total=False):
    """The fields of an explanation that tell what moved; others are not parsed. `unit` tells that it was decided."""

    unit: msgspec.Raw
    because: msgspec.Raw
    placements: msgspec.Raw
    previous: msgspec.Raw
    reason: msgspec.Raw
    unplaced: msgspec.Raw


_SHORT = msgspec.json.Decoder(_Short)


def _shortened(explanation: bytes) -> Mapping[str, Any]:
    found = cast("Mapping[str, msgspec.Raw]", _SHORT.decode(explanation))
    return {name: {} if name == "unit" else orjson.Fragment(bytes(value)) for name, value in found.items()}


def _to_item(record: DecisionRecord, *, is_short: bool) -> Mapping[str, Any]:
    return {
        "at": to_rfc3339_micro(record.at),
        "group": record.group,
        "kind": record.kind,
        "namespace": record.namespace,
        "name": record.name,
        "outcome": record.outcome,
        "durationMs": record.duration_ms,
        "repeats": record.repeats,
        "lastAt": to_rfc3339_micro(record.last_at or record.at),
        "explanation": _shortened(record.explanation) if is_short else orjson.Fragment(record.explanation),
    }
