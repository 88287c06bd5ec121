"""Triggers of the follower controller, and its wiring; the steps are in `reconcile.py`.

Every change of a leader's federated object updates the index of followers, and only the followers whose leaders or
clusters change are reconciled. The index lives in memory and is complete before the first object is written.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object
from federation.controllers.follower.followerguard import FollowerGuard
from federation.controllers.follower.names import EVENT_FAILED_INFER_FOLLOWERS
from federation.controllers.follower.reconcile import WRITER, Reconciler
from federation.planning.federatedobject.placements import placement_of
from federation.planning.followers.followerplan import stored_leaders
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.leaderplan import (
    has_secrets,
    identity_of,
    inputs_of_secrets,
    is_leader,
    plan_leader,
)
from federation.planning.followers.orphaned import is_orphaning
from federation.planning.followers.references import Identity
from federation.planning.followers.undelivered import refusals
from federation.planning.guard.ledger import GuardOptions
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_RELATIONS = Triggers(
    annotations=frozenset(
        (
            names.FOLLOWERS,
            names.ENABLE_FOLLOWER_SCHEDULING,
            names.NO_SCHEDULING,
            names.DRY_RUN,
            names.DISABLE_FOLLOWING,
            names.KEPT_FOR,
            names.ORPHAN,
            names.INTERNAL_ORPHAN,
        )
    ),
    status=lambda federated: bool((federated.get("status") or {}).get("clusters")),
)
"""Changes that can alter follower relations."""
_REFUSALS = Triggers(generation=False, deletion=False, status=refusals)
"""Changes of a follower that its leaders report."""


@dataclass(frozen=True, slots=True)
class FollowerOptions:
    """Limits of the follower controller."""

    workers: int = 8
    """Concurrent reconciles."""
    leaders_noted_max: int = 100
    """Limit of leaders in a follower's `spec.follows`: a pull secret may have thousands."""
    guard: GuardOptions = field(default_factory=GuardOptions)
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class FollowerController:
    """Places followers where their leaders are. `run` runs until cancelled."""

    def __init__(self, host: Host, *, options: FollowerOptions | None = None) -> None:
        chosen = options or FollowerOptions()
        self._objects = host.objects
        self._types = host.objects.types
        self._recorder = host.recorder
        self._index = FollowerIndex()
        self._is_indexing = False
        self._guard = FollowerGuard(host, chosen.guard, self._enqueue)
        self._reconciler = Reconciler(
            host.objects, self._index, host.recorder, self._guard, leaders_max=chosen.leaders_noted_max
        )
        self.controller: Controller[Key] = Controller(
            "follower",
            self._reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            options=chosen.loop,
            resync=self._followers_and_reports,
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        # Types first: they decide which references of a leader are followed.
        await self._types.wait_synced()
        self._types.add_listener(self._on_type, self._on_type)
        self._is_indexing = True
        self._objects.subscribe(self._on_leader, _RELATIONS)
        self._objects.subscribe(self._on_leader_state, None)
        self._objects.subscribe(self._on_follower, _RELATIONS, writer=WRITER)
        self._objects.subscribe(self._on_refusals, _REFUSALS, is_late=True)
        await self._objects.wait_synced()
        await self._guard.recall()
        await self.controller.run()

    # -- events

    def _enqueue(self, key: Key) -> None:
        self.controller.enqueue(key)

    def _on_leader(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        if self._is_leader(federated) or self._index.followers_of(identity_of(federated)):
            self._index_leader(old, new)

    def _on_leader_state(self, old: Object | None, new: Object | None) -> None:
        """Enqueue the followers that wait for any change of the leader before they leave a cluster."""
        for key in self._reconciler.take_waiting(identity_of(new if new is not None else old or {})):
            self.controller.enqueue(key)

    def _on_follower(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        if self._is_leader(federated):
            return
        identity = identity_of(federated)
        if has_secrets(identity) and inputs_of_secrets(old) != inputs_of_secrets(new):
            leaders = [self._objects.of_source(*leader) for leader in self._index.leaders_of(identity)]
            self._index_again(leader for leader in leaders if leader is not None)
        if new is None:
            self._reconciler.forget(identity)
        elif self._is_follower(identity, new):
            self.controller.enqueue(key_of(new))

    def _on_refusals(self, old: Object | None, new: Object | None) -> None:
        for leader in self._index.leaders_of(identity_of(new if new is not None else old or {})):
            self._enqueue_report(leader)

    def _enqueue_report(self, leader: Identity) -> None:
        if (key := self._reconciler.key_of(leader)) is not None and self._reconciler.is_report_due(key):
            self.controller.enqueue(key)

    def _index_leader(self, old: Object | None, new: Object | None) -> None:
        """Index the leader's followers, and enqueue those that it gains, loses or releases."""
        leader = identity_of(new if new is not None else old or {})
        if new is not None and self._objects.type_of(new) is None and not self._is_leader(new):
            return  # Only its type says where its pods are. While that is gone, they run on with their followers.
        released: Collection[Identity] = ()
        if new is None:
            if old is not None and is_orphaning(old):
                released = self._reconciler.release(leader)
            changed = self._index.put(leader, {})
        else:
            find = self._objects.of_source
            lead = plan_leader(new, self._objects.type_of(new), self._types.for_group_kind, lambda each: find(*each))
            changed = self._index.put(leader, lead.followers)
            if is_orphaning(new):
                released = self._reconciler.release(leader)
            if lead.problem and (old is None or _listed(old) != _listed(new)):
                self._recorder.event(new, WARNING, EVENT_FAILED_INFER_FOLLOWERS, lead.problem)
        for follower in changed.union(released):
            if (key := self._reconciler.key_of(follower)) is not None:
                self.controller.enqueue(key)
        if changed:
            self._enqueue_report(leader)

    def _index_again(self, objects: Iterable[Object]) -> None:
        """Index those of the objects that lead, or led until now."""
        for federated in objects:
            if self._is_leader(federated) or self._index.followers_of(identity_of(federated)):
                self._index_leader(federated, federated)

    def _on_type(self, type_: FederatedType) -> None:
        """Index leaders again when their type, or a type of followers that scale, is added, changed or removed."""
        if self._is_indexing:
            self._index_again(self._objects.scan() if type_.scale_target_ref_path else self._objects.of_type(type_))

    def _is_leader(self, federated: Object) -> bool:
        return is_leader(federated["spec"]["template"], self._objects.type_of(federated))

    def _is_follower(self, identity: Identity, federated: Object) -> bool:
        """Return whether the object follows a leader, or its stored state still says so."""
        return bool(
            self._index.leaders_of(identity)
            or stored_leaders(federated)
            or placement_of(federated, names.FOLLOWER_CONTROLLER)
        )

    def _followers_and_reports(self) -> Iterator[Key]:
        for federated in self._objects.scan():
            if self._is_follower(identity_of(federated), federated) or self._reconciler.is_report_due(
                key_of(federated)
            ):
                yield key_of(federated)


def _listed(federated: Object) -> str | None:
    value: str | None = (federated["metadata"].get("annotations") or {}).get(names.FOLLOWERS)
    return value
