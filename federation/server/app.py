"""The API server as one raw ASGI app: who asks, may they, which handler, and every failure as a Kubernetes Status.

    request → authentication → impersonation → authorization → limits → resources | reviews | discovery | openapi | web

Nothing on the path of a resource goes through a web framework. `create_app` wires it; `resources.py` is what to read
next. The app lives as long as the server and starts nothing by itself.
"""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import structlog

from federation.base import metrics
from federation.base.clock import Clock, SystemClock
from federation.base.deadline import Deadline
from federation.base.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    ServiceUnavailable,
    StoreError,
    Timeout,
    Unauthorized,
)
from federation.registry.registry import Registry
from federation.server import access
from federation.server.asgi import ASGIApp, Disconnected, Receive, Request, Scope, Send
from federation.server.audit.trail import Auditor
from federation.server.authn import Authenticator
from federation.server.bodies import read_object
from federation.server.discovery import Discovery
from federation.server.health import ENDPOINTS, Check, Health
from federation.server.identity import ANONYMOUS, Attributes
from federation.server.limits import Limiter, LimitOptions
from federation.server.negotiation import Answer, Shape, negotiate
from federation.server.openapi import OpenAPI
from federation.server.parameters import to_write_options
from federation.server.paths import ResourcePath, parse
from federation.server.requestmetrics import observe
from federation.server.resources import Resources, is_watch
from federation.server.reviews import Authorizer, Reviews
from federation.server.watching import Watches
from federation.server.web import DECISIONS_PATH, create_web
from federation.store.journal import Journal

_log = structlog.get_logger(__name__)
KUBERNETES_VERSION = "v1.36.0"
_REQUEST = "federation.request"
"""Where a handler of the web app finds the request that it is part of."""
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"
_PUBLIC = ENDPOINTS | {"version"}
_INDEX = (
    "/api",
    "/apis",
    "/federation/v1",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
)


@dataclass(frozen=True, slots=True)
class AppOptions:
    """Limits of one request and of all together."""

    body_bytes_max: int = 3 * 1024 * 1024
    """As kube-apiserver: the largest request body."""
    request_s_max: float = 60.0
    """For everything but watches; a client may ask for less with `timeout`."""
    limits: LimitOptions = field(default_factory=LimitOptions)


