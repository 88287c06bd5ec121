"""The steps of sync for one federated object (docs/reference/sync.md), in order, each with an early return.

An object is dispatched when no controller is pending. Sync visits all clusters that the object is placed in, that its
status names, or that it departed from. The delivery to a single cluster is in `clusterdelivery.py`, what is asked in
between in `questions.py`, and what is published in the end in `publication.py`.
"""

from collections.abc import Callable
from dataclasses import replace

from federation.api import names
from federation.api.federatedtype import FederatedType, template_problem
from federation.apimachinery.finalizers import has_finalizer, with_finalizers
from federation.apimachinery.resources import Object
from federation.delivery.clusterdelivery import ClusterDelivery
from federation.delivery.clustersteps import Rollouts, Steps, Waits
from federation.delivery.deletion import Deletion
from federation.delivery.host.sources import Refusal, Sources
from federation.delivery.members.clusters import clusters_of_interest, recorded_clusters
from federation.delivery.members.depot import Depot
from federation.delivery.members.propagation import Aim, Propagation, begin_propagation
from federation.delivery.publication import WRITER, Publication
from federation.delivery.rules.content import member_key
from federation.delivery.rules.decision import Decision
from federation.delivery.rules.names import (
    EVENT_DRY_RUN_SKIPPED,
    EVENT_DRY_RUN_WORKED,
    EVENT_INVALID_TEMPLATE,
    EVENT_NO_SOURCE,
)
from federation.delivery.rules.plan import ClusterState
from federation.delivery.rules.status import ClusterStatus, clusters_of
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.planning.federatedobject.namespaces import is_never_synced
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING

_RECHECK_SOURCE_S = 1.0
_GONE_AFTER_END = Decision(status=ClusterStatus.FINISHED, message="it has finished there before the cluster left")
_RELEASED = {"metadata": {"annotations": {names.INTERNAL_ORPHAN: "all"}}}


