"""One-time links: who has credentials on the command line opens the web UI without typing them.

`POST /ui/links` with credentials returns the path of a link. Opening it once, within `LINK_S`, starts a session with
the same credentials. A Secret in the system namespace holds the encrypted credentials under a hash of the link's code,
so any replica can redeem it; deleting that Secret, which succeeds only once, redeems it.
"""

import base64
import hashlib
import secrets

from federation.api import names
from federation.apimachinery.clock import Clock, parse_rfc3339
from federation.apimachinery.errors import Conflict, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.client.client import Client
from federation.web.ui.credentials import Credentials, Sealer, Session

LINK_S = 600
"""Time in which a link must be opened."""
_LINKS_MAX = 500
"""Links that are read at once to remove the expired ones."""
_KEY = "session"


class OneTimeLinks:
    """Creates and redeems links with the federation's own rights."""

    def __init__(self, client: Client, sealer: Sealer, clock: Clock) -> None:
        self._client = client
        self._sealer = sealer
        self._clock = clock

    async def create(self, user: str, credentials: Credentials) -> str:
        """Return the code of a new link; expired links are removed."""
        await self._remove_expired()
        code = secrets.token_urlsafe(24)
        await self._client.create(
            SECRETS,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": _name(code),
                    "namespace": names.SYSTEM_NAMESPACE,
                    "labels": {names.LOGIN_LINK_LABEL: "true"},
                },
                "type": "Opaque",
                "stringData": {_KEY: self._sealer.seal(user, credentials)},
            },
        )
        return code

    async def redeem(self, code: str) -> Session | None:
        """Return the session of a link, once; None for a link that is unknown, used or expired."""
        try:
            secret = await self._client.get(SECRETS, _name(code), names.SYSTEM_NAMESPACE)
            metadata = secret["metadata"]
            if names.LOGIN_LINK_LABEL not in (metadata.get("labels") or {}):
                return None
            await self._client.delete(SECRETS, metadata["name"], names.SYSTEM_NAMESPACE, uid=metadata["uid"])
        except (NotFound, Conflict):
            return None
        return None if self._is_expired(secret) else self._sealer.open(_sealed(secret), lifetime_s=LINK_S)

    async def _remove_expired(self) -> None:
        page = await self._client.list(
            SECRETS, names.SYSTEM_NAMESPACE, label_selector=names.LOGIN_LINK_LABEL, limit=_LINKS_MAX
        )
        for secret in filter(self._is_expired, page.items):
            try:
                await self._client.delete(SECRETS, secret["metadata"]["name"], names.SYSTEM_NAMESPACE)
            except NotFound:
                continue  # redeemed or removed in the meantime

    def _is_expired(self, secret: Object) -> bool:
        created = parse_rfc3339(secret["metadata"].get("creationTimestamp"))
        return created is None or (self._clock.now() - created).total_seconds() > LINK_S


def _name(code: str) -> str:
    return f"ui-link-{hashlib.sha256(code.encode()).hexdigest()[:40]}"


def _sealed(secret: Object) -> str:
    return base64.b64decode((secret.get("data") or {}).get(_KEY, "")).decode()
