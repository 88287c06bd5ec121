"""The federation's own HTTP API: the decision journal at `/federation/v1/decisions`, on FastAPI.

The API server mounts it below `/federation/` and authenticates its requests. Requests for decisions are authorized
here: a user who may read an object may read the decisions about it. Other paths are authorized as non-resource URLs.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from federation.apimachinery.clock import to_rfc3339_micro
from federation.apimachinery.errors import ApiError, BadRequest, not_served
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.nonresource import AUTHORIZE, Mount
from federation.apiserver.semantics.kinds.kinds import Kinds
from federation.journal.decisions import DecisionFilter, DecisionRecord, Journal

DECISIONS_PATH = "/federation/v1/decisions"
_PARAMETERS = frozenset(
    ("continue", "group", "kind", "limit", "name", "namespace", "outcome", "since", "until"),
)
_LIMIT_MAX = 500
_READ_ROWS_MAX = 50
"""Decisions read from the journal at once."""
_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of explanations in one response; `metadata.continue` leads to the rest."""


def mount(journal: Journal, kinds: Kinds) -> Mount:
    """Return the app as the API server mounts it below `/federation/`."""
    return Mount(_create_app(journal, kinds), ("/federation/v1",), frozenset({DECISIONS_PATH}))


def _create_app(journal: Journal, kinds: Kinds) -> FastAPI:
    web = FastAPI(title="federation", docs_url=None, redoc_url=None, openapi_url="/federation/v1/openapi.json")

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
        if unknown := sorted(set(request.query_params) - _PARAMETERS):
            raise BadRequest(f"{unknown[0]}: no such parameter; there are {', '.join(sorted(_PARAMETERS))}")
        for parameter, at in (("since", since), ("until", until)):
            if at is not None and at.tzinfo is None:
                raise BadRequest(f"{parameter}: a time needs a time zone, for example 2026-01-01T00:00:00Z")
        selection = DecisionFilter(group, kind, namespace, name, outcome, since, until)
        await request.scope[AUTHORIZE](_required_permissions(kinds, selection))
        records, next_below = await _read(journal, selection, limit, below)
        metadata = {"continue": str(next_below)} if next_below is not None else {}
        items = [_to_item(record) for record in records]
        return _json(200, {"kind": "DecisionList", "metadata": metadata, "items": items})

    @web.exception_handler(ApiError)
    async def on_api_error(request: Request, error: ApiError) -> Response:
        del request
        return _json(error.code, error.to_status())

    @web.exception_handler(RequestValidationError)
    async def on_bad_parameters(request: Request, error: RequestValidationError) -> Response:
        del request
        parts = [f"{'.'.join(map(str, problem['loc'][1:]))}: {_to_message(problem)}" for problem in error.errors()]
        return _json(400, BadRequest("; ".join(parts)).to_status())

    @web.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        del request
        status = not_served().to_status()
        if error.status_code != 404:
            status |= {"message": str(error.detail), "reason": "MethodNotAllowed", "code": error.status_code}
        return _json(error.status_code, status)

    return web


def _to_message(problem: Mapping[str, Any]) -> str:
    """Return the problem with a parameter. For times, replace pydantic's parser message by the expected format."""
    if str(problem["type"]).startswith("datetime"):
        return "not a time; write one with its zone, for example 2026-01-01T00:00:00Z"
    return str(problem["msg"])


def _required_permissions(kinds: Kinds, selection: DecisionFilter) -> list[Attributes]:
    """Return the permissions that a selection requires; none when it does not name a served kind."""
    if not selection.kind:
        return []
    served = [info.resource for info in kinds.stored() if info.resource.kind == selection.kind]
    verb, name = ("get", selection.name) if selection.name else ("list", "")
    return [
        Attributes(
            verb,
            resource.group,
            resource.version,
            resource.plural,
            namespace=(selection.namespace or "") if resource.namespaced else "",
            name=name,
        )
        for resource in served
        if selection.group in (None, resource.group)
    ]


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


def _json(status: int, value: Any) -> Response:
    return Response(orjson.dumps(value), status_code=status, media_type="application/json")
