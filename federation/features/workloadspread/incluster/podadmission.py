"""Admission of pods: a new pod gets the changes of its subset, and a removed one gives its place back.

Every admission of a managed pod is a write to its WorkloadSpread (`statusledger.py`). Pods without a WorkloadSpread in
their namespace cost one look-up in memory, while the watch is healthy. Dry runs change nothing.

A pod waits for the controller where the status does not tell yet how many places are free: the object is new or has
changed, or a deletion is recorded that will free a place. A pod that is admitted without a decision gets an Event.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import Clock
from federation.apimachinery.entropy import Entropy
from federation.apimachinery.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    Conflict,
    FederationError,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    WebhookFailed,
)
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import SelectorError
from federation.client.client import Client
from federation.features.workloadspread.incluster.reviews import ReviewAnswer
from federation.features.workloadspread.incluster.simulation import Simulation
from federation.features.workloadspread.incluster.statusledger import StatusLedger
from federation.features.workloadspread.incluster.targetworkloads import Workloads
from federation.features.workloadspread.names import EVENT_ADMITTED_WITHOUT_DECISION, EVENT_INVALID_SPREAD
from federation.features.workloadspread.rules import ledger
from federation.features.workloadspread.rules.deletioncosts import initial_cost
from federation.features.workloadspread.rules.injection import inject_subset, is_released
from federation.features.workloadspread.rules.ledger import Choice
from federation.features.workloadspread.rules.references import (
    controller_owner,
    find_spread,
    is_same_workload,
    target_key,
)
from federation.features.workloadspread.rules.specvalidation import exceeded_limit
from federation.features.workloadspread.rules.subsets import (
    is_stateful,
    is_unrestricted,
    subsets_of,
    target_of,
    uses_percentages,
)
from federation.features.workloadspread.rules.totals import pod_selector
from federation.features.workloadspread.rules.versions import pod_version
from federation.planning.automigration.podanalysis import is_live
from federation.planning.corerules import PatchPod
from federation.runtime.events import WARNING, Recorder
from federation.runtime.informer import Informer

_BY_TARGET = "target"
_COUNT_S = 4.0
"""How long a pod waits for the first count of the pods, less than the deadline of a review."""
_LEAVING_S = 1.0
"""How long a pod waits for a place that a recorded deletion will free, before it goes to a later subset."""
_DEPTH_MAX = 8
"""Controllers above one pod that are compared; references may form a cycle."""


class PodAdmission:
    """Handlers of reviews of pods (`reviews.py`) in one cluster."""

    def __init__(
        self,
        client: Client,
        spreads: Informer,
        pods: Informer,
        workloads: Workloads,
        status_ledger: StatusLedger,
        simulation: Simulation,
        patch_pod: PatchPod,
        recorder: Recorder,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._client = client
        self._spreads = spreads
        spreads.add_index(_BY_TARGET, _target_keys)
        self._pods = pods
        self._workloads = workloads
        self._ledger = status_ledger
        self._simulation = simulation
        self._patch_pod = patch_pod
        self._recorder = recorder
        self._clock = clock
        self._entropy = entropy

    async def admit_creation(self, request: Object) -> ReviewAnswer:
        """Give the pod the changes of its subset.

        InternalError when its place cannot be recorded because of other writers, or when its controller does not exist:
        the workload creates the pod again. BadRequest when the patch of the subset cannot be applied.
        """
        pod, namespace = request.get("object") or {}, str(request.get("namespace") or "")
        if request.get("dryRun") or request.get("subResource") or not _is_counted(pod):
            return ReviewAnswer()
        if not await self._has_spreads(namespace):
            return ReviewAnswer()
        spread: Object | None = None
        try:
            spread = await self._find_spread(pod, namespace)
            if spread is not None:
                _check_size(spread)
            owned = {**pod, "metadata": {**pod["metadata"], "namespace": namespace}}  # requests may leave it out
            return ReviewAnswer() if spread is None else await self._assign(spread, owned, pod)
        except InternalError:
            raise
        except asyncio.CancelledError:
            self._note_undecided(spread, pod, "no decision in time")
            raise
        except BadRequest as error:
            if spread is not None:
                self._recorder.event(spread, WARNING, EVENT_INVALID_SPREAD, f"no pod is created: {error.message}")
            raise
        except Conflict as error:
            raise InternalError(f"the status of the WorkloadSpread changes too often: {error}") from error
        except ApiError as error:
            # The API server refuses or fails. The pod must not wait for that.
            self._note_undecided(spread, pod, str(error))
            raise WebhookFailed(str(error)) from error
        except FederationError as error:
            self._note_undecided(spread, pod, str(error))
            raise

    async def _has_spreads(self, namespace: str) -> bool:
        """Return whether the namespace has WorkloadSpreads; asks the API server while the watch is lost."""
        if self._spreads.list(namespace):
            return True
        if not self._spreads.has_synced:
            await self._spreads.wait_synced()
            return bool(self._spreads.list(namespace))
        if self._spreads.is_connected:
            return False
        try:
            found = await self._client.list(WORKLOAD_SPREADS, namespace, limit=1)
        except ApiError as error:
            raise WebhookFailed(str(error)) from error
        if found.items:
            raise WebhookFailed("the watch of WorkloadSpreads is lost")
        return False

    def _note_undecided(self, spread: Object | None, pod: Object, reason: str) -> None:
        if spread is not None:
            metadata = pod["metadata"]
            name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
            message = f"pod {name} was admitted without a subset: {reason}"
            self._recorder.event(spread, WARNING, EVENT_ADMITTED_WITHOUT_DECISION, message)

    async def admit_deletion(self, request: Object) -> ReviewAnswer:
        """Record the deletion of a pod. Deletions are never denied: the controller counts the pods again."""
        if not request.get("dryRun"):
            await self._record_removal(request.get("oldObject") or {}, str(request.get("namespace") or ""))
        return ReviewAnswer()

    async def admit_eviction(self, request: Object) -> ReviewAnswer:
        """Record the eviction of a pod, as a deletion."""
        namespace = str(request.get("namespace") or "")
        pod = self._pods.get(namespace, str(request.get("name") or ""))
        if pod is not None and not request.get("dryRun"):
            await self._record_removal(pod, namespace)
        return ReviewAnswer()

    async def _find_spread(self, pod: Object, namespace: str) -> Object | None:
        def spreads_of(reference: Mapping[str, Any]) -> list[Object]:
            found = self._spreads.by_index(_BY_TARGET, target_key(namespace, reference))
            return [spread for spread in found if _is_usable(spread)]

        search = find_spread(spreads_of, pod, self._workloads.whitelist)
        try:
            owner = next(search)
            while True:
                owner = search.send(await self._read_owner(owner, namespace))
        except StopIteration as found:
            spread: Object | None = found.value
            return spread

    async def _read_owner(self, reference: Mapping[str, Any], namespace: str) -> Object | None:
        try:
            return await self._workloads.read(reference, namespace)
        except NotFound as error:
            raise InternalError(f"the controller of the pod does not exist: {error.message}") from error
        except Forbidden:
            return None
        except (ApiError, ClusterError) as error:
            raise WebhookFailed(f"the controller of the pod cannot be read: {error}") from error

    async def _assign(self, spread: Object, owned: Object, pod: Object) -> ReviewAnswer:
        """Return the pod with the changes of its subset, which is recorded; BadRequest before anything is."""
        total, version, uid, now = await self._total(spread), pod_version(pod), self._entropy.uid(), self._clock.now()

        def choose(newest: Object) -> Choice:
            return ledger.choose_subset(
                newest,
                pod,
                version=version,
                total=total,
                uid=uid,
                now=now,
                fits=lambda subset: self._simulation.fits(newest, subset, pod),
            )

        def decide(newest: Object) -> tuple[Object | None, ReviewAnswer]:
            choice = choose(newest)
            return choice.status, self._inject(newest, choice, owned, pod)

        def remove(newest: Object) -> tuple[Object | None, None]:
            # Only what this review recorded: another review of a pod with a name uses the same record.
            return ledger.without_creations(newest, {uid}, total), None

        _, verdict = decide(self._ledger.newest(spread))  # what cannot be decided does not wait
        if is_unrestricted(spread) or is_stateful(spread):
            return verdict
        if not await self._ledger.wait_until(spread, _is_counted_once, _COUNT_S):
            raise WebhookFailed("the pods are not counted yet")
        await self._ledger.wait_until(spread, lambda newest: not choose(newest).leaving, _LEAVING_S)
        recorded: ReviewAnswer | None = await self._ledger.change(spread, decide, remove)
        return recorded or ReviewAnswer()  # None: the WorkloadSpread is gone

    def _inject(self, spread: Object, choice: Choice, owned: Object, pod: Object) -> ReviewAnswer:
        """Return the pod with the changes of its subset; BadRequest when its workload would not get it."""
        if choice.subset is None:
            return ReviewAnswer()
        subset = choice.subset.get("name")
        try:
            injected = inject_subset(pod, spread["metadata"]["name"], choice.subset, self._patch_pod, choice.uid)
        except (BadRequest, Invalid) as error:
            raise BadRequest(f"the patch of subset {subset} cannot be applied: {error.message}") from error
        if is_released(self._workloads.cached_controller(owned), pod, injected):
            raise BadRequest(
                f"the patch of subset {subset} removes labels that the controller of the pod selects it by"
            )
        return ReviewAnswer(_with_cost(injected, initial_cost(spread, choice.subset)))

    async def _record_removal(self, pod: Object, namespace: str) -> None:
        match = ledger.parse_match(pod)
        spread = self._spreads.get(namespace, match.spread) if match is not None else None
        if spread is None or not _is_counted(pod) or not self._is_of_target(spread, pod):
            return
        version, now = pod_version(pod), self._clock.now()
        try:
            total = await self._total(spread)
            await self._ledger.change(
                spread,
                lambda newest: (
                    ledger.record_deletion(newest, pod, version=version, total=total, now=now),
                    None,
                ),
            )
        except ApiError as error:
            raise WebhookFailed(str(error)) from error

    def _is_of_target(self, spread: Object, pod: Object) -> bool:
        """Return True if the target is above the pod: anyone who may write pods can write the annotation."""
        owner: Object | None = pod
        for _ in range(_DEPTH_MAX):
            reference = controller_owner(owner) if owner is not None else None
            if owner is None or reference is None:
                return False
            if is_same_workload(target_of(spread), reference):
                return True
            owner = self._workloads.cached_controller(owner)
        return False

    async def _total(self, spread: Object) -> int:
        """Return the current replicas of the target; 0 if no limit depends on them."""
        if not uses_percentages(subsets_of(spread)):
            return 0
        return await self._workloads.count_replicas(spread, await self._workloads.find_target(spread))


def _is_counted_once(spread: Object) -> bool:
    """Return True if the status is that of the current spec, so that it has all pods of limited subsets."""
    observed = (spread.get("status") or {}).get("observedGeneration") or 0
    return bool(observed >= (spread["metadata"].get("generation") or 0))


def _check_size(spread: Object) -> None:
    """Raise WebhookFailed for a WorkloadSpread that is too large to be used."""
    field, text = exceeded_limit(spread)
    if text:
        raise WebhookFailed(f"WorkloadSpread {spread['metadata']['name']}: {field}: {text}")


def _is_counted(pod: Object) -> bool:
    """Return True for an active pod that a controller owns."""
    return is_live(pod) and controller_owner(pod) is not None


def _with_cost(pod: Object, cost: str | None) -> Object:
    """Return the pod with its deletion cost, which saves the controller a patch."""
    if cost is None:
        return pod
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "annotations": {**metadata["annotations"], names.POD_DELETION_COST: cost}}}


def _target_keys(spread: Object) -> list[str]:
    return [target_key(spread["metadata"]["namespace"], target_of(spread))]


def _is_usable(spread: Object) -> bool:
    """Return False for an object that is being deleted, or whose selector cannot be read."""
    try:
        pod_selector(spread)
    except SelectorError:
        return False
    return "deletionTimestamp" not in spread["metadata"]
