"""The federation's own HTTP API below `/federation/v1`, on FastAPI: journal, delivery, sharded services.

The API server mounts it and authenticates its requests. Requests for decisions and deliveries are authorized here: they
need the right to read the object that they are about. Other paths are authorized as non-resource URLs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from federation.apimachinery.errors import ApiError, BadRequest, InternalError, not_served
from federation.apimachinery.resources import Resource
from federation.apiserver.http.nonresource import Mount
from federation.apiserver.http.statuserrors import HIDDEN, known_error
from federation.journal.decisions import Journal
from federation.web import (
    clusterheadroom,
    decisions,
    delivery,
    differences,
    memberobjects,
    memberpods,
    namespaceclusters,
    objectlist,
    ownnamespaces,
    policyobjects,
    replaycomparison,
    replayrecords,
)
from federation.web.clusterheadroom import HeadroomView
from federation.web.delivery import DeliveryView
from federation.web.objectlist import ObjectListView
from federation.web.policyobjects import PolicyView
from federation.web.requests import ServedKinds, check_parameters, json_response
from federation.web.view import View


def mount(
    journal: Journal,
    kinds: ServedKinds,
    kinds_read: Iterable[Resource],
    view: DeliveryView | None = None,
    policies: PolicyView | None = None,
    listed: ObjectListView | None = None,
    headroom: HeadroomView | None = None,
    views: Sequence[View] = (),
) -> Mount:
    """Return the app as the API server mounts it below `/federation/`; without views it serves the journal only.

    `views` are those of leaf features, and `kinds_read` what their steps of decisions read.
    """
    web = FastAPI(
        title="federation",
        docs_url=None,
        redoc_url=None,
        openapi_url="/federation/v1/openapi.json",
        dependencies=[Depends(check_parameters)],
    )
    decisions.add_routes(web, journal, kinds, listed)
    ownnamespaces.add_routes(web)
    needed = replayrecords.required(kinds_read)
    replayrecords.add_routes(web, journal, needed)
    paths = {decisions.DECISIONS_PATH, ownnamespaces.PATH, replayrecords.PATH}
    if view is not None:
        delivery.add_routes(web, view, kinds)
        differences.add_routes(web, view, kinds)
        memberobjects.add_routes(web, view, kinds)
        memberpods.add_routes(web, view, kinds)
        namespaceclusters.add_routes(web, view)
        paths |= {*delivery.PATHS, differences.PATH, memberobjects.PATH, memberpods.PATH, namespaceclusters.PATH}
    if policies is not None:
        policyobjects.add_routes(web, policies)
        paths.add(policyobjects.PATH)
    if listed is not None:
        objectlist.add_routes(web, listed)
        replaycomparison.add_routes(web, journal, listed, needed)
        paths |= {objectlist.PATH, replaycomparison.PATH}
    if headroom is not None:
        clusterheadroom.add_routes(web, headroom)
        paths.add(clusterheadroom.PATH)
    for each in views:
        each.add_routes(web)
        paths |= each.paths
    _add_error_handlers(web)
    return Mount(web, ("/federation/v1",), frozenset(paths))


def _add_error_handlers(web: FastAPI) -> None:
    @web.exception_handler(ApiError)
    async def on_api_error(request: Request, error: ApiError) -> Response:
        del request
        return json_response(error.code, error.to_status())

    @web.exception_handler(Exception)
    async def on_failure(request: Request, error: Exception) -> Response:
        # The server that this app is mounted in logs the error, which goes on to it.
        del request
        failure = known_error(error) or InternalError(HIDDEN)
        return json_response(failure.code, failure.to_status())

    @web.exception_handler(RequestValidationError)
    async def on_bad_parameters(request: Request, error: RequestValidationError) -> Response:
        del request
        parts = [f"{'.'.join(map(str, problem['loc'][1:]))}: {_to_message(problem)}" for problem in error.errors()]
        return json_response(400, BadRequest("; ".join(parts)).to_status())

    @web.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        del request
        status = not_served().to_status()
        if error.status_code != 404:
            status |= {"message": str(error.detail), "reason": "MethodNotAllowed", "code": error.status_code}
        return json_response(error.status_code, status)


def _to_message(problem: Mapping[str, Any]) -> str:
    """Return the problem with a parameter. For times, replace pydantic's parser message by the expected format."""
    if str(problem["type"]).startswith("datetime"):
        return "not a time; write one with its zone, for example 2026-01-01T00:00:00Z"
    return str(problem["msg"])
