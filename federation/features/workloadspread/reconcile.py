"""The steps for one federated WorkloadSpread: find its workload, place it there with local subsets, write its status.

The scheduler decides; its quotas are in an annotation of the federated workload. A WorkloadSpread without a federated
workload is in no member. While the workload has no decision yet, everything stays as it is.

After each decision the workload waits for this controller: pods that a member creates before it has the new limits are
not spread by them. The wait ends when the members have the limits, and after `wait_s_max` in any case.

Decision: docs/decisions/0033-limits-before-pods.md
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import template_problem
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import InvalidInput, NotFound
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import SelectorError
from federation.features.workloadspread.names import EVENT_INVALID_SPREAD
from federation.features.workloadspread.rules.clusterterms import covers
from federation.features.workloadspread.rules.compiledspread import CompiledSpread, compile_spread, target_key
from federation.features.workloadspread.rules.derived import Divided, federated_status, local_subsets, running_replicas
from federation.features.workloadspread.rules.patchcheck import PatchCheck
from federation.planning.division.ordinals import parse_record
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import (
    Part,
    current_clusters,
    effective_placement,
    placement_of,
    to_merge_patch,
    with_annotations,
    with_overrides,
    with_placement,
)
from federation.planning.followers.leaderplan import identity_of
from federation.runtime.controller import DONE, Key, Result, key_of
from federation.runtime.events import WARNING
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.scheduling.framework.types import Cluster, GroupVersionKind
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.workloadspreads import (
    UNSCHEDULABLE,
    stored_caps,
    stored_name,
    stored_quotas,
    stored_running,
)

WRITER = "workloadspread"
BY_TARGET = "workloadspread/target"
"""The index of federated WorkloadSpreads by the workload that they target."""
_KIND = GroupVersionKind(WORKLOAD_SPREADS.group, WORKLOAD_SPREADS.version, WORKLOAD_SPREADS.kind)


class Reconciler:
    """Handles one federated WorkloadSpread, or one federated workload that waits for it, per call."""

    def __init__(
        self, host: Host, spreads: Informer, snapshot: Callable[[], Snapshot], patches: PatchCheck, *, wait_s_max: float
    ) -> None:
        self._client = host.client
        self._objects = host.objects
        self._members = host.members
        self._spreads = spreads
        self._snapshot = snapshot
        self._recorder = host.recorder
        self._patches = patches
        self._clock = host.clock
        self._wait_s_max = wait_s_max
        self._waiting: dict[Key, tuple[int, float]] = {}
        """The generation for which a workload waits, and since when (monotonic seconds)."""

    async def reconcile(self, key: Key) -> Result:
        """Bring a federated WorkloadSpread up to date, or end the wait of a federated workload."""
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            self._waiting.pop(key, None)
        elif template_problem(federated):
            return DONE  # The sync controller reports it.
        elif is_spread(federated):
            await self._update(key, federated)
        elif pendingcontrollers.is_at_head(federated, names.SPREAD_CONTROLLER):
            return await self._release(key, federated)
        return DONE

    async def _release(self, key: Key, workload: Object) -> Result:
        """Let the workload be dispatched if its members have their limits."""
        left_s = self._wait_left_s(key, workload)
        spreads = self._objects.by_index(BY_TARGET, target_value(workload), key.namespace)
        for spread in spreads:
            await self._update(key_of(spread), spread)
        if left_s > 0 and not (spreads and all(self._is_delivered(key_of(each), workload) for each in spreads)):
            return Result(requeue_after_s=left_s)  # the status of the federated WorkloadSpread triggers it earlier
        self._waiting.pop(key, None)
        workload = self._objects.get(key) or workload
        stages = pendingcontrollers.pending_stages(workload)
        after = pendingcontrollers.advance(stages, names.SPREAD_CONTROLLER, is_changed=False, pipeline=())
        patch = to_merge_patch(workload, with_annotations(workload, _pending(after)))
        if patch is not None:
            await self._objects.patch(key, workload, patch, writer=WRITER)
        return DONE

    def _wait_left_s(self, key: Key, workload: Object) -> float:
        """Return the seconds that the workload may still wait, 0 where WorkloadSpreads are not federated."""
        if self._objects.types.for_resource(WORKLOAD_SPREADS) is None:
            return 0.0
        generation, now_s = int(workload["metadata"].get("generation") or 0), self._clock.monotonic()
        if self._waiting.get(key, (None,))[0] != generation:
            self._waiting[key] = (generation, now_s)
        return self._waiting[key][1] + self._wait_s_max - now_s

    def _is_delivered(self, key: Key, workload: Object) -> bool:
        """Return whether the members of the workload that serve the kind and answer have the newest state."""
        federated = self._objects.get(key)
        if federated is None:
            return True
        answering = {each.name for each in self._serving(effective_placement(workload)) if not each.is_silent}
        clusters = answering.intersection(placement_of(federated, names.SPREAD_CONTROLLER))
        status = federated.get("status") or {}
        held = {entry.get("cluster"): entry.get("status") for entry in status.get("clusters") or ()}
        is_newest = status.get("syncedGeneration") == federated["metadata"].get("generation")
        return not clusters or (is_newest and all(held.get(cluster) == "OK" for cluster in clusters))

    async def _update(self, key: Key, federated: Object) -> None:
        """Write placement, overrides and status of a federated WorkloadSpread where they differ."""
        template = _template(federated)
        workload = workload_of(self._objects, federated)
        try:
            compiled = compile_spread(template)
        except (SelectorError, InvalidInput):
            return  # The scheduler reports it; what members have stays.
        divided, is_decided = None, True
        if workload is not None:
            divided, is_decided = self._division(compiled, workload)
        if is_decided:
            await self._deliver(key, federated, compiled, workload, divided)
        source = self._spreads.get(key.namespace, compiled.name)
        if source is not None and workload is not None:
            self._report_patches(source, compiled, workload)
        if source is not None and workload is not None and divided is not None:
            reported = self._reported(compiled, workload, key.namespace)
            await self._mark(compiled, workload, reported)
            await self._write_status(source, compiled, workload, divided, reported)

    def _report_patches(self, source: Object, compiled: CompiledSpread, workload: Object) -> None:
        """Report patches with which the pods of the workload are invalid: it may be newer than the WorkloadSpread."""
        spread = {**compiled.source, "metadata": source["metadata"]}
        template = {**workload["spec"]["template"], "metadata": workload["metadata"]}
        if problem := self._patches.problem(spread, template):
            self._recorder.event(source, WARNING, EVENT_INVALID_SPREAD, problem)

    def _division(self, compiled: CompiledSpread, workload: Object) -> tuple[Divided | None, bool]:
        """Return the quotas, None when every cluster has all replicas; and whether the scheduler has decided."""
        if stored_name(workload) == compiled.name:
            return Divided(stored_quotas(workload), stored_caps(workload)), True
        type_ = self._objects.type_of(workload)
        counts = {} if type_ is None else current_clusters(workload, type_)
        return None, bool(counts) and all(count is None for count in counts.values())

    async def _deliver(
        self,
        key: Key,
        federated: Object,
        compiled: CompiledSpread,
        workload: Object | None,
        divided: Divided | None,
    ) -> None:
        """Place the object in the members of the workload that serve the kind, with their subsets as overrides."""
        clusters = [] if workload is None else self._serving(effective_placement(workload))
        starts = {} if workload is None else _first_ordinals(workload)
        patches = {}
        for cluster in clusters:
            covering = [covers(own, cluster.name, cluster.labels) for own in compiled.requirements]
            first = starts.get(cluster.name, 0)
            if subsets := local_subsets(compiled.source, cluster.name, covering, divided, first):
                patches[cluster.name] = [{"op": "replace", "path": "/spec/subsets", "value": subsets}]
        type_ = self._objects.type_of(federated)
        try:
            stages = pendingcontrollers.pending_stages(federated)
        except pendingcontrollers.PipelineError:
            return  # The federate controller repairs it.
        pipeline = () if type_ is None else type_.controllers
        after = pendingcontrollers.advance(stages, names.SPREAD_CONTROLLER, is_changed=False, pipeline=pipeline)
        pending: Part = {}
        if after != stages:
            pending = with_annotations(federated, _pending(after))
        placement = with_placement(federated, names.SPREAD_CONTROLLER, patches)
        overrides = with_overrides(federated, names.SPREAD_CONTROLLER, patches)
        patch = to_merge_patch(federated, placement, overrides, pending)
        if patch is not None:
            await self._objects.patch(key, federated, patch, writer=WRITER)

    def _serving(self, clusters: frozenset[str]) -> list[Cluster]:
        by_name = self._snapshot().by_name
        return [by_name[name] for name in sorted(clusters & by_name.keys()) if _KIND in by_name[name].api_types]

    def _reported(self, compiled: CompiledSpread, workload: Object, namespace: str) -> dict[str, Mapping[str, Any]]:
        """Return the statuses of the members that serve the kind, answer, and have reported."""
        reported: dict[str, Mapping[str, Any]] = {}
        for cluster in self._serving(effective_placement(workload)):
            found = self._members.get_cached(cluster.name, WORKLOAD_SPREADS, namespace, compiled.name)
            status = (found or {}).get("status") or {}
            if found is not None and not cluster.is_silent and status.get("observedGeneration"):
                reported[cluster.name] = status
        return reported

    async def _mark(
        self, compiled: CompiledSpread, workload: Object, reported: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Write on the federated workload which subsets have pods without a node; the scheduler decides what follows.

        A mark of a member that does not answer stays: what its pods do is unknown.
        """
        by_name = self._snapshot().by_name
        kept = {c: own for c, own in stored_running(workload).items() if c in by_name and by_name[c].is_silent}
        running = running_replicas(compiled.source, reported, kept)
        patch = to_merge_patch(workload, with_annotations(workload, UNSCHEDULABLE.entry(running)))
        if patch is not None:
            await self._objects.patch(key_of(workload), workload, patch, writer=WRITER)

    async def _write_status(
        self,
        source: Object,
        compiled: CompiledSpread,
        workload: Object,
        divided: Divided,
        reported: Mapping[str, Mapping[str, Any]],
    ) -> None:
        placed, by_name = effective_placement(workload), self._snapshot().by_name
        unserved = (placed & by_name.keys()) - {cluster.name for cluster in self._serving(placed)}
        held = {**compiled.source, "metadata": source["metadata"], "status": source.get("status") or {}}
        wanted = federated_status(held, divided, reported, unserved, self._clock.now())
        if patch := create_merge_patch(source.get("status") or {}, wanted):
            with contextlib.suppress(NotFound):
                await self._client.patch(
                    WORKLOAD_SPREADS,
                    compiled.name,
                    {"status": patch},
                    namespace=source["metadata"].get("namespace", ""),
                    subresource="status",
                    field_manager=names.FIELD_MANAGER,
                )


