"""The client of the controllers on an existing API server: it refuses writes of a process that does not lead.

An embedded API server checks the Lease inside the transaction of a write (`apiserver/store/fencing.py`). Another API
server offers no such check. So a write is refused here once the Lease may be somebody else's, as client-go does: a
process that was paused notices it before its next write leaves. A write that is under way at that moment can still
arrive; it carries a resourceVersion or changes only fields of ours.
"""

from collections.abc import Callable

from federation.apimachinery.errors import Conflict
from federation.apimachinery.resources import Object
from federation.client.client import Client, Request, Transport, Watch

_READS = frozenset({"get", "list", "watch"})


class LedTransport:
    """Another transport whose writes need leadership; dry runs and raw requests write nothing."""

    def __init__(self, transport: Transport, may_write: Callable[[], bool]) -> None:
        self._transport = transport
        self._may_write = may_write

    async def request(self, request: Request) -> Object:
        """Carry out the request; Conflict for a write without leadership."""
        if request.verb not in _READS and not request.dry_run and not self._may_write():
            raise Conflict("this process does not lead the controllers any more")
        return await self._transport.request(request)

    def stream(self, request: Request) -> Watch:
        """Pass a watch through."""
        return self._transport.stream(request)

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        """Pass the request through."""
        return await self._transport.raw(method, path, body, timeout_s, accept)

    async def close(self) -> None:
        """Leave the transport open: its owner closes it."""


def led_client(client: Client, may_write: Callable[[], bool]) -> Client:
    """Return a client over the transport of another one, which stays open."""
    return Client(LedTransport(client.transport, may_write))
