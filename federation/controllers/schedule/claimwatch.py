"""The PersistentVolumeClaims of the members, for objects that have volumes and no place (docs/reference/guard.md).

Members are watched from the first object with volumes that do not move; only names are cached. A member that does not
answer keeps what its cache knew. Of one that was never listed, and of clusters that left, the Leftovers of the host say
whether they had the object. What that means is decided in `planning/guard/earliervolumes.py`.

Decision: docs/decisions/0222-volumes-say-where-a-new-object-goes.md
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, Object, Resource
from federation.controllers.schedule.inputcache import InputCache
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.rules.memberrecord import MemberKey
from federation.planning.division.ordinals import parse_record
from federation.planning.failover.tolerance import fixed_volumes_of
from federation.planning.federatedobject.placements import Name, departed_clusters, effective_placement, placement_of
from federation.planning.guard.earliervolumes import (
    NO_VOLUMES,
    ClaimNames,
    ClusterClaims,
    EarlierVolumes,
    claim_names_of,
    find_volumes,
    has_data,
    ordinals_of,
    stems_of,
)
from federation.planning.guard.record import held_move
from federation.runtime.controller import Key, key_of
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.runtime.transforms import slim_claim
from federation.scheduling.worldobjects import ClaimModes

_STEM = "schedule/stem"
_LISTED_S = 30.0
"""How long a decision waits for the first list of a member that answers; it may have no right to list claims."""


class ClaimWatch:
    """Finds the volumes of earlier objects. It lives as long as the schedule controller.

    `retry` schedules objects again: those that wait for claims that are gone, or for clusters.
    """

    def __init__(self, host: Host, cache: InputCache, retry: Callable[[Iterable[Key]], None]) -> None:
        self._host = host
        self._cache = cache
        self._retry = retry
        self._tombstones = Tombstones(host.client, host.informers)
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._informers: dict[str, Informer] = {}
        self._asked_s: dict[str, float] = {}
        self._waiting: set[Key] = set()
        """Objects without a place whose decision had to look at volumes."""
        self._generation = -1
        self._is_active = False
        self._tombstones.add_handler(self._on_leftover)
        host.members.add_sync_listener(self._on_sync)

    async def wait_synced(self) -> None:
        """Return once the Leftovers are known."""
        await self._tombstones.wait_synced()

    def find(self, key: Name, federated: Mapping[str, Any]) -> EarlierVolumes:
        """Return where volumes of the object's name are; nothing for one with a place, or without such volumes."""
        asked = Key(*key)
        self._waiting.discard(asked)
        if placement_of(federated, names.GLOBAL_SCHEDULER) or not self._has_volumes(asked, federated):
            return NO_VOLUMES
        self._begin()
        claims: dict[str, ClusterClaims] = {}
        unknown, is_awaited = set[str](), False
        wanted = claim_names_of(federated["spec"]["template"], ClaimModes(self._host.objects, asked.namespace))
        snapshot = self._cache.clusters.snapshot()
        for name in sorted({*snapshot.names, *self._host.members.clusters}):
            informer = self._informer(name)
            if informer is not None and informer.has_synced:
                claims[name] = _claims_in(informer, asked.namespace, wanted)
            else:
                unknown.add(name)
                is_awaited |= self._cache.clusters.is_ready(name) and self._is_asked_lately(name)
        found = find_volumes(
            federated,
            claims,
            recorded=(self._recorded(asked, federated, wanted) | self._remembered(asked, federated, wanted))
            - claims.keys(),
            unknown=unknown,
            is_awaited=is_awaited,
        )
        if found.matter:
            self._waiting.add(asked)
        return found

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Watch claims from the first object with volumes on, and forget a deleted object."""
        if new is None:
            self._waiting.discard(key_of(old or {}))
        elif old is None and not self._is_active and self._has_volumes(key_of(new), new):
            self._begin()

    def on_clusters(self) -> None:
        """Watch a cluster that has joined, and retry what waits for one that is back."""
        generation = self._cache.clusters.snapshot().generation
        if self._is_active and generation != self._generation:
            self._generation = generation
            for name in self._host.members.clusters:
                self._informer(name)
            self._retry(tuple(self._waiting))

    def _has_volumes(self, key: Key, federated: Mapping[str, Any]) -> bool:
        template = federated["spec"].get("template") or {}
        return bool(fixed_volumes_of(template, ClaimModes(self._host.objects, key.namespace)))

    def _begin(self) -> None:
        if not self._is_active:
            self._is_active = True
            self.on_clusters()

    def _informer(self, cluster: str) -> Informer | None:
        """Return the informer of a member's claims, None for a cluster that is no member."""
        informer = self._host.members.ensure_selected_informer(
            cluster, PERSISTENT_VOLUME_CLAIMS, "", transform=slim_claim
        )
        if informer is not None and self._informers.get(cluster) is not informer:
            self._informers[cluster] = informer
            self._asked_s[cluster] = self._host.presence.present_s
            informer.add_index(_STEM, stems_of)
            informer.add_handler(self._on_claim)
        return informer

    def _is_asked_lately(self, cluster: str) -> bool:
        asked_s = self._asked_s.get(cluster)
        return asked_s is None or self._host.presence.present_s - asked_s < _LISTED_S

    def _recorded(self, key: Key, federated: Mapping[str, Any], wanted: ClaimNames) -> set[str]:
        """Return the clusters that had the object, or a claim of it, by the Leftovers; not members by another name."""
        type_ = self._host.objects.type_of(federated)
        members = {str((each.get("status") or {}).get("clusterUid") or ""): each for each in self._clusters.list()}
        found = set()
        keys = [MemberKey("", PERSISTENT_VOLUME_CLAIMS, key.namespace, name) for name in wanted.plain]
        if type_ is not None:
            name = str(federated["spec"]["template"]["metadata"]["name"])
            keys.append(MemberKey("", type_.resource, key.namespace, name))
        for each in keys:
            for record in self._tombstones.of_object(each):
                member = members.get(record.cluster_uid) if record.cluster_uid else None
                found.add(record.cluster if member is None else str(member["metadata"]["name"]))
        return found

    def _remembered(self, key: Key, federated: Mapping[str, Any], wanted: ClaimNames) -> set[str]:
        """Return the clusters that objects of the host remember: in a hold, as ordinals, as places of claims."""
        objects, held = self._host.objects, held_move(federated)
        found = set(parse_record((federated["metadata"].get("annotations") or {}).get(names.ORDINAL_STARTS)))
        found |= held.clusters if held is not None else set()
        type_ = objects.types.for_group_kind("", PERSISTENT_VOLUME_CLAIMS.kind)
        keys = [] if type_ is None else [objects.key_for(type_, key.namespace, name) for name in wanted.plain]
        for claim in filter(None, map(objects.get, keys)):  # a claim with a policy of its own goes everywhere
            found |= effective_placement(claim) - set(placement_of(claim, names.GLOBAL_SCHEDULER))
            found |= departed_clusters(claim)
        return found

    def _on_claim(self, old: Object | None, new: Object | None) -> None:
        if old is not None and has_data(old) and (new is None or not has_data(new)):
            namespace = old["metadata"]["namespace"]
            self._retry([key for key in self._waiting if key.namespace == namespace])

    def _on_sync(self, cluster: str, resource: Resource) -> None:  # noqa: ARG002  # a listener's signature
        if resource == PERSISTENT_VOLUME_CLAIMS:
            self._retry(tuple(self._waiting))

    def _on_leftover(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if new is None:
            self._retry(tuple(self._waiting))


def _claims_in(informer: Informer, namespace: str, wanted: ClaimNames) -> ClusterClaims:
    """Return the claims of a member with these names that have data."""
    found: set[int] = set()
    for stem in wanted.stems:
        found |= ordinals_of(informer.by_index(_STEM, f"{namespace}/{stem}"))
    plain = map(partial(informer.get, namespace), wanted.plain)
    return ClusterClaims(found, any(claim is not None and has_data(claim) for claim in plain))
