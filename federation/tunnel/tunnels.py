"""The tunnels of this process, by cluster: agents attach them, and clients dial through them.

An agent that is not connected is silent, unless the fault can be ours: this process has just started, refuses the
agent, or lost all of its agents at once.

Decision: docs/decisions/0229-agents-that-cannot-connect-are-not-silent.md
"""

import socket
from collections.abc import Callable

from prometheus_client import Gauge

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import ClusterUnreachable, Obstacle
from federation.apimachinery.listening import Silence
from federation.apimachinery.metrics import show
from federation.tunnel.tunnel import Tunnel

_agents = Gauge("federation_client_agents_connected", "Agents whose tunnel ends in this process")
_streams = Gauge("federation_client_tunnel_streams", "Streams in the tunnel of an agent", ["cluster"])
RETURN_S = 60.0
"""How long agents may take to connect to a process that has started, or that refused them: they wait for up to 15 s
between attempts, and may try several addresses."""
AT_ONCE_S = 15.0
"""Agents that were lost within this time were lost at once."""
_STEP_S_MAX = 5.0


class Tunnels:
    """At most one tunnel per cluster: a new one replaces the previous one, which may be dead without knowing it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._serving = Silence()
        self._seen: set[str] = set()
        """Clusters whose agent has connected to this process."""
        self._away_s: dict[str, float] = {}
        """By cluster that was dialled and has no tunnel: since when."""
        self._refused_s: dict[str, float] = {}
        """By cluster: when this process refused its agent."""
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
        self._seen.add(cluster)
        self._away_s.pop(cluster, None)
        self._refused_s.pop(cluster, None)
        _streams.labels(cluster).set_function(lambda: tunnel.stream_count)
        try:
            await tunnel.run(lambda: self._notify(cluster))
        finally:
            if self._tunnels.get(cluster) is tunnel:
                self._detach(cluster)
                self._away_s[cluster] = self._clock.monotonic()

    def refused(self, cluster: str) -> None:
        """Note that this process refused the agent of a cluster, or ended its tunnel, for a reason of its own."""
        if cluster in self._away_s or cluster in self._tunnels:
            self._refused_s[cluster] = self._clock.monotonic()

    def forget(self, cluster: str) -> None:
        """End the tunnel of a cluster that has left, and remove what is known of it."""
        self.close(cluster)
        if cluster in self._tunnels:
            self._detach(cluster)
        self._seen.discard(cluster)
        self._away_s.pop(cluster, None)
        self._refused_s.pop(cluster, None)

    def close(self, cluster: str) -> None:
        """End the tunnel of a cluster."""
        if (tunnel := self._tunnels.get(cluster)) is not None:
            tunnel.close()

    def close_others(self, cluster: str, owner: str) -> None:
        """End the tunnel of a cluster unless it is the owner's: who registers again ends the previous agent."""
        if self._owners.get(cluster, owner) != owner:
            self.close(cluster)

    async def dial(self, cluster: str) -> socket.socket:
        """Return a socket to the API server of a cluster; ClusterUnreachable while its agent is not connected."""
        served_s = self._serving.look(self._clock.monotonic(), _STEP_S_MAX)
        tunnel = self._tunnels.get(cluster)
        if tunnel is None:
            text, fault = f"the agent of cluster {cluster} is not connected", self._fault(cluster, served_s)
            if fault:
                raise ClusterUnreachable(f"{text}: {fault}", Obstacle.AGENTS_AWAY)
            raise ClusterUnreachable(text)
        return await tunnel.open()

    def _fault(self, cluster: str, served_s: float) -> str:
        """Return why this process may be the reason that an agent is not connected, "" if nothing says so."""
        now_s = self._clock.monotonic()
        since_s = self._away_s.setdefault(cluster, now_s)
        if now_s - self._refused_s.get(cluster, float("-inf")) < RETURN_S:
            return "the control plane refused it"
        if cluster not in self._seen and served_s < RETURN_S:
            return "the control plane has just started"
        others = (at_s for name, at_s in self._away_s.items() if name != cluster)
        if not self._tunnels and any(abs(at_s - since_s) <= AT_ONCE_S for at_s in others):
            return "no agent is connected any more, and the control plane lost several at once"
        return ""

    def _detach(self, cluster: str) -> None:
        del self._tunnels[cluster], self._owners[cluster]
        _streams.remove(cluster)

    def _notify(self, cluster: str) -> None:
        for listener in self._listeners:
            listener(cluster)
