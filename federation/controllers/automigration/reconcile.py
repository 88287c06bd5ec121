"""The steps for one federated object: look at every member, revise what is believed, write it when it changed.

What is believed lives in the annotation `auto-migration-info`; memory adds since when. A change that the scheduler must
act on is written at once; counts of pods alone, which change with every pod of a rollout, only after a while.
Between events the object is looked at again at exactly the moments at which something can change by time: a waiting pod
becomes unschedulable, evidence has lasted long enough, a trial has taken too long.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from federation.api import conditions, names
from federation.api.durations import parse_duration
from federation.api.federatedtype import FederatedType
from federation.api.resources import DEPLOYMENTS, FEDERATED_OBJECTS, Object
from federation.base.clock import Clock
from federation.client.protocol import Client, PatchType
from federation.controllers.automigration.look import Looker, Shapes, View, Workload
from federation.planning.automigration.belief import Terms, find_openings, next_look_s, revise
from federation.planning.automigration.info import Failback, Info, describe, failback_from_text, from_text, to_text
from federation.planning.automigration.replicasets import template_hash
from federation.planning.clusterresources import Collectors
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.members import Members


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """Times of auto-migration."""

    look_delay_s: float = 1.0
    """From an event of a workload's copies or pods to looking at them: a rollout is many events."""
    room_delay_s: float = 2.0
    """From a change of a member's nodes or pods to looking at workloads that wait for room there."""
    counts_delay_s: float = 10.0
    """How long changed counts of scheduled pods may go unwritten when nothing else changed."""
    unseen_retry_s: float = 10.0
    """When to look again at a member that is cut off while its workload is not all ready."""
    openings_s: float = 10.0
    """How long a cluster must have room before replicas that are lacking are divided anew: the scheduler's own view of
    the cluster is a few seconds behind."""
    trial_s: float = 600.0
    """How long replicas that came back may take to run; a Deployment's default progress deadline."""
    failback: Failback = field(default_factory=lambda: Failback(stable_s=300.0, batch=1))
    """For federated objects that do not say how replicas come back."""


@dataclass(slots=True)
class _Memory:
    """What is believed about one object, with times."""

    info: Info
    differs_since_s: float | None = None
    """Since when counts differ from what is written."""
    open_since_s: dict[str, float] = field(default_factory=dict)
    """Since when clusters that were not chosen have had room that is needed."""
    shapes: Shapes = field(default_factory=dict)
    """The pods that clusters were given, of the present template."""