class App:
    """One API server."""

    def __init__(
        self,
        registry: Registry,
        *,
        authenticator: Authenticator,
        authorizer: Authorizer,
        web: ASGIApp,
        readiness: Mapping[str, Check],
        options: AppOptions,
        clock: Clock,
        auditor: Auditor | None = None,
    ) -> None:
        self._options = options
        self._auditor = auditor
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._web = web
        self._watches = Watches(registry, clock)
        self._resources = Resources(
            registry, self._watches, authorizer, clock=clock, body_bytes_max=options.body_bytes_max
        )
        self._reviews = Reviews(registry, authenticator, authorizer, clock)
        self._discovery = Discovery(registry.kinds)
        self._openapi = OpenAPI(registry.kinds)
        self._health = Health(readiness)
        self._limiter = Limiter(options.limits)
        self._kinds = registry.kinds

    def stop(self) -> None:
        """End all watches, so that the server can stop at once."""
        self._watches.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started_s = perf_counter()
        request = Request(scope, receive, send)
        path = parse(request.path)
        verb = "" if path is None else _verb(request, path)
        if self._auditor is not None:
            request.trail = self._auditor.open(request, path, verb)
        try:
            await self._serve(request, path, verb)
        except Disconnected:
            return
        except ApiError as error:
            await _fail(request, error)
        except StoreError as error:
            await _fail(request, ServiceUnavailable(f"the store does not answer: {error}"))
        except TimeoutError:
            await _fail(request, Timeout("Timeout: request did not complete within requested timeout"))
        except (RecursionError, UnicodeError) as error:
            await _fail(request, BadRequest(f"the request cannot be read: {type(error).__name__}"))
        except Exception:  # noqa: BLE001  # HTTP's loop runner: a bug becomes a Status and a log line
            _log.exception("request failed", method=request.method, path=request.path)
            if request.trail is not None:
                request.trail.has_panicked = True
            await _fail(request, InternalError("Internal error occurred: see the server's log"))
        finally:
            if request.trail is not None:
                request.trail.close()
            observe(self._kinds, request, path, verb, perf_counter() - started_s)

    async def _serve(self, request: Request, path: ResourcePath | None, verb: str) -> None:
        headers = request.headers
        first = request.path.lstrip("/").partition("/")[0] if path is None else ""
        if first in _PUBLIC and b"authorization" not in headers:
            # Probes send no credentials; with credentials they are checked like everybody's.
            if request.trail is not None:
                await request.trail.received()
            await self._serve_path(request, first)
            return
        request.user = await self._authenticator.authenticate(request.peer, headers.get(b"authorization", b""))
        if request.trail is not None:
            await request.trail.received()
        if b"impersonate-user" in headers or b"impersonate-group" in headers or b"impersonate-uid" in headers:
            request.user = await access.impersonate(self._authorizer, request)
        if request.user is ANONYMOUS and first not in _PUBLIC:
            raise Unauthorized("Unauthorized")
        if path is None:
            if first in _PUBLIC:
                await self._serve_path(request, first)
                return
            attributes = Attributes(request.method.lower(), path=request.path)
            if request.path == DECISIONS_PATH:
                request.scope[_REQUEST] = request  # its handler asks: it depends on what is asked for
            else:
                await access.check(self._authorizer, request.user, attributes, request.annotations)
            flow = await self._limiter.enter(request.user, attributes)
            try:
                await self._serve_path(request, first)
            finally:
                self._limiter.leave(flow)
            return
        if not verb:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        attributes = access.to_attributes(path, verb)
        await access.check(self._authorizer, request.user, attributes, request.annotations)
        await self._serve_resource(request, path, attributes)

    async def _serve_resource(self, request: Request, path: ResourcePath, attributes: Attributes) -> None:
        limiter, user, verb = self._limiter, request.user, attributes.verb
        if verb == "watch":
            limiter.open_watch(user, attributes)
            try:
                await self._resources.serve(request, path, verb)
            finally:
                limiter.close_watch(user)
            return
        flow = await limiter.enter(user, attributes)
        try:
            with Deadline(self._deadline_s(request)):
                if self._reviews.has(path.group, path.version, path.plural):
                    await self._review(request, path, verb)
                elif path.subresource == "token" and path.plural == "serviceaccounts" and not path.group:
                    await self._issue_token(request, path, verb)
                else:
                    await self._resources.serve(request, path, verb)
        finally:
            limiter.leave(flow)

    async def _serve_path(self, request: Request, first: str) -> None:
        """Answer what is not a resource. Only reading is possible there, except below /federation."""
        if request.method not in ("GET", "HEAD") and first != "federation":
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        match first:
            case "api" | "apis":
                await self._discovery.respond(request)
            case "openapi":
                await self._openapi.respond(request)
            case "livez" | "readyz" | "healthz":
                await self._health.respond(request)
            case "version":
                await request.respond_json(200, version_info())
            case "metrics":
                await request.respond(200, metrics.to_text(), content_type=_TEXT)
            case "federation":
                request.status = 200
                await self._web(request.scope, request.receive, request.send)
            case "openid" | ".well-known":
                await self._keys(request)
            case "" if request.path == "/":
                await request.respond_json(200, {"paths": list(_INDEX)})
            case _:
                raise NotFound("the server could not find the requested resource")

    async def _keys(self, request: Request) -> None:
        tokens = self._authenticator.tokens
        if tokens is not None and request.path == "/openid/v1/jwks":
            await request.respond_json(200, tokens.jwks(), content_type=b"application/jwk-set+json")
        elif tokens is not None and request.path == "/.well-known/openid-configuration":
            await request.respond_json(
                200,
                {
                    "issuer": tokens.issuer,
                    "jwks_uri": f"{tokens.issuer}/openid/v1/jwks",
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["ES256"],
                },
            )
        else:
            raise NotFound("the server could not find the requested resource")

    async def _review(self, request: Request, path: ResourcePath, verb: str) -> None:
        if verb != "create" or path.name:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        obj = await self._body(request)
        answer = _untransformed(request)
        options = to_write_options(request.query, "", request.warnings, "CreateOptions")
        value = await self._reviews.create(request.user, path.group, path.plural, path.namespace, obj, options)
        await request.respond_json(201, value, content_type=answer.content_type)

    async def _issue_token(self, request: Request, path: ResourcePath, verb: str) -> None:
        if verb != "create" or not path.namespace:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        obj = await self._body(request)
        answer = _untransformed(request)
        value = await self._reviews.issue_token(path.namespace, path.name, obj)
        await request.respond_json(201, value, content_type=answer.content_type)

    async def _body(self, request: Request) -> dict[str, Any]:
        return (await read_object(request, self._options.body_bytes_max))[0]

    def _deadline_s(self, request: Request) -> float:
        if "timeout" not in request.query:
            return self._options.request_s_max
        wanted_s = access.duration_s(request.query["timeout"])
        return min(wanted_s, self._options.request_s_max) if wanted_s else self._options.request_s_max


