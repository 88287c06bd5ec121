"""The decision journal at `/federation/v1/decisions`: a user who may read an object may read the decisions about it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response

from federation.apimachinery.clock import to_rfc3339_micro
from federation.apimachinery.errors import BadRequest
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.journal.decisions import DecisionFilter, DecisionRecord, Journal
from federation.web.requests import ServedKinds, check_parameters, json_response, required_permissions

DECISIONS_PATH = "/federation/v1/decisions"
_PARAMETERS = frozenset(
    ("continue", "group", "kind", "limit", "name", "namespace", "outcome", "since", "until"),
)
_LIMIT_MAX = 500
_READ_ROWS_MAX = 50
"""Decisions read from the journal at once."""
_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of explanations in one response; `metadata.continue` leads to the rest."""


def add_routes(web: FastAPI, journal: Journal, kinds: ServedKinds) -> None:
    """Serve the journal."""

    @web.get(DECISIONS_PATH)
    async def decisions(
        request: Request,
        kind: str | None = None,
        name: str | None = None,
        namespace: str | None = None,
        group: str | None = None,
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = 1,
        below: Annotated[int | None, Query(alias="continue", ge=1)] = None,
    ) -> Response:
        """Return the decisions that match all parameters, newest first; `since` and `until` are inclusive."""
        check_parameters(request, _PARAMETERS)
        for parameter, at in (("since", since), ("until", until)):
            if at is not None and at.tzinfo is None:
                raise BadRequest(f"{parameter}: a time needs a time zone, for example 2026-01-01T00:00:00Z")
        selection = DecisionFilter(group, kind, namespace, name, outcome, since, until)
        await request.scope[AUTHORIZE](
            required_permissions(kinds, selection.kind, selection.group, selection.namespace, selection.name)
        )
        records, next_below = await _read(journal, selection, limit, below)
        metadata = {"continue": str(next_below)} if next_below is not None else {}
        items = [_to_item(record) for record in records]
        return json_response(200, {"kind": "DecisionList", "metadata": metadata, "items": items})


async def _read(
    journal: Journal, selection: DecisionFilter, limit: int, below: int | None
) -> tuple[list[DecisionRecord], int | None]:
    """Return a page and, when there are more decisions, the number below which the next page begins."""
    records: list[DecisionRecord] = []
    size = 0
    while True:
        page = await journal.query(selection, limit=min(_READ_ROWS_MAX, limit + 1 - len(records)), below=below)
        for record in page:
            if len(records) == limit or size > _BYTES_MAX:
                return records, records[-1].number
            records.append(record)
            size += len(record.explanation)
        if not page:
            return records, None
        below = page[-1].number


def _to_item(record: DecisionRecord) -> Mapping[str, Any]:
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
        "explanation": orjson.Fragment(record.explanation),
    }