class Reconciler:
    """Keeps the beliefs about one federated object per call. `watch` is told which clusters it depends on."""

    def __init__(
        self,
        client: Client,
        federated: Callable[[Key], Object | None],
        types: FederatedTypes,
        members: Members,
        collectors: Collectors,
        recorder: Recorder,
        clock: Clock,
        options: MigrationOptions,
        *,
        watch: Callable[[Key, frozenset[str]], None],
        cluster: Callable[[str], Object | None],
    ) -> None:
        self._client = client
        self._federated = federated
        self._types = types
        self._members = members
        self._recorder = recorder
        self._clock = clock
        self._options = options
        self._watch = watch
        self._cluster = cluster
        self._memory: dict[Key, _Memory] = {}
        self._looker = Looker(members, collectors, self._is_ready, clock)

    async def reconcile(self, key: Key) -> Result:
        """Look, revise and write at most one patch of one annotation."""
        federated = self._federated(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            self._forget(key)
            return DONE
        annotations = federated["metadata"].get("annotations") or {}
        type_, threshold_s = self.type_of(federated), threshold_of(annotations)
        if type_ is None or threshold_s is None:
            self._forget(key)
            if names.AUTO_MIGRATION_INFO in annotations:
                await self._patch(key, None)
            return DONE
        present = annotations.get(names.AUTO_MIGRATION_INFO)
        memory = self._memory.setdefault(key, _Memory(from_text(present)))
        before = memory.info.for_template(template_hash(federated["spec"]["template"]["spec"]["template"]))
        if before.template != memory.info.template:
            memory.shapes.clear()
        workload = Workload(federated, type_, threshold_s, memory.shapes)
        views = self._look(workload, before)
        terms = self._terms(annotations, memory.info, views, threshold_s)
        now_s = self._clock.monotonic()
        memory.info = after = self._revise(before, views, terms, now_s, memory, workload.total)
        unseen = {cluster for cluster, view in views.items() if view is None}
        self._watch(key, frozenset(views if _is_short(views) else unseen | after.beliefs.keys()))
        wait_s = await self._write(key, federated, memory, before, workload.placed)
        moments = [
            at + self._options.openings_s - now_s for c, at in memory.open_since_s.items() if c not in after.openings
        ]
        wait_s = min((moment for moment in (wait_s, *moments) if moment is not None), default=None)
        return Result(requeue_after_s=self._next_s(after, views, terms, now_s, wait_s))

    def type_of(self, federated: Object) -> FederatedType | None:
        """Return the type of the object when auto-migration is on for it: of Deployments only, as the pods are."""
        type_ = self._types.for_federated(federated)
        if type_ is None or not type_.auto_migration or type_.resource != DEPLOYMENTS:
            return None
        return type_

    # -- the steps

    def _look(self, workload: Workload, info: Info) -> dict[str, View | None]:
        """Look at every member; at its room where it is believed to be full, everywhere when replicas are lacking."""
        views = {
            cluster: self._looker.look(cluster, workload, has_belief=cluster in info.beliefs)
            for cluster in self._members.clusters
        }
        if not _is_short(views):
            return views
        return {cluster: self._looker.look(cluster, workload, has_belief=True) for cluster in views}

    def _terms(
        self, annotations: Mapping[str, str], info: Info, views: Mapping[str, View | None], threshold_s: float
    ) -> Terms:
        """Return the policy's terms; a workload that lacks replicas waits no longer than it took to say so."""
        failback = failback_from_text(annotations.get(names.FAILBACK), self._options.failback)
        stable_s = min(failback.stable_s, threshold_s) if _is_short(views) else failback.stable_s
        present = annotations.get(names.AUTO_MIGRATION_INFO)
        is_answered = present == to_text(info) and _answered(annotations) == present
        return Terms(stable_s, self._options.trial_s, failback.batch, is_answered)

    def _revise(
        self,
        before: Info,
        views: Mapping[str, View | None],
        terms: Terms,
        now_s: float,
        memory: _Memory,
        total: int,
    ) -> Info:
        """Return what is believed now; of clusters that do not exist any more nothing is."""
        known = {cluster: belief for cluster, belief in before.beliefs.items() if self._cluster(cluster)}
        sights = {cluster: view.sight for cluster, view in views.items() if view is not None}
        unseen = {cluster for cluster in before.scheduled if views.get(cluster) is None and self._cluster(cluster)}
        scheduled = {cluster: count for cluster, count in before.scheduled.items() if cluster in unseen}
        ready = {cluster: count for cluster, count in before.ready.items() if cluster in unseen}
        for cluster, view in views.items():
            if view is not None and view.scheduled is not None and self._cluster(cluster):
                scheduled[cluster] = view.scheduled
                if view.sight.ready != view.scheduled:
                    ready[cluster] = view.sight.ready
        beliefs = revise(known, sights, now_s, terms)
        found = find_openings(beliefs, sights, total)
        memory.open_since_s = {cluster: memory.open_since_s.get(cluster, now_s) for cluster in found}
        lasting = {c for c, since_s in memory.open_since_s.items() if now_s - since_s >= self._options.openings_s}
        openings = {cluster: found[cluster] for cluster in lasting}
        return Info(beliefs, scheduled, before.template, openings, ready)

    async def _write(
        self, key: Key, federated: Object, memory: _Memory, before: Info, placed: Mapping[str, int]
    ) -> float | None:
        """Write the annotation when it is due; return in how many seconds it will be, None when nothing is open."""
        present = (federated["metadata"].get("annotations") or {}).get(names.AUTO_MIGRATION_INFO)
        text, written, now_s = to_text(memory.info), from_text(present), self._clock.monotonic()
        if text == present:
            memory.differs_since_s = None
            return None
        if to_text(memory.info.without_counts()) == to_text(written.without_counts()):
            since_s = memory.differs_since_s = now_s if memory.differs_since_s is None else memory.differs_since_s
            if (wait_s := since_s + self._options.counts_delay_s - now_s) > 0:
                return wait_s
        await self._patch(key, text)
        memory.differs_since_s = None
        if message := describe(before, memory.info, placed):
            self._recorder.event(federated, NORMAL, names.EVENT_AUTO_MIGRATION_INFO_UPDATED, message)
        return None

    async def _patch(self, key: Key, text: str | None) -> None:
        patch = {"metadata": {"annotations": {names.AUTO_MIGRATION_INFO: text}}}
        await self._client.patch(
            FEDERATED_OBJECTS, key.name, patch, patch_type=PatchType.MERGE, namespace=key.namespace
        )

    def _next_s(
        self, info: Info, views: Mapping[str, View | None], terms: Terms, now_s: float, wait_s: float | None
    ) -> float | None:
        """Return in how many seconds something can change although nothing happens."""
        moments = [view.next_s for view in views.values() if view is not None]
        moments += [None if (at := next_look_s(b, terms)) is None else at - now_s for b in info.beliefs.values()]
        moments.append(wait_s)
        if None in views.values():
            moments.append(self._options.unseen_retry_s)
        return min((max(0.001, moment) for moment in moments if moment is not None), default=None)

    def _is_ready(self, name: str) -> bool:
        status = (self._cluster(name) or {}).get("status") or {}
        return conditions.is_true(status.get("conditions"), names.CLUSTER_READY)

    def _forget(self, key: Key) -> None:
        self._memory.pop(key, None)
        self._watch(key, frozenset())


def threshold_of(annotations: Mapping[str, str]) -> float | None:
    """Return after how many seconds a pod that waits is unschedulable; None when auto-migration is off."""
    try:
        return parse_duration(annotations[names.POD_UNSCHEDULABLE_THRESHOLD])
    except (KeyError, ValueError):
        return None


def _is_short(views: Mapping[str, View | None]) -> bool:
    """Say whether replicas are lacking because they cannot be scheduled somewhere."""
    return any(view is not None and view.sight.unschedulable for view in views.values())


def _answered(annotations: Mapping[str, str]) -> Any:
    """Return the information that the scheduler's last decision was based on."""
    try:
        return orjson.loads(annotations[names.SCHEDULING_TRIGGERS]).get("autoMigrationInfo")
    except (KeyError, AttributeError, orjson.JSONDecodeError):
        return None
