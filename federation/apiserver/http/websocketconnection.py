"""One WebSocket connection: uvicorn's protocol with the seat of the connection that it continues, and with limits.

The event loop reads up to 256 KiB at once. These may hold 40,000 frames, so frames are handled in small batches, and
other connections are served between them. Nothing is read before all of them are handled.
"""

import asyncio
from collections.abc import Generator
from typing import Any, Final

import wsproto
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto.events import BytesMessage, Event, Ping, TextMessage

from federation.apiserver.http.connectionshares import SEAT, Seat

_BATCH: Final = 128
"""Frames that are handled at once, in about a millisecond."""
_CLOSING_S: Final = 1.0


class WebSocketConnection(WSProtocol):
    """A WebSocket connection that counts until it ends."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._seat: Seat = self.app_state[SEAT]
        self.conn: _BatchedConnection = _BatchedConnection(wsproto.ConnectionType.SERVER)
        self._next_batch: asyncio.Handle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._seat.leave()
        if self._next_batch is not None:
            self._next_batch.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle a batch of frames, and the next ones when other connections had their turn."""
        if self._next_batch is not None:
            return
        super().handle_events()
        if self.conn.has_more and not self.transport.is_closing():
            self.transport.pause_reading()
            self._next_batch = self.loop.call_soon(self._handle_more)

    def _handle_more(self) -> None:
        self._next_batch = None
        self.handle_events()
        if self._next_batch is None and not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    async def receive(self) -> Any:
        """Return the next message; reading goes on once all of those that arrived are handled."""
        message = await super().receive()
        if self._next_batch is not None and not self.transport.is_closing():
            self.transport.pause_reading()
        return message

    def handle_message(self, event: TextMessage | BytesMessage) -> None:
        """Queue it; after one that is too large the client has a second to read why."""
        super().handle_message(event)
        if self.close_sent:
            self.loop.call_later(_CLOSING_S, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._seat.buffer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._seat.buffer(0)

    def handle_ping(self, event: Ping) -> None:
        """Answer, unless the client does not read its answers: they would fill the memory."""
        if self.writable.is_set():
            super().handle_ping(event)
        else:
            self.transport.abort()


class _BatchedConnection(wsproto.WSConnection):
    """Yields the events of one batch of frames at a time."""

    has_more = False
    """Whether the last batch was full, so that there may be further frames."""

    def events(self) -> Generator[Event, None, None]:
        self.has_more = False
        for number, event in enumerate(super().events(), 1):
            yield event
            if number == _BATCH:
                self.has_more = True
                return
