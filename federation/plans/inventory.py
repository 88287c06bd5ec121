"""Read the objects that scheduling decisions depend on: all kinds concurrently, in pages, with the user's rights."""

import asyncio

from federation.apimachinery.errors import ConfigurationError, Forbidden
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.scheduling.whatif.state import CONTEXT, FEDERATED, ObjectSet

_PAGE = 500
"""Objects per page."""


class PlanForbidden(ConfigurationError):
    """The user may not list a kind that plans depend on."""


async def read_inventory(host: Client) -> ObjectSet:
    """Return the objects; PlanForbidden names a kind that the user may not list."""
    kinds = (*CONTEXT, *FEDERATED)
    listed = await asyncio.gather(*(_list(host, resource) for resource in kinds))
    return ObjectSet(dict(zip(kinds, listed, strict=True)))


async def _list(host: Client, resource: Resource) -> list[Object]:
    found: list[Object] = []
    token = ""
    while True:
        try:
            page = await host.list(resource, limit=_PAGE, continue_token=token)
        except Forbidden as error:
            raise PlanForbidden(
                f"a plan has to list all {resource.group_resource}, which is forbidden: {error.message}"
            ) from error
        found += page.items
        token = page.continue_token
        if not token:
            return found
