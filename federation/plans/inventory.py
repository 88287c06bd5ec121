"""Read the objects that scheduling decisions depend on: all kinds concurrently, in pages, with the client's rights."""

import asyncio
from collections.abc import Collection

from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_CLUSTERS
from federation.apimachinery.errors import ConfigurationError, Forbidden, NotFound
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.client.client import Client
from federation.plans.edits import get_or_none
from federation.scheduling.chain import Chain
from federation.scheduling.whatif.holding import FORESEEN, HOLDING
from federation.scheduling.whatif.state import CONTEXT, FEDERATED, ObjectSet

_PAGE = 500
"""Objects per page."""


class PlanForbidden(ConfigurationError):
    """The user may not list a kind that plans depend on."""


def kinds_of(chain: Chain) -> tuple[Resource, ...]:
    """Return the kinds that decisions depend on, besides federated objects."""
    return (*CONTEXT, *chain.kinds, *HOLDING, *FORESEEN)


async def read_inventory(host: Client, chain: Chain, namespaces: Collection[str] | None = None) -> ObjectSet:
    """Return the objects; PlanForbidden names a kind that the user may not list.

    With `namespaces`, only what changes in these namespaces can affect or depend on.
    """
    kinds = (*CONTEXT, *chain.kinds, *FEDERATED)
    lists = [_list_served(host, each, namespaces) for each in kinds]
    further = (*HOLDING, *FORESEEN)
    optional = [_list_or_none(host, each, namespaces) for each in further]
    listed, held = await asyncio.gather(asyncio.gather(*lists), asyncio.gather(*optional))
    found = {resource: objects for resource, objects in zip(further, held, strict=True) if objects is not None}
    unread = [resource for resource in HOLDING if resource not in found]
    return ObjectSet({**dict(zip(kinds, listed, strict=True)), **found}, unread)


async def read_if_allowed(host: Client, chain: Chain) -> ObjectSet | PlanForbidden:
    """Return the objects, or the refusal for a user who may not list all of them."""
    try:
        return await read_inventory(host, chain)
    except PlanForbidden as error:
        return error


async def _list_or_none(host: Client, resource: Resource, namespaces: Collection[str] | None) -> list[Object] | None:
    """Return the objects of a kind that the plan can do without; None if they cannot be listed."""
    try:
        return await _list_for(host, resource, namespaces)
    except (PlanForbidden, NotFound):
        return None  # a role from before the kind, or a host that does not serve it yet


async def _list_served(host: Client, resource: Resource, namespaces: Collection[str] | None) -> list[Object]:
    """Return the objects of a kind; none if the host does not serve it, because its version is older."""
    try:
        return await _list_for(host, resource, namespaces)
    except NotFound:
        if resource == FEDERATED_CLUSTERS:
            raise  # not a host of a federation
        return []


async def _list_for(host: Client, resource: Resource, namespaces: Collection[str] | None) -> list[Object]:
    if namespaces is None:
        return await _list(host, resource)
    if resource == NAMESPACES:
        found = await asyncio.gather(*(get_or_none(host, resource, "", name) for name in namespaces))
        return [namespace for namespace in found if namespace is not None]
    if resource == CLUSTER_FEDERATED_OBJECTS:
        return []
    if not resource.namespaced:
        return await _list(host, resource)
    listed = await asyncio.gather(*(_list(host, resource, namespace) for namespace in namespaces))
    return [obj for part in listed for obj in part]


async def _list(host: Client, resource: Resource, namespace: str = "") -> list[Object]:
    found: list[Object] = []
    token = ""
    while True:
        try:
            page = await host.list(resource, namespace, limit=_PAGE, continue_token=token)
        except Forbidden as error:
            raise PlanForbidden(
                f"a plan has to list all {resource.group_resource}, which is forbidden: {error.message}"
            ) from error
        found += page.items
        token = page.continue_token
        if not token:
            return found
