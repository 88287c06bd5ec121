"""Deletion: a federated object is removed only when no cluster has its object (docs/reference/sync.md).

Member objects are deleted, or released when the orphan annotation says so. When no cache shows one any more, every
member is queried; only then is the finalizer removed. A cluster that does not answer blocks the deletion, and the
condition's message and an event name it, until it answers or leaves the federation.
"""

import asyncio
from collections.abc import Iterable

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.controllers.sync.clusters import Clusters
from federation.controllers.sync.followerwait import FollowerReadiness
from federation.controllers.sync.memberobjects import MemberObjectCache
from federation.controllers.sync.memberoperations import MemberOperations
from federation.controllers.sync.propagation import BRIEF_S, Propagation, begin_propagation
from federation.dispatch.operations import Outcome
from federation.dispatch.plan import ClusterState, decide_removal
from federation.dispatch.status import ClusterStatus, plan_status
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedobjects import FederatedObjects

_RECHECK_S = 5.0
_BLOCKING = frozenset(
    {
        ClusterStatus.CLUSTER_NOT_READY,
        ClusterStatus.CACHED_RETRIEVAL_FAILED,
        ClusterStatus.DELETION_FAILED,
        ClusterStatus.DELETION_TIMED_OUT,
        ClusterStatus.LABEL_REMOVAL_FAILED,
        ClusterStatus.LABEL_REMOVAL_TIMED_OUT,
        ClusterStatus.RETRIEVAL_FAILED,
    }
)


class Deletion:
    """Removes the member objects of federated objects that are being deleted."""

    def __init__(
        self,
        objects: FederatedObjects,
        clusters: Clusters,
        operations: MemberOperations,
        member_objects: MemberObjectCache,
        follower_readiness: FollowerReadiness,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._objects = objects
        self._clusters = clusters
        self._operations = operations
        self._member_objects = member_objects
        self._follower_readiness = follower_readiness
        self._recorder = recorder
        self._clock = clock
        self._since_s: dict[Key, float] = {}

    async def reconcile(self, key: Key, federated: Object, type_: FederatedType, *, recorded: Iterable[str]) -> Result:
        """Delete or release every member object, then remove the finalizer."""
        finalizers = list(federated["metadata"].get("finalizers") or ())
        if names.SYNC_FINALIZER not in finalizers:
            self._since_s.pop(key, None)
            return DONE
        propagation = begin_propagation(key, federated, type_)
        states = [self._clusters.get(name) for name in sorted(recorded)]
        clusters = [state for state in states if state is not None and state.joined]
        for cluster in clusters:
            self._remove(propagation, cluster)
        await self._operations.wait(propagation)
        if not propagation.statuses:
            await self._confirm(propagation, clusters)
        if not propagation.statuses:
            if (wait_s := self._follower_readiness.wait_before_release(key, federated)) is not None:
                return Result(requeue_after_s=wait_s)
            self._since_s.pop(key, None)
            remaining = [name for name in finalizers if name != names.SYNC_FINALIZER]
            await self._objects.patch(key, federated, {"metadata": {"finalizers": remaining}})
            return DONE
        return await self._wait(key, federated, propagation)

    def _remove(self, propagation: Propagation, cluster: ClusterState) -> None:
        if not cluster.ready:
            propagation.record(cluster.name, ClusterStatus.CLUSTER_NOT_READY)
            return
        key = propagation.member_key(cluster.name)
        observed, live = self._member_objects.observe(key, propagation.annotations)
        if observed.lookup_failed:
            propagation.record(cluster.name, ClusterStatus.CACHED_RETRIEVAL_FAILED)
        elif live is None or observed.derived_service_mismatch:
            return
        elif observed.terminating:
            propagation.record(cluster.name, ClusterStatus.WAITING_FOR_REMOVAL, live)
        else:
            removal = decide_removal(propagation.annotations, live["metadata"].get("annotations") or {})
            self._operations.remove(propagation, cluster.name, live, removal)

    async def _confirm(self, propagation: Propagation, clusters: Iterable[ClusterState]) -> None:
        """Query every member, and record those that have the object or do not answer."""
        queries = {cluster.name: self._operations.confirm_absence(propagation, cluster.name) for cluster in clusters}
        answers = await asyncio.gather(*queries.values())
        for name, answer in zip(queries, answers, strict=True):
            outcome: Outcome = answer
            if outcome.status is not ClusterStatus.OK:
                status = ClusterStatus.RETRIEVAL_FAILED if outcome.is_unanswered else outcome.status
                propagation.record(name, status, outcome.object, outcome.message)

    async def _wait(self, key: Key, federated: Object, propagation: Propagation) -> Result:
        """Publish the clusters that the deletion waits for, once it takes long or is blocked."""
        since_s = self._since_s.setdefault(key, self._clock.monotonic())
        waited_s = self._clock.monotonic() - since_s
        blocking = sorted(name for name, status in propagation.statuses.items() if status in _BLOCKING)
        if not blocking and waited_s < BRIEF_S:
            return Result(requeue_after_s=BRIEF_S - waited_s)
        waiting = blocking or sorted(propagation.statuses)
        message = f"deletion waits for clusters [{','.join(waiting)}]"
        if blocking:
            details = propagation.describe(blocking)
            self._recorder.event(federated, WARNING, names.EVENT_ENSURE_DELETION_FAILED, f"{message}: {details}")
        status = plan_status(
            federated.get("status") or {},
            generation=int((federated.get("status") or {}).get("syncedGeneration") or 0),
            statuses=propagation.statuses,
            generations=propagation.generations,
            reason=names.REASON_ENSURE_DELETION_FAILED if blocking else names.REASON_CHECK_CLUSTERS,
            message=message,
            now=self._clock.now(),
        )
        if status is not None:
            await self._objects.patch(key, federated, {"status": status}, subresource="status")
        return Result(requeue_after_s=min(propagation.recheck_after_s or _RECHECK_S, _RECHECK_S))
