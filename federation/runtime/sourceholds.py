"""Hold a new object of the host for a moment before it is federated: a feature writes into it first."""

from typing import Protocol

from federation.apimachinery.resources import Object


class SourceHold(Protocol):
    """Holds objects without a federated object. It decides from caches, and lives as long as the control plane."""

    async def wait_synced(self) -> None:
        """Wait until the caches are complete; nothing is federated before."""
        ...

    def holds(self, source: Object) -> bool:
        """Return whether the object is not federated yet. It is asked again soon, and must not hold for long."""
        ...
