"""Read the world that decisions depend on: every kind of it in pages, all kinds at the same time, as the user."""

import asyncio

from federation.api.resources import Object, Resource
from federation.base.errors import ConfigurationError, Forbidden
from federation.client.protocol import Client
from federation.scheduling.whatif.world import CONTEXT, FEDERATED, World

_PAGE = 500
"""Objects per page."""


async def read_world(host: Client) -> World:
    """Return the world; ConfigurationError names what the user may not list."""
    kinds = (*CONTEXT, *FEDERATED)
    listed = await asyncio.gather(*(_list(host, resource) for resource in kinds))
    return World(dict(zip(kinds, listed, strict=True)))


async def _list(host: Client, resource: Resource) -> list[Object]:
    found: list[Object] = []
    token = ""
    while True:
        try:
            page = await host.list(resource, limit=_PAGE, continue_token=token)
        except Forbidden as error:
            raise ConfigurationError(f"a plan needs to see all {resource.group_resource}: {error.message}") from error
        found += page.items
        token = page.continue_token
        if not token:
            return found
