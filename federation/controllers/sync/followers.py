"""Followers first: a workload's copy is written when what its pods newly need is in the cluster (docs/decisions/0014).

`Arrivals` is asked before each write. Whoever has to wait is woken by the follower's copy appearing in the member, or
by any change of the follower's federated object, and goes on without it when it has waited for long enough. So is a
workload that goes while its copies stay: its followers note that first (docs/decisions/0024). What is remembered here
is only who waits since when: after a restart the time runs anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.resources import Object
from federation.base.clock import Clock
from federation.controllers.sync.copies import Copies
from federation.dispatch.ledger import MemberKey
from federation.dispatch.status import ClusterStatus
from federation.planning.followers.arrival import is_to_come, new_needs, status_in
from federation.planning.followers.following import has_noted
from federation.planning.followers.leading import identity_of, lead_of
from federation.planning.followers.references import Identity, Reference
from federation.planning.followers.released import is_released
from federation.planning.naming import federated_object_name
from federation.runtime.controller import Key
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedtypes import FederatedTypes

_QUIET_S = 1.0
"""Followers are usually there within this time; only longer waits are worth a status."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a copy waits for, how long at most before it is looked at again, and whether that is worth telling yet."""

    message: str
    recheck_after_s: float
    is_brief: bool


class Arrivals:
    """Says which copies wait for their followers, and wakes them."""

    def __init__(
        self,
        types: FederatedTypes,
        cached: Callable[[Key], Object | None],
        copies: Copies,
        recorder: Recorder,
        clock: Clock,
        *,
        wait_s: float,
        enqueue: Callable[[Key], None],
    ) -> None:
        self._types = types
        self._cached = cached
        self._copies = copies
        self._recorder = recorder
        self._clock = clock
        self._wait_s = wait_s
        self._enqueue = enqueue
        self._since_s: dict[Key, dict[MemberKey, float]] = {}
        self._parting_since_s: dict[Key, float] = {}
        self._waiting: dict[Identity, set[Key]] = {}

    def wait(
        self, key: Key, federated: Object, cluster: str, desired: Mapping[str, Any], live: Object | None
    ) -> Wait | None:
        """Return what the copy of a workload has to wait for in a cluster, None when it may be written now."""
        needs = new_needs(federated, desired, live)
        missing = {
            copy: reference
            for reference in needs
            if (copy := self._missing_copy(federated, cluster, reference)) is not None
        }
        if not missing and key not in self._since_s:
            return None
        now_s = self._clock.monotonic()
        since_s = self._note(key, cluster, missing, now_s)
        if not missing:
            return None
        what = ", ".join(map(str, missing.values()))
        waited_s = now_s - since_s
        if waited_s >= self._wait_s:
            text = f'cluster "{cluster}": goes on without {what}, which did not get there in {self._wait_s:g} s'
            self._recorder.event(federated, WARNING, names.EVENT_FOLLOWER_MISSING, text)
            return None
        for copy in missing:
            identity = Identity(copy.resource.group, copy.resource.kind, copy.namespace, copy.name)
            self._waiting.setdefault(identity, set()).add(key)
        is_brief = waited_s < _QUIET_S
        recheck_s = (_QUIET_S if is_brief else self._wait_s) - waited_s
        return Wait(f"waits for {what} to get there", recheck_s, is_brief)

    def wait_to_part(self, key: Key, federated: Object) -> float | None:
        """Return how long a workload waits whose followers have not noted that they stay; None when it may go."""
        if not is_released(federated):
            return None
        leader = identity_of(federated)
        lead = lead_of(federated, self._types.for_federated(federated), self._types.for_group_kind)
        late = [
            reference
            for reference, clusters in lead.followers.items()
            if not has_noted(self._federated(leader.namespace, reference), leader, clusters)
        ]
        now_s = self._clock.monotonic()
        waited_s = now_s - self._parting_since_s.setdefault(key, now_s)
        if not late or waited_s >= self._wait_s:
            return None
        for group, kind, name in late:
            self._waiting.setdefault(Identity(group, kind, leader.namespace, name), set()).add(key)
        return self._wait_s - waited_s

    def _federated(self, namespace: str, reference: Reference) -> Object | None:
        type_ = self._types.for_group_kind(reference.group, reference.kind)
        return (
            None if type_ is None else self._cached(Key(namespace, federated_object_name(reference.name, type_.name)))
        )

    def _missing_copy(self, leader: Object, cluster: str, reference: Reference) -> MemberKey | None:
        """Return the copy that is on its way to the cluster and not there yet, None when there is none to wait for."""
        type_ = self._types.for_group_kind(reference.group, reference.kind)
        if type_ is None or not type_.resource.namespaced:
            return None
        namespace = leader["metadata"].get("namespace", "")
        follower = self._federated(namespace, reference)
        if follower is None or not is_to_come(follower, leader, cluster):
            return None
        copy = MemberKey(cluster, type_.resource, namespace, reference.name)
        is_there = self._copies.is_staying(copy)
        if is_there is None:
            is_there = status_in(follower, cluster) == ClusterStatus.OK
        return None if is_there else copy

    def _note(self, key: Key, cluster: str, missing: Mapping[MemberKey, Reference], now_s: float) -> float:
        """Take down who is missed in the cluster from when on, and return the latest of these times."""
        known = self._since_s.get(key, {})
        others = {copy: since_s for copy, since_s in known.items() if copy.cluster != cluster}
        here = {copy: known.get(copy, now_s) for copy in missing}
        if others or here:
            self._since_s[key] = others | here
        else:
            self._since_s.pop(key, None)
        return max(here.values(), default=now_s)

    def forget(self, key: Key) -> None:
        """Forget a workload that is gone."""
        self._since_s.pop(key, None)
        self._parting_since_s.pop(key, None)

    def changed(self, federated: Object) -> None:
        """Have those look again who wait for the source of this federated object."""
        if self._waiting:
            self._wake(identity_of(federated))

    def appeared(self, copy: MemberKey) -> None:
        """Have those look again who wait for this object, in whichever cluster."""
        if self._waiting:
            self._wake(Identity(copy.resource.group, copy.resource.kind, copy.namespace, copy.name))

    def _wake(self, follower: Identity) -> None:
        for key in self._waiting.pop(follower, ()):
            self._enqueue(key)
