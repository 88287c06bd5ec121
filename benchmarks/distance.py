"""TCP proxies that delay what passes through them, for members that are far away.

A process of its own, so that waiting costs neither the load generator nor the members their event loop. A line of JSON
gives the ports; then `ready`. Connecting to a proxy is not delayed: a connection costs one round trip less than over
the same distance.

    python benchmarks/distance.py --delay-ms 10 127.0.0.1:6443 127.0.0.1:6444      20 ms there and back
"""

import argparse
import asyncio
import json
from collections import deque
from collections.abc import Sequence
from typing import cast

import uvloop


class Delayed(asyncio.Protocol):
    """One end of a proxied connection: what it receives, the other end sends `delay_s` later, in the same order."""

    def __init__(self, delay_s: float, target: tuple[str, int] | None) -> None:
        self._delay_s = delay_s
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, bytes]] = deque()
        """Pieces with the time at which each is sent; an empty one is the end."""
        self._timer: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.other: Delayed | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by its type
        if self._target is not None:
            self._connecting = self._loop.create_task(self._connect(*self._target))

    def data_received(self, data: bytes) -> None:
        self._waiting.append((self._loop.time() + self._delay_s, data))
        self._send_later()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        self.data_received(b"")

    async def _connect(self, host: str, port: int) -> None:
        try:
            _, other = await self._loop.create_connection(lambda: Delayed(self._delay_s, None), host, port)
        except OSError:
            assert self.transport is not None
            self.transport.close()
            return
        self.other, other.other = other, self
        self._send_later()

    def _send_later(self) -> None:
        if self._timer is None and self._waiting and self.other is not None:
            self._timer = self._loop.call_at(self._waiting[0][0], self._send)

    def _send(self) -> None:
        self._timer, now_s = None, self._loop.time()
        to = self.other.transport if self.other is not None else None
        while self._waiting and self._waiting[0][0] <= now_s:
            data = self._waiting.popleft()[1]
            if to is None or to.is_closing():
                continue
            if data:
                to.write(data)
            else:
                to.close()
        self._send_later()


async def serve(targets: Sequence[str], delay_s: float) -> None:
    """Serve a proxy for each HOST:PORT until cancelled."""
    loop, ports = asyncio.get_running_loop(), []
    for target in targets:
        host, _, port = target.rpartition(":")
        server = await loop.create_server(
            lambda to=(host, int(port)): Delayed(delay_s, to),  # type: ignore[misc]
            "127.0.0.1",
            0,
        )
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps({"ports": ports}), flush=True)
    print("ready", flush=True)
    await loop.create_future()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", metavar="HOST:PORT")
    parser.add_argument("--delay-ms", type=float, default=10, help="in each direction")
    options = parser.parse_args()
    uvloop.run(serve(options.targets, options.delay_ms / 1000))


if __name__ == "__main__":
    main()
