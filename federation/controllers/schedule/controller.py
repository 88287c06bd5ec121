"""Wiring of the schedule controller: caches, watches, and the parts of its reconciler.

`eventhandlers.py` maps events to objects, `reconcile.py` schedules one object.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from federation.api import names
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DISRUPTION_BUDGETS,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    FEDERATED_ROLLOUTS,
    PLACEMENT_HOLDS,
    PROJECTS,
    PROPAGATION_POLICIES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.controllers.schedule.claimwatch import ClaimWatch
from federation.controllers.schedule.decider import Decider
from federation.controllers.schedule.eventhandlers import BY_POLICY, LEFT, SINGLE, EventHandlers, queue_priority
from federation.controllers.schedule.guard import Guard
from federation.controllers.schedule.holds import Holds
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.jointwrites import JointWrites
from federation.controllers.schedule.pluginoutages import PluginOutages
from federation.controllers.schedule.quotastatus import QuotaStatus
from federation.controllers.schedule.reconcile import Reconciler
from federation.controllers.schedule.remoteplugins import WebhookPlugins
from federation.controllers.schedule.reporting import WRITER, Reporter
from federation.controllers.schedule.requeueing import Requeueing
from federation.journal.decisions import Journal
from federation.planning.failover import podbudgets
from federation.planning.failover.completion import missing_clusters
from federation.planning.failover.evictingclusters import EvictingClusters
from federation.planning.failover.evictionrecord import eviction_record
from federation.planning.failover.failoveroptions import FailoverOptions
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.planning.federatedobject.objectindex import policies_named
from federation.planning.guard.ledger import GuardOptions
from federation.plans.plugincalls import RemoteCaller
from federation.runtime.controller import Controller, ControllerOptions, Key, Result, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers
from federation.runtime.toleratedtaints import ToleratedTaints
from federation.scheduling.annotationswitch import AnnotationPolicy
from federation.scheduling.chain import Chain
from federation.scheduling.engine import Engine
from federation.scheduling.evictions import Evictions
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.replay.logentries import Header
from federation.scheduling.replay.projection import RECORDED
from federation.scheduling.replay.recorder import InputRecorder
from federation.scheduling.triggers import TriggerSource, clusters_left

Handler = Callable[[Object | None, Object | None], None]


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """Limits of the schedule controller."""

    workers: int = 8
    """Concurrent reconciles; decisions themselves run one at a time."""
    assumed_s: float = 60.0
    """How long assumed replicas count as used when no report of the member shows them."""
    plugin_retry_s: float = 10.0
    """Delay before an object is retried after a remote plugin returned an invalid response."""
    reports_wait_s: float = 10.0
    """Delay before unplaced replicas are retried after reports of members; all reports until then share one retry."""
    allows_annotations: bool = True
    """Whether annotations on an object override its policy, as in KubeAdmiral, unless its namespace has a label."""
    writes_kubeadmiral_triggers: bool = False
    """Whether trigger annotations have KubeAdmiral's form, which is about ten times as long."""
    version: str = ""
    """That of the program, for the records of decisions."""
    units: UnitOptions = field(default_factory=UnitOptions)
    guard: GuardOptions = field(default_factory=GuardOptions)
    failover: FailoverOptions = field(default_factory=FailoverOptions)
    loop: ControllerOptions = field(default_factory=ControllerOptions)


_POLICIES = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)
_TRIGGERS = Triggers(
    generation=False,
    template=True,
    entries_of=names.GLOBAL_SCHEDULER,
    labels=True,
    annotations=True,
    is_due=partial(pendingcontrollers.is_due, controller=names.GLOBAL_SCHEDULER),
    is_pending=partial(pendingcontrollers.is_at_head, controller=names.GLOBAL_SCHEDULER),
)


