"""The newest known state of a member object: the member's cache, or the answer to our own last write.

It lives as long as the controller and sends no request to a member.
"""

from collections.abc import Mapping
from dataclasses import replace

from federation.apimachinery.clock import Clock
from federation.apimachinery.objectshape import to_revision
from federation.apimachinery.resources import Object, Resource
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import (
    ABSENT_OBJECT,
    CLEAR_SIGHT,
    UNKNOWN_OBJECT,
    ObservedObject,
    Sight,
    is_name_collision,
)
from federation.planning.clusters.memberrights import UPDATE_ALL
from federation.runtime.members import Members


class MemberObjectCache:
    """Member objects by cluster, kind, namespace and name."""

    def __init__(self, members: Members, records: MemberRecords, clock: Clock, kept: KeptState) -> None:
        self._members = members
        self._records = records
        self._clock = clock
        self._unseen_since_s: dict[str, dict[Resource, float]] = kept.by_cluster({})

    def observe(
        self, key: MemberKey, annotations: Mapping[str, str] | None = None
    ) -> tuple[ObservedObject, Object | None]:
        """Return the state of a member object, and the object if it exists.

        While the cache is incomplete, only objects that we have just written are known.
        With the `annotations` of its federated object, also detect an object that only shares its name.
        """
        informer = self._members.informer(key.cluster, key.resource)
        is_complete = informer is not None and informer.has_synced
        if informer is not None and is_complete:
            cached, revision = informer.get(key.namespace, key.name), to_revision(informer.resource_version)
        else:
            cached, revision = None, 0
        live = self._records.newest(key, cached, cache_revision=revision)
        if live is None:
            return ABSENT_OBJECT if is_complete else UNKNOWN_OBJECT, None
        metadata = live["metadata"]
        is_terminating = bool(metadata.get("deletionTimestamp")) or self._records.get(key).is_deletion_requested(
            metadata.get("uid", "")
        )
        observed = ObservedObject(exists=True, terminating=is_terminating)
        if annotations is not None and is_name_collision(annotations, live):
            observed = replace(observed, derived_service_mismatch=True)
        return observed, live

    def sight(self, key: MemberKey, *, is_ready: bool) -> Sight:
        """Return what is wrong with the cache of the object's kind, while its cluster is ready."""
        informer = self._members.informer(key.cluster, key.resource)
        if not is_ready or (informer is not None and informer.has_synced):
            self._unseen_since_s.get(key.cluster, {}).pop(key.resource, None)
            return CLEAR_SIGHT if informer is None or informer.server.is_served else Sight(is_served=False)
        now_s = self._clock.monotonic()
        since_s = self._unseen_since_s.setdefault(key.cluster, {}).setdefault(key.resource, now_s)
        if informer is None:
            return Sight(unseen_s=now_s - since_s)
        server = informer.server
        remedy = f"; grant the rights in all members with: {UPDATE_ALL}" if server.is_forbidden else ""
        return Sight(server.is_served, now_s - since_s, server.failure + remedy)

    def is_present(self, key: MemberKey) -> bool | None:
        """Return whether the member object exists and is not being deleted; None while there is no cache."""
        observed, _ = self.observe(key)
        if observed.lookup_failed:
            return None
        return observed.exists and not observed.terminating and not self._records.get(key).is_deleting
