"""The preview of a join: what the member has already, and what the join takes over, leaves and would remove of it.

The host and the member are only read. `delivery/rules/joinpreview.py` decides about each object.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, LEFTOVERS
from federation.apimachinery.amounts import first_of, to_count
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError, Forbidden, NotFound
from federation.apimachinery.resources import NAMESPACES, Object
from federation.cli.drainitems import read_types, type_of
from federation.client.client import Client
from federation.client.identity import cluster_uid
from federation.client.servedversion import find_served_version
from federation.delivery.rules.joinpreview import Fate, Foreseen, foresee
from federation.planning.leftovers.record import Record, from_manifest

_PAGE = 500
_SHOWN_MAX = 20
"""Lines per fate; the rest is counted."""
_UNREAD_MAX = 5
"""Kinds that are named; the rest is counted."""
_HEADS = {
    Fate.TAKES_OVER: "takes over",
    Fate.LEAVES: "leaves, and lists in fedctl leftovers or fedctl why",
    Fate.REMOVES: "would remove",
}
_IN_EVERY_CLUSTER = frozenset(("default",))
"""Namespaces that a cluster has from its beginning: that one is taken over is no news."""
_Key = tuple[str, str, str]
"""The name of a type, a namespace and a name."""


@dataclass(frozen=True, slots=True)
class Item:
    """One object of the member, and its fate."""

    name: str
    foreseen: Foreseen


async def foresee_join(host: Client, member: Client, cluster: str) -> tuple[list[Item], list[str]]:
    """Return what a join of the member as `cluster` does with its objects, and the kinds that may not be listed.

    ConfigurationError if the member does not answer.
    """
    types = await read_types(host)
    federated, records = await _read_federated(host, types), await _read_records(host, member, cluster)
    items, unread = [], []
    for type_ in types:
        try:
            async for obj in _listed(member, type_):
                metadata = obj["metadata"]
                where = metadata.get("namespace", ""), str(metadata["name"])
                if type_.resource == NAMESPACES and where[1] in _IN_EVERY_CLUSTER:
                    continue
                kind = (type_.resource.group, type_.resource.kind)
                found = foresee(obj, federated.get((type_.name, *where)), records.get((*kind, *where)), cluster)
                if found is not None:
                    items.append(Item(f"{type_.resource.kind} {'/'.join(filter(None, where))}", found))
        except NotFound:
            continue  # the member does not serve the kind
        except Forbidden:
            unread.append(type_.resource.group_resource)
        except (ApiError, ClusterError) as error:
            raise ConfigurationError(f"the {type_.resource.plural} of the member cannot be listed: {error}") from error
    return sorted(items, key=lambda item: item.name), unread


def describe(cluster: str, items: Sequence[Item], unread: Sequence[str]) -> Iterator[str]:
    """Yield the lines about what the join does; none if the member has nothing that concerns the federation."""
    if unread:
        yield f"the credentials may not list {first_of(unread, _UNREAD_MAX)}: what the join does with them is not shown"
    for fate in Fate:
        found = [item for item in items if item.foreseen.fate is fate]
        if not found:
            continue
        yield f'a join of "{cluster}" {_HEADS[fate]}:'
        for item in found[:_SHOWN_MAX]:
            yield f"  {item.name}: {item.foreseen.why}"
        if (more := len(found) - _SHOWN_MAX) > 0:
            yield f"  and {to_count(more, 'more object')}"


async def _read_federated(host: Client, types: Sequence[FederatedType]) -> Mapping[_Key, Object]:
    found: dict[_Key, Object] = {}
    for resource in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS):
        async for federated in host.list_all(resource, limit=_PAGE):
            type_ = type_of(federated, types)
            if type_ is not None:
                name = str(federated["spec"]["template"]["metadata"]["name"])
                found[type_.name, federated["metadata"].get("namespace", ""), name] = federated
    return found


async def _read_records(host: Client, member: Client, cluster: str) -> Mapping[tuple[str, ...], Record]:
    """Return the Leftovers about this member, by its uid or, of those without one, by its name."""
    uid = await cluster_uid(member.transport)
    found: dict[tuple[str, ...], Record] = {}
    async for leftover in host.list_all(LEFTOVERS, limit=_PAGE):
        try:
            record = from_manifest(leftover)
        except (ValueError, KeyError, TypeError):
            continue  # nothing acts on a malformed one
        is_about_member = record.cluster_uid == uid if record.cluster_uid and uid else record.cluster == cluster
        if is_about_member:
            found[record.resource.group, record.resource.kind, record.namespace, record.name] = record
    return found


async def _listed(member: Client, type_: FederatedType) -> AsyncIterator[Object]:
    """Yield the member's objects of a type, in a version that it serves."""
    try:
        async for obj in member.list_all(type_.resource, limit=_PAGE):
            yield obj
    except NotFound:
        served = await find_served_version(member, type_.resource)
        if served is None:
            raise
        async for obj in member.list_all(served, limit=_PAGE):
            yield obj
