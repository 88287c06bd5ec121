"""TLS sessions that later connections to the same server resume: two thirds of the CPU of a handshake are saved.

A member has a connection for each watch. Only a server that has shown its certificate to this context gives a session
that it accepts, and a session is kept by the name that was verified. A context with a client certificate keeps none
(`connection.py`). A server that does not know a session makes a whole handshake; after one that fails, the next
connection does without.

Decision: docs/decisions/0199-tls-sessions-of-members-are-resumed.md
"""

import ssl
from typing import Self

_SERVERS_MAX = 1_000
"""Names of servers with a session; more than that discards all."""


class ResumingContext(ssl.SSLContext):
    """The context of a client. `remember` keeps a session; each new connection tries the one of its server."""

    _sessions: dict[str, ssl.SSLSession]

    def __new__(cls) -> Self:
        """Return a context that verifies certificates and names. It has no certificate authorities yet."""
        context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        context._sessions = {}
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # the signature of ssl
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As in `ssl`, with the server's session if there is one."""
        if session is None:
            session = self._sessions.get(_text(server_hostname))
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def remember(self, connection: ssl.SSLObject) -> None:
        """Keep the session of a connection that has received its first response: servers send tickets before that."""
        session = connection.session
        if session is None or not session.has_ticket:
            return
        if len(self._sessions) >= _SERVERS_MAX:
            self._sessions.clear()
        self._sessions[_text(connection.server_hostname)] = session

    def forget(self, server: str) -> None:
        """Discard the session of a server after a connection that failed."""
        self._sessions.pop(server, None)


def _text(name: str | bytes | None) -> str:
    return name.decode("ascii") if isinstance(name, bytes) else name or ""