class ScheduleController:
    """Schedules every federated object. `run` works until cancelled."""

    def __init__(
        self,
        host: Host,
        journal: Journal,
        engine: Engine,
        chain: Chain,
        *,
        options: ScheduleOptions | None = None,
        caller: RemoteCaller | None = None,
        tolerated: ToleratedTaints | None = None,
    ) -> None:
        chosen = options or ScheduleOptions()
        self._objects = host.objects
        self._clock = host.clock
        self._started = asyncio.Event()
        kinds, header = (*RECORDED, *chain.kinds), _to_header(chosen, engine.registry)
        self._begin_records = partial(_begin_records, host, journal.inputs, kinds, header)
        self._webhook_client = caller.webhook_client if caller is not None else None
        self.cache = cache = InputCache(
            chain,
            host.objects,
            assumed_s=chosen.assumed_s,
            options=chosen.units,
            annotation_policy=AnnotationPolicy(is_allowed=chosen.allows_annotations),
            triggers=TriggerSource(as_kubeadmiral=chosen.writes_kubeadmiral_triggers),
        )
        retry_s = chosen.plugin_retry_s
        self._outages = PluginOutages(self._webhook_client, self._retry, clock=host.clock, plugin_retry_s=retry_s)
        self._guard = Guard(host, cache, chosen.guard)
        cache.evictions = _to_evictions(host, chosen.failover)
        cache.copies = host.members
        cache.earlier_volumes = self._claims = ClaimWatch(host, cache, self.retry)
        decider = Decider(cache, host.objects, engine, caller, host.clock, journal.inputs)
        requeueing = Requeueing(cache, self._outages, tolerated or ToleratedTaints(), host.clock, chosen.reports_wait_s)
        self._reconciler = reconciler = Reconciler(
            host.objects,
            cache,
            decider,
            self._guard,
            cache.evictions.after_move,
            requeueing,
            Reporter(host, journal),
        )
        self._joint = JointWrites(cache, decider, requeueing, reconciler)
        self._recall_gangs = decider.recall_gangs
        self.controller: Controller[Key] = Controller(
            "schedule",
            self._reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            options=chosen.loop,
            resync=host.objects.all_keys,
            priority_of=lambda key: queue_priority(cache.priority_of(key), SINGLE),
        )
        host.objects.add_index(BY_POLICY, _named_policies)
        host.objects.add_index(LEFT, _left_clusters)
        self._handlers = handlers = EventHandlers(
            cache,
            host.objects,
            self.controller.enqueue,
            host.recorder,
            engine.registry,
            lambda namespace: host.informers.for_resource(_POLICIES[not namespace]).list(namespace),
            reports_wait_s=chosen.reports_wait_s,
        )
        self._holds = Holds(host, handlers.retry)
        self._quotas = QuotaStatus(host, cache, handlers.retry)
        watched = self._watched(engine, host)
        self._watches = [(host.informers.for_resource(resource), handler) for resource, handler in watched.items()]

    def _watched(self, engine: Engine, host: Host) -> dict[Resource, Handler]:
        handlers = self._handlers
        return {
            FEDERATED_CLUSTERS: self._on_cluster,
            NAMESPACES: handlers.on_namespace,
            SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS: WebhookPlugins(
                engine, host.recorder, self._on_plugin
            ).on_configuration,
            SCHEDULING_PROFILES: handlers.on_profile,
            PLACEMENT_HOLDS: self._holds.on_hold,
            CHANGE_FREEZES: handlers.on_freeze,
            CLUSTER_DISRUPTION_BUDGETS: self.evictions.on_budget,
            FEDERATED_ROLLOUTS: self.evictions.on_rollout,
            PROPAGATION_POLICIES: handlers.on_policy,
            CLUSTER_PROPAGATION_POLICIES: handlers.on_policy,
            FEDERATED_RESOURCE_QUOTAS: self._quotas.on_quota,
            PROJECTS: handlers.on_project,
            **{kind: partial(handlers.on_indexed, index) for kind, index in self.cache.indexes.items()},
        }

    @property
    def evictions(self) -> Evictions:
        """The clusters that replicas leave, and the pace."""
        return self.cache.evictions

    async def wait_started(self) -> None:
        """Return once all clusters and objects are known."""
        await self._started.wait()

    def retry(self, keys: Iterable[Key]) -> None:
        """Schedule these objects again."""
        self._handlers.retry(keys)

    def _retry(self, key: Key) -> None:
        self._handlers.retry((key,))

    async def run(self) -> None:
        """Watch, and start the workers once all caches are synced."""
        self._begin_records()
        for informer, handler in self._watches:
            informer.add_handler(handler)
        self._objects.subscribe(self._handlers.on_federated, _TRIGGERS, writer=WRITER, is_late=True)
        self._objects.subscribe(self._holds.on_federated, None, is_late=True)
        # Before that, a cluster or policy that exists could look as if it did not.
        await self._claims.wait_synced()
        await asyncio.gather(self._objects.wait_synced(), *(informer.wait_synced() for informer, _ in self._watches))
        self._recall_gangs()
        self.evictions.begin(self._clock.now())
        self._handlers.is_started = True
        self._started.set()
        # Approvals are known now: what was approved does not count as held.
        self._objects.subscribe(self._on_any, None)
        self._objects.types.add_listener(self._handlers.on_type, lambda _: None)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._outages.run())
            tasks.create_task(self._holds.controller.run())
            tasks.create_task(self._quotas.controller.run())
            tasks.create_task(self.controller.run())

    async def create_placed(self, key: Key, draft: Object) -> bool:
        """Create a new federated object with its first placement; return False if it has to be created without."""
        if not self._handlers.is_started:
            return False
        return self._continue(key, await self._joint.create_placed(key, draft))

    async def update_placed(self, key: Key, federated: Object, patch: Object, *, writer: str) -> bool:
        """Patch an object and its placement; return False if it has to be patched without, by `writer` alone."""
        queue = self.controller.queue
        if not self._handlers.is_started or not queue.claim(key):
            return False
        try:
            result = await self._joint.update_placed(key, federated, patch, writer=writer)
        finally:
            queue.done(key)
        return self._continue(key, result)

    def _continue(self, key: Key, result: Result | None) -> bool:
        if result is not None and result.requeue_after_s is not None:
            self.controller.enqueue(key, after_s=result.requeue_after_s)
        return result is not None

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        self.evictions.on_cluster(old, new)
        self._handlers.on_cluster(old, new)
        self._claims.on_clusters()

    def _on_any(self, old: Object | None, new: Object | None) -> None:
        """Handle every event, in one subscription: each reads all objects that exist."""
        if new is not None and has_finished_everywhere(new):
            self.cache.assume_cache.forget(key_of(new))  # Its pods have ended, whatever reports have shown of them.
        self._guard.on_federated(old, new)
        self._claims.on_federated(old, new)
        if new is None:
            self.evictions.withdraw(key_of(old or {}))
        elif old is None:
            self.evictions.remember(key_of(new), new, self._clock.now())
        self._on_pod_budget(old, new)
        self._quotas.on_federated(old, new)
        self._handlers.on_payer(old, new)
        self._handlers.partners.on_federated(old, new)

    def _on_pod_budget(self, old: Object | None, new: Object | None) -> None:
        if podbudgets.is_changed(old, new):
            namespace = (new if new is not None else old or {})["metadata"].get("namespace", "")
            self._handlers.retry(Key(*key) for key in self.evictions.waiting_for_pod_budgets(namespace))

    def _on_plugin(self, name: str, decisive_hash: str, fields: frozenset[str]) -> None:
        if self._webhook_client is not None:
            self._webhook_client.reset(name)  # The circuit of an earlier configuration says nothing about this one.
        self._handlers.on_plugin(name, decisive_hash, fields)