def create_app(
    registry: Registry,
    *,
    authenticator: Authenticator,
    authorizer: Authorizer,
    journal: Journal,
    readiness: Mapping[str, Check] | None = None,
    options: AppOptions | None = None,
    clock: Clock | None = None,
    auditor: Auditor | None = None,
) -> App:
    """Return the ASGI app of one API server; `readiness` checks return "" or the reason why not."""

    async def has_roles() -> str:
        return "" if authorizer.has_synced else "roles are not loaded yet"

    registry.decide_with(partial(access.decide, authorizer))
    return App(
        registry,
        authenticator=authenticator,
        authorizer=authorizer,
        web=create_web(journal, registry.kinds, partial(_authorize, authorizer)),
        readiness={"rbac": has_roles, **(readiness or {})},
        options=options or AppOptions(),
        clock=clock or SystemClock(),
        auditor=auditor,
    )


async def _authorize(authorizer: Authorizer, scope: Scope, needed: Sequence[Attributes]) -> None:
    """Raise Forbidden unless the user of a web handler's request may get its path, or do all that is needed."""
    request: Request = scope[_REQUEST]
    path = Attributes("get", path=request.path)
    if needed and not await access.is_allowed(authorizer, request.user, path):
        for attributes in needed:
            await access.check(authorizer, request.user, attributes, request.annotations)
    else:
        await access.check(authorizer, request.user, path, request.annotations)


def version_info() -> dict[str, str]:
    """Return what `kubectl version` shows of the server."""
    major, minor = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{KUBERNETES_VERSION}+federation",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{os.uname().machine}",
    }


def _untransformed(request: Request) -> Answer:
    """Return how to serialise what has neither a table nor metadata of its own; NotAcceptable for another form."""
    answer = negotiate(request.headers.get(b"accept", b""))
    if answer.shape is not Shape.OBJECT:
        raise NotAcceptable("only the following media types are accepted: application/json, application/yaml")
    return answer


def _verb(request: Request, path: ResourcePath) -> str:
    verb = path.verb(request.method)
    if (
        verb in ("list", "get")
        and not path.subresource
        and request.scope["query_string"]
        and _asks_watch(request, path)
    ):
        return "watch"
    return "watch" if path.is_watch and verb in ("list", "get") else verb


def _asks_watch(request: Request, path: ResourcePath) -> bool:
    try:
        return is_watch(request, path)
    except BadRequest:
        return False  # the handler reads the query again, and refuses it where that can be answered


async def _fail(request: Request, error: ApiError) -> None:
    """Answer with a Status; when an answer was begun already, leave it incomplete so that the server drops the line."""
    if request.trail is not None:
        request.trail.failure = error
    if not request.status:
        await request.respond_error(error)
