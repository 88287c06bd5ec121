"""Choose the connections to close when a listener has too many.

A connection needs no credentials, so it is unknown until its client certificate or the token of a request shows who
uses it. Unknown connections are limited, per address and together. Beyond a limit the oldest of them is closed for a
new one: a client with credentials shows them within milliseconds, and a new connection may be an administrator's.
Known ones are limited, too, per user and together, so that no tenant takes the rest, which is the reserve of system
users. A user's further connections stay unknown, and work until there is no room.

What clients have not read yet is limited, too (`unsentbytes.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from federation.apiserver.auth.identity import ANONYMOUS, MASTERS, SERVICE_ACCOUNT_PREFIX, User
from federation.apiserver.http.unsentbytes import UnsentBytes, UnsentLimits

SEAT = "seat"
"""Key in the state of a request's ASGI scope: the `Seat` of its connection."""
SYSTEM = "system:"
_SYSTEM_ACCOUNTS = f"{SERVICE_ACCOUNT_PREFIX}kube-system:"
_HEAVY_BYTES = 16 * 1024
"""Unknown connections that hold less are not closed for their memory: all together hold little."""


def to_owner(user: User) -> str:
    """Return what a user's connections count against: `SYSTEM`, or the user, or the namespace of a ServiceAccount.

    Whoever may create ServiceAccounts in a namespace could otherwise have as many shares as he likes.
    """
    name = user.name
    if name.startswith(SERVICE_ACCOUNT_PREFIX):
        is_system = name.startswith(_SYSTEM_ACCOUNTS)
        owner = name.rpartition(":")[0]
    else:
        is_system = MASTERS in user.groups or name.startswith(SYSTEM)
        owner = f"user:{name}"
    return SYSTEM if is_system else owner


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """Numbers of connections, and bytes."""

    total: int
    unknown: int
    source: int
    """Unknown ones from one address."""
    known: int
    """Known ones that are not of system users."""
    owner: int
    """Known ones of one user."""
    held_bytes: int
    """The bytes of incomplete requests that unknown connections may hold together."""
    unsent: UnsentLimits


def _nothing() -> None:
    """Close a connection that has ended."""


class Seat:
    """One connection's place. Lives as long as the connection; `close` breaks it at once."""

    __slots__ = (
        "_body_bytes",
        "_buffered_bytes",
        "_shares",
        "close",
        "held_bytes",
        "is_open",
        "owner",
        "source",
        "unsent_bytes",
    )

    def __init__(self, shares: "ConnectionShares", source: str, close: Callable[[], None]) -> None:
        self._shares = shares
        self.source = source
        self.close = close
        self.owner = ""
        """"" while unknown."""
        self.held_bytes = 0
        self.unsent_bytes = 0
        """Of responses, while the client reads slower than they are sent."""
        self._body_bytes = self._buffered_bytes = 0
        self.is_open = True

    def recognize(self, user: User) -> None:
        """Count an unknown connection against its user, if his share has room."""
        if not self.owner and user is not ANONYMOUS:
            self._shares.recognize(self, to_owner(user))

    def hold(self, size: int) -> None:
        """Say how many bytes of unfinished requests the connection holds; too many close the oldest that hold much."""
        if not self.owner and size != self.held_bytes:
            self._shares.hold(self, size)

    def owe(self, size: int) -> bool:
        """Count a body that has to be sent, or is (negative); False if the connection is closed."""
        self._body_bytes += size
        self._count_unsent()
        return self.is_open

    def buffer(self, size: int) -> None:
        """Say how many bytes the transport cannot send now."""
        self._buffered_bytes = size
        self._count_unsent()

    def _count_unsent(self) -> None:
        # What the transport has is most often a part of the body.
        size = max(self._body_bytes, self._buffered_bytes)
        if self.is_open and size != self.unsent_bytes:
            self._shares.owe(self, size)

    def leave(self) -> None:
        """End of the connection; later calls do nothing."""
        self._shares.leave(self)
        self.close = _nothing


