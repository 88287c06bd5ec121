"""The steps of sync for one federated object (docs/reference/sync.md), in order, each with an early return.

An object is dispatched when no controller is pending. Sync visits all clusters that the object is placed in, that its
status names, or that it departed from; then it patches the status once, and only when something changed. Decisions
about a single cluster are in `clusterdispatch.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType, template_problem
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock
from federation.apimachinery.finalizers import has_finalizer, with_finalizers
from federation.apimachinery.resources import Object
from federation.delivery.clusterdispatch import Dispatcher
from federation.delivery.clustersteps import Rollouts
from federation.delivery.deletion import Deletion
from federation.delivery.host.hostadmission import HostAdmission
from federation.delivery.host.missingpolicy import MissingPolicyReports
from federation.delivery.host.sources import Refusal, Sources
from federation.delivery.members.clusters import Clusters, clusters_of_interest, recorded_clusters
from federation.delivery.members.memberoperations import MemberOperations
from federation.delivery.members.propagation import Propagation, begin_propagation
from federation.delivery.rules.plan import ClusterState
from federation.delivery.rules.status import AS_WANTED, ClusterStatus, clusters_of, plan_status
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import departed_clusters, effective_placement
from federation.planning.overrides.policies import stored_policies
from federation.planning.rendering.verdicts import plan_report
from federation.planning.status.sourceconditions import describe_missing_policy
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.runtime.federatedobjects import FederatedObjects

WRITER = "sync"
ExpectsPlacement = Callable[[FederatedType, Mapping[str, Any]], bool]
"""Returns whether policies, or its type, place a source."""
_RECHECK_SOURCE_S = 1.0
_REJUDGE_S = 0.1
_CLUSTER_GONE = "it has finished there before the cluster left"
_RELEASED = {"metadata": {"annotations": {names.INTERNAL_ORPHAN: "all"}}}
_NAMESPACES_NEVER_SYNCED = frozenset(
    {"kube-system", "kube-public", "kube-node-lease", "default", names.SYSTEM_NAMESPACE}
)


class Reconciler:
    """Reconciles federated objects, namespaced and cluster-scoped alike."""

    def __init__(
        self,
        objects: FederatedObjects,
        sources: Sources,
        clusters: Clusters,
        dispatcher: Dispatcher,
        rollouts: Rollouts,
        operations: MemberOperations,
        deletion: Deletion,
        admission: HostAdmission,
        expects_placement: ExpectsPlacement,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._objects = objects
        self._sources = sources
        self._clusters = clusters
        self._dispatcher = dispatcher
        self._rollouts = rollouts
        self._operations = operations
        self._deletion = deletion
        self._admission = admission
        self._expects_placement = expects_placement
        self._recorder = recorder
        self._missing_policies = MissingPolicyReports(recorder, clock)
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        """Propagate one federated object to its clusters."""
        federated = self._objects.get(key)
        if federated is None:
            self._forget(key)
            self._deletion.forget(key)
            return DONE
        template = (federated.get("spec") or {}).get("template") or {}
        type_ = self._objects.type_of(federated)
        if type_ is None and (problem := template_problem(federated)):
            self._recorder.event(federated, WARNING, names.EVENT_INVALID_TEMPLATE, problem)
        if type_ is None:
            return DONE
        if federated["metadata"].get("deletionTimestamp"):
            self._forget(key)
            if await self._sources.wants(key, federated, type_):
                # Only the federated object was deleted: federate writes it again, and the member objects stay.
                self._dispatcher.keep_evidence(federated, type_)
                return Result(requeue_after_s=_RECHECK_SOURCE_S)
            if await self._sources.keeps_data(key, federated, type_):
                await self._objects.patch(key, federated, _RELEASED, writer=WRITER)
                return Result(requeue_after_s=_RECHECK_SOURCE_S)
            recorded = self._clusters_to_clean(key, federated, type_)
            return await self._deletion.reconcile(key, federated, type_, recorded=recorded)
        if _is_never_synced(template):
            return DONE
        if not pendingcontrollers.is_ready_for_dispatch(federated):
            self._objects.defer(key, writer=WRITER)
            return DONE
        if (refusal := self._sources.check(key, federated, type_)) is not None:
            return await self._refuse(key, federated, refusal)
        if not has_finalizer(federated, names.SYNC_FINALIZER):
            patched = await self._add_finalizer(key, federated)
            if patched is None:
                return DONE
            federated = patched
        if self._is_dry_run(federated):
            return DONE
        return await self._dispatch(key, federated, type_)

    def _forget(self, key: Key) -> None:
        """Forget what was kept for an object that nothing is delivered of any more."""
        self._sources.forget(key)
        self._admission.forget(key)
        self._missing_policies.forget(key)
        self._rollouts.forget(key)

    def _clusters_to_clean(self, key: Key, federated: Object, type_: FederatedType) -> set[str]:
        """Return the clusters that may have objects of a federated object which is being deleted.

        One with the wrong scope or name must not delete member objects that another federated object delivers.
        """
        is_namespaced = type_.resource.namespaced
        if (is_namespaced and not key.namespace) or _is_never_synced(federated["spec"]["template"]):
            return set()
        name = federated["spec"]["template"]["metadata"]["name"]
        regular = self._objects.key_for(type_, key.namespace if is_namespaced else "", name)
        is_shared = regular != key and self._objects.get(regular) is not None
        return set() if is_shared else clusters_of_interest(federated)

    async def _refuse(self, key: Key, federated: Object, refusal: Refusal) -> Result:
        """Deliver nothing, and report why. Member objects stay until the federated object is deleted."""
        if not refusal.is_final:
            return Result(requeue_after_s=_RECHECK_SOURCE_S)
        is_news = await self._objects.set_condition(
            key, names.PROPAGATED, status="False", reason=names.REASON_NO_SOURCE, message=refusal.message, writer=WRITER
        )
        if is_news:
            text = f"not delivered, because it does not follow from an object of the host: {refusal.message}"
            self._recorder.event(federated, WARNING, names.EVENT_NO_SOURCE, text)
        return DONE

    async def _add_finalizer(self, key: Key, federated: Object) -> Object | None:
        finalizers = with_finalizers(federated, names.SYNC_FINALIZER)
        return await self._objects.patch(key, federated, {"metadata": {"finalizers": finalizers}}, writer=WRITER)

    def _is_dry_run(self, federated: Object) -> bool:
        """Return whether the annotation dry-run is set and no cluster has the object; emit an event about it."""
        if (federated["metadata"].get("annotations") or {}).get(names.DRY_RUN) != "true":
            return False
        if clusters_of(federated):
            text = "dry-run is ignored: the object is in clusters already"
            self._recorder.event(federated, WARNING, names.EVENT_DRY_RUN_SKIPPED, text)
            return False
        self._recorder.event(federated, NORMAL, names.EVENT_DRY_RUN_WORKED, "computed, but not propagated: dry-run")
        return True

    async def _dispatch(self, key: Key, federated: Object, type_: FederatedType) -> Result:
        propagation = begin_propagation(key, federated, type_)
        selected, recorded = effective_placement(federated), recorded_clusters(federated)
        propagation.lacking = self._operations.late_absences(propagation, selected)
        self._rollouts.plan(propagation, selected, recorded)
        settled = self._visit(propagation, selected | recorded, selected, recorded)
        if propagation.unseen:
            await self._visit_unseen(propagation, selected, recorded)
        if propagation.unjudged:
            await self._visit_judged(propagation, selected, recorded)
        is_uncached = self._keep_uncached_clusters(propagation)
        await self._operations.wait(propagation)
        if propagation.started or not (is_uncached or propagation.has_brief_wait):
            await self._write(propagation, settled | selected, is_uncached=is_uncached)
        await self._report_admission(key, federated, propagation)
        return DONE if propagation.recheck_after_s is None else Result(requeue_after_s=propagation.recheck_after_s)

    def _visit(
        self, propagation: Propagation, clusters: Iterable[str], selected: AbstractSet[str], recorded: AbstractSet[str]
    ) -> set[str]:
        """Dispatch the object to each of the clusters; return those that have nothing of it."""
        settled: set[str] = set()
        for name in sorted(clusters):
            state = self._clusters.get(name)
            if state is None or not state.joined:
                if state is None:
                    settled.add(name)
                    if name in selected and name in propagation.finished:
                        propagation.record(name, ClusterStatus.FINISHED, message=_CLUSTER_GONE)
                continue
            if not _is_visited(state, is_selected=name in selected, is_recorded=name in recorded):
                continue
            decision = self._dispatcher.dispatch(
                propagation, state, is_selected=name in selected, is_recorded=name in recorded
            )
            if decision.operation is None and decision.status is None:
                settled.add(name)
        return settled

    async def _visit_unseen(
        self, propagation: Propagation, selected: AbstractSet[str], recorded: AbstractSet[str]
    ) -> None:
        """Dispatch a new object to clusters with an incomplete cache, each as soon as it answers that it lacks it."""
        async for cluster in self._operations.look_up_unseen(propagation):
            propagation.absent.add(cluster)
            self._visit(propagation, (cluster,), selected, recorded)

    async def _visit_judged(
        self, propagation: Propagation, selected: AbstractSet[str], recorded: AbstractSet[str]
    ) -> None:
        """Ask the host's admission about the objects that must not leave unjudged, and dispatch those."""
        unjudged, propagation.unjudged = propagation.unjudged, set()
        are_answered = await self._admission.ask(propagation, unjudged)
        self._visit(propagation, unjudged, selected, recorded)
        if propagation.unjudged and are_answered:  # the configuration of admission has changed meanwhile
            propagation.recheck(_REJUDGE_S)

    async def _report_admission(self, key: Key, federated: Object, propagation: Propagation) -> None:
        """Publish the host's verdict. An object that was never held has no condition and costs no write."""
        held = self._admission.track(propagation)
        present = (federated.get("status") or {}).get("conditions")
        if propagation.unjudged or (not held and conditions.find(present, names.ADMITTED) is None):
            return
        report = plan_report(held, stored_policies(federated))
        is_news = await self._objects.set_condition(
            key, names.ADMITTED, status=report.status, reason=report.reason, message=report.message, writer=WRITER
        )
        if is_news and held:
            self._recorder.event(federated, WARNING, report.reason, f"held from {report.message}")

    def _keep_uncached_clusters(self, propagation: Propagation) -> bool:
        """Keep the published status of clusters whose cache is not complete yet; return whether there are any.

        The object is reconciled again as soon as the cache is complete.
        """
        before = clusters_of(propagation.federated)
        is_uncached = False
        for cluster, status in list(propagation.statuses.items()):
            if status is ClusterStatus.CACHED_RETRIEVAL_FAILED:
                is_uncached = True
                known = before.get(cluster, {}).get("status", "")
                is_known = known in ClusterStatus._value2member_map_
                propagation.statuses[cluster] = ClusterStatus(known) if is_known else ClusterStatus.PENDING_CREATE
                propagation.generations[cluster] = int(before.get(cluster, {}).get("lastObservedGeneration", 0))
                propagation.messages[cluster] = str(before.get(cluster, {}).get("message", ""))
        return is_uncached

    async def _write(self, propagation: Propagation, settled: Iterable[str], *, is_uncached: bool) -> None:
        key, federated = propagation.key, propagation.federated
        before = federated.get("status") or {}
        # Statuses kept for clusters without a cache describe an earlier generation.
        generation = before.get("syncedGeneration") if is_uncached else federated["metadata"].get("generation")
        reason, message = self._undelivered(propagation)
        status = plan_status(
            before,
            generation=int(generation or 0),
            statuses=propagation.statuses,
            generations=propagation.generations,
            messages=propagation.messages,
            finished=propagation.finished,
            reason=reason,
            message=message,
            resources_updated=propagation.resources_updated,
            now=self._clock.now(),
        )
        if status is not None:
            patched = await self._objects.patch(key, federated, {"status": status}, subresource="status")
            if patched is None:
                return
            federated = patched
        self._missing_policies.update(propagation, before, reason, message)
        departed = departed_clusters(federated)
        remaining = departed.difference(settled)
        if remaining != departed:
            value = orjson.dumps(sorted(remaining)).decode() if remaining else None
            body = {"metadata": {"annotations": {names.DEPARTED_CLUSTERS: value}}}
            await self._objects.patch(key, federated, body, writer=WRITER)

    def _undelivered(self, propagation: Propagation) -> tuple[str, str]:
        """Return the reason and message of Propagated=False, "" for the reason if the clusters' statuses decide it."""
        federated, statuses = propagation.federated, propagation.statuses
        placed = effective_placement(federated)
        if not placed and AS_WANTED.issuperset(statuses.values()):
            # Nothing is placed: also where an object that only its source's deletion removes is kept.
            return self._unplaced(propagation)
        missing = sorted(placed - statuses.keys())
        failing = [cluster for cluster, status in statuses.items() if status not in AS_WANTED]
        parts = [f"{cluster}: the cluster is not joined" for cluster in missing]
        message = "; ".join(filter(None, (*parts, propagation.describe(failing))))
        return names.REASON_CHECK_CLUSTERS if missing else "", message

    def _unplaced(self, propagation: Propagation) -> tuple[str, str]:
        federated = propagation.federated
        scheduled = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
        if scheduled is not None and scheduled.get("status") != "True":
            return names.REASON_NOT_PLACED, str(scheduled.get("message", ""))
        metadata, template = federated["metadata"], federated["spec"]["template"]["metadata"]
        labels = {**(template.get("labels") or {}), **(metadata.get("labels") or {})}
        namespace = metadata.get("namespace", "")
        source = {"metadata": {"namespace": namespace, "name": template["name"], "labels": labels}}
        if self._expects_placement(propagation.type_, source):
            return names.REASON_NOT_PLACED, "it is placed in no cluster"
        return names.REASON_NO_POLICY, describe_missing_policy(namespace)


def _is_visited(state: ClusterState, *, is_selected: bool, is_recorded: bool) -> bool:
    """Return whether sync acts in the cluster: a leaving cluster gets no new objects."""
    return is_recorded or (is_selected and not state.terminating)


def _is_never_synced(template: Mapping[str, Any]) -> bool:
    return (
        template.get("kind") == "Namespace"
        and template.get("apiVersion") == "v1"
        and (template.get("metadata") or {}).get("name") in _NAMESPACES_NEVER_SYNCED
    )
