"""The HTTP endpoint of a process whose host is another API server: admission, the federation's HTTP API, health.

The host authenticates and authorizes nothing here, so this app asks it (`access.py`): a request needs a client
certificate of the host's CA or a token that the host accepts, and rights on the host. Reviews come from the API server
without credentials that could be checked; they change nothing, but they answer what a user may do, so only the host
should reach this port (docs/existing-host.md).

Decision: docs/decisions/0123-the-web-ui-of-an-existing-host.md
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import orjson

from federation.apimachinery import metrics
from federation.apimachinery.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    Unauthorized,
    not_served,
)
from federation.apimachinery.resources import Object
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.authorization import forbidden
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.asgi import Receive, Request, Scope, Send
from federation.apiserver.http.nonresource import AUTHORIZE, Mount
from federation.apiserver.http.statuserrors import method_not_allowed
from federation.apiserver.semantics.cel.authorizer import AccessCheck
from federation.hosting.access import HostAccess, bearer_token
from federation.hosting.webhookconfigurations import PATHS

_BODY_BYTES_MAX = 8 * 1024 * 1024
"""A review holds the object up to twice; API servers accept objects of 3 MiB."""
_TEXT = b"text/plain; charset=utf-8"
_NO_UI = (
    "the web UI is not served on this port, which answers the host; start the process with --ui-port"
    " (docs/existing-host.md)"
)
Answer = Callable[[str, Any], Awaitable[Object]]
"""Returns the answer to the admission review that was sent to a path."""
Readiness = Callable[[], Awaitable[str]]
"""Returns what is not ready, "" when everything is."""


class Endpoint:
    """The ASGI app. `mount` is served below `/federation/`."""

    def __init__(self, answer: Answer, mount: Mount, access: HostAccess, readiness: Readiness) -> None:
        self._answer = answer
        self._mount = mount
        self._access = access
        self._readiness = readiness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; other connections than HTTP are refused."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        try:
            await self._serve(request)
        except ApiError as error:
            await request.respond_error(error)
        except ClusterError as error:
            await request.respond_error(ServiceUnavailable(f"the host does not answer: {error}"))

    async def _serve(self, request: Request) -> None:
        path = request.path
        if path in PATHS:
            await self._review(request)
        elif request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        elif path in ("/healthz", "/livez"):
            await request.respond(200, b"ok", content_type=_TEXT)
        elif path == "/readyz":
            missing = await self._readiness()
            await request.respond(503 if missing else 200, (missing or "ok").encode(), content_type=_TEXT)
        elif path == "/metrics":
            await self._authorize(await self._authenticate(request), [Attributes("get", path=path)])
            await request.respond(200, await metrics.to_text(request.query.get("name[]", "")), content_type=_TEXT)
        elif path.startswith("/federation/"):
            user = await self._authenticate(request)
            request.scope[AUTHORIZE] = partial(self._authorize_mounted, user, path)
            if path not in self._mount.authorizes:
                await self._authorize(user, [Attributes("get", path=path)])
            await self._mount.app(request.scope, request.receive, request.send)
        elif path == "/ui" or path.startswith("/ui/"):
            raise NotFound(_NO_UI)
        else:
            raise not_served()

    async def _review(self, request: Request) -> None:
        if request.method != "POST":
            raise method_not_allowed()
        try:
            review = orjson.loads(await request.body(_BODY_BYTES_MAX))
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"the body is not JSON: {error}") from error
        await request.respond_json(200, await self._answer(request.path, review))

    async def _authenticate(self, request: Request) -> User:
        if any(name.startswith(b"impersonate-") for name in request.headers):
            raise Forbidden("this server does not impersonate; use the credentials of the user")
        if (peer := request.peer) is not None:
            return User(peer.user, tuple(dict.fromkeys((*peer.groups, AUTHENTICATED))))
        token = bearer_token(request.header(b"authorization"))
        if not token:
            raise Unauthorized("Unauthorized")
        return await self._access.user_of(token)

    async def _authorize(self, user: User, required: Sequence[Attributes]) -> None:
        """Raise Forbidden unless the user may do all of it."""
        for attributes in required:
            decision = await self._access.decide(user, to_check(attributes))
            if not decision.is_allowed:
                raise forbidden(user, attributes, decision.reason)

    async def _authorize_mounted(
        self, user: User, path: str, required: Sequence[Attributes], *, is_path_enough: bool = True
    ) -> None:
        """Raise Forbidden unless the user may get the path, or may do all that is required."""
        own = Attributes("get", path=path)
        if not required or (is_path_enough and (await self._access.decide(user, to_check(own))).is_allowed):
            required = (own,)
        await self._authorize(user, required)


def to_check(attributes: Attributes) -> AccessCheck:
    """Return the check for the attributes of a request."""
    verb, group, _, resource, subresource, namespace, name, path = attributes
    return AccessCheck(verb, group, resource, subresource, namespace, name, path)
