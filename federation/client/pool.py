"""Clients of the joined members: one per cluster, built from its FederatedCluster and Secret.

`update` receives every state of both objects. When the endpoint, the insecure flag or a credential changed, it replaces
the transport below the same client, so callers keep their client. `run` closes replaced transports. The pool watches
nothing and does not decide membership: the cluster controller does.

Decision: docs/decisions/0144-members-io-stays-in-the-process.md
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import Gauge

from federation.api.agents import registration_of
from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import Object
from federation.client.breaker import Breaker
from federation.client.client import Client, Transport
from federation.client.clustersecret import connection_from_secret
from federation.client.delegate import Delegate
from federation.client.http import HTTPTransport
from federation.client.identity import Identity, identity_of
from federation.client.limitedtransport import LimitedTransport, TransportLimits
from federation.client.session import HTTPOptions
from federation.client.storedkinds import StoredKinds
from federation.client.storedversion import StoredVersionTransport
from federation.tunnel.tunnels import Tunnels

_skew = Gauge("federation_client_clock_skew_seconds", "How far the member's clock is ahead of ours", ["cluster"])

Connect = Callable[[Connection], Transport]
Listener = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Limits of each member."""

    http: HTTPOptions = field(default_factory=HTTPOptions)
    limits: TransportLimits = field(default_factory=TransportLimits)


