"""How many connections without a client certificate there may be, per source address and together.

A connection needs no credentials, so without these limits one machine could take all of them. The rest of the
connections is a reserve for clients with a certificate, which administrators and agents have.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ConnectionShares:
    """Counts the connections of one listener; a source is an IP address."""

    total_max: int
    source_max: int
    total: int = 0
    by_source: dict[str, int] = field(default_factory=dict)

    def admit(self, source: str) -> bool:
        """Count a new connection; False, and uncounted, beyond a limit."""
        own = self.by_source.get(source, 0)
        if own >= self.source_max or self.total >= self.total_max:
            return False
        self.by_source[source] = own + 1
        self.total += 1
        return True

    def release(self, source: str) -> None:
        """Uncount a connection that was admitted."""
        self.total -= 1
        left = self.by_source[source] - 1
        if left:
            self.by_source[source] = left
        else:
            del self.by_source[source]
