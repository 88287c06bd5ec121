"""Choose the connections to close when clients leave too much data unread. Pure.

A response stays in memory until its client has read it, and no client can be forced to read. Bytes are counted per
owner and together. Beyond an owner's share his connection with the most is closed, beyond the total the one of the
owner with the most, and of the system only when nobody else has any. Of connections with equally many bytes the newest
is closed, because the older ones are nearer to their end. The last one stays, so that a single client gets any list at
any speed.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Connection = TypeVar("Connection", bound=Hashable)


@dataclass(frozen=True, slots=True)
class UnsentLimits:
    """Bytes that clients have not taken."""

    owner: int
    """Of one user, or of the unknown users of one address. The system has none."""
    total: int


class UnsentBytes(Generic[Connection]):
    """The bytes of each connection, per owner."""

    def __init__(self, limits: UnsentLimits, system: str) -> None:
        """`system` is the owner that may have as much as there is."""
        self._limits = limits
        self._system = system
        self._connections: dict[str, dict[Connection, int]] = {}
        """In the order in which they began to have some."""
        self._bytes: dict[str, int] = {}
        self.total = 0

    def count(self, owner: str, connection: Connection, size: int) -> None:
        """Set how many bytes a connection has; 0 forgets it."""
        own = self._connections.get(owner, {})
        growth = size - own.get(connection, 0)
        self.total += growth
        self._bytes[owner] = self._bytes.get(owner, 0) + growth
        if size:
            own[connection] = size
            self._connections[owner] = own
        elif own.pop(connection, None) is not None and not own:
            del self._connections[owner]
        if owner not in self._connections:
            del self._bytes[owner]

    def excess(self, owner: str) -> Connection | None:
        """Return the connection to close after a count of this owner; None while all have room."""
        own = self._connections.get(owner, {})
        if len(own) > 1 and owner != self._system and self._bytes[owner] > self._limits.owner:
            return _heaviest(own)
        if self.total <= self._limits.total or sum(map(len, self._connections.values())) < 2:
            return None
        others = self._connections.keys() - {self._system} or {self._system}
        return _heaviest(self._connections[max(others, key=lambda name: (self._bytes[name], name))])


def _heaviest(connections: dict[Connection, int]) -> Connection:
    return max(reversed(connections), key=connections.__getitem__)
