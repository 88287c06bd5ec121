"""The web UI of a process whose host is another API server, on a port of its own.

The UI sends each of its requests to an ASGI app with the bearer token of the session. Here that app passes requests on
to the host with this token and nothing else, so the host itself authenticates, authorizes, admits and audits them.
Those below `/federation/` it gives to the process's own endpoint, which asks the host. The account of the federation
takes no part. Nothing but the UI is served on the port: no reviews, no metrics. Client certificates are not asked for,
because their keys stay in the browser.

Decision: docs/decisions/0053-no-web-ui-on-an-existing-host.md
Decision: docs/decisions/0123-the-web-ui-of-an-existing-host.md
"""

from dataclasses import replace
from functools import partial

from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ConfigurationError,
    ServiceUnavailable,
    Unauthorized,
    not_served,
)
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.asgi import ASGIApp, Disconnected, Receive, Request, Scope, Send
from federation.apiserver.http.connectionshares import to_owner
from federation.apiserver.http.flowcontrol import FlowControl, FlowControlOptions
from federation.apiserver.http.foreignpages import check_page
from federation.apiserver.http.forwardedheaders import response_headers
from federation.apiserver.http.forwarding import encoded_target
from federation.apiserver.http.looptime import LoopTime, LoopTimeOptions
from federation.apiserver.http.nonresource import CHARGE, HOLD, SERVER, Mount
from federation.apiserver.http.streams import End, HeldStream, Streams
from federation.hosting.access import HostAccess, bearer_token

_BODY_BYTES_MAX = 3 * 1024 * 1024
"""As API servers accept."""
_TOKEN_CHECK_S = 10.0
_PASSED_ON = frozenset((b"accept", b"content-type", b"user-agent", b"authorization"))
_CALLS_MAX = 256
"""Requests to the host at a time; open watches of pages are among them."""


def without_identity(connection: Connection) -> Connection:
    """Return the way to a server without anybody's credentials; ConfigurationError for a host behind a proxy."""
    if connection.proxy_url:
        raise ConfigurationError("ui-port: the web UI does not reach a host through the proxy of its kubeconfig")
    return Connection(
        connection.server,
        ca_data=connection.ca_data,
        insecure=connection.insecure,
        tls_server_name=connection.tls_server_name,
    )


class UserInterface:
    """The ASGI app of the port."""

    def __init__(self, mount: Mount, endpoint: ASGIApp, host: Connection, access: HostAccess, clock: Clock) -> None:
        self._mount = mount
        self._endpoint = endpoint
        self._host = host
        self._access = access
        self._client = WebhookClient(WebhookClientOptions(calls_per_host_max=_CALLS_MAX))
        self._flow_control = FlowControl(FlowControlOptions())
        self._streams = Streams(self._flow_control, self._authenticate, _TOKEN_CHECK_S)
        self._loop_time = LoopTime(LoopTimeOptions(), clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page; other paths than those of the UI are not served."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        try:
            path = request.path
            if path not in ("/", "/ui") and not path.startswith("/ui/"):
                raise not_served()
            check_page(request, has_pages=True)
            scope[SERVER], scope[HOLD], scope[CHARGE] = self.serve_user, self._hold, self._charge
            if path == "/":
                await request.respond(303, b"", headers=[(b"location", b"/ui")])
                return
            await self._loop_time.page(partial(self._mount.app, scope, receive, send))
        except ApiError as error:
            await request.respond_error(error)

    async def close(self) -> None:
        """Close the connections to the host."""
        await self._client.close()

    async def serve_user(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of the UI with the token of a session."""
        request = Request(scope, receive, send)
        try:
            if not bearer_token(request.header(b"authorization")):
                raise Unauthorized("Unauthorized")
            if request.path.startswith("/federation/"):
                await self._endpoint(scope, receive, send)
            else:
                await self._pass_on(request)
        except Disconnected:
            return
        except ClusterError as error:
            await request.respond_error(ServiceUnavailable(f"the host does not answer: {error}"))
        except ApiError as error:
            if request.status:  # the answer has begun and breaks off
                raise
            await request.respond_error(error)

    async def _pass_on(self, request: Request) -> None:
        passed_on = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in request.headers.items()
            if name in _PASSED_ON
        ]
        target = encoded_target(request.path, request.scope["query_string"])
        connection = replace(self._host, server=self._host.server.rstrip("/") + target)
        body = await request.body(_BODY_BYTES_MAX)
        async with self._client.stream(request.method, connection, passed_on, body or None) as answer:
            request.status = answer.status
            start = {
                "type": "http.response.start",
                "status": answer.status,
                "headers": response_headers(answer.headers),
            }
            await request.send(start)
            # The page waits for the first piece, and the first event of a watch may be far.
            await request.send({"type": "http.response.body", "body": b"", "more_body": True})
            async for piece in answer.body:
                await request.send({"type": "http.response.body", "body": piece, "more_body": True})
            await request.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _authenticate(self, peer: Peer | None, authorization: bytes) -> User:
        token = bearer_token(authorization.decode("latin-1"))
        if peer is not None or not token:
            raise Unauthorized("Unauthorized")
        return await self._access.user_of(token)

    async def _hold(self, peer: Peer | None, authorization: bytes, path: str, end: End) -> HeldStream:
        """Count a live page against its user."""
        user = await self._authenticate(peer, authorization)
        flow, _ = self._flow_control.classify(user, Attributes("watch", path=path))
        return self._streams.hold(user, flow, peer, authorization, end)

    async def _charge(self, peer: Peer | None, authorization: bytes) -> None:
        """Count what a page computes against its user."""
        await self._loop_time.own_page(to_owner(await self._authenticate(peer, authorization)))
