"""The steps of sync for one federated object (spec §10.2), in order, each with an early return.

An object is dispatched when its pipeline is empty. All clusters that it is placed in, that its status names, or that it
departed from are visited; then one status patch says what was found, and only when it says something new. Nothing is
decided here about a single cluster: that is `dispatching.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType, template_problem
from federation.api.resources import Object
from federation.base.clock import Clock
from federation.controllers.sync.clusters import Clusters
from federation.controllers.sync.deletion import Deletion
from federation.controllers.sync.dispatching import Dispatcher, Round, begin_round
from federation.controllers.sync.host import Host, clusters_of_interest, departed_clusters, recorded_clusters
from federation.dispatch.plan import ClusterFacts
from federation.dispatch.status import ClusterStatus, clusters_of, plan_status
from federation.planning import pipeline
from federation.planning.memberobject import effective_placement
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.runtime.federatedtypes import FederatedTypes

_NAMESPACES_NEVER_SYNCED = frozenset(
    {"kube-system", "kube-public", "kube-node-lease", "default", names.SYSTEM_NAMESPACE}
)


class Reconciler:
    """Reconciles federated objects, namespaced and cluster-scoped alike."""

    def __init__(
        self,
        host: Host,
        types: FederatedTypes,
        clusters: Clusters,
        dispatcher: Dispatcher,
        deletion: Deletion,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._host = host
        self._types = types
        self._clusters = clusters
        self._dispatcher = dispatcher
        self._deletion = deletion
        self._recorder = recorder
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        """Bring one federated object to its clusters."""
        federated = self._host.federated(key)
        if federated is None:
            return DONE
        template = (federated.get("spec") or {}).get("template") or {}
        type_ = self._types.for_federated(federated)
        if type_ is None and (problem := template_problem(federated)):
            self._recorder.event(federated, WARNING, names.EVENT_INVALID_TEMPLATE, problem)
        if type_ is None or _is_never_synced(template):
            return DONE
        if federated["metadata"].get("deletionTimestamp"):
            return await self._deletion.reconcile(key, federated, type_, recorded=clusters_of_interest(federated))
        if not _is_ready_for_dispatch(federated):
            return DONE
        if names.SYNC_FINALIZER not in (federated["metadata"].get("finalizers") or ()):
            patched = await self._add_finalizer(key, federated)
            if patched is None:
                return DONE
            federated = patched
        if self._is_dry_run(federated):
            return DONE
        return await self._dispatch(key, federated, type_)

    async def _add_finalizer(self, key: Key, federated: Object) -> Object | None:
        finalizers = [*(federated["metadata"].get("finalizers") or ()), names.SYNC_FINALIZER]
        return await self._host.patch(key, federated, {"metadata": {"finalizers": finalizers}})

    def _is_dry_run(self, federated: Object) -> bool:
        """Say whether nothing may be propagated: annotation dry-run, while no cluster holds the object yet."""
        if (federated["metadata"].get("annotations") or {}).get(names.DRY_RUN) != "true":
            return False
        if clusters_of(federated):
            text = "dry-run is ignored: the object is in clusters already"
            self._recorder.event(federated, WARNING, names.EVENT_DRY_RUN_SKIPPED, text)
            return False
        self._recorder.event(federated, NORMAL, names.EVENT_DRY_RUN_WORKED, "computed, but not propagated: dry-run")
        return True

    async def _dispatch(self, key: Key, federated: Object, type_: FederatedType) -> Result:
        round_ = begin_round(key, federated, type_)
        selected, recorded = effective_placement(federated), recorded_clusters(federated)
        done_with: set[str] = set()
        for name in sorted(selected | recorded):
            facts = self._clusters.get(name)
            if facts is None or not facts.joined:
                # No such cluster: there is nothing that could be done there, now or later.
                if facts is None:
                    done_with.add(name)
                continue
            if not _is_visited(facts, is_selected=name in selected, is_recorded=name in recorded):
                continue
            decision = self._dispatcher.visit(round_, facts, is_selected=name in selected, is_recorded=name in recorded)
            if decision.operation is None and decision.status is None:
                done_with.add(name)
        is_blind = self._keep_unlooked(round_)
        await self._dispatcher.settle(round_)
        if round_.started or not (is_blind or round_.is_premature):
            await self._write(key, federated, round_, done_with | selected, is_blind=is_blind)
        return DONE if round_.recheck_after_s is None else Result(requeue_after_s=round_.recheck_after_s)

    def _keep_unlooked(self, round_: Round) -> bool:
        """Publish nothing new about clusters whose cache is not there yet, and say whether there are any.

        The object is reconciled again as soon as the cache is complete.
        """
        before = clusters_of(round_.federated)
        is_blind = False
        for cluster, status in list(round_.statuses.items()):
            if status is ClusterStatus.CACHED_RETRIEVAL_FAILED:
                is_blind = True
                known = before.get(cluster, {}).get("status", "")
                is_known = known in ClusterStatus._value2member_map_
                round_.statuses[cluster] = ClusterStatus(known) if is_known else ClusterStatus.PENDING_CREATE
                round_.generations[cluster] = int(before.get(cluster, {}).get("lastObservedGeneration", 0))
        return is_blind

    async def _write(
        self, key: Key, federated: Object, round_: Round, done_with: Iterable[str], *, is_blind: bool
    ) -> None:
        before = federated.get("status") or {}
        # What is kept of a cluster that could not be looked at is about an earlier generation.
        generation = before.get("syncedGeneration") if is_blind else federated["metadata"].get("generation")
        status = plan_status(
            before,
            generation=int(generation or 0),
            statuses=round_.statuses,
            generations=round_.generations,
            message=describe(round_),
            resources_updated=round_.resources_updated,
            now=self._clock.now(),
        )
        if status is not None:
            patched = await self._host.patch(key, federated, {"status": status}, subresource="status")
            if patched is None:
                return
            federated = patched
        departed = departed_clusters(federated)
        remaining = departed.difference(done_with)
        if remaining != departed:
            value = orjson.dumps(sorted(remaining)).decode() if remaining else None
            await self._host.patch(key, federated, {"metadata": {"annotations": {names.DEPARTED_CLUSTERS: value}}})


def describe(round_: Round) -> str:
    """Return one line that names every cluster which is not OK, and why."""
    parts = [
        f"{cluster}: {status.value}" + (f" ({message})" if (message := round_.messages.get(cluster)) else "")
        for cluster, status in sorted(round_.statuses.items())
        if status is not ClusterStatus.OK
    ]
    return "; ".join(parts)


def _is_visited(facts: ClusterFacts, *, is_selected: bool, is_recorded: bool) -> bool:
    """Say whether the cluster counts: a leaving cluster is not newly taken on."""
    return is_recorded or (is_selected and not facts.terminating)


def _is_ready_for_dispatch(federated: Object) -> bool:
    """Say whether every controller of the pipeline had its turn; a broken annotation is cured by federate."""
    try:
        return pipeline.may_dispatch(pipeline.pending(federated))
    except pipeline.PipelineError:
        return False


def _is_never_synced(template: Mapping[str, Any]) -> bool:
    return (
        template.get("kind") == "Namespace"
        and template.get("apiVersion") == "v1"
        and (template.get("metadata") or {}).get("name") in _NAMESPACES_NEVER_SYNCED
    )
