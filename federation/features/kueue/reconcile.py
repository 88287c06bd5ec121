"""Nominate one worker for a Workload: the one that the scheduler chooses among those with room and quota.

While no worker has both, nothing is nominated, so nothing of the Workload is in any worker. A nominated worker that
does not admit the Workload for some minutes gives way to another one. The nomination in the Workload is all that is
stored; after a restart the decision is made again.

Decision: docs/decisions/0163-we-are-a-dispatcher-of-multikueue.md
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from federation.apimachinery.errors import Conflict, NotFound
from federation.apimachinery.resources import Object
from federation.client.client import PatchType
from federation.features.kueue.names import (
    EVENT_NOMINATED,
    EVENT_NOT_NOMINATED,
    KUEUE_ADMISSION,
    WORKLOADS,
)
from federation.features.kueue.rules.ownedfields import applied_status
from federation.features.kueue.rules.pendingworkloads import Pending, to_pending
from federation.features.kueue.rules.workerquota import lacking
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.engine import Engine
from federation.scheduling.framework.admittedclusters import ADMITTED_TO
from federation.scheduling.framework.types import Preferences, ReplicasStrategy
from federation.scheduling.profiles import Profiles
from federation.scheduling.projectsnapshots import ProjectSnapshots
from federation.scheduling.recalledgangs import pods_by_request

_RETRY_S = 15.0
"""Until a Workload without a worker is decided again; changes of workers do not wake it."""
_PATIENCE_S = 300.0
"""How long a nominated worker may take to admit a Workload."""
_TEXT_MAX = 1_000


class _Choice(NamedTuple):
    """A nominated worker, and when it was nominated."""

    cluster: str
    since_s: float


@dataclass(slots=True)
class Informed:
    """The caches of the host, and those of the workers' ClusterQueues and LocalQueues by cluster."""

    workloads: Informer
    checks: Informer
    configs: Informer
    queues: dict[str, tuple[Informer, Informer]] = field(default_factory=dict)


