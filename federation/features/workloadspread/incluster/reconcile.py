"""Bring one WorkloadSpread up to date: adopt pods, write deletion costs and status, move pods that cannot run.

The status is computed from the pods and the newest state of the object, so that no admission in between is lost. It
shares a write with the admissions that wait. Pods are adopted and deleted after the write, when admission counts the
adopted ones and skips the subset of the others.

Instances see pods at different times. One that sees a new pod ends its record; another that has not seen that pod yet
would count neither. So the status has the newest resourceVersion of its pods, and is counted again only from a cache
that is at least as new.
"""

import asyncio
from collections.abc import Container, Iterable, Mapping

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, Conflict, FederationError, InvalidInput, NotFound
from federation.apimachinery.objectshape import revision_of, to_revision
from federation.apimachinery.resources import PODS, REPLICA_SETS, Object
from federation.apimachinery.selectors import NOTHING, SelectorError, parse_label_selector
from federation.client.client import Client, PatchType
from federation.features.workloadspread.incluster.absences import Absences
from federation.features.workloadspread.incluster.statusledger import Decide, StatusLedger
from federation.features.workloadspread.incluster.targetworkloads import BY_CONTROLLER, Workloads
from federation.features.workloadspread.names import (
    EVENT_DELETE_POD_FAILED,
    EVENT_INVALID_SPREAD,
    EVENT_PATCH_POD_DELETION_COST_FAILED,
)
from federation.features.workloadspread.rules import ledger
from federation.features.workloadspread.rules.adoption import NO_SUBSET, Adoption, Grouping, group_pods
from federation.features.workloadspread.rules.deletioncosts import changed_costs
from federation.features.workloadspread.rules.injection import is_released
from federation.features.workloadspread.rules.moments import shortest_s
from federation.features.workloadspread.rules.patchcheck import PatchCheck
from federation.features.workloadspread.rules.references import controller_owner, group_of
from federation.features.workloadspread.rules.specvalidation import exceeded_limit
from federation.features.workloadspread.rules.status import SpreadStatus, compute_status
from federation.features.workloadspread.rules.totals import has_pods, is_selected
from federation.features.workloadspread.rules.versions import workload_version
from federation.planning.automigration.podanalysis import is_live
from federation.planning.corerules import PatchPod
from federation.runtime.controller import DONE, Key, Result, key_of
from federation.runtime.events import WARNING, Recorder
from federation.runtime.informer import Informer

BY_SPREAD = "spread"
"""The index of pods by the WorkloadSpread that their annotation names, as text of its key."""
_WRITES_MAX = 32
"""Concurrent patches of pods in one reconcile."""
_NODE_S = 5.0
"""The pause before the next look for the node of a pod that may be adopted there."""


