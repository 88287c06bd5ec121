"""The agent's loops: one tunnel to the host, the renewal of the certificate, and the repair of drift without a host.

The agent connects every stream of its tunnel to the API server of its own member, whose address comes from its own
kubeconfig and from nowhere else. Bytes are not interpreted: TLS is between the control plane and that API server.
When a connection ends, the next one is tried after a random time, which doubles while the host does not answer. If the
host has several addresses, each is tried before that time: the tunnel ends in the process that runs the controllers.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import structlog

from federation.agent import registration
from federation.agent.account import AccountClient
from federation.agent.agentfiles import Identity
from federation.agent.deliveredfile import DeliveredFile
from federation.agent.repair import Repair, RepairOptions
from federation.api.agents import TUNNEL_PATH, Bundle
from federation.api.federatedtype import parse_configs
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ConfigurationError,
    FederationError,
    Forbidden,
    Unauthorized,
)
from federation.client.http import HTTPClient
from federation.client.websocket import RefusedError, connect_websocket
from federation.tunnel.tunnel import Tunnel, TunnelOptions

_log = structlog.get_logger(__name__)
_REFUSED = (
    "the host does not accept this agent any more: its cluster left, or registered again;"
    " remove --dir and register with a new token: fedctl token create"
)


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Intervals of the agent."""

    retry_s_min: float = 0.1
    retry_s_max: float = 15.0
    """The wait before an attempt is random, between half of the current value and all of it."""
    follower_retry_s: float = 0.5
    """After a process that does not run the controllers; a load balancer gives another one next."""
    renewal_wait_s_max: float = 3600.0
    """The longest wait before the time of the certificate's renewal is looked at again."""
    renewal_retry_s: float = 5.0
    """After a renewal that failed."""
    tunnel: TunnelOptions = field(default_factory=TunnelOptions)
    repair: RepairOptions = field(default_factory=RepairOptions)


class Agent:
    """One member's agent. `jitter` returns numbers from 0 to 1."""

    def __init__(
        self,
        identity: Identity,
        member: HTTPClient,
        clock: Clock,
        jitter: Callable[[], float],
        options: AgentOptions | None = None,
    ) -> None:
        self._identity = identity
        self._member = member
        self._clock = clock
        self._jitter = jitter
        self._options = options or AgentOptions()
        address = urlsplit(member.connection.server)
        self._host = address.hostname or ""
        self._port = address.port or (443 if address.scheme == "https" else 80)
        self._servers: list[str] = []
        """The addresses of the host; the first one is in use."""
        self._away_since_s: float | None = clock.monotonic()
        self._account = AccountClient(member, clock)
        file = DeliveredFile(identity.directory)
        self._repair = Repair(file, self._account.get, self._away_s, clock, self._options.repair)

    async def run(self, bundle: Bundle | None, on_connected: Callable[[], None] = lambda: None) -> None:
        """Register if the folder has no certificate, then serve until cancelled; ConfigurationError when refused."""
        if not self._identity.is_registered:
            if bundle is None:
                raise ConfigurationError(
                    "this agent is not registered; give --register TOKEN (see fedctl token create)"
                )
            await registration.register(self._identity, bundle, self._member)
        elif bundle is not None and bundle.cluster != self._identity.host().cluster:
            raise ConfigurationError(
                f'--register: the token is for cluster "{bundle.cluster}", but --dir holds the agent of'
                f' "{self._identity.host().cluster}"; give another folder'
            )
        self._servers = self._identity.host().servers
        await self._repair.load()
        beside = [asyncio.ensure_future(self._keep_renewed()), asyncio.ensure_future(self._repair.run())]
        try:
            await self._keep_connected(on_connected)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
            await self._account.close()

    async def _keep_connected(self, on_connected: Callable[[], None]) -> None:
        options = self._options
        wait_s, failures = options.retry_s_min, 0
        while True:
            established = False

            def connected() -> None:
                nonlocal established
                established = True
                self._away_since_s = None
                on_connected()

            try:
                self._identity.check_valid(self._clock.now())
                await self._connect_once(connected)
                reason = "the tunnel ended"
            except (Forbidden, Unauthorized):
                raise ConfigurationError(_REFUSED) from None
            except RefusedError as refusal:
                if refusal.status in (401, 403):
                    raise ConfigurationError(_REFUSED) from None
                reason = str(refusal)
                if refusal.status == 503:
                    wait_s = options.follower_retry_s
            except (ApiError, ClusterError, FederationError) as error:
                if isinstance(error, ConfigurationError):
                    raise
                reason = str(error)
            if established:
                self._away_since_s = self._clock.monotonic()
                wait_s, failures = options.retry_s_min, 0
            else:
                self._servers.append(self._servers.pop(0))
                failures += 1
                if failures % len(self._servers):
                    _log.info("trying the next address of the host", reason=reason)
                    continue
            _log.warning("disconnected from the host", reason=reason, retry_s=round(wait_s, 1))
            await self._clock.sleep(wait_s * (0.5 + self._jitter() / 2))
            wait_s = min(wait_s * 2, options.retry_s_max)

    async def _connect_once(self, on_ready: Callable[[], None]) -> None:
        """Deliver credentials if the host lacks them, and carry the tunnel until it ends."""
        server, cluster = self._servers[0], self._identity.host().cluster
        configs = await registration.deliver_credentials(self._identity, server, self._member, self._clock)
        self._repair.set_types(parse_configs(configs))
        path = f"{TUNNEL_PATH}?cluster={cluster}"
        async with connect_websocket(self._identity.connection(server), path) as carrier:
            _log.info("connected to the host", server=server, cluster=cluster)
            await Tunnel(carrier, self._options.tunnel, self._connect_member).run(on_ready)

    async def _connect_member(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._host, self._port)

    def _away_s(self) -> float | None:
        """Return for how long there has been no tunnel, None while there is one."""
        return self._clock.monotonic() - self._away_since_s if self._away_since_s is not None else None

    async def _keep_renewed(self) -> None:
        while True:
            wait_s = (self._identity.renewal_time() - self._clock.now()).total_seconds()
            if wait_s <= 0:
                wait_s = self._options.renewal_retry_s
                try:
                    await registration.renew(self._identity, self._servers[0])
                    _log.info("renewed the certificate")
                    continue
                except FederationError as error:
                    _log.warning("cannot renew the certificate", reason=str(error))
            await self._clock.sleep(min(wait_s, self._options.renewal_wait_s_max))
