"""The steps that have one federated object follow its leaders.

One merge patch when something changed, none otherwise; an object that nobody leads costs nothing. What it follows comes
from the index, which the controller keeps; what a leader's copies may still need comes from the leader's federated
object. Whom a follower waits for before it leaves a cluster is remembered, so that the leader's next change brings it
back here. Leaders that were let go are remembered until the follower has noted them. Nothing is done before the index
is complete: it must not look as if leaders were gone.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Protocol

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_OBJECTS, Object
from federation.base.errors import ApiError, Conflict, NotFound
from federation.client.protocol import Client, PatchType
from federation.planning.followers.following import (
    clusters_still_needed,
    clusters_to_leave,
    is_refusing,
    plan_following,
    stored_leaders,
)
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.leading import identity_of
from federation.planning.followers.references import Identity
from federation.planning.followers.released import NOBODY_KEPT, Kept, combine, is_released, kept_for, still_kept
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import WARNING, Recorder

_REFUSED_RETRY_S = 10.0
"""When to try again what the API server refused: a quota or an admission policy may have changed."""


class Caches(Protocol):
    """What the reconciler reads; the controller owns the informers behind it."""

    def federated(self, key: Key) -> Object | None:
        """Return the cached federated object."""
        ...

    def federated_of(self, identity: Identity) -> Object | None:
        """Return the cached federated object of a source."""
        ...

    def type_of(self, federated: Object) -> FederatedType | None:
        """Return the federated type of the object's template."""
        ...


class Reconciler:
    """Has one federated object follow its leaders per call."""

    def __init__(
        self, client: Client, caches: Caches, index: FollowerIndex, recorder: Recorder, *, leaders_max: int
    ) -> None:
        self._client = client
        self._caches = caches
        self._index = index
        self._recorder = recorder
        self._leaders_max = leaders_max
        self._waiting: dict[Identity, set[Key]] = {}
        self._released: dict[Identity, Kept] = {}

    def release(self, leader: Identity) -> Collection[Identity]:
        """Take down that the leader's copies stay in the members; return the followers that stay with them."""
        led = self._index.led_by(leader)
        for follower, clusters in led.items():
            if self._caches.federated_of(follower) is not None:
                self._released[follower] = combine(self._released.get(follower, NOBODY_KEPT), {leader: clusters})
        return led.keys()

    def forget(self, follower: Identity) -> None:
        """Forget a follower that is gone."""
        self._released.pop(follower, None)

    def waiting_for(self, leader: Identity) -> Collection[Key]:
        """Return, once, the followers that waited for a change of this leader before they leave a cluster."""
        return self._waiting.pop(leader, ())

    async def reconcile(self, key: Key) -> Result:
        """Bring placement and leaders of one object up to date."""
        federated = self._caches.federated(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        type_ = self._caches.type_of(federated)
        if type_ is None:
            return DONE
        follower = identity_of(federated)
        leaders: AbstractSet[Identity] = frozenset()
        clusters: frozenset[str] = frozenset()
        kept, released = NOBODY_KEPT, self._released.get(follower)
        if not is_refusing(federated):
            leaders, clusters = self._index.leaders_of(follower), self._index.clusters_of(follower)
            kept = self._kept(key, combine(kept_for(federated), released or NOBODY_KEPT))
        if leaving := clusters_to_leave(federated, clusters):
            held = self._still_needed(key, leaving, leaders | set(stored_leaders(federated)))
            leaders, clusters = leaders | held.keys(), clusters.union(*held.values())
            kept = combine(kept, {leader: held[leader] for leader in held if self._is_released(leader)})
        patch = plan_following(federated, type_.controllers, leaders, clusters, kept, leaders_max=self._leaders_max)
        if patch is not None and not await self._write(key, federated, patch):
            return Result(requeue_after_s=_REFUSED_RETRY_S)
        if self._released.get(follower) is released:  # and nobody was let go meanwhile
            self._released.pop(follower, None)
        return DONE

    def _kept(self, key: Key, noted: Kept) -> Kept:
        """Return where the object stays for leaders that were let go; look again when such a leader is there again."""
        kept = still_kept(noted, self._caches.federated_of)
        for leader in kept:
            if self._caches.federated_of(leader) is not None:
                self._waiting.setdefault(leader, set()).add(key)
        return kept

    def _is_released(self, leader: Identity) -> bool:
        found = self._caches.federated_of(leader)
        return found is not None and is_released(found)

    def _still_needed(
        self, key: Key, leaving: frozenset[str], leaders: Collection[Identity]
    ) -> dict[Identity, frozenset[str]]:
        """Return the clusters that are not to be left yet, by the leaders because of whom."""
        needed = {}
        for identity in leaders:
            leader = self._caches.federated_of(identity)
            if leader is not None and (held := clusters_still_needed(leaving, leader)):
                needed[identity] = held
                self._waiting.setdefault(identity, set()).add(key)
        return needed

    async def _write(self, key: Key, federated: Object, patch: Object) -> bool:
        """Send the patch, and say whether that is done with; what is refused may be accepted later."""
        try:
            await self._client.patch(
                FEDERATED_OBJECTS,
                key.name,
                patch,
                patch_type=PatchType.MERGE,
                namespace=key.namespace,
                field_manager=names.FIELD_MANAGER,
            )
        except NotFound:
            return True
        except ApiError as error:
            if error.retryable or isinstance(error, Conflict):
                raise
            self._recorder.event(federated, WARNING, names.EVENT_FAILED_UPDATE_FOLLOWER, str(error))
            return False
        return True
