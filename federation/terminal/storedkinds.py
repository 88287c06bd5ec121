"""The version that the host stores of a kind, for patches that a command sends to objects of users.

A command runs once, so it reads the definition of each kind that it patches. Without the right to read definitions it
patches in the version that discovery prefers, as kubectl does. It lives as long as the client of the command.
"""

from federation.api.resources import CORE_GROUP
from federation.apimachinery.errors import Forbidden, NotFound
from federation.apimachinery.resources import CRDS, Resource
from federation.client.client import Request, Transport
from federation.planning.typederivation import version_of_patches


class StoredKinds:
    """Reads the definitions of the host once per kind."""

    def __init__(self, host: Transport) -> None:
        self._host = host
        self._versions: dict[str, str] = {}

    async def stored_in(self, resource: Resource) -> Resource:
        """Return the resource in the version that is stored, if it has a definition."""
        if "." not in resource.group or resource.group == CORE_GROUP:
            return resource
        name = resource.group_resource
        if name not in self._versions:
            try:
                definition = await self._host.request(Request("get", CRDS, name=name))
            except (NotFound, Forbidden):
                definition = {}
            self._versions[name] = version_of_patches(definition)
        version = self._versions[name]
        return resource._replace(version=version) if version else resource