class ConnectionShares:
    """The connections of one listener. `on_closed` is called for each that is closed for others."""

    def __init__(self, limits: ShareLimits, on_closed: Callable[[], None]) -> None:
        self._limits = limits
        self._on_closed = on_closed
        self._unknown: dict[Seat, None] = {}
        """In the order of their arrival."""
        self._by_source: dict[str, dict[Seat, None]] = {}
        self._by_owner: dict[str, int] = {}
        self._heavy: dict[Seat, None] = {}
        self._held_bytes = 0
        self._unsent = UnsentBytes[Seat](limits.unsent, SYSTEM)
        self._known = 0
        """Those of system users not included."""

    @property
    def total(self) -> int:
        """Connections of all kinds."""
        return len(self._unknown) + self._known + self._by_owner.get(SYSTEM, 0)

    def admit(self, source: str, close: Callable[[], None]) -> Seat | None:
        """Count a new connection from an address, and close an older one for it; None if all are known users'."""
        limits, own = self._limits, self._by_source.get(source)
        if own is not None and len(own) >= limits.source:
            self._end(next(iter(own)))
        elif len(self._unknown) >= limits.unknown or self.total >= limits.total:
            self.shed()
        if self.total >= limits.total:
            self._on_closed()
            return None
        seat = Seat(self, source, close)
        self._unknown[seat] = None
        self._by_source.setdefault(source, {})[seat] = None
        return seat

    def shed(self) -> None:
        """Close the oldest unknown connection."""
        for seat in self._unknown:
            self._end(seat)
            return

    def recognize(self, seat: Seat, owner: str) -> None:
        """Move an unknown seat to its owner, if there is room."""
        if seat not in self._unknown:
            return
        count = self._by_owner.get(owner, 0)
        if owner != SYSTEM:
            if count >= self._limits.owner or self._known >= self._limits.known:
                return
            self._known += 1
        self._unsent.count(_payer(seat), seat, 0)
        self._forget(seat)
        seat.owner = owner
        self._unsent.count(owner, seat, seat.unsent_bytes)
        self._by_owner[owner] = count + 1

    def hold(self, seat: Seat, size: int) -> None:
        """Count the bytes that an unknown seat holds."""
        if seat not in self._unknown:
            return
        self._held_bytes += size - seat.held_bytes
        seat.held_bytes = size
        if size > _HEAVY_BYTES:
            self._heavy[seat] = None
        else:
            self._heavy.pop(seat, None)
        while self._held_bytes > self._limits.held_bytes and self._heavy:
            self._end(next(iter(self._heavy)))

    def owe(self, seat: Seat, size: int) -> None:
        """Set how many bytes a seat has to send; too many close those that have the most."""
        payer = _payer(seat)
        seat.unsent_bytes = size
        self._unsent.count(payer, seat, size)
        while (heaviest := self._unsent.excess(payer)) is not None:
            self._end(heaviest)

    def leave(self, seat: Seat) -> None:
        """Uncount a seat."""
        if not seat.is_open:
            return
        seat.is_open = False
        self._unsent.count(_payer(seat), seat, 0)
        owner = seat.owner
        if not owner:
            self._forget(seat)
            return
        seat.owner = ""
        left = self._by_owner[owner] - 1
        if left:
            self._by_owner[owner] = left
        else:
            del self._by_owner[owner]
        self._known -= owner != SYSTEM

    def _end(self, seat: Seat) -> None:
        self.leave(seat)
        self._on_closed()
        seat.close()

    def _forget(self, seat: Seat) -> None:
        if seat not in self._unknown:
            return
        del self._unknown[seat]
        self._heavy.pop(seat, None)
        self._held_bytes -= seat.held_bytes
        seat.held_bytes = 0
        own = self._by_source[seat.source]
        del own[seat]
        if not own:
            del self._by_source[seat.source]


def _payer(seat: Seat) -> str:
    return seat.owner or f"address:{seat.source}"
