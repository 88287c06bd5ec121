"""What this server answers besides Kubernetes' API: the decision journal, on FastAPI because nothing here is hot.

Mounted by `app.py` for paths under `/federation/`; requests arrive authenticated and authorized (non-resource URLs).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from federation.base.clock import to_rfc3339_micro
from federation.base.errors import ApiError, BadRequest, NotFound
from federation.store.journal import DecisionRecord, Journal

_LIMIT_MAX = 500


def create_web(journal: Journal) -> FastAPI:
    """Return the app for `/federation/v1/…`."""
    web = FastAPI(title="federation", docs_url=None, redoc_url=None, openapi_url="/federation/v1/openapi.json")

    @web.get("/federation/v1/decisions")
    async def decisions(
        kind: str,
        name: str,
        namespace: str = "",
        group: str | None = None,
        at: datetime | None = None,
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = 1,
    ) -> Response:
        """Return the newest decisions about one object, made before `at` when that is given."""
        if at is not None and at.tzinfo is None:
            raise BadRequest("at: a time needs a time zone, for example 2026-01-01T00:00:00Z")
        records = await journal.query(kind=kind, namespace=namespace, name=name, group=group, before=at, limit=limit)
        return _json(200, {"kind": "DecisionList", "items": [_to_item(record) for record in records]})

    @web.exception_handler(ApiError)
    async def on_api_error(request: Request, error: ApiError) -> Response:
        del request
        return _json(error.code, error.to_status())

    @web.exception_handler(RequestValidationError)
    async def on_bad_parameters(request: Request, error: RequestValidationError) -> Response:
        del request
        parts = [
            f"{'.'.join(str(step) for step in problem['loc'][1:])}: {problem['msg']}" for problem in error.errors()
        ]
        return _json(400, BadRequest("; ".join(parts)).to_status())

    @web.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        del request
        status = NotFound("the server could not find the requested resource").to_status()
        if error.status_code != 404:
            status |= {"message": str(error.detail), "reason": "MethodNotAllowed", "code": error.status_code}
        return _json(error.status_code, status)

    return web


def _to_item(record: DecisionRecord) -> Mapping[str, Any]:
    return {
        "at": to_rfc3339_micro(record.at),
        "group": record.group,
        "kind": record.kind,
        "namespace": record.namespace,
        "name": record.name,
        "outcome": record.outcome,
        "durationMs": record.duration_ms,
        "explanation": orjson.Fragment(record.explanation),
    }


def _json(status: int, value: Any) -> Response:
    return Response(orjson.dumps(value), status_code=status, media_type="application/json")
