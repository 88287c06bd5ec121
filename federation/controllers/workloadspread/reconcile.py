"""The steps for one federated WorkloadSpread: find its workload, place it there with local subsets, write its status.

The scheduler decides; its quotas are in an annotation of the federated workload. A WorkloadSpread without a federated
workload is in no member. While the workload has no decision yet, everything stays as it is.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import template_problem
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery import dotpaths
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import InvalidInput, NotFound
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import SelectorError
from federation.client.client import Client
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import (
    Part,
    effective_placement,
    to_merge_patch,
    with_annotations,
    with_overrides,
    with_placement,
)
from federation.planning.workloadspread.clusterterms import covers
from federation.planning.workloadspread.derived import Divided, federated_status, local_subsets
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informer import Informer
from federation.runtime.members import Members
from federation.scheduling.framework.types import Cluster, GroupVersionKind
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.unit import current_clusters
from federation.scheduling.usermigration import to_counts
from federation.scheduling.workloadspreads import (
    CompiledSpread,
    compile_spread,
    stored_caps,
    stored_name,
    stored_quotas,
    target_key,
)

WRITER = "workloadspread"
_KIND = GroupVersionKind(WORKLOAD_SPREADS.group, WORKLOAD_SPREADS.version, WORKLOAD_SPREADS.kind)


class Reconciler:
    """Handles one federated WorkloadSpread per call."""

    def __init__(
        self,
        client: Client,
        objects: FederatedObjects,
        members: Members,
        spreads: Informer,
        snapshot: Callable[[], Snapshot],
        clock: Clock,
    ) -> None:
        self._client = client
        self._objects = objects
        self._members = members
        self._spreads = spreads
        self._snapshot = snapshot
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        """Write placement, overrides and status where they differ."""
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        if template_problem(federated):
            return DONE  # The sync controller reports it.
        template = _template(federated)
        workload = self._workload(template)
        try:
            compiled = compile_spread(template)
        except (SelectorError, InvalidInput):
            return DONE  # The scheduler reports it; what members have stays.
        divided, is_decided = None, True
        if workload is not None:
            divided, is_decided = self._division(compiled, workload)
        if is_decided:
            await self._deliver(key, federated, compiled, workload, divided)
        source = self._spreads.get(key.namespace, compiled.name)
        if source is not None and workload is not None and divided is not None:
            await self._write_status(source, compiled, workload, divided)
        return DONE

    def _workload(self, template: Object) -> Object | None:
        group, kind, namespace, name = target_key(template)
        type_ = self._objects.types.for_group_kind(group, kind)
        return None if type_ is None else self._objects.get(self._objects.key_for(type_, namespace, name))

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
            pending = with_annotations(federated, {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(after)})
        placement = with_placement(federated, names.SPREAD_CONTROLLER, patches)
        overrides = with_overrides(federated, names.SPREAD_CONTROLLER, patches)
        patch = to_merge_patch(federated, placement, overrides, pending)
        if patch is not None:
            await self._objects.patch(key, federated, patch, writer=WRITER)

    def _serving(self, clusters: frozenset[str]) -> list[Cluster]:
        by_name = self._snapshot().by_name
        return [by_name[name] for name in sorted(clusters & by_name.keys()) if _KIND in by_name[name].api_types]

    async def _write_status(self, source: Object, compiled: CompiledSpread, workload: Object, divided: Divided) -> None:
        placed, by_name = effective_placement(workload), self._snapshot().by_name
        serving = self._serving(placed)
        namespace = source["metadata"].get("namespace", "")
        reported: dict[str, Mapping[str, Any]] = {}
        for cluster in serving:
            found = self._members.get_cached(cluster.name, WORKLOAD_SPREADS, namespace, compiled.name)
            status = (found or {}).get("status") or {}
            if found is not None and not cluster.is_silent and status.get("observedGeneration"):
                reported[cluster.name] = status
        unserved = (placed & by_name.keys()) - {cluster.name for cluster in serving}
        held = {**compiled.source, "metadata": source["metadata"], "status": source.get("status") or {}}
        wanted = federated_status(held, divided, reported, unserved, self._clock.now())
        if patch := create_merge_patch(source.get("status") or {}, wanted):
            with contextlib.suppress(NotFound):
                await self._client.patch(
                    WORKLOAD_SPREADS,
                    compiled.name,
                    {"status": patch},
                    namespace=namespace,
                    subresource="status",
                    field_manager=names.FIELD_MANAGER,
                )


def target_of_federated(federated: Object) -> tuple[str, ...]:
    """Return the index value of a federated WorkloadSpread, the workload that it targets; () for other kinds."""
    template = federated["spec"].get("template") or {}
    if template.get("kind") != WORKLOAD_SPREADS.kind or template_problem(federated):
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
    return {cluster: base + start for cluster, start in to_counts(parse_object(text)).items()}
