"""One WebSocket connection: uvicorn's protocol with the seat of the connection that it continues."""

from typing import Any

from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto.events import Ping

from federation.apiserver.http.connectionshares import SEAT, Seat


class WebSocketConnection(WSProtocol):
    """A WebSocket connection that counts until it ends."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._seat: Seat = self.app_state[SEAT]

    def connection_lost(self, exc: Exception | None) -> None:
        self._seat.leave()
        super().connection_lost(exc)

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
