"""Accepts a listener's connections: counts each before its TLS handshake, which has a deadline.

asyncio's own server would count nothing until the handshake is over, and give it a minute.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from federation.apiserver.http.connectionshares import ConnectionShares, Seat

_EXHAUSTED_S = 0.05
"""Pause when the process has no file descriptor or memory left for a connection."""


class Admitted(asyncio.Protocol):
    """The protocol of a connection that has a seat."""

    def abandon(self) -> None:
        """End the seat of a connection that has never been made."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for the beginning and the end of TLS."""

    handshake_s: float
    shutdown_s: float


async def accept(
    listener: socket.socket,
    context: ssl.SSLContext | None,
    deadlines: Deadlines,
    shares: ConnectionShares,
    connect: Callable[[Seat], Admitted],
) -> None:
    """Accept until cancelled. `connect` makes the protocol of a connection, which must end its seat."""
    loop = asyncio.get_running_loop()
    opening: set[asyncio.Task[None]] = set()
    try:
        while True:
            try:
                connection, address = await loop.sock_accept(listener)
            except ConnectionError:
                continue  # the client is gone
            except OSError:
                # Only a closed connection makes room.
                shares.shed()
                await asyncio.sleep(_EXHAUSTED_S)
                continue
            seat = shares.admit(str(address[0]) if address else "", partial(_break, connection))
            if seat is None:
                connection.close()
            else:
                task = loop.create_task(_open(connection, context, deadlines, seat, connect))
                opening.add(task)
                task.add_done_callback(opening.discard)
            # One accepted connection per turn of the loop: requests run in between.
            await asyncio.sleep(0)
    finally:
        for task in opening:
            task.cancel()


async def _open(
    connection: socket.socket,
    context: ssl.SSLContext | None,
    deadlines: Deadlines,
    seat: Seat,
    connect: Callable[[Seat], Admitted],
) -> None:
    tls = {"ssl_handshake_timeout": deadlines.handshake_s, "ssl_shutdown_timeout": deadlines.shutdown_s}
    protocol = connect(seat)
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: protocol, connection, ssl=context, **(tls if context is not None else {})
        )
    except (OSError, asyncio.CancelledError):  # no TLS, or not in time
        protocol.abandon()
        connection.close()


def _break(connection: socket.socket) -> None:
    """End a connection whose transport belongs to the event loop, during its handshake."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
