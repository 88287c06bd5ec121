"""The endpoints for agents below `/agents/v1`: registration, renewal, and the tunnel, which is a WebSocket.

Only `register` needs no certificate. Each other request names its cluster in the query, and is refused unless the
certificate is that of the cluster's agent: an agent can do nothing but serve its own cluster. `registration.py`
decides; this module speaks HTTP. Tunnels end in the process that runs the controllers; others refuse them with 503, and
the agent tries again until it reaches that one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from federation.api import agents
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, BadRequest, ServiceUnavailable, not_served
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.apiserver.auth.identity import User
from federation.apiserver.http.asgi import Receive, Request, Scope, Send
from federation.apiserver.http.nonresource import USER, Mount
from federation.apiserver.http.websockets import WEBSOCKET, ClientSocket
from federation.tunnel.frames import TunnelError
from federation.tunnel.tunnel import CarrierClosed, Tunnel, TunnelOptions
from federation.tunnel.tunnels import Tunnels
from federation.web.registration import Registration

_log = structlog.get_logger(__name__)
_FAULT_OF_OURS: Final = 500
"""The least code of an answer that says nothing about the agent."""
_PATHS: Final = frozenset(
    {agents.REGISTER_PATH, agents.MEMBER_PATH, agents.CREDENTIALS_PATH, agents.RENEW_PATH, agents.TUNNEL_PATH}
)


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Limits of agents."""

    body_bytes_max: int = 256 * 1024
    tunnel_age_s_max: float = 12 * 3600.0
    """A tunnel is closed after this time, or with the agent's certificate, and the agent connects again."""
    tunnel: TunnelOptions = field(default_factory=TunnelOptions)


class AgentEndpoint:
    """The ASGI app for agents. `may_carry` says whether this process runs the controllers."""

    def __init__(
        self,
        registration: Registration,
        tunnels: Tunnels,
        may_carry: Callable[[], bool],
        clock: Clock,
        options: AgentOptions | None = None,
    ) -> None:
        self._registration = registration
        self._tunnels = tunnels
        self._may_carry = may_carry
        self._clock = clock
        self._options = options or AgentOptions()

    def mount(self) -> Mount:
        """Return the app as the API server mounts it below `/agents/`."""
        public, streams = frozenset({agents.REGISTER_PATH}), frozenset({agents.TUNNEL_PATH})
        return Mount(self, authorizes=_PATHS, public=public, streams=streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            await self._serve(request)
        except ApiError as error:
            await request.respond_error(error)

    async def _serve(self, request: Request) -> None:
        registration = self._registration
        if (request.method, request.path) == ("POST", agents.REGISTER_PATH):
            await request.respond_json(201, await registration.register(await self._body(request)))
            return
        name = request.query.get("cluster", "")
        user = request.scope[USER]
        try:
            cluster = await registration.authenticate(user, name, has_certificate=request.peer is not None)
            await self._answer(request, user, cluster)
        except ApiError as error:
            if error.code >= _FAULT_OF_OURS:
                self._tunnels.refused(name)
            raise

    async def _answer(self, request: Request, user: User, cluster: Object) -> None:
        registration = self._registration
        match request.method, request.path:
            case "GET", agents.MEMBER_PATH:
                await request.respond_json(200, await registration.describe(cluster))
            case "POST", agents.CREDENTIALS_PATH:
                await request.respond_json(
                    200, await registration.store_credentials(cluster, await self._body(request))
                )
            case "POST", agents.RENEW_PATH:
                await request.respond_json(201, await registration.renew(user, await self._body(request)))
            case "GET", agents.TUNNEL_PATH:
                await self._carry(request, cluster)
            case _:
                raise not_served()

    async def _carry(self, request: Request, cluster: Object) -> None:
        name = cluster["metadata"]["name"]
        socket: ClientSocket | None = request.scope.get("extensions", {}).get(WEBSOCKET)
        if socket is None:
            raise BadRequest("a tunnel is a WebSocket; send Upgrade: websocket")
        if not self._may_carry():
            raise ServiceUnavailable("this process does not run the controllers; connect again to reach another one")
        await socket.accept("")
        tunnel = Tunnel(_WebSocketCarrier(socket), self._options.tunnel)
        _log.info("agent connected", cluster=name)
        try:
            async with asyncio.timeout(self._age_s_max(request)):
                await self._tunnels.carry(name, tunnel, agents.registration_of(cluster))
        except (CarrierClosed, TimeoutError) as end:
            if isinstance(end, TimeoutError):
                self._tunnels.refused(name)  # by our limit, and our clock
            _log.info("agent disconnected", cluster=name)
        except TunnelError as error:
            _log.warning("agent disconnected", cluster=name, reason=str(error))

    def _age_s_max(self, request: Request) -> float:
        """Return how long a tunnel may last: not longer than the certificate with which it was opened."""
        expires_s = request.peer.expires_s if request.peer is not None else None
        left_s = self._options.tunnel_age_s_max if expires_s is None else expires_s - self._clock.now().timestamp()
        return min(left_s, self._options.tunnel_age_s_max)

    async def _body(self, request: Request) -> Object:
        found = parse_object(await request.body(self._options.body_bytes_max))
        if found is None:
            raise BadRequest("the body is not a JSON object")
        return found


class _WebSocketCarrier:
    """The messages of an accepted WebSocket."""

    def __init__(self, socket: ClientSocket) -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        """Send one message."""
        try:
            await self._socket.send(message)
        except OSError as error:
            raise CarrierClosed("the agent has disconnected") from error

    async def receive(self) -> bytes:
        """Return the next message."""
        message = await self._socket.receive()
        if not isinstance(message, bytes):
            raise CarrierClosed("the agent has disconnected")
        return message
