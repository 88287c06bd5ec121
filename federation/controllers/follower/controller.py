"""Wiring of the follower controller: which change of a workload concerns which follower.

Every change of a leader's federated object is read for what it takes along, and only the followers that it makes a
difference to are looked at. The index lives in memory and is complete before the first object is written.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_OBJECTS, Object
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.follower.reconcile import Reconciler
from federation.planning.followers.following import stored_leaders
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.leading import identity_of, is_leader_kind, lead_of, leads
from federation.planning.followers.references import Identity
from federation.planning.followers.released import is_released
from federation.planning.naming import federated_object_name
from federation.planning.placements import placement_of
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers

_READ = (
    names.FOLLOWERS,
    names.ENABLE_FOLLOWER_SCHEDULING,
    names.NO_SCHEDULING,
    names.DRY_RUN,
    names.DISABLE_FOLLOWING,
    names.KEPT_FOR,
    names.ORPHAN,
    names.INTERNAL_ORPHAN,
)
"""The annotations that decide who follows whom."""


@dataclass(frozen=True, slots=True)
class FollowerOptions:
    """Limits of the follower controller."""

    workers: int = 8
    """Followers that are worked on at the same time."""
    leaders_noted_max: int = 100
    """How many leaders a follower's `spec.follows` names: a pull secret may have thousands."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class FollowerController:
    """Has followers placed where their leaders are. `run` works until cancelled."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        recorder: Recorder,
        *,
        clock: Clock,
        options: FollowerOptions | None = None,
    ) -> None:
        chosen = options or FollowerOptions()
        self._types = types
        self._recorder = recorder
        self._index = FollowerIndex()
        self._is_indexing = False
        self._informer = informers.for_resource(FEDERATED_OBJECTS)
        self._reconciler = Reconciler(client, self, self._index, recorder, leaders_max=chosen.leaders_noted_max)
        self.controller: Controller[Key] = Controller(
            "follower",
            self._reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=self._followers,
        )

    async def run(self) -> None:
        """Follow the federated objects, and work once all of them have arrived."""
        # Types first: what an override refers to, and what else may follow, depends on them.
        await self._types.wait_synced()
        self._types.add_listener(self._on_type, self._on_type)
        self._is_indexing = True
        self._informer.add_handler(self._on_federated)
        await self._informer.wait_synced()
        await self.controller.run()

    # -- what the reconciler reads

    def federated(self, key: Key) -> Object | None:
        """Return the cached federated object."""
        return self._informer.get(*key)

    def federated_of(self, identity: Identity) -> Object | None:
        """Return the cached federated object of a source."""
        key = self._key_of(identity)
        found = self._informer.get(*key) if key is not None else None
        return found if found is not None and identity_of(found) == identity else None

    def type_of(self, federated: Object) -> FederatedType | None:
        """Return the federated type of the object's template."""
        return self._types.for_federated(federated)

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        identity = identity_of(obj)
        if is_leader_kind(obj["spec"]["template"]):
            if new is None or old is None or _is_relevant_change(old, new):
                self._lead(identity, old, new)
            for key in self._reconciler.waiting_for(identity):
                self.controller.enqueue(key)
        elif new is None:
            self._reconciler.forget(identity)
        elif (old is None or _is_relevant_change(old, new)) and self._is_follower(identity, new):
            self.controller.enqueue(key_of(new))

    def _lead(self, leader: Identity, old: Object | None, new: Object | None) -> None:
        """Take over whom the leader takes along now, or leaves behind with its copies."""
        released: Collection[Identity] = ()
        if new is None:
            if old is not None and is_released(old):
                released = self._reconciler.release(leader)
            changed = self._index.put(leader, {})
        else:
            lead = lead_of(new, self.type_of(new), self._types.for_group_kind)
            changed = self._index.put(leader, lead.followers)
            if is_released(new):
                released = self._reconciler.release(leader)
            if lead.problem and (old is None or _listed(old) != _listed(new)):
                self._recorder.event(new, WARNING, names.EVENT_FAILED_INFER_FOLLOWERS, lead.problem)
        for follower in changed.union(released):
            key = self._key_of(follower)
            if key is not None:
                self.controller.enqueue(key)

    def _on_type(self, type_: FederatedType) -> None:
        """Read every leader again when a type comes or goes that leads, or that may follow because it scales."""
        if self._is_indexing and (type_.scale_target_ref_path or leads(type_)):
            for federated in self._informer.list():
                if is_leader_kind(federated["spec"]["template"]):
                    self._lead(identity_of(federated), federated, federated)

    def _is_follower(self, identity: Identity, federated: Object) -> bool:
        """Say whether the object follows somebody, or is still written that it does."""
        return bool(
            self._index.leaders_of(identity)
            or stored_leaders(federated)
            or placement_of(federated, names.FOLLOWER_CONTROLLER)
        )

    def _key_of(self, identity: Identity) -> Key | None:
        type_ = self._types.for_group_kind(identity.group, identity.kind)
        if type_ is None:
            return None
        return Key(identity.namespace, federated_object_name(identity.name, type_.name))

    def _followers(self) -> Iterator[Key]:
        for federated in self._informer.list():
            if self._is_follower(identity_of(federated), federated):
                yield key_of(federated)


def _listed(federated: Object) -> str | None:
    value: str | None = (federated["metadata"].get("annotations") or {}).get(names.FOLLOWERS)
    return value


def _is_relevant_change(old: Object, new: Object) -> bool:
    """Say whether who follows whom may differ: most updates are status, which matters to those who wait only."""
    before, after = old["metadata"], new["metadata"]
    held, has = before.get("annotations") or {}, after.get("annotations") or {}
    return (
        before.get("generation") is None
        or before.get("generation") != after.get("generation")
        or any(held.get(name) != has.get(name) for name in _READ)
        or before.get("deletionTimestamp") != after.get("deletionTimestamp")
        or bool((old.get("status") or {}).get("clusters")) != bool((new.get("status") or {}).get("clusters"))
    )


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    recorder: Recorder,
    *,
    clock: Clock,
    options: FollowerOptions | None = None,
) -> FollowerController:
    """Return the wired controller; nothing runs yet."""
    return FollowerController(client, informers, types, recorder, clock=clock, options=options)
