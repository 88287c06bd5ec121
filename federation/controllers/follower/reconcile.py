"""The steps that place one federated object where its leaders are, and the report of a leader about its followers.

One merge patch when something changed, none otherwise; an object without leaders costs nothing. The controller's index
knows the leaders; a leader's federated object shows which clusters still need the follower. A follower that waits for a
leader before it leaves a cluster is remembered, so that the leader's next change triggers a reconcile. A leader deleted
with --cascade=orphan is remembered until the follower has recorded it. Nothing is written before the index is complete:
leaders that are missing from an incomplete index would count as deleted.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from federation.api import names
from federation.apimachinery.errors import ApiError, Conflict
from federation.apimachinery.resources import Object
from federation.controllers.follower.followerguard import FollowerGuard, PermittedFollowing
from federation.controllers.follower.names import EVENT_FAILED_UPDATE_FOLLOWER, REASON_FOLLOWERS_DELIVERED
from federation.planning.federatedobject.placements import placement_of
from federation.planning.followers.followerplan import (
    clusters_still_needed,
    clusters_to_leave,
    is_following_disabled,
    plan_following,
    stored_leaders,
)
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.leaderplan import identity_of, is_leader
from federation.planning.followers.orphaned import (
    NOTHING_KEPT,
    KeptClusters,
    is_orphaning,
    kept_for,
    merge_kept,
    still_kept,
)
from federation.planning.followers.references import Identity
from federation.planning.followers.undelivered import describe_undelivered
from federation.planning.status.sourceconditions import refused_followers
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedobjects import FederatedObjects

WRITER = "follower"
_REFUSED_RETRY_S = 10.0
"""When to try again what the API server refused: a quota or an admission policy may have changed."""


class Reconciler:
    """Places one federated object where its leaders are, per call."""

    def __init__(
        self,
        objects: FederatedObjects,
        index: FollowerIndex,
        recorder: Recorder,
        guard: FollowerGuard,
        *,
        leaders_max: int,
    ) -> None:
        self._objects = objects
        self._guard = guard
        self._index = index
        self._recorder = recorder
        self._leaders_max = leaders_max
        self._waiting: dict[Identity, set[Key]] = {}
        self._released: dict[Identity, KeptClusters] = {}

    def release(self, leader: Identity) -> Collection[Identity]:
        """Record that the leader's member objects stay; return the followers that stay with them."""
        led = self._index.followers_of(leader)
        for follower, clusters in led.items():
            if self._federated_of(follower) is not None:
                self._released[follower] = merge_kept(self._released.get(follower, NOTHING_KEPT), {leader: clusters})
        return led.keys()

    def forget(self, follower: Identity) -> None:
        """Discard the state of a deleted follower."""
        self._released.pop(follower, None)

    def take_waiting(self, leader: Identity) -> Collection[Key]:
        """Remove and return the followers that wait for a change of this leader before they leave a cluster."""
        return self._waiting.pop(leader, ())

    def key_of(self, identity: Identity) -> Key | None:
        """Return the key of a source's federated object, None when its kind is not federated."""
        type_ = self._objects.types.for_group_kind(identity.group, identity.kind)
        return None if type_ is None else self._objects.key_for(type_, identity.namespace, identity.name)

    async def reconcile(self, key: Key) -> Result:
        """Update placement and leaders of one object, or the condition of a leader; leaders never follow."""
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            self._guard.withdraw(key)
            return DONE
        if is_leader(federated["spec"]["template"], self._objects.type_of(federated)):
            await self._report(key, federated)
            return DONE
        type_ = self._objects.type_of(federated)
        if type_ is None:
            return DONE
        follower = identity_of(federated)
        leaders: AbstractSet[Identity] = frozenset()
        clusters: frozenset[str] = frozenset()
        kept, released = NOTHING_KEPT, self._released.get(follower)
        if not is_following_disabled(federated):
            leaders, clusters = self._index.leaders_of(follower), self._index.clusters_of(follower)
            kept = self._kept(key, merge_kept(kept_for(federated), released or NOTHING_KEPT))
        # A former leader whose pods may still need the follower stays recorded, also where another leader needs it.
        placed = frozenset(placement_of(federated, names.FOLLOWER_CONTROLLER))
        held = self._still_needed(key, placed, set(stored_leaders(federated)) - leaders)
        if leaving := clusters_to_leave(federated, clusters):
            held |= self._still_needed(key, leaving, leaders)
        if held:
            leaders, clusters = leaders | held.keys(), clusters.union(*held.values())
            kept = merge_kept(kept, {leader: held[leader] for leader in held if self._is_released(leader)})
        permitted = self._rule(key, federated, clusters_to_leave(federated, clusters))
        if permitted.wait_s > 0:
            return Result(requeue_after_s=permitted.wait_s)
        leaders, clusters = leaders | permitted.kept.keys(), clusters.union(*permitted.kept.values())
        patch = plan_following(
            federated,
            type_.controllers,
            leaders,
            clusters,
            kept,
            leaders_max=self._leaders_max,
            guarded=permitted.annotations,
        )
        if patch is not None and not await self._write(key, federated, patch):
            return Result(requeue_after_s=_REFUSED_RETRY_S)
        # Another leader may have been released during the write; its entry must stay.
        if self._released.get(follower) is released:
            self._released.pop(follower, None)
        return DONE

    def is_report_due(self, key: Key) -> bool:
        """Return whether the condition of a leader is not what its followers' statuses say."""
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return False
        return refused_followers(federated) != self._refusals(federated)

    def _refusals(self, leader: Object) -> str:
        return describe_undelivered(self._index.followers_of(identity_of(leader)), self._federated_of)

    async def _report(self, key: Key, leader: Object) -> None:
        """Publish which followers the leader's clusters refuse. A leader that never had any costs no write."""
        message = self._refusals(leader)
        if message == refused_followers(leader):
            return
        status, reason = ("False", names.REASON_CHECK_FOLLOWERS) if message else ("True", REASON_FOLLOWERS_DELIVERED)
        await self._objects.set_condition(
            key, names.FOLLOWERS_DELIVERED, status=status, reason=reason, message=message, writer=WRITER
        )
        if message:
            self._recorder.event(leader, WARNING, reason, message)

    def _rule(self, key: Key, federated: Object, leaving: frozenset[str]) -> PermittedFollowing:
        """Return what the guard permits; a follower that must not follow any more leaves as its user asks.

        The next change of a leader requeues a follower that is held for it.
        """
        if is_following_disabled(federated):
            leaving = frozenset()
        leaders = (self._federated_of(leader) for leader in stored_leaders(federated)) if leaving else ()
        permitted = self._guard.rule(key, federated, leaving, [leader for leader in leaders if leader is not None])
        for leader in permitted.kept:
            self._waiting.setdefault(leader, set()).add(key)
        return permitted

    def _kept(self, key: Key, recorded: KeptClusters) -> KeptClusters:
        """Return the clusters kept for released leaders; a leader of that name requeues the key when it changes."""
        kept = still_kept(recorded, self._federated_of)
        for leader in kept:
            if self._federated_of(leader) is not None:
                self._waiting.setdefault(leader, set()).add(key)
        return kept

    def _is_released(self, leader: Identity) -> bool:
        found = self._federated_of(leader)
        return found is not None and is_orphaning(found)

    def _still_needed(
        self, key: Key, leaving: frozenset[str], leaders: Collection[Identity]
    ) -> dict[Identity, frozenset[str]]:
        """Return the clusters that leaders still need, by leader."""
        needed = {}
        for identity in leaders:
            leader = self._federated_of(identity)
            if leader is not None and (held := clusters_still_needed(leaving, leader)):
                needed[identity] = held
                self._waiting.setdefault(identity, set()).add(key)
        return needed

    async def _write(self, key: Key, federated: Object, patch: Object) -> bool:
        """Send the patch; return False when the API server refuses it, which it may accept later."""
        try:
            await self._objects.patch(key, federated, patch, writer=WRITER)
        except ApiError as error:
            if error.retryable or isinstance(error, Conflict):
                raise
            self._recorder.event(federated, WARNING, EVENT_FAILED_UPDATE_FOLLOWER, str(error))
            return False
        return True

    def _federated_of(self, identity: Identity) -> Object | None:
        """Return the federated object of a source."""
        found = self._objects.of_source(*identity)
        return found if found is not None and identity_of(found) == identity else None