class Reconciler:
    """Nominates. It holds what recent nominations will use."""

    def __init__(self, host: Host, engine: Engine, clusters: ProjectSnapshots, informers: Informed) -> None:
        self._host = host
        self._engine = engine
        self._clusters = clusters
        self._informers = informers
        # Jobs are packed, as those of JobQueues are.
        profile = Profiles().get("", ReplicasStrategy.SPREAD, is_queued=True)
        assert profile is not None
        self._profile = profile
        self._assumed = AssumeCache()
        self._choices: dict[Key, _Choice] = {}
        self._told: dict[Key, str] = {}

    async def reconcile(self, key: Key) -> Result:
        """Nominate a worker for one Workload, if it waits for one."""
        workload = self._informers.workloads.get(*key)
        pending = self._pending(workload) if workload is not None else None
        if workload is None or pending is None:
            self._forget(key)
            return DONE
        cluster, reason = self._choose(key, pending)
        if not cluster:
            self._tell(key, workload, WARNING, EVENT_NOT_NOMINATED, reason)
            if pending.nominated and not self._may_stay(pending):
                await self._nominate(key, ())
            return Result(_RETRY_S)
        if pending.nominated != (cluster,) and not await self._nominate(key, (cluster,)):
            return Result(_RETRY_S)
        known = self._choices.get(key)
        if known is None or known.cluster != cluster:
            now_s = self._host.clock.monotonic()
            self._choices[key] = _Choice(cluster, self._host.presence.present_s)
            self._assumed.assume_whole(key, pods_by_request(pending.unit.pods.sets), (), (cluster,), now_s)
            self._tell(key, workload, NORMAL, EVENT_NOMINATED, f"cluster {cluster} has room and quota for its pods")
        return Result(_PATIENCE_S)

    def _pending(self, workload: Object) -> Pending | None:
        checks, configs = self._informers.checks, self._informers.configs
        found = to_pending(workload, lambda name: checks.get("", name), lambda name: configs.get("", name))
        namespace = str(workload["metadata"].get("namespace") or "")
        if found is None or self._clusters.projects.of(namespace) is None:
            return found
        own = self._clusters.labels(namespace)
        candidates = tuple(name for name in found.candidates if name in own)
        unit = replace(found.unit, preferences=Preferences(frozenset(candidates)))
        return replace(found, unit=unit, candidates=candidates)

    def _may_stay(self, pending: Pending) -> bool:
        """Return whether what is nominated was so by us or may be: a forged nomination names other clusters."""
        return set(pending.nominated) <= set(pending.candidates) and len(pending.nominated) == 1

    def _choose(self, key: Key, pending: Pending) -> tuple[str, str]:
        """Return the worker, or "" and the reason why there is none."""
        now_s, known = self._host.clock.monotonic(), self._choices.get(key)
        present_s = self._host.presence.present_s
        unit = pending.unit
        if not pending.candidates:
            return "", "no cluster of the MultiKueueConfig is in the namespace's project"
        lacks = {name: text for name in pending.candidates if (text := self._lacking(name, pending))}
        if known is not None and present_s - known.since_s >= _PATIENCE_S:
            lacks[known.cluster] = "it was nominated and did not admit the Workload in time"
        usable = frozenset(pending.candidates).difference(lacks)
        current = {name: None for name in unit.current if name in usable and self._may_stay(pending)}
        assumed = self._assumed.snapshot(now_s)
        mine = ADMITTED_TO.on(replace(unit, current=current, assumed={} if current else assumed), usable)
        decision = self._engine.decide(
            mine, self._clusters.within(unit.namespace), self._profile, now=self._host.clock.now()
        )
        if decision.is_success and decision.placements:
            return next(iter(decision.placements)), ""
        quota = "; ".join(f"{name}: {text}" for name, text in sorted(lacks.items()))
        return "", "; ".join(filter(None, (decision.reason, quota)))[:_TEXT_MAX]

    def _lacking(self, cluster: str, pending: Pending) -> str:
        """Return what the queue of a worker lacks, "" if it has it or is not known."""
        unit, found = pending.unit, self._informers.queues.get(cluster)
        if found is None:
            return ""
        if unread := [informer for informer in found if not informer.has_synced]:
            return "" if any(informer.server.failure for informer in unread) else "its queues are being read"
        queues, local = found
        local_queue = local.get(unit.namespace, pending.queue)
        name = str(((local_queue or {}).get("spec") or {}).get("clusterQueue") or "")
        return lacking(unit.request, local_queue, queues.get("", name))

    async def _nominate(self, key: Key, clusters: tuple[str, ...]) -> bool:
        """Write the nomination into the newest version of the Workload; return whether that was possible.

        As the manager that Kueue clears nominations with, so all that this manager has applied is applied again.
        """
        client = self._host.client
        try:
            live = await client.get(WORKLOADS, key.name, key.namespace)
            if self._pending(live) is None:
                return False
            body: dict[str, Any] = {
                "apiVersion": WORKLOADS.api_version,
                "kind": WORKLOADS.kind,
                "metadata": {
                    "name": key.name,
                    "namespace": key.namespace,
                    "resourceVersion": live["metadata"]["resourceVersion"],
                },
                "status": {**applied_status(live, KUEUE_ADMISSION), "nominatedClusterNames": list(clusters)},
            }
            await client.patch(
                WORKLOADS,
                key.name,
                body,
                patch_type=PatchType.APPLY,
                namespace=key.namespace,
                subresource="status",
                field_manager=KUEUE_ADMISSION,
                force=True,
            )
        except (Conflict, NotFound):
            return False
        return True

    def _tell(self, key: Key, workload: Mapping[str, Any], type_: str, reason: str, text: str) -> None:
        if self._told.get(key) != text:
            self._told[key] = text
            self._host.recorder.event(dict(workload), type_, reason, text)

    def _forget(self, key: Key) -> None:
        """Forget a Workload that has a worker or is gone; what it uses still counts for a while."""
        self._choices.pop(key, None)
        self._told.pop(key, None)
