"""Renew the token of our account in a member before it expires, and publish which account is in use.

A third of a token's life after its issue the account requests the next one for itself, and the Secret on the host gets
it; the change of the Secret replaces the connection. Tokens without an expiry and given credentials are left alone.
"""

import base64
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import ApiError, ClusterError, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.client.accounttoken import AccountToken, parse_account_token
from federation.client.client import Client, PatchType
from federation.client.pool import ClusterPool
from federation.controllers.cluster import memberaccount
from federation.controllers.cluster.names import EVENT_TOKEN_RENEWAL_FAILED
from federation.controllers.cluster.statuswriter import Publisher
from federation.runtime.controller import DONE, Result
from federation.runtime.events import WARNING, Recorder

TOKEN_LIFETIME_S_MIN = 600
"""The shortest lifetime that Kubernetes accepts in a TokenRequest."""
_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """Limits of the tokens that are requested from members."""

    lifetime_s: int = memberaccount.TOKEN_LIFETIME_S
    """Requested lifetime. A control plane that is down for two thirds of it loses its members."""


class TokenRenewal:
    """Renews the tokens of joined members."""

    def __init__(
        self,
        client: Client,
        publisher: Publisher,
        pool: ClusterPool,
        recorder: Recorder,
        clock: Clock,
        options: TokenOptions,
    ) -> None:
        self._client = client
        self._publisher = publisher
        self._pool = pool
        self._recorder = recorder
        self._clock = clock
        self._options = options

    @property
    def lifetime_s(self) -> int:
        """The requested lifetime of tokens."""
        return self._options.lifetime_s

    async def renew_if_due(self, name: str, cluster: Object) -> Result:
        """Publish the account in use, renew its token if that is due, and return when to look again."""
        token = self._token(name, cluster)
        await self._publisher.publish(name, [], {"credential": _to_status(token)})
        if token is None or token.renewal is None:
            return DONE
        wait_s = (token.renewal - self._clock.now()).total_seconds()
        if wait_s > 0:
            return Result(requeue_after_s=wait_s)
        try:
            renewed = await memberaccount.request_token(
                self._pool.client(name), token.account, self._options.lifetime_s
            )
        except (ApiError, ClusterError, memberaccount.NotYetError) as error:
            assert token.expires is not None
            text = f"the member issues no new token for {token.account}, the present one expires at"
            self._recorder.event(
                cluster, WARNING, EVENT_TOKEN_RENEWAL_FAILED, f"{text} {to_rfc3339(token.expires)}: {error}"
            )
            return Result(requeue_after_s=_RETRY_S)
        await patch_secret(self._client, cluster, {names.SECRET_SERVICE_ACCOUNT_TOKEN: renewed})
        return DONE  # the change of the Secret leads to the next reconcile

    def credential(self, name: str, cluster: Object) -> dict[str, Any]:
        """Return the status field about the account in use, {} without one."""
        status = _to_status(self._token(name, cluster))
        return {} if status is None else {"credential": status}

    def _token(self, name: str, cluster: Object) -> AccountToken | None:
        connection = self._pool.connection(name)
        uses_account = bool((cluster.get("spec") or {}).get("useServiceAccount"))
        return parse_account_token(connection.token) if connection is not None and uses_account else None


async def patch_secret(host: Client, cluster: Object, values: dict[str, str | None]) -> None:
    """Set or remove (None) texts in the Secret of a FederatedCluster; a missing Secret stays missing."""
    data = {key: None if text is None else base64.b64encode(text.encode()).decode() for key, text in values.items()}
    try:
        await host.patch(
            SECRETS,
            cluster["spec"]["secretRef"]["name"],
            {"data": data},
            patch_type=PatchType.MERGE,
            namespace=names.SYSTEM_NAMESPACE,
            field_manager=names.FIELD_MANAGER,
        )
    except NotFound:
        return


def _to_status(token: AccountToken | None) -> dict[str, Any] | None:
    if token is None:
        return None
    expires = {"expires": to_rfc3339(token.expires)} if token.expires is not None else {}
    return {"serviceAccount": token.account, **expires}
