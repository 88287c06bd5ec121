"""Flow control of one stream, as arithmetic: how much may be sent, and how much may arrive.

Each side starts with the permission to send `window` bytes and gets more as the other side processes them. What a
stream can hold in memory is therefore bounded, and a slow reader stops only its own stream.

Decision: docs/decisions/0174-where-a-library-would-lose-something.md
"""

from federation.tunnel.frames import TunnelError


class Flow:
    """The windows of one side of a stream, in bytes."""

    __slots__ = ("_expected", "_processed", "_window", "sendable")

    def __init__(self, window: int) -> None:
        self._window = window
        self.sendable = window
        """Bytes that may be sent now."""
        self._expected = window
        """Bytes that the other side may still send."""
        self._processed = 0
        """Processed bytes that the other side does not know of yet."""

    def send(self, count: int) -> None:
        """Record bytes that are sent."""
        assert count <= self.sendable, "more was sent than the window permits"
        self.sendable -= count

    def permit(self, count: int) -> None:
        """Record the permission to send more; TunnelError if the sum exceeds the window."""
        if count < 1 or self.sendable + count > self._window:
            raise TunnelError(f"a credit of {count} bytes; at most {self._window - self.sendable} are outstanding")
        self.sendable += count

    def receive(self, count: int) -> None:
        """Record bytes that arrived; TunnelError if the other side had no permission to send them."""
        if count > self._expected:
            raise TunnelError(f"{count} bytes beyond the window of a stream; {self._expected} were permitted")
        self._expected -= count

    def process(self, count: int) -> int:
        """Record bytes that a reader took, and return the credit to send now; 0 until it is half a window.

        Small credits are collected, because each costs a frame.
        """
        self._processed += count
        if self._processed * 2 < self._window:
            return 0
        given, self._processed = self._processed, 0
        self._expected += given
        return given
