"""The state of an informer's server: whether it answers, and whether it serves the resource. No I/O."""

from collections.abc import Callable

from federation.apimachinery.errors import Forbidden, is_kind_missing


class ServerState:
    """The state of one resource at its server, as far as the last answers tell."""

    def __init__(self) -> None:
        self.is_served = True
        """Whether the server knows the resource. One that it does not know may come (back)."""
        self.failure = ""
        """Why the last list or watch failed, "" while they are healthy."""
        self.is_forbidden = False
        """Whether it failed because our account in the server may not read the resource."""
        self._listeners: list[Callable[[], None]] = []

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call the listener when the server no longer knows the resource, and when it knows it again."""
        self._listeners.append(listener)

    def record_answer(self) -> None:
        """Record that a list or watch is healthy."""
        self.failure, self.is_forbidden = "", False
        self._set_served(is_served=True)

    def record_failure(self, failure: Exception) -> None:
        """Record the failure of a list or watch. A server without an answer says nothing about the resource."""
        self.failure, self.is_forbidden = str(failure), isinstance(failure, Forbidden)
        if is_kind_missing(failure):
            self._set_served(is_served=False)

    def _set_served(self, *, is_served: bool) -> None:
        if self.is_served is not is_served:
            self.is_served = is_served
            for listener in self._listeners:
                listener()
