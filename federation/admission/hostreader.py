"""The host as admission reads it: an embedded API server or another one."""

from dataclasses import dataclass

from federation.admission.federatedobjects import FindResource
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object, Resource, UserInfo
from federation.client.client import Client


@dataclass(frozen=True, slots=True)
class HostReader:
    """Reads the host for admission plugins. It lives as long as they do."""

    client: Client
    find: FindResource
    """Return the resource of an API version and kind that the host serves, or None."""
    clock: Clock
    acts_as_users: bool = True
    """Whether reviews are as any user, and controllers write as one: not on an API server that is not embedded."""

    async def list_objects(self, resource: Resource, namespace: str = "") -> list[Object]:
        """Return the objects of a resource, of all namespaces by default."""
        return (await self.client.list(resource, namespace)).items

    async def read_object(self, resource: Resource, name: str, namespace: str) -> Object | None:
        """Return an object, or None."""
        try:
            return await self.client.get(resource, name, namespace)
        except NotFound:
            return None

    async def review(self, resource: Resource, obj: Object, user: UserInfo) -> None:
        """Raise the ApiError with which the host would refuse the user to write the object."""
        await self.client.review(resource, obj, user=user)
