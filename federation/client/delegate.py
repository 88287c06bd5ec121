"""Requests of other users that the federation passes on to a member: any method, path and length.

A `Transport` that can do this is a `Delegate`. It sends its own credentials with the headers that it is given, which
name the user to act for. Only transports over HTTP are delegates.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from federation.apimachinery.webhookclient import StreamedResponse
from federation.client.streams import MemberSocket

Headers = Sequence[tuple[str, str]]


@runtime_checkable
class Delegate(Protocol):
    """Passes requests on. Errors are ClusterErrors when there is no answer; the caller limits the time."""

    def exchange(
        self, method: str, target: str, headers: Headers, body: AsyncIterator[bytes] | None
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        """Send a request and yield the response, whatever its status; `target` is an encoded path with its query."""
        ...

    def websocket(
        self, target: str, headers: Headers, subprotocols: Sequence[str]
    ) -> AbstractAsyncContextManager[MemberSocket]:
        """Open a WebSocket connection; an ApiError when the server refuses the handshake."""
        ...
