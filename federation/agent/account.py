"""A client of the member as the control plane's account, for the repair of drift while the host is away.

The agent may request tokens of that account; it holds one in memory, for an hour at most.
"""

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.client.client import Client
from federation.client.http import HTTPClient
from federation.controllers.cluster import memberaccount

_LIFETIME_S = 3600
_RENEW_AFTER_S = 1800.0


class AccountClient:
    """Clients over `member`, whose user may request tokens of the account; `close` releases the last one."""

    def __init__(self, member: HTTPClient, clock: Clock) -> None:
        self._member = member
        self._clock = clock
        self._client: HTTPClient | None = None
        self._renew_at_s = 0.0

    async def get(self) -> Client:
        """Return a client with a valid token; ApiError or ClusterError."""
        if self._client is None or self._clock.monotonic() >= self._renew_at_s:
            token = await memberaccount.request_token(self._member, names.MEMBER_SERVICE_ACCOUNT, _LIFETIME_S)
            await self.close()
            given = self._member.connection
            self._client = HTTPClient(
                Connection(given.server, ca_data=given.ca_data, insecure=given.insecure, token=token)
            )
            self._renew_at_s = self._clock.monotonic() + _RENEW_AFTER_S
        return self._client

    async def close(self) -> None:
        """Release the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None
