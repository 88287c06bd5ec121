"""The admission endpoints over HTTP: one POST of an AdmissionReview per path, on FastAPI.

The API server sends no credentials that this service could check. The endpoints change nothing but the bookkeeping of
WorkloadSpreads, whose entries expire when no pod follows.
"""

from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect

from federation.apimachinery import metrics
from federation.apimachinery.errors import ApiError, BadRequest
from federation.features.workloadspread.incluster.reviews import Reviews

BODY_BYTES_MAX = 8 * 1024 * 1024
"""A review holds the object up to twice; API servers accept objects of 3 MiB."""


def to_app(reviews: Reviews, paths: dict[str, str]) -> FastAPI:
    """Return the app that answers reviews; `paths` has the handler of each path."""
    app = FastAPI(title="WorkloadSpread admission", docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(ApiError)
    async def on_api_error(request: Request, error: ApiError) -> Response:
        del request
        return _json(error.code, error.to_status())

    @app.get("/healthz")
    async def healthz() -> Response:
        return Response("ok", media_type="text/plain")

    @app.get("/metrics")
    async def show_metrics() -> Response:
        return Response(await metrics.to_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    for path, handler in paths.items():
        app.add_api_route(path, _endpoint(reviews, handler), methods=["POST"], response_class=Response)
    return app


def _endpoint(reviews: Reviews, handler: str) -> Any:
    async def review(request: Request) -> Response:
        return _json(200, await reviews.answer(handler, await _read(request)))

    return review


async def _read(request: Request) -> Any:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES_MAX:
                raise BadRequest(f"the body is larger than {BODY_BYTES_MAX} bytes")
        return orjson.loads(bytes(body))
    except ClientDisconnect as error:
        raise BadRequest("the connection ended before the body") from error
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error


def _json(status: int, value: Any) -> Response:
    return Response(orjson.dumps(value), status_code=status, media_type="application/json")