def _to_evictions(host: Host, options: FailoverOptions) -> Evictions:
    clusters, budgets = map(host.informers.for_resource, (FEDERATED_CLUSTERS, CLUSTER_DISRUPTION_BUDGETS))
    return Evictions(EvictingClusters(clusters, budgets, options.halts), options, host.presence)


def _begin_records(host: Host, recorder: InputRecorder, kinds: Iterable[Resource], header: Header) -> None:
    """Record what decisions depend on; changes of the world reach the records with the caches."""
    recorder.begin(header)
    for resource in kinds:
        host.informers.for_resource(resource).add_handler(partial(recorder.observe, resource))


def _to_header(options: ScheduleOptions, registry: PluginRegistry) -> Header:
    return Header(
        options.version,
        registry.versions,
        counts_cpu_and_memory=options.units.counts_cpu_and_memory,
        toleration_s=options.units.toleration_s,
        allows_annotations=options.allows_annotations,
        as_kubeadmiral=options.writes_kubeadmiral_triggers,
    )


def _left_clusters(federated: Object) -> frozenset[str]:
    annotations = federated["metadata"].get("annotations") or {}
    left = clusters_left(annotations.get(names.SCHEDULING_TRIGGERS)).union(eviction_record(federated).left)
    return left | missing_clusters(federated)


def _named_policies(federated: Object) -> Iterator[str]:
    return policies_named(federated, names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL)
