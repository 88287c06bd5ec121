"""Asks the host which fields of a source nobody wrote, before a write would change them in a member.

Caches have no owners of fields, so the source is read from the API server: for the few writes over values that differ
from Kubernetes' defaults.
"""

from collections.abc import Sequence

from federation.apimachinery.errors import ApiError, ClusterError
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.delivery.rules.memberrecord import MemberKey
from federation.planning.drift.fields import Field
from federation.planning.drift.unwritten import find_unwritten


class UnwrittenFields:
    """Reads sources with a client of the host."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def find(self, key: MemberKey, wanted: Object, fields: Sequence[Field]) -> Sequence[Field]:
        """Return those of the fields that nobody wrote in the source; none when the host does not answer."""
        try:
            source = await self._client.get(key.resource, key.name, key.namespace)
        except (ApiError, ClusterError):
            return ()
        return find_unwritten(wanted, source, fields)
