"""A host's and an agent's tunnel in one process, linked by two bounded queues."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from federation.apimachinery.errors import ClusterError
from federation.tunnel.tunnel import CarrierClosed, Tunnel, TunnelOptions

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_END = b"end"


class QueueCarrier:
    """One end of a pair of queues; a full queue delays the sender, as a socket does."""

    def __init__(self, incoming: "asyncio.Queue[bytes]", outgoing: "asyncio.Queue[bytes]") -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def send(self, message: bytes) -> None:
        """Send one message."""
        await self._outgoing.put(message)

    async def receive(self) -> bytes:
        """Return the next message; CarrierClosed at the end."""
        message = await self._incoming.get()
        if message == _END:
            raise CarrierClosed("the test ended the connection")
        return message


def carrier_pair() -> tuple[QueueCarrier, QueueCarrier]:
    """Return both ends of a connection."""
    one: asyncio.Queue[bytes] = asyncio.Queue(8)
    two: asyncio.Queue[bytes] = asyncio.Queue(8)
    return QueueCarrier(one, two), QueueCarrier(two, one)


@asynccontextmanager
async def linked(serve: Serve, options: TunnelOptions | None = None) -> AsyncIterator[Tunnel]:
    """Run a host's tunnel to an agent whose API server is `serve`; yield it when it can open streams."""
    serving: set[asyncio.Task[None]] = set()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await serve(reader, writer)
        finally:
            serving.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    left, right = carrier_pair()
    host = Tunnel(left, options)
    agent = Tunnel(right, options, lambda: asyncio.open_connection("127.0.0.1", port))
    ready = asyncio.Event()
    tasks = [asyncio.ensure_future(host.run(ready.set)), asyncio.ensure_future(agent.run())]
    try:
        await ready.wait()
        yield host
    finally:
        host.close()
        agent.close()
        for task in (*tasks, *serving):
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, ClusterError):
                await task
        await asyncio.gather(*serving, return_exceptions=True)
        server.close()
        await asyncio.sleep(0)  # aborted transports close in the next round of the loop