class Reconciler:
    """Reconciles federated objects, namespaced and cluster-scoped alike."""

    def __init__(
        self,
        depot: Depot,
        sources: Sources,
        delivery: ClusterDelivery,
        rollouts: Rollouts,
        deletion: Deletion,
        publication: Publication,
    ) -> None:
        self._objects = depot.host.objects
        self._sources = sources
        self._clusters = depot.clusters
        self._delivery = delivery
        self._rollouts = rollouts
        self._records = depot.records
        self._deletion = deletion
        self._publication = publication
        self._recorder = depot.host.recorder
        self._kept = depot.kept

    async def reconcile(self, key: Key) -> Result:
        """Propagate one federated object to its clusters."""
        federated = self._objects.get(key)
        if federated is None:
            self._kept.forget_object(key)
            return DONE
        template = (federated.get("spec") or {}).get("template") or {}
        type_ = self._objects.type_of(federated)
        if type_ is None and (problem := template_problem(federated)):
            self._recorder.event(federated, WARNING, EVENT_INVALID_TEMPLATE, problem)
        if type_ is None:
            return DONE
        if federated["metadata"].get("deletionTimestamp"):
            self._kept.forget_object(key, is_deleting=True)
            if await self._sources.wants(key, federated, type_):
                # Only the federated object was deleted: federate writes it again, and the member objects stay.
                self._keep_evidence(federated, type_)
                return Result(requeue_after_s=_RECHECK_SOURCE_S)
            if await self._sources.keeps_data(key, federated, type_):
                await self._objects.patch(key, federated, _RELEASED, writer=WRITER)
                return Result(requeue_after_s=_RECHECK_SOURCE_S)
            recorded = self._clusters_to_clean(key, federated, type_)
            return await self._deletion.reconcile(key, federated, type_, recorded=recorded)
        if is_never_synced(template):
            return await self._report_own(key, federated, type_)
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
        return await self._deliver(key, federated, type_)

    def _keep_evidence(self, federated: Object, type_: FederatedType) -> None:
        """Keep the evidence of what has finished for the federated object that is written in the place of this one."""
        for cluster, each in evidence_by_cluster(federated).items():
            self._records.record_finished(member_key(federated, type_, cluster), each)

    def _clusters_to_clean(self, key: Key, federated: Object, type_: FederatedType) -> set[str]:
        """Return the clusters that may have objects of a federated object which is being deleted.

        One with the wrong scope or name must not delete member objects that another federated object delivers.
        """
        is_namespaced = type_.resource.namespaced
        if (is_namespaced and not key.namespace) or is_never_synced(federated["spec"]["template"]):
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
            self._recorder.event(federated, WARNING, EVENT_NO_SOURCE, text)
        return DONE

    async def _report_own(self, key: Key, federated: Object, type_: FederatedType) -> Result:
        """Report a namespace that each cluster has by itself as delivered; nothing of it is."""
        propagation = self._begin(key, federated, type_, self._rollouts.preview)
        for name in propagation.aim.selected:
            propagation.record(name, ClusterStatus.OK)
        await self._publication.publish(propagation)
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
            self._recorder.event(federated, WARNING, EVENT_DRY_RUN_SKIPPED, text)
            return False
        self._recorder.event(federated, NORMAL, EVENT_DRY_RUN_WORKED, "computed, but not propagated: dry-run")
        return True

    async def _deliver(self, key: Key, federated: Object, type_: FederatedType) -> Result:
        """Decide about each cluster, act, decide again where an answer came, and publish once."""
        propagation = self._begin(key, federated, type_, self._rollouts.plan)
        await self._delivery.deliver(propagation, self._visited(propagation))
        await self._publication.publish(propagation)
        return DONE if propagation.recheck_after_s is None else Result(requeue_after_s=propagation.recheck_after_s)

    def preview(self, key: Key, federated: Object, type_: FederatedType) -> dict[str, Decision]:
        """Return what the next reconcile would decide by cluster; {} while it would deliver nothing."""
        is_idle = bool(federated["metadata"].get("deletionTimestamp")) or is_never_synced(federated["spec"]["template"])
        if is_idle or not pendingcontrollers.is_ready_for_dispatch(federated):
            return {}
        propagation = self._begin(key, federated, type_, self._rollouts.preview)
        return self._delivery.preview(propagation, self._visited(propagation))

    def _begin(
        self, key: Key, federated: Object, type_: FederatedType, plan: Callable[[Aim], tuple[Steps, Waits]]
    ) -> Propagation:
        """Return a propagation with the steps of all clusters."""
        selected, recorded = effective_placement(federated), recorded_clusters(federated)
        reported = clusters_of(federated).keys()
        plain = begin_propagation(key, federated, type_, selected=selected, recorded=recorded, published=reported)
        subject = plain.aim.subject
        # A cluster whose answer that it lacks the object came late may be published, although nothing was written.
        late = {name for name in selected if self._records.is_late_absence(subject.member_key(name))}
        aim = replace(plain.aim, published=reported - late)
        steps, waits = plan(aim)
        return replace(plain, aim=replace(aim, steps=steps, waits=waits))

    def _visited(self, propagation: Propagation) -> list[ClusterState]:
        """Return the clusters to decide about, and record the results of clusters that are gone."""
        aim, visited = propagation.aim, []
        for name in sorted(aim.selected | aim.recorded):
            state = self._clusters.get(name)
            is_selected, is_recorded = name in aim.selected, name in aim.recorded
            if state is None and is_selected and name in propagation.finished:
                propagation.decisions[name] = _GONE_AFTER_END
                propagation.record(name, ClusterStatus.FINISHED, message=_GONE_AFTER_END.message)
            elif state is None:
                propagation.decisions[name] = Decision()
            elif state.joined and _is_visited(state, is_selected=is_selected, is_recorded=is_recorded):
                visited.append(state)
        return visited


def _is_visited(state: ClusterState, *, is_selected: bool, is_recorded: bool) -> bool:
    """Return whether sync acts in the cluster: a leaving cluster gets no new objects."""
    return is_recorded or (is_selected and not state.terminating)
