"""Objects in a member that a drain moves or leaves there, for `fedctl drain` and `fedctl unjoin`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from federation.api import names
from federation.api.federatedtype import FederatedType, from_config
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS
from federation.apimachinery import conditions
from federation.apimachinery.amounts import to_count
from federation.apimachinery.resources import Object, group_kind_of
from federation.client.client import Client
from federation.planning.failover.evictionrecord import StayReason, eviction_record
from federation.planning.federatedobject.placements import current_clusters, departed_clusters, placement_of
from federation.planning.followers.leaderplan import is_leader

BY_DESIGN = frozenset((StayReason.KEPT, StayReason.NEVER, StayReason.STATE))
"""Reasons for which objects stay by design; a drain that ends with them is complete if they have no pods."""


@dataclass(frozen=True, slots=True)
class Item:
    """An object that is in the cluster: its name, what it has there, and why it stays, "" while it may leave.

    `is_expected` is False if the cluster is not drained as long as the object is there. `has_pods` is True for a
    workload that is not scaled to zero.
    """

    name: str
    replicas: int
    stay: str = ""
    is_expected: bool = True
    has_pods: bool = False

    def to_text(self, text: str) -> str:
        """Return a line about the object; one without replicas, such as a Service, is named alone."""
        return f"{self.name}: {to_count(self.replicas, 'replica')} {text}" if self.replicas else f"{self.name}: {text}"


async def items_in(host: Client, cluster: str, types: Sequence[FederatedType] | None = None) -> list[Item]:
    """Return what the scheduler has placed in the cluster, and what is still being removed there."""
    types, found = await read_types(host) if types is None else types, []
    for federated in await _federated(host):
        type_ = type_of(federated, types)
        is_placed = cluster in placement_of(federated, names.GLOBAL_SCHEDULER)
        if type_ is not None and (is_placed or cluster in departed_clusters(federated)):
            found.append(item_of(federated, type_, cluster))
    return found


def item_of(federated: Object, type_: FederatedType, cluster: str) -> Item:
    """Return what the object has in the cluster."""
    template = federated["spec"]["template"]
    where = "/".join(filter(None, (federated["metadata"].get("namespace"), template["metadata"]["name"])))
    replicas = current_clusters(federated, type_).get(cluster, 0)
    if replicas is None:
        replicas = type_.replicas(template) or 0
    name, stay = f"{template['kind']} {where}", eviction_record(federated).stays.get(cluster)
    has_pods = is_leader(template, type_) and (not type_.paths.replicas_spec or replicas > 0)
    if stay is not None:
        is_expected = stay.reason in BY_DESIGN and not has_pods
        return Item(name, replicas, stay.message, is_expected=is_expected, has_pods=has_pods)
    scheduled = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
    if scheduled.get("status") == "False" and cluster in placement_of(federated, names.GLOBAL_SCHEDULER):
        # Without a decision it keeps its placement, whatever happens to the cluster.
        why = str(scheduled.get("message") or scheduled.get("reason"))
        return Item(name, replicas, why, is_expected=False, has_pods=has_pods)
    return Item(name, replicas, has_pods=has_pods)


async def _federated(host: Client) -> list[Object]:
    return [each for kind in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS) for each in (await host.list(kind)).items]


async def read_types(host: Client) -> list[FederatedType]:
    """Return the types whose objects are federated."""
    return list(map(from_config, (await host.list(FEDERATED_TYPE_CONFIGS)).items))


def type_of(federated: Object, types: Iterable[FederatedType]) -> FederatedType | None:
    """Return the type of a federated object's template, None without one."""
    kind = group_kind_of(federated["spec"]["template"])
    return next((type_ for type_ in types if type_.resource.group_kind == kind), None)
