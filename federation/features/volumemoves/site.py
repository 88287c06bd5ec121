"""One end of a move: a member's namespace, and what the move makes, reads and removes there.

Every object that it makes has the mark of its move, and it changes and removes only those; so a repeated step after a
crash finds what the first one made. It lives for one reconcile.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.errors import AlreadyExists, InvalidInput, NotFound
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Object, Resource
from federation.client.client import Client
from federation.features.volumemoves.rules.objects import is_of

_PAGE = 500


class Site:
    """A namespace in a member, for one move."""

    def __init__(self, client: Client, cluster: str, namespace: str, move: str) -> None:
        self._client = client
        self.cluster = cluster
        self.namespace = namespace
        self._move = move

    async def get(self, resource: Resource, name: str) -> Object | None:
        """Return an object, None without it."""
        try:
            return await self._client.get(resource, name, self._scope(resource))
        except NotFound:
            return None

    async def claims(self) -> list[Object]:
        """Return the claims of the namespace."""
        found = self._client.list_all(PERSISTENT_VOLUME_CLAIMS, self.namespace, limit=_PAGE)
        return [claim async for claim in found]

    async def users(self, claims: Mapping[str, str]) -> list[str]:
        """Return the pods that have one of the claims."""
        pods = self._client.list_all(PODS, self.namespace, limit=_PAGE)
        return sorted([pod["metadata"]["name"] async for pod in pods if _claims_of(pod) & claims.keys()])

    async def ensure(self, resource: Resource, body: Object) -> Object:
        """Create the object, or return it if this move has made it; InvalidInput if another one has the name."""
        try:
            return await self._client.create(resource, body)
        except AlreadyExists:
            found = await self.get(resource, body["metadata"]["name"])
        if found is None or not is_of(found, self._move):
            raise InvalidInput(
                f"{self.cluster} has a {resource.kind} {body['metadata']['name']} that this move did not make"
            )
        return found

    async def remove(self, resource: Resource, name: str, *, uid: str = "") -> bool:
        """Delete an object that this move made, or the one with the uid; return whether none is left."""
        found = await self.get(resource, name)
        if found is None or not (found["metadata"]["uid"] == uid if uid else is_of(found, self._move)):
            return True
        if not found["metadata"].get("deletionTimestamp"):
            client, known = self._client, found["metadata"]["uid"]
            await client.delete(resource, name, self._scope(resource), uid=known)
        return False

    def _scope(self, resource: Resource) -> str:
        return self.namespace if resource.namespaced else ""


def _claims_of(pod: Mapping[str, Any]) -> set[str]:
    volumes = pod["spec"].get("volumes") or ()
    return {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}
