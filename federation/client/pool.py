"""The members' clients: one per joined cluster, made from its FederatedCluster and Secret, renewed when those change.

`update` is told every state of both objects and compares connections: a changed endpoint, insecure flag or credential,
inside the Secret too, replaces the connection behind the same client, so that nobody has to ask again. Old connections
are closed by `run`. It watches nothing and does not decide who is joined: the cluster controller does both.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from federation.api.resources import Object
from federation.base.clock import Clock, SystemClock
from federation.base.errors import ConfigurationError, NotFound
from federation.client.connection import Connection, connection_from_secret
from federation.client.guard import GuardedClient, GuardOptions
from federation.client.http import HTTPClient, HTTPOptions
from federation.client.protocol import Client

Connect = Callable[[Connection], Client]
Listener = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Limits of each member."""

    http: HTTPOptions = field(default_factory=HTTPOptions)
    guard: GuardOptions = field(default_factory=GuardOptions)


class ClusterPool:
    """Clients by cluster name. `connect` makes the inner client of a connection; HTTP by default."""

    def __init__(
        self, *, connect: Connect | None = None, clock: Clock | None = None, options: PoolOptions | None = None
    ) -> None:
        self._options = options or PoolOptions()
        self._clock = clock or SystemClock()
        self._connect = connect or (lambda connection: HTTPClient(connection, self._options.http, clock=self._clock))
        self._clients: dict[str, GuardedClient] = {}
        self._connections: dict[str, Connection] = {}
        self._problems: dict[str, str] = {}
        self._rebuilt: list[Listener] = []
        self._recovered: list[Listener] = []
        self._retired: asyncio.Queue[Client] = asyncio.Queue()

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

    def problem(self, cluster: str) -> str:
        """Return why the newest endpoint and credentials cannot be used, "" when they can."""
        return self._problems.get(cluster, "")

    def connection(self, cluster: str) -> Connection | None:
        """Return how the cluster is reached now."""
        return self._connections.get(cluster)

    def update(self, cluster: Object, secret: Object | None, *, bootstrap: bool | None = None) -> bool:
        """Bring the client of a FederatedCluster up to date and return whether it is new or changed.

        When the new data is unusable the old client stays, and the ConfigurationError is raised and kept as `problem`.
        """
        name = cluster["metadata"]["name"]
        try:
            if secret is None:
                wanted = ((cluster.get("spec") or {}).get("secretRef") or {}).get("name", "")
                raise ConfigurationError(f'cluster {name}: spec.secretRef.name: Secret "{wanted}" does not exist')
            connection = connection_from_secret(cluster, secret, bootstrap=bootstrap)
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
        """Make or renew the cluster's client."""
        self._problems.pop(cluster, None)
        self._connections[cluster] = connection
        self.set_client(cluster, self._connect(connection))

    def set_client(self, cluster: str, inner: Client) -> None:
        """Use `inner` for the cluster: limits, breaker and metrics are put around it."""
        known = self._clients.get(cluster)
        if known is None:
            guarded = GuardedClient(cluster, inner, clock=self._clock, options=self._options.guard)
            guarded.on_recovered(self._tell_recovered)
            self._clients[cluster] = guarded
            return
        self._retired.put_nowait(known.replace(inner))
        for listener in list(self._rebuilt):
            listener(cluster)

    def remove(self, cluster: str) -> None:
        """Forget the cluster; its connections are closed by `run`."""
        self._connections.pop(cluster, None)
        self._problems.pop(cluster, None)
        client = self._clients.pop(cluster, None)
        if client is not None:
            self._retired.put_nowait(client)

    def add_listener(self, on_rebuilt: Listener) -> Callable[[], None]:
        """Call `on_rebuilt` with the name of each cluster whose connection was replaced. Returns how to end that."""
        self._rebuilt.append(on_rebuilt)
        return lambda: self._rebuilt.remove(on_rebuilt) if on_rebuilt in self._rebuilt else None

    def add_recovery_listener(self, on_recovered: Listener) -> None:
        """Call `on_recovered` with the name of each cluster that answers again after its circuit was open."""
        self._recovered.append(on_recovered)

    async def run(self) -> None:
        """Close replaced and removed clients until cancelled, and then all of them."""
        try:
            while True:
                await (await self._retired.get()).close()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close every client; the pool is empty afterwards."""
        clients: list[Client] = [*self._clients.values()]
        while not self._retired.empty():
            clients.append(self._retired.get_nowait())
        self._clients.clear()
        self._connections.clear()
        for client in clients:
            await client.close()

    def _tell_recovered(self, cluster: str) -> None:
        for listener in list(self._recovered):
            listener(cluster)
