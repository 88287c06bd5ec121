"""Bring one WorkloadSpread up to date: adopt pods, write deletion costs and status, move pods that cannot run.

The status is computed from the pods and the newest state of the object, so that no admission in between is lost. It
shares a write with the admissions that wait. A write of another process repeats the reconcile. Pods are deleted after
the write, when admission skips their subset.
"""

import asyncio
from collections.abc import Iterable

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, Conflict, FederationError, InvalidInput, NotFound
from federation.apimachinery.resources import PODS, Object
from federation.apimachinery.selectors import NOTHING, SelectorError, parse_label_selector
from federation.client.client import Client, PatchType
from federation.features.workloadspread.incluster.statusledger import StatusLedger
from federation.features.workloadspread.incluster.targetworkloads import BY_CONTROLLER, Workloads
from federation.features.workloadspread.names import EVENT_DELETE_POD_FAILED, EVENT_PATCH_POD_DELETION_COST_FAILED
from federation.features.workloadspread.rules.adoption import Adoption, Grouping, group_pods
from federation.features.workloadspread.rules.deletioncosts import changed_costs
from federation.features.workloadspread.rules.injection import is_released
from federation.features.workloadspread.rules.patchcheck import PatchCheck
from federation.features.workloadspread.rules.specvalidation import exceeded_limit
from federation.features.workloadspread.rules.status import SpreadStatus, compute_status
from federation.features.workloadspread.rules.totals import has_pods, is_selected
from federation.features.workloadspread.rules.versions import workload_version
from federation.planning.corerules import PatchPod
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import WARNING, Recorder
from federation.runtime.informer import Informer

_WRITES_MAX = 32
"""Concurrent patches of pods in one reconcile."""


class Reconciler:
    """Reconciles the WorkloadSpreads of one cluster."""

    def __init__(
        self,
        client: Client,
        spreads: Informer,
        pods: Informer,
        nodes: Informer,
        workloads: Workloads,
        ledger: StatusLedger,
        recorder: Recorder,
        patch_pod: PatchPod,
        patches: PatchCheck,
        clock: Clock,
    ) -> None:
        self._client = client
        self._spreads = spreads
        self._pods = pods
        self._nodes = nodes
        self._workloads = workloads
        self._ledger = ledger
        self._recorder = recorder
        self._patch_pod = patch_pod
        self._patches = patches
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        """Write what follows from the pods of the workload; requeues for records and marks that expire."""
        cached = self._spreads.get(key.namespace, key.name)
        if cached is None or cached["metadata"].get("deletionTimestamp"):
            return DONE
        try:
            return await self._reconcile(cached)
        except (InvalidInput, SelectorError) as error:
            # Validation refuses this, unless it was not running when the object was written.
            self._recorder.event(cached, WARNING, names.EVENT_INVALID_SPREAD, str(error))
            return DONE

    async def _reconcile(self, spread: Object) -> Result:
        field, text = exceeded_limit(spread)
        if text:
            raise InvalidInput(f"{field}: {text}")
        workload = await self._workloads.find_target(spread)
        if problem := self._patches.problem(spread, workload):
            self._recorder.event(spread, WARNING, names.EVENT_INVALID_SPREAD, problem)
        total = max(0, await self._workloads.count_replicas(spread, workload))
        now = self._clock.now()  # the time at which the pods are read: records expire by it
        pods = [pod for pod in await self._pods_of(spread, workload) if is_selected(spread, pod)]
        nodes = {node["metadata"]["name"]: node for node in self._nodes.list()}
        grouping = group_pods(spread, pods, nodes, total, self._patch_pod)
        failure = await self._write_pods(spread, workload, grouping, total)

        def decide(newest: Object) -> tuple[Object | None, SpreadStatus]:
            computed = compute_status(newest, grouping.groups, total, now)
            return None if computed.status == newest.get("status") else computed.status, computed

        computed: SpreadStatus | None = await self._ledger.replace(spread, decide)
        if computed is None:  # the object is deleted
            return DONE
        for event in computed.events:
            self._recorder.event(spread, event.type_, event.reason, event.message)
        await self._delete(spread, computed.failed)
        if failure is not None:
            raise failure
        return Result(requeue_after_s=computed.requeue_after_s)

    async def _pods_of(self, spread: Object, workload: Object | None) -> list[Object]:
        """Return the pods of a target."""
        if workload is None:
            return []
        uid, namespace = workload["metadata"]["uid"], workload["metadata"]["namespace"]
        uids = [uid, *(replica_set["metadata"]["uid"] for replica_set in self._workloads.replica_sets_of(uid))]
        pods = [pod for each in uids for pod in self._pods.by_index(BY_CONTROLLER, each)]
        # Pods of a workload that was scaled to 0 count until they end: it may be scaled up again before.
        if pods or not has_pods(workload):
            return pods
        # Pods of custom kinds may be controlled by objects in between, which the selector of the scale bridges.
        scale = await self._workloads.read_scale(spread) or {}
        selector = (scale.get("status") or {}).get("selector")
        matching = parse_label_selector(selector) if selector else NOTHING
        return [pod for pod in self._pods.list(namespace) if matching.matches(pod["metadata"].get("labels"))]

    async def _write_pods(
        self, spread: Object, workload: Object | None, grouping: Grouping, total: int
    ) -> FederationError | None:
        """Patch the pods that are adopted or whose deletion cost changes; return the first failure."""
        patches: dict[str, Object] = {
            adoption.pod["metadata"]["name"]: adoption.patch
            for adoption in grouping.adoptions
            if not self._is_released(adoption)
        }
        replica_sets = self._workloads.replica_sets_of(workload["metadata"]["uid"]) if workload is not None else []
        version = workload_version(workload, replica_sets) if workload is not None else None
        # Before the controller of the workload has made its new version known, every pod would count as an old one.
        costs = changed_costs(spread, grouping.groups, version, total) if version is not None else {}
        for name, cost in costs.items():
            patches[name] = _with_cost(patches.get(name, {}), cost)
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


def _with_cost(patch: Object, cost: str) -> Object:
    metadata = patch.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), names.POD_DELETION_COST: cost}
    return {**patch, "metadata": {**metadata, "annotations": annotations}}
