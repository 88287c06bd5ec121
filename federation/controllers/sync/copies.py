"""The newest known state of a copy in a member: what the member's cache has, or what a write of ours was answered.

It lives as long as the controller and asks no member.
"""

from federation.api.resources import Object
from federation.dispatch.ledger import Ledger, MemberKey
from federation.dispatch.plan import ABSENT, UNKNOWN, ObjectFacts
from federation.runtime.members import Members


class Copies:
    """Looks copies up by cluster, kind, namespace and name."""

    def __init__(self, members: Members, ledger: Ledger) -> None:
        self._members = members
        self._ledger = ledger

    def look(self, key: MemberKey) -> tuple[ObjectFacts, Object | None]:
        """Return what is known of a copy: facts, and the object when there is one."""
        informer = self._members.informer(key.cluster, key.resource)
        if informer is None or not informer.has_synced:
            return UNKNOWN, None
        version = informer.resource_version
        live = self._ledger.newest(
            key,
            informer.get(key.namespace, key.name),
            cache_revision=int(version) if version.isdecimal() else 0,
        )
        if live is None:
            return ABSENT, None
        metadata = live["metadata"]
        is_going = bool(metadata.get("deletionTimestamp")) or self._ledger.is_deletion_asked(
            key, metadata.get("uid", "")
        )
        return ObjectFacts(exists=True, terminating=is_going), live

    def is_staying(self, key: MemberKey) -> bool | None:
        """Say whether a copy is there and nobody is about to take it away; None while there is no cache."""
        seen, _ = self.look(key)
        if seen.lookup_failed:
            return None
        return seen.exists and not seen.terminating and not self._ledger.is_being_deleted(key)
