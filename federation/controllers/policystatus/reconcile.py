"""Write the counts of one policy when they differ from its status."""

import contextlib
from collections.abc import Awaitable, Callable

from federation.api import names
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.runtime.controller import DONE, Result
from federation.scheduling.policyusage import PolicyKey, PolicyUsage


class Reconciler:
    """Updates the status of one policy per call. `match_again` brings the usage up to date with changed policies."""

    def __init__(
        self,
        client: Client,
        usage: PolicyUsage,
        *,
        policy: Callable[[PolicyKey], Object | None],
        match_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._client = client
        self._usage = usage
        self._policy = policy
        self._match_again = match_again

    async def reconcile(self, key: PolicyKey) -> Result:
        """Write `refCount` and `typedRefCount` unless the policy has them already."""
        await self._match_again()
        policy = self._policy(key)
        if policy is None or policy["metadata"].get("deletionTimestamp"):
            return DONE
        status = self._usage.status_of(key)
        present = policy.get("status") or {}
        if all(present.get(field) == value for field, value in status.items()):
            return DONE
        with contextlib.suppress(NotFound):
            await self._client.patch(
                key.resource,
                key.name,
                {"status": status},
                namespace=key.namespace,
                subresource="status",
                field_manager=names.FIELD_MANAGER,
            )
        return DONE