class Reconciler:
    """Reconciles the WorkloadSpreads of one cluster."""

    def __init__(
        self,
        client: Client,
        spreads: Informer,
        pods: Informer,
        nodes: Informer,
        workloads: Workloads,
        status_ledger: StatusLedger,
        recorder: Recorder,
        patch_pod: PatchPod,
        patches: PatchCheck,
        absences: Absences,
        clock: Clock,
    ) -> None:
        self._client = client
        self._spreads = spreads
        self._pods = pods
        self._nodes = nodes
        self._workloads = workloads
        self._ledger = status_ledger
        self._recorder = recorder
        self._patch_pod = patch_pod
        self._patches = patches
        self._absences = absences
        self._clock = clock
        self._ended: dict[Key, set[str]] = {}

    def note_end(self, pod: Object) -> None:
        """Note that a pod was seen and is gone: its record ends, even if no count has seen it."""
        match = ledger.parse_match(pod)
        if match is not None and ledger.has_unique_id(pod):  # another name can be that of the next pod
            self._ended.setdefault(Key(pod["metadata"]["namespace"], match.spread), set()).add(ledger.id_of(pod))

    def forget(self, spread: Object) -> None:
        """Drop what is kept for a deleted object."""
        self._ended.pop(key_of(spread), None)
        self._absences.forget(spread)

    async def reconcile(self, key: Key) -> Result:
        """Write what follows from the pods of the workload; requeues for records and marks that expire."""
        cached = self._spreads.get(key.namespace, key.name)
        if cached is None or cached["metadata"].get("deletionTimestamp"):
            return DONE
        try:
            return await self._reconcile(cached)
        except (InvalidInput, SelectorError) as error:
            # Validation refuses this, unless it was not running when the object was written.
            self._recorder.event(cached, WARNING, EVENT_INVALID_SPREAD, str(error))
            return DONE

    async def _reconcile(self, spread: Object) -> Result:
        field, text = exceeded_limit(spread)
        if text:
            raise InvalidInput(f"{field}: {text}")
        workload = await self._workloads.find_target(spread)
        if problem := self._patches.problem(spread, workload):
            self._recorder.event(spread, WARNING, EVENT_INVALID_SPREAD, problem)
        total = max(0, await self._workloads.count_replicas(spread, workload))
        ended = frozenset(self._ended.get(key_of(spread), ()))
        count = await self._count(spread, workload, total, ended)
        _, (_, grouping) = count(self._ledger.newest(spread))
        # Scale-in does not wait for costs, so they are written first. Adoptions come after the status.
        failures = [await self._patch_pods(spread, self._costs(spread, workload, grouping, total))]
        found: tuple[SpreadStatus, Grouping] | None = await self._ledger.change(spread, count)
        if found is None:  # the object is deleted
            return DONE
        self._ended.get(key_of(spread), set()).difference_update(ended)
        computed, grouping = found
        for event in computed.events:
            self._recorder.event(spread, event.type_, event.reason, event.message)
        adoptions = {each.pod["metadata"]["name"]: each for each in grouping.adoptions if not self._is_released(each)}
        failures.append(await self._patch_pods(spread, {name: each.patch for name, each in adoptions.items()}))
        await self._delete(spread, computed.failed)
        for failure in failures:
            if failure is not None:
                raise failure
        unknown_s = _NODE_S if self._has_unknown_node(grouping) else None
        return Result(requeue_after_s=shortest_s((computed.requeue_after_s, unknown_s)))

    def _has_unknown_node(self, grouping: Grouping) -> bool:
        """Return True if a pod outside of all subsets runs on a node that the cache does not have yet."""
        outside = [pod for by_subset in grouping.groups.values() for pod in by_subset.get(NO_SUBSET, ())]
        nodes = [(pod.get("spec") or {}).get("nodeName") for pod in outside if is_live(pod)]
        return any(node and self._nodes.get("", node) is None for node in nodes)

    async def _count(self, spread: Object, workload: Object | None, total: int, ended: Container[str]) -> Decide:
        """Return the change that counts the pods as they are now."""
        seen = {ledger.id_of(pod) for pod in await self._pods_of(spread, workload)}
        records = ledger.creation_records(self._ledger.newest(spread))
        absent = await self._absences.prove(spread, {each: records[each] for each in records.keys() - seen})
        revision = to_revision(self._pods.resource_version)  # before the pods, which may be newer
        pods = [pod for pod in await self._pods_of(spread, workload) if is_selected(spread, pod)]
        now = self._clock.now()
        counted = max(map(revision_of, pods), default=0)
        nodes = {node["metadata"]["name"]: node for node in self._nodes.list()}

        def decide(newest: Object) -> tuple[Object | None, tuple[SpreadStatus, Grouping]]:
            old = newest.get("status") or {}
            known = to_revision(old.get("podsResourceVersion") or "")
            if revision < known:
                raise Conflict("another instance has counted newer pods")
            reduced = {**newest, "status": ledger.without_creations(newest, ended, total) or old}
            grouping = group_pods(reduced, pods, nodes, total, self._patch_pod)
            reduced["status"] = ledger.without_creations(reduced, grouping.released, total) or reduced["status"]
            computed = compute_status(
                reduced, grouping.groups, total, now, is_absent=lambda pod_id, time: (pod_id, time) in absent
            )
            if _with_revision(computed.status, known) == old:
                return None, (computed, grouping)
            return _with_revision(computed.status, max(known, counted)), (computed, grouping)

        return decide

    async def _pods_of(self, spread: Object, workload: Object | None) -> list[Object]:
        """Return the pods of a target."""
        if workload is None:
            return []
        uid, namespace = workload["metadata"]["uid"], workload["metadata"]["namespace"]
        uids = [uid, *(replica_set["metadata"]["uid"] for replica_set in self._workloads.replica_sets_of(uid))]
        pods = [pod for each in uids for pod in self._pods.by_index(BY_CONTROLLER, each)]
        pods += [
            pod
            for pod in self._pods.by_index(BY_SPREAD, str(key_of(spread)))
            if _is_of_replica_set(pod) and self._workloads.cached_controller(pod) is None
        ]  # of ReplicaSets that the cache does not have yet: they must not be missing from a count
        # Pods of a workload that was scaled to 0 count until they end: it may be scaled up again before.
        if pods or not has_pods(workload):
            return pods
        # Pods of custom kinds may be controlled by objects in between, which the selector of the scale bridges.
        scale = await self._workloads.read_scale(spread) or {}
        selector = (scale.get("status") or {}).get("selector")
        matching = parse_label_selector(selector) if selector else NOTHING
        return [pod for pod in self._pods.list(namespace) if matching.matches(pod["metadata"].get("labels"))]

    def _costs(self, spread: Object, workload: Object | None, grouping: Grouping, total: int) -> dict[str, Object]:
        """Return the patches of the pods whose deletion cost changes."""
        replica_sets = self._workloads.replica_sets_of(workload["metadata"]["uid"]) if workload is not None else []
        version = workload_version(workload, replica_sets) if workload is not None else None
        # Before the controller of the workload has made its new version known, every pod would count as an old one.
        costs = changed_costs(spread, grouping.groups, version, total) if version is not None else {}
        return {name: {"metadata": {"annotations": {names.POD_DELETION_COST: cost}}} for name, cost in costs.items()}

    async def _patch_pods(self, spread: Object, patches: Mapping[str, Object]) -> FederationError | None:
        """Patch the pods by name; return the first failure."""
        namespace, limit = spread["metadata"]["namespace"], asyncio.Semaphore(_WRITES_MAX)

        async def patch(name: str, body: Object) -> FederationError | None:
            async with limit:
                try:
                    await self._client.patch(PODS, name, body, patch_type=PatchType.STRATEGIC, namespace=namespace)
                except NotFound:
                    return None
                except (ApiError, ClusterError) as error:
                    message = f"pod {name}: {error}"
                    self._recorder.event(spread, WARNING, EVENT_PATCH_POD_DELETION_COST_FAILED, message)
                    return error
            return None

        failures = await asyncio.gather(*(patch(name, body) for name, body in patches.items()))
        return next((failure for failure in failures if failure is not None), None)

    def _is_released(self, adoption: Adoption) -> bool:
        """Return True if the controller of the pod would replace it because of the patch, or nothing can apply it."""
        try:
            patched = self._patch_pod(adoption.pod, adoption.patch)
        except ApiError:
            return True
        return is_released(self._workloads.cached_controller(adoption.pod), adoption.pod, patched)

    async def _delete(self, spread: Object, pods: Iterable[Object]) -> None:
        for pod in pods:
            metadata = pod["metadata"]
            try:
                await self._client.delete(PODS, metadata["name"], metadata["namespace"], uid=metadata["uid"])
            except (NotFound, Conflict):
                continue
            except (ApiError, ClusterError) as error:
                message = f"pod {metadata['name']} cannot be moved: {error}"
                self._recorder.event(spread, WARNING, EVENT_DELETE_POD_FAILED, message)


def _is_of_replica_set(pod: Object) -> bool:
    owner = controller_owner(pod) or {}
    return (group_of(owner), owner.get("kind")) == (REPLICA_SETS.group, REPLICA_SETS.kind)


def _with_revision(status: Object, revision: int) -> Object:
    return {**status, "podsResourceVersion": str(revision)} if revision else status