class ClusterPool:
    """Clients by cluster name. `connect` makes the transport of a connection; HTTP by default.

    `may_write` is asked before each write: False while this process does not lead. `tunnels` are those of the agents
    of clusters in pull mode.
    """

    def __init__(
        self,
        *,
        connect: Connect | None = None,
        clock: Clock | None = None,
        options: PoolOptions | None = None,
        may_write: Callable[[], bool] | None = None,
        tunnels: Tunnels | None = None,
    ) -> None:
        self._may_write = may_write
        self._tunnels = tunnels or Tunnels()
        self._tunnels.add_listener(self._agent_connected)
        self._options = options or PoolOptions()
        self._clock = clock or SystemClock()
        self._connect = connect or self._connect_http
        self._transports: dict[str, LimitedTransport] = {}
        self._clients: dict[str, Client] = {}
        self._connections: dict[str, Connection] = {}
        self._problems: dict[str, str] = {}
        self._identities: dict[str, Identity | None] = {}
        self._rebuilt: list[Listener] = []
        self._recovered: list[Listener] = []
        self._unreachable: list[Listener] = []
        self._retired: asyncio.Queue[Transport] = asyncio.Queue()

    @property
    def clusters(self) -> list[str]:
        """The names of the clusters that have a client, sorted."""
        return sorted(self._clients)

    def client(self, cluster: str) -> Client:
        """Return the cluster's client, the same one until `remove`; NotFound with the reason when there is none."""
        client = self._clients.get(cluster)
        if client is None:
            problem = self._problems.get(cluster)
            raise NotFound(problem or f'cluster "{cluster}" has no client')
        return client

    def delegate(self, cluster: str) -> Delegate:
        """Return what passes users' requests on to the cluster; NotFound with the reason when there is no client."""
        self.client(cluster)
        return self._transports[cluster]

    def breaker(self, cluster: str) -> Breaker | None:
        """Return the cluster's circuit breaker, a new one after its connection changed; None without a client."""
        limited = self._transports.get(cluster)
        return limited.breaker if limited is not None else None

    async def check_identity(self, cluster: str) -> str:
        """Check the cluster's identity if that is due, and return its uid; ClusterIdentityMismatch."""
        limited = self._transports.get(cluster)
        if limited is None:
            return ""
        await limited.check_identity()
        return limited.cluster_uid

    def problem(self, cluster: str) -> str:
        """Return the reason why the newest endpoint or credentials cannot be used, "" when they can."""
        return self._problems.get(cluster, "")

    def connection(self, cluster: str) -> Connection | None:
        """Return the connection in use."""
        return self._connections.get(cluster)

    def update(self, cluster: Object, secret: Object | None, *, bootstrap: bool | None = None) -> bool:
        """Update the client of a FederatedCluster and return whether its connection is new or changed.

        When the new data is unusable, the old connection stays; the ConfigurationError is raised and kept as `problem`.
        """
        name = cluster["metadata"]["name"]
        self._tunnels.close_others(name, registration_of(cluster))
        try:
            if secret is None:
                wanted = ((cluster.get("spec") or {}).get("secretRef") or {}).get("name", "")
                raise ConfigurationError(f'cluster {name}: spec.secretRef.name: Secret "{wanted}" does not exist')
            connection = connection_from_secret(cluster, secret, bootstrap=bootstrap)
            self._identities[name] = identity_of(cluster)
            if (limited := self._transports.get(name)) is not None:
                limited.expect(self._identities[name])
            if self._connections.get(name) == connection:
                self._problems.pop(name, None)
                return False
            connection.to_tls()
        except ConfigurationError as problem:
            self._problems[name] = str(problem)
            raise
        self.set_connection(name, connection)
        return True

    def set_connection(self, cluster: str, connection: Connection) -> None:
        """Create the cluster's client, or replace its transport."""
        self._problems.pop(cluster, None)
        self._connections[cluster] = connection
        self.set_transport(cluster, self._connect(connection))

    def set_transport(self, cluster: str, transport: Transport) -> None:
        """Use the transport for the cluster, with limits, circuit breaker and metrics around it."""
        known = self._transports.get(cluster)
        if isinstance(transport, HTTPTransport):
            transport.on_connected(partial(self._connected, cluster, transport))
            _skew.labels(cluster).set_function(lambda: transport.clock_skew_s or 0.0)
        if known is None:
            limited = LimitedTransport(
                cluster, transport, clock=self._clock, options=self._options.limits, may_write=self._may_write
            )
            limited.on_recovered(self._notify_recovered)
            limited.on_unreachable(self._notify_unreachable)
            limited.expect(self._identities.get(cluster))
            self._transports[cluster] = limited
            stored = StoredKinds(limited, self._clock)
            self._clients[cluster] = Client(StoredVersionTransport(limited, stored.stored_in, stored.applied_in))
            return
        self._retired.put_nowait(known.replace(transport))
        for listener in list(self._rebuilt):
            listener(cluster)

    def remove(self, cluster: str) -> None:
        """Remove the cluster; `run` closes its connections. Its agent, if it has one, is disconnected."""
        self._tunnels.forget(cluster)
        self._connections.pop(cluster, None)
        self._problems.pop(cluster, None)
        self._clients.pop(cluster, None)
        self._identities.pop(cluster, None)
        _skew.remove(cluster)
        limited = self._transports.pop(cluster, None)
        if limited is not None:
            self._retired.put_nowait(limited)

    def add_listener(self, on_rebuilt: Listener) -> Callable[[], None]:
        """Call `on_rebuilt` with the name of each cluster whose connection was replaced; the result ends that."""
        self._rebuilt.append(on_rebuilt)
        return lambda: self._rebuilt.remove(on_rebuilt) if on_rebuilt in self._rebuilt else None

    def add_recovery_listener(self, on_recovered: Listener) -> None:
        """Call `on_recovered` with the name of each cluster whose circuit closes again."""
        self._recovered.append(on_recovered)

    def add_failure_listener(self, on_unreachable: Listener) -> None:
        """Call `on_unreachable` with the name of each cluster to which a connection fails or breaks."""
        self._unreachable.append(on_unreachable)

    async def run(self) -> None:
        """Close replaced and removed transports until cancelled, then all of them."""
        try:
            while True:
                await (await self._retired.get()).close()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close every transport and empty the pool."""
        transports: list[Transport] = [*self._transports.values()]
        while not self._retired.empty():
            transports.append(self._retired.get_nowait())
        self._transports.clear()
        self._clients.clear()
        self._connections.clear()
        # Together: each one waits for the end of TLS, up to a second with a member that does not answer.
        await asyncio.gather(*(transport.close() for transport in transports))

    def _connect_http(self, connection: Connection) -> Transport:
        return HTTPTransport(connection, self._options.http, clock=self._clock, dial=self._tunnels.dial)

    def _agent_connected(self, cluster: str) -> None:
        """Replace the transport: the circuit breaker of the time without an agent must not delay its cluster."""
        connection = self._connections.get(cluster)
        if connection is not None and connection.tunnel:
            self.set_transport(cluster, self._connect(connection))

    async def _connected(self, cluster: str, transport: Transport) -> None:
        limited = self._transports.get(cluster)
        if limited is not None and limited.uses(transport):
            await limited.connected()

    def _notify_recovered(self, cluster: str) -> None:
        for listener in list(self._recovered):
            listener(cluster)

    def _notify_unreachable(self, cluster: str) -> None:
        for listener in list(self._unreachable):
            listener(cluster)
