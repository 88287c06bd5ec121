"""The tunnels of this process, by cluster: agents attach them, and clients dial through them."""

import socket
from collections.abc import Callable

from prometheus_client import Gauge

from federation.apimachinery.errors import ClusterUnreachable
from federation.apimachinery.metrics import show
from federation.tunnel.tunnel import Tunnel

_agents = Gauge("federation_client_agents_connected", "Agents whose tunnel ends in this process")
_streams = Gauge("federation_client_tunnel_streams", "Streams in the tunnel of an agent", ["cluster"])


class Tunnels:
    """At most one tunnel per cluster: a new one replaces the previous one, which may be dead without knowing it."""

    def __init__(self) -> None:
        self._tunnels: dict[str, Tunnel] = {}
        self._owners: dict[str, str] = {}
        self._listeners: list[Callable[[str], None]] = []
        show(_agents, self, lambda tunnels: len(tunnels._tunnels))

    def add_listener(self, on_attached: Callable[[str], None]) -> None:
        """Call `on_attached` with the name of each cluster whose agent connects."""
        self._listeners.append(on_attached)

    async def carry(self, cluster: str, tunnel: Tunnel, owner: str) -> None:
        """Run the tunnel as that of the cluster, until it ends or another one replaces it.

        `owner` is the registration of the agent.
        """
        previous = self._tunnels.get(cluster)
        self._tunnels[cluster], self._owners[cluster] = tunnel, owner
        if previous is not None:
            previous.close()
        _streams.labels(cluster).set_function(lambda: tunnel.stream_count)
        try:
            await tunnel.run(lambda: self._notify(cluster))
        finally:
            if self._tunnels.get(cluster) is tunnel:
                del self._tunnels[cluster], self._owners[cluster]
                _streams.remove(cluster)

    def close(self, cluster: str) -> None:
        """End the tunnel of a cluster that has left."""
        if (tunnel := self._tunnels.get(cluster)) is not None:
            tunnel.close()

    def close_others(self, cluster: str, owner: str) -> None:
        """End the tunnel of a cluster unless it is the owner's: who registers again ends the previous agent."""
        if self._owners.get(cluster, owner) != owner:
            self.close(cluster)

    async def dial(self, cluster: str) -> socket.socket:
        """Return a socket to the API server of a cluster; ClusterUnreachable while its agent is not connected."""
        tunnel = self._tunnels.get(cluster)
        if tunnel is None:
            raise ClusterUnreachable(f"the agent of cluster {cluster} is not connected")
        return await tunnel.open()

    def _notify(self, cluster: str) -> None:
        for listener in self._listeners:
            listener(cluster)
