"""The connections to members, as `members.py` needs them: a client by cluster, and what changes about it.

`client/pool.py` is the implementation. It owns the connections; nothing here lives longer than a call.
"""

from collections.abc import Callable
from typing import Protocol

from federation.client.breaker import Breaker
from federation.client.client import Client

ClusterListener = Callable[[str], None]


class Clients(Protocol):
    """The source of members' clients: a `ClusterPool`."""

    def client(self, cluster: str) -> Client:
        """Return the cluster's client, the same object for as long as the cluster is joined; NotFound when unknown."""
        ...

    def breaker(self, cluster: str) -> Breaker | None:
        """Return the cluster's circuit breaker, None without a client."""
        ...

    async def check_identity(self, cluster: str) -> str:
        """Check the cluster's identity if that is due, and return its uid; ClusterIdentityMismatch."""
        ...

    def add_listener(self, on_rebuilt: ClusterListener) -> Callable[[], None]:
        """Call `on_rebuilt` with the name of each cluster whose endpoint or credentials changed."""
        ...

    def add_recovery_listener(self, on_recovered: ClusterListener) -> None:
        """Call `on_recovered` with the name of each cluster whose circuit closes again."""
        ...
