"""Event handlers of sync: keep clusters and records up to date, and enqueue the affected objects.

An object's own change comes before changes of a cluster, which affect all of its objects. The watched resources are
listed in `controller.py`.
"""

from typing import Any, Protocol

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object, Resource
from federation.delivery.clusterremoval import is_removal_due
from federation.delivery.clustersteps import Rollouts
from federation.delivery.host.followerwait import FollowerReadiness
from federation.delivery.host.tombstones import Tombstones, parse
from federation.delivery.members.clusters import BY_CLUSTER, clusters_of_interest
from federation.delivery.members.depot import Depot
from federation.delivery.members.propagation import COUNTED
from federation.delivery.rules.memberchange import has_ended, matters
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import is_managed
from federation.delivery.rules.status import earlier_pods_of
from federation.planning.failover import podbudgets
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.finished import evidence, is_finished
from federation.planning.status.completeness import may_run_earlier_pods
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.subscription import Triggers

_SINGLE, _BULK = 0, 1
"""Queue priorities: changes of single objects, then changes that affect all objects of a cluster."""
_STEP_S = 0.05
"""How long the next step of a divided workload waits for further statuses: a rolling update reports several a pod."""


def _scheduling_failure(federated: Object) -> Any:
    """Return why the object could not be scheduled; an object that is in no cluster publishes that."""
    condition = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
    return None if condition is None or condition.get("status") == "True" else condition.get("message")


TRIGGERS = Triggers(
    annotations=True,
    labels=True,
    finalizers=True,
    status=_scheduling_failure,
    is_due=pendingcontrollers.is_ready_for_dispatch,
)


def _has_replaced(federated: Object | None, key: MemberKey, new: Object) -> bool:
    """Return whether the last pods of an earlier template, which are published, are gone."""
    is_published = federated is not None and key.cluster in earlier_pods_of(federated)
    return is_published and not may_run_earlier_pods(key.resource, new)


class Enqueue(Protocol):
    """The queue of federated objects."""

    def __call__(self, key: Key, *, after_s: float = 0.0, priority: int = 0) -> None:
        """Add the key; lower priorities are processed first."""
        ...