def _pending(stages: pendingcontrollers.Stages) -> dict[str, str | None]:
    return {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(stages)}


def is_spread(federated: Object) -> bool:
    """Return whether a federated object is that of a WorkloadSpread."""
    return bool(((federated.get("spec") or {}).get("template") or {}).get("kind") == WORKLOAD_SPREADS.kind)


def target_value(workload: Object) -> str:
    """Return the index value of the federated WorkloadSpreads that target a federated workload."""
    identity = identity_of(workload)
    return f"{identity.group} {identity.kind} {identity.namespace} {identity.name}"


def workload_of(objects: FederatedObjects, federated: Object) -> Object | None:
    """Return the federated workload that a federated WorkloadSpread targets, None when there is none."""
    if template_problem(federated):
        return None
    group, kind, namespace, name = target_key(_template(federated))
    type_ = objects.types.for_group_kind(group, kind)
    return None if type_ is None else objects.get(objects.key_for(type_, namespace, name))


def target_of_federated(federated: Object) -> tuple[str, ...]:
    """Return the index value of a federated WorkloadSpread, the workload that it targets; () for other kinds."""
    if not is_spread(federated) or template_problem(federated):
        return ()
    return (" ".join(target_key(_template(federated))),)


def _template(federated: Object) -> Object:
    template: Object = federated["spec"]["template"]
    metadata = {**(template.get("metadata") or {}), "namespace": federated["metadata"].get("namespace", "")}
    return {**template, "metadata": metadata}


def _first_ordinals(workload: Object) -> dict[str, int]:
    """Return the first ordinal per cluster of a StatefulSet that is divided; {} for all others."""
    text = (workload["metadata"].get("annotations") or {}).get(names.ORDINAL_STARTS)
    if text is None:
        return {}
    base = dotpaths.get(workload["spec"]["template"], ("spec", "ordinals", "start")) or 0
    return {cluster: base + start for cluster, start in parse_record(text).items()}
