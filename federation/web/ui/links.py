"""One-time links: who has credentials on the command line opens the web UI without typing them.

`POST /ui/links` with credentials returns the path of a link, whose code is the encrypted credentials. Opening it once,
within `LINK_S`, starts a session with the same credentials. Nothing is stored, so an account without rights fills no
store. Each process remembers the links that it redeemed; of several replicas, each redeems a link once.
"""

import hashlib
from collections import OrderedDict, deque

from federation.web.ui.credentials import Credentials, Sealer, Session

LINK_S = 600
"""Time in which a link must be opened."""
_PURPOSE = "link"
_USERS_MAX = 10_000
_USED_MAX = 64
"""Redeemed links that are remembered per user; one who redeems more within `LINK_S` can redeem an older one again."""


class OneTimeLinks:
    """Creates and redeems links."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._used: OrderedDict[str, deque[bytes]] = OrderedDict()
        """Digests of redeemed codes by user, the user of the last one at the end."""

    def create(self, user: str, credentials: Credentials) -> str:
        """Return the code of a new link."""
        return self._sealer.seal(user, credentials, purpose=_PURPOSE)

    def redeem(self, code: str) -> Session | None:
        """Return the session of a link, once; None for a link that is unknown, used or expired."""
        session = self._sealer.open(code, lifetime_s=LINK_S, purpose=_PURPOSE)
        if session is None:
            return None
        # The form key of a session is random, so each link has its own; base64 texts of one link may differ.
        digest = hashlib.sha256(session.form_key.encode()).digest()
        used = self._used.setdefault(session.user, deque(maxlen=_USED_MAX))
        if digest in used:
            return None
        used.append(digest)
        self._used.move_to_end(session.user)
        if len(self._used) > _USERS_MAX:
            self._used.popitem(last=False)
        return session