class EventHandlers:
    """Handlers for every watched resource."""

    def __init__(
        self,
        depot: Depot,
        follower_readiness: FollowerReadiness,
        rollouts: Rollouts,
        tombstones: Tombstones,
        enqueue: Enqueue,
        cluster_removal: Controller[str],
    ) -> None:
        self._objects = depot.host.objects
        self._types = depot.host.objects.types
        self._members = depot.host.members
        self._clusters = depot.clusters
        self._executor = depot.executor
        self._records = depot.records
        self._follower_readiness = follower_readiness
        self._rollouts = rollouts
        self._tombstones = tombstones
        self._kept = depot.kept
        self._clock = depot.host.clock
        self._enqueue = enqueue
        self._cluster_removal = cluster_removal
        self._watched: set[Resource] = set()
        depot.host.objects.add_index(BY_CLUSTER, clusters_of_interest)

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Handle any event of a federated object."""
        obj = new if new is not None else old
        assert obj is not None
        self._follower_readiness.on_federated_changed(obj)
        if podbudgets.is_changed(old, new):
            for key in self._rollouts.waiting_in(obj["metadata"].get("namespace", "")):
                self._enqueue(key, priority=_SINGLE)
        if new is None:
            self._kept.forget_object(key_of(obj))
        elif old is None:
            self._watch_members(new)

    def on_dispatch_due(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        """Handle a change of a federated object that may need a dispatch."""
        if new is not None:
            self._enqueue(key_of(new), priority=_SINGLE)

    def _watch_members(self, federated: Object) -> None:
        """Watch a type in the members once its first federated object appears."""
        if (type_ := self._types.for_federated(federated)) is not None:
            self._watch_type(type_)

    def _watch_type(self, type_: FederatedType) -> None:
        if type_.resource not in self._watched:
            self._watched.add(type_.resource)
            self._members.ensure_informer(type_.resource)

    def on_type_added(self, type_: FederatedType) -> None:
        """Handle a new federated type."""
        for key in self._objects.keys_of_type(type_):
            self._watch_type(type_)
            self._enqueue(key, priority=_BULK)

    def on_type_removed(self, type_: FederatedType) -> None:
        """Handle the removal of a federated type."""
        if type_.resource in self._watched:
            self._watched.discard(type_.resource)
            self._members.release_informer(type_.resource)

    def on_cluster(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a FederatedCluster."""
        name = (new if new is not None else old or {})["metadata"]["name"]
        if self._clusters.update(name, new):
            if new is None:
                self._kept.forget_cluster(name)
            self._enqueue_objects_of(name)
        if new is not None and is_removal_due(new):
            self._cluster_removal.enqueue(name)

    def _enqueue_objects_of(self, cluster: str, type_: FederatedType | None = None) -> None:
        """Enqueue all objects of a cluster: the reconcile defers objects that are not due."""
        of_type = None if type_ is None else set(self._objects.keys_of_type(type_))
        for key in self._objects.keys_by_index(BY_CLUSTER, cluster):
            if of_type is None or key in of_type:
                self._enqueue(key, priority=_BULK)

    def on_overdue(self, key: MemberKey) -> None:
        """Handle a member object that a cluster acknowledged as written or deleted and does not show."""
        type_, cluster = self._types.for_resource(key.resource), self._clusters.get(key.cluster)
        if type_ is not None and cluster is not None and cluster.ready:
            self._enqueue(self._objects.key_for(type_, key.namespace, key.name), priority=_SINGLE)

    def on_leftover(self, old: Object | None, new: Object | None) -> None:
        """Handle a record that is gone or no longer pending: a new object of its name may be delivered now."""
        before = parse(old) if old is not None else None
        after = parse(new) if new is not None else None
        if before is None or not before.is_pending or (after is not None and after.is_pending):
            return
        type_ = self._types.for_resource(before.resource)
        if type_ is not None:
            self._enqueue(self._objects.key_for(type_, before.namespace, before.name), priority=_SINGLE)

    def on_member_synced(self, cluster: str, resource: Resource) -> None:
        """Handle a member's cache that became complete, or whose kind the member no longer serves or serves again."""
        type_ = self._types.for_resource(resource)
        if type_ is not None:
            self._records.retry_all(cluster, resource)
            self._enqueue_objects_of(cluster, type_)

    def on_new_connection(self, cluster: str) -> None:
        """Handle another endpoint or other credentials of a cluster: they may allow what failed before."""
        for key in self._records.retry_all(cluster):
            type_ = self._types.for_resource(key.resource)
            if type_ is not None:
                self._enqueue(self._objects.key_for(type_, key.namespace, key.name), priority=_BULK)

    def on_member_object(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Handle an event of a member object."""
        type_ = self._types.for_resource(resource)
        obj = new if new is not None else old
        if type_ is None or obj is None:
            return
        metadata = obj["metadata"]
        key = MemberKey(cluster, resource, *key_of(obj))
        federated_key = self._objects.key_for(type_, key.namespace, key.name)
        if new is None:
            if is_finished((resource.group, resource.kind), obj):
                self._record_finished(key, federated_key, obj)
            informer = self._members.informer(cluster, resource)
            is_seen = informer is None or not informer.is_comparing
            self._records.record_removal(key, str(metadata.get("uid", "")), is_seen=is_seen)
        else:
            is_own = self._is_own_write(key, new)
            self._records.record_shown(key, new)
            self._rollouts.observe(key, new)
            if old is None:
                self._follower_readiness.on_member_object_added(key)
            is_news = has_ended(resource, old, new) if is_own else matters(resource, old, new)
            if not is_news:
                is_step = self._rollouts.may_allow_step(federated_key, key, old, new)
                federated = self._objects.get(federated_key)
                kept = federated["metadata"].get("annotations") or () if federated is not None else ()
                if is_step or (not COUNTED.isdisjoint(kept) and _has_replaced(federated, key, new)):
                    self._enqueue(federated_key, after_s=_STEP_S, priority=_SINGLE)
                return
        self._enqueue(federated_key, priority=_SINGLE)

    def _record_finished(self, key: MemberKey, federated_key: Key, obj: Object) -> None:
        """Record that an object which has finished was removed by somebody else, before sync has published its end."""
        federated = self._objects.get(federated_key)
        if federated is None or federated["metadata"].get("deletionTimestamp") or not is_managed(obj):
            return
        known = self._records.get(key)
        is_by_us = known.is_deleting or known.is_deletion_requested(str(obj["metadata"].get("uid", "")))
        record = self._tombstones.find(*key)
        if not is_by_us and (record is None or not record.is_pending):
            self._records.record_finished(key, evidence(federated, obj, self._clock.now()))

    def _is_own_write(self, key: MemberKey, new: Object) -> bool:
        """Return whether the event shows our own write. While a write is pending, every event counts as ours."""
        if self._executor.is_pending(key):
            return True
        written = self._records.get(key).written
        return written is not None and revision_of(written) == revision_of(new)
