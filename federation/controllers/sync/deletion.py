"""The way out: a federated object leaves only after every cluster was seen without its copy (spec §10.8).

Copies are deleted, or released when the orphan annotation says so. When no cache shows a copy any more, every member is
asked itself; only then the finalizer goes. A cluster that does not answer is waited for, by name, in the condition's
message and an event: it is never skipped and never forgotten, unless the cluster leaves the federation.
"""

import asyncio
from collections.abc import Iterable

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import Object
from federation.base.clock import Clock
from federation.controllers.sync.clusters import Clusters
from federation.controllers.sync.dispatching import Dispatcher, Round, begin_round
from federation.controllers.sync.followers import Arrivals
from federation.controllers.sync.host import Host
from federation.dispatch.operations import Outcome
from federation.dispatch.plan import ClusterFacts, decide_removal
from federation.dispatch.status import ClusterStatus, plan_status
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import WARNING, Recorder

_RECHECK_S = 5.0
_QUIET_S = 1.0
"""Copies usually vanish within this time; only longer waits are worth a status."""
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
    """Takes federated objects that are being deleted out of their clusters."""

    def __init__(
        self,
        host: Host,
        clusters: Clusters,
        dispatcher: Dispatcher,
        arrivals: Arrivals,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._host = host
        self._clusters = clusters
        self._dispatcher = dispatcher
        self._arrivals = arrivals
        self._recorder = recorder
        self._clock = clock
        self._since_s: dict[Key, float] = {}

    async def reconcile(self, key: Key, federated: Object, type_: FederatedType, *, recorded: Iterable[str]) -> Result:
        """Delete or release every copy, then let the federated object go."""
        finalizers = list(federated["metadata"].get("finalizers") or ())
        if names.SYNC_FINALIZER not in finalizers:
            self._since_s.pop(key, None)
            return DONE
        round_ = begin_round(key, federated, type_)
        facts = [known for name in sorted(recorded) if (known := self._clusters.get(name)) is not None and known.joined]
        for cluster in facts:
            self._remove(round_, cluster)
        await self._dispatcher.settle(round_)
        if not round_.statuses:
            await self._confirm(round_, facts)
        if not round_.statuses:
            if (wait_s := self._arrivals.wait_to_part(key, federated)) is not None:
                return Result(requeue_after_s=wait_s)
            self._since_s.pop(key, None)
            remaining = [name for name in finalizers if name != names.SYNC_FINALIZER]
            await self._host.patch(key, federated, {"metadata": {"finalizers": remaining}})
            return DONE
        return await self._wait(key, federated, round_)

    def _remove(self, round_: Round, cluster: ClusterFacts) -> None:
        if not cluster.ready:
            round_.record(cluster.name, ClusterStatus.CLUSTER_NOT_READY)
            return
        observed, live = self._dispatcher.look(round_, cluster.name)
        if observed.lookup_failed:
            round_.record(cluster.name, ClusterStatus.CACHED_RETRIEVAL_FAILED)
        elif live is None or observed.derived_service_mismatch:
            return
        elif observed.terminating:
            round_.record(cluster.name, ClusterStatus.WAITING_FOR_REMOVAL, live)
        else:
            removal = decide_removal(round_.annotations, live["metadata"].get("annotations") or {})
            self._dispatcher.remove(round_, cluster.name, live, removal)

    async def _confirm(self, round_: Round, clusters: Iterable[ClusterFacts]) -> None:
        """Ask every member whether its copy is gone, and record those that have one or do not say."""
        asked = {cluster.name: self._dispatcher.confirm_gone(round_, cluster.name) for cluster in clusters}
        answers = await asyncio.gather(*asked.values())
        for name, answer in zip(asked, answers, strict=True):
            outcome: Outcome = answer
            if outcome.status is not ClusterStatus.OK:
                status = ClusterStatus.RETRIEVAL_FAILED if outcome.is_unanswered else outcome.status
                round_.record(name, status, outcome.object, outcome.message)

    async def _wait(self, key: Key, federated: Object, round_: Round) -> Result:
        """Say what is waited for, when it takes long or cannot go on by itself."""
        since_s = self._since_s.setdefault(key, self._clock.monotonic())
        waited_s = self._clock.monotonic() - since_s
        blocking = sorted(name for name, status in round_.statuses.items() if status in _BLOCKING)
        if not blocking and waited_s < _QUIET_S:
            return Result(requeue_after_s=_QUIET_S - waited_s)
        waiting = blocking or sorted(round_.statuses)
        message = f"deletion waits for clusters [{','.join(waiting)}]"
        if blocking:
            details = "; ".join(
                f"{name}: {round_.statuses[name].value}"
                + (f" ({round_.messages[name]})" if name in round_.messages else "")
                for name in blocking
            )
            self._recorder.event(federated, WARNING, names.EVENT_ENSURE_DELETION_FAILED, f"{message}: {details}")
        status = plan_status(
            federated.get("status") or {},
            generation=int((federated.get("status") or {}).get("syncedGeneration") or 0),
            statuses=round_.statuses,
            generations=round_.generations,
            reason=names.REASON_ENSURE_DELETION_FAILED if blocking else names.REASON_CHECK_CLUSTERS,
            message=message,
            now=self._clock.now(),
        )
        if status is not None:
            await self._host.patch(key, federated, {"status": status}, subresource="status")
        return Result(requeue_after_s=min(round_.recheck_after_s or _RECHECK_S, _RECHECK_S))
