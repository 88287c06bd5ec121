"""What this server answers besides Kubernetes' API: the decision journal, on FastAPI because nothing here is hot.

Mounted by `app.py` for paths under `/federation/`. Requests arrive authenticated and, but for decisions, authorized
(non-resource URLs). Decisions say which question to ask themselves: who may read an object may read what was decided
about it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from federation.base.clock import to_rfc3339_micro
from federation.base.errors import ApiError, BadRequest, NotFound
from federation.registry.kinds import Kinds
from federation.server.identity import Attributes
from federation.store.journal import DecisionFilter, DecisionRecord, Journal

DECISIONS_PATH = "/federation/v1/decisions"
_PARAMETERS = frozenset(
    ("continue", "group", "kind", "limit", "name", "namespace", "outcome", "since", "until"),
)
_LIMIT_MAX = 500
_READ_AT_ONCE = 50
_BYTES_MAX = 8 * 1024 * 1024
"""Of explanations in one answer; the rest is behind `metadata.continue`."""

Authorize = Callable[[Any, Sequence[Attributes]], Awaitable[None]]
"""Given the ASGI scope: raise Forbidden unless its user may do all of it, or may get the path."""


def create_web(journal: Journal, kinds: Kinds, authorize: Authorize) -> FastAPI:
    """Return the app for `/federation/v1/…`."""
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
        following: Annotated[int | None, Query(alias="continue", ge=1)] = None,
    ) -> Response:
        """Return decisions, newest first: those that match everything that is given; `since` and `until` include."""
        if unknown := sorted(set(request.query_params) - _PARAMETERS):
            raise BadRequest(f"{unknown[0]}: no such parameter; there are {', '.join(sorted(_PARAMETERS))}")
        for parameter, moment in (("since", since), ("until", until)):
            if moment is not None and moment.tzinfo is None:
                raise BadRequest(f"{parameter}: a time needs a time zone, for example 2026-01-01T00:00:00Z")
        wanted = DecisionFilter(group, kind, namespace, name, outcome, since, until)
        await authorize(request.scope, _to_attributes(kinds, wanted))
        records, remaining = await _read(journal, wanted, limit, following)
        metadata = {"continue": str(remaining)} if remaining is not None else {}
        items = [_to_item(record) for record in records]
        return _json(200, {"kind": "DecisionList", "metadata": metadata, "items": items})

    @web.exception_handler(ApiError)
    async def on_api_error(request: Request, error: ApiError) -> Response:
        del request
        return _json(error.code, error.to_status())

    @web.exception_handler(RequestValidationError)
    async def on_bad_parameters(request: Request, error: RequestValidationError) -> Response:
        del request
        parts = [f"{'.'.join(map(str, problem['loc'][1:]))}: {_say(problem)}" for problem in error.errors()]
        return _json(400, BadRequest("; ".join(parts)).to_status())

    @web.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        del request
        status = NotFound("the server could not find the requested resource").to_status()
        if error.status_code != 404:
            status |= {"message": str(error.detail), "reason": "MethodNotAllowed", "code": error.status_code}
        return _json(error.status_code, status)

    return web


def _say(problem: Mapping[str, Any]) -> str:
    """Return what is wrong with a parameter; of a time how it is written, instead of where reading it ended."""
    if str(problem["type"]).startswith("datetime"):
        return "no time; write one with its zone, for example 2026-01-01T00:00:00Z"
    return str(problem["msg"])


def _to_attributes(kinds: Kinds, wanted: DecisionFilter) -> list[Attributes]:
    """Return the permissions that a question needs; none when it is not about one served kind."""
    if not wanted.kind:
        return []
    served = [info.resource for info in kinds.stored() if info.resource.kind == wanted.kind]
    verb, name = ("get", wanted.name) if wanted.name else ("list", "")
    return [
        Attributes(
            verb,
            resource.group,
            resource.version,
            resource.plural,
            namespace=(wanted.namespace or "") if resource.namespaced else "",
            name=name,
        )
        for resource in served
        if wanted.group in (None, resource.group)
    ]


async def _read(
    journal: Journal, wanted: DecisionFilter, limit: int, below: int | None
) -> tuple[list[DecisionRecord], int | None]:
    """Return a page and, when there is more, the number that the next one begins below."""
    records: list[DecisionRecord] = []
    size = 0
    while True:
        page = await journal.query(wanted, limit=min(_READ_AT_ONCE, limit + 1 - len(records)), below=below)
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
