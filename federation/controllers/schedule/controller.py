"""Wiring of the schedule controller: which events of objects, policies, profiles and clusters concern which object.

Objects of a policy with a higher priority are worked on first; of those alike a change of one object is, and what
concerns many (a cluster's labels, a policy) queues behind it. What could not be scheduled is woken by changes that can
help it (`waiting.py`), and by no others.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    NAMESPACES,
    PROPAGATION_POLICIES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    SCHEDULING_PROFILES,
    Object,
)
from federation.api.selectors import SelectorError
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.schedule.facts import Facts
from federation.controllers.schedule.parking import Parking
from federation.controllers.schedule.reconcile import REPORTED, Reconciler
from federation.controllers.schedule.report import Reporter
from federation.controllers.schedule.webhooks import RemoteCaller, WebhookPlugins
from federation.planning.fedindex import policies_named, type_of_template
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers
from federation.scheduling.annotationswitch import AnnotationSwitch, problem_of
from federation.scheduling.doubts import doubts_about, doubts_about_profile
from federation.scheduling.engine import Engine
from federation.scheduling.framework.types import Change, ReplicasStrategy, Resources
from federation.scheduling.policy import Policy, PolicyRef, compile_policy
from federation.scheduling.snapshot import to_resources
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.turn import UnitOptions
from federation.store.journal import Journal

_BY_POLICY = "schedule/policy"
_BY_TYPE = "schedule/type"

_FOR_ALL = Change.MEMBERSHIP | Change.LABELS | Change.TAINTS | Change.API_TYPES
"""Changes of a cluster that every object's triggers contain; that it is ready matters to policies that follow joining
clusters, the others to waiting objects only."""
_SINGLE, _BULK = 0, 1
"""Of a policy's objects what changed by itself goes first, then what is queued for many objects at once."""


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """Limits of the schedule controller."""

    workers: int = 8
    """Federated objects that are worked on at the same time; decisions themselves run one by one."""
    reservation_s: float = 60.0
    """How long room that a decision gave out counts as used when no report of the member shows it."""
    plugin_retry_s: float = 10.0
    """How long after a remote plugin answered nothing usable it is asked again about an object."""
    reports_wait_s: float = 10.0
    """How long after members reported what is free replicas without a place are tried again, all reports together."""
    allows_annotations: bool = True
    """Whether annotations on an object override its policy, as in KubeAdmiral, where its namespace does not say."""
    writes_kubeadmiral_triggers: bool = False
    """Whether objects note what they were decided by in KubeAdmiral's form, some ten times as long."""
    units: UnitOptions = field(default_factory=UnitOptions)
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class ScheduleController:
    """Keeps every federated object placed. `run` works until cancelled."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        recorder: Recorder,
        journal: Journal,
        engine: Engine,
        *,
        clock: Clock,
        options: ScheduleOptions | None = None,
        caller: RemoteCaller | None = None,
    ) -> None:
        chosen = options or ScheduleOptions()
        self._types = types
        self._recorder = recorder
        switch = AnnotationSwitch(is_allowed=chosen.allows_annotations)
        self._facts = Facts(
            reservation_s=chosen.reservation_s,
            switch=switch,
            triggers=TriggerSource(as_kubeadmiral=chosen.writes_kubeadmiral_triggers),
        )
        self._namespaced = informers.for_resource(FEDERATED_OBJECTS)
        self._cluster_scoped = informers.for_resource(CLUSTER_FEDERATED_OBJECTS)
        self._policies = [
            informers.for_resource(PROPAGATION_POLICIES),
            informers.for_resource(CLUSTER_PROPAGATION_POLICIES),
        ]
        self._profiles = informers.for_resource(SCHEDULING_PROFILES)
        self._webhooks = informers.for_resource(SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS)
        self._installed = engine.registry
        self._plugins = WebhookPlugins(engine, recorder, self._on_plugin)
        self._services = caller.services if caller is not None else None
        self._parking = Parking(
            self._services,
            lambda key: self._wake((key,)),
            clock=clock,
            plugin_retry_s=chosen.plugin_retry_s,
        )
        self._reports_wait_s = chosen.reports_wait_s
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._namespaces = informers.for_resource(NAMESPACES)
        for informer in (self._namespaced, self._cluster_scoped):
            informer.add_index(_BY_POLICY, _named_policies)
            informer.add_index(_BY_TYPE, type_of_template)
        reconciler = Reconciler(
            client,
            self,
            types,
            self._facts,
            engine,
            Reporter(client, recorder, journal, clock),
            clock=clock,
            options=chosen.units,
            reports_wait_s=chosen.reports_wait_s,
            parking=self._parking,
            caller=caller,
        )
        self.controller: Controller[Key] = Controller(
            "schedule",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=self._all_keys,
            priority_of=lambda key: _urgency(self._facts.priority_of(key), _SINGLE),
        )

    async def run(self) -> None:
        """Follow clusters, policies, profiles and objects, and work once all of them have arrived."""
        self._clusters.add_handler(self._on_cluster)
        self._namespaces.add_handler(self._on_namespace)
        self._webhooks.add_handler(self._plugins.on_configuration)
        self._profiles.add_handler(self._on_profile)
        for informer in self._policies:
            informer.add_handler(self._on_policy)
        for informer in (self._namespaced, self._cluster_scoped):
            informer.add_handler(self._on_federated)
        # A cluster or policy that has not arrived yet must not look like one that does not exist.
        first = [self._clusters, self._namespaces, self._webhooks, self._profiles, *self._policies]
        waited = [*first, self._namespaced, self._cluster_scoped]
        await asyncio.gather(self._types.wait_synced(), *(informer.wait_synced() for informer in waited))
        self._types.add_listener(self._on_type, lambda _: None)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._parking.run())
            tasks.create_task(self.controller.run())

    def federated(self, key: Key) -> Object | None:
        """Return the cached federated object, for the reconciler."""
        return (self._namespaced if key.namespace else self._cluster_scoped).get(*key)

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._facts.forget(key_of(old))
        elif old is None or _is_relevant_change(old, new):
            ref = self._facts.policies.match(new)
            policy = self._facts.policies.get(ref) if ref is not None else None
            self.controller.enqueue(key_of(new), priority=_urgency(policy.priority if policy else 0, _SINGLE))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            change = self._facts.clusters.update(new)
            if old is not None and change & Change.RESOURCES:
                self._facts.reservations.reported(new["metadata"]["name"], _available(old), _available(new))
        else:
            change = self._facts.clusters.remove((old or {})["metadata"]["name"])
        waiting = self._facts.waiting
        name = (new or old or {})["metadata"]["name"]
        if change:
            self._enqueue_many(waiting.helped_by(name, change))
            self._enqueue_many(self._facts.short.helped_by(name, change), after_s=self._wait_s(change))
        if change & _FOR_ALL:
            self._enqueue_many(key for key in self._all_keys() if key not in waiting)
        elif change & Change.READINESS and self._facts.clusters.is_ready(name):
            self._enqueue_many(key for key in self._facts.following_joins() if key not in waiting)

    def _wait_s(self, change: Change) -> float:
        """Return when replicas without a place are looked at again that the change may help."""
        return 0.0 if change & ~REPORTED else self._reports_wait_s

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        """Look again at the objects whose annotations begin or cease to count."""
        name = (new if new is not None else old or {})["metadata"]["name"]
        is_changed = self._facts.switch.put(new) if new is not None else self._facts.switch.remove(name)
        if new is not None and (problem := problem_of(new)) and (old is None or problem != problem_of(old)):
            self._recorder.event(new, WARNING, names.EVENT_INVALID_NAMESPACE_LABEL, problem)
        if is_changed:
            held = (obj for obj in self._namespaced.list() if obj["metadata"].get("namespace") == name)
            self._wake(key_of(obj) for obj in held)

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        metadata = (new if new is not None else old or {})["metadata"]
        ref = PolicyRef(metadata.get("namespace", ""), metadata["name"])
        before, after = self._facts.policies.get(ref), None
        if new is not None:
            try:
                after = compile_policy(new)
            except (SelectorError, ValueError, TypeError) as error:
                # The version before stays in force: a typing error must not take the policy away from its objects.
                self._recorder.event(new, WARNING, names.EVENT_INVALID_PROPAGATION_POLICY, str(error))
                return
            for doubt in doubts_about(new):
                self._recorder.event(new, WARNING, names.EVENT_INVALID_PROPAGATION_POLICY, doubt)
            self._facts.policies.put(after)
        else:
            self._facts.policies.remove(ref)
        self._wake(self._concerned(ref, before, after))

    def _concerned(self, ref: PolicyRef, *versions: Policy | None) -> Iterable[Key]:
        """Return the objects that had the policy, that name it, and those of the kinds that it selects."""
        keys = set(self._facts.bound_to(ref))
        types = {(s.api_version, s.kind) for policy in versions if policy is not None for s in policy.selectors}
        for informer in (self._namespaced,) if ref.namespace else (self._namespaced, self._cluster_scoped):
            keys.update(map(key_of, informer.by_index(_BY_POLICY, f"{ref.namespace}/{ref.name}")))
            for api_version, kind in types:
                for fed_object in informer.by_index(_BY_TYPE, f"{api_version}/{kind}"):
                    if not ref.namespace or fed_object["metadata"].get("namespace") == ref.namespace:
                        keys.add(key_of(fed_object))
        return sorted(keys)

    def _on_profile(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        name = (new if new is not None else old or {})["metadata"]["name"]
        if new is not None:
            self._facts.profiles.put(new)
            profile = self._facts.profiles.get(name, ReplicasStrategy.SPREAD)
            assert profile is not None
            for doubt in doubts_about_profile(new, profile, self._installed):
                self._recorder.event(new, WARNING, names.EVENT_INVALID_SCHEDULING_PROFILE, doubt)
        else:
            self._facts.profiles.remove(name)
        self._wake(self._facts.using_profile(name))

    def _on_plugin(self, name: str, decisive_hash: str, told: frozenset[str]) -> None:
        """Look again at the objects that the plugin has a say in, and at those that wait for anything."""
        self._facts.profiles.put_plugin(name, decisive_hash, told)
        if self._services is not None:
            self._services.forget(name)
        self._wake(dict.fromkeys((*self._facts.waiting.all(), *self._facts.using_plugin(name))))

    def _on_type(self, federated_type: FederatedType) -> None:
        value = f"{federated_type.resource.api_version}/{federated_type.resource.kind}"
        informer = self._namespaced if federated_type.resource.namespaced else self._cluster_scoped
        self._wake(map(key_of, informer.by_index(_BY_TYPE, value)))

    def _wake(self, keys: Iterable[Key]) -> None:
        """Look at the objects again, also at those of them that wait or are short: it may help them."""
        woken = tuple(keys)
        self._facts.waiting.mark(woken)
        self._facts.short.mark(woken)
        self._enqueue_many(woken)

    def _enqueue_many(self, keys: Iterable[Key], *, after_s: float = 0.0) -> None:
        for key in keys:
            self.controller.enqueue(key, after_s=after_s, priority=_urgency(self._facts.priority_of(key), _BULK))

    def _all_keys(self) -> Iterator[Key]:
        for fed_object in chain(self._namespaced.list(), self._cluster_scoped.list()):
            yield key_of(fed_object)


def _urgency(priority: int, kind: int) -> int:
    """Return the place in the queue, lower first: by the policy's priority, then by how many a change concerns."""
    return kind - 2 * priority


def _available(cluster: Object) -> Resources:
    return to_resources(((cluster.get("status") or {}).get("resources") or {}).get("available"))


def _named_policies(fed_object: Mapping[str, Any]) -> Iterator[str]:
    return policies_named(fed_object, names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL)


def _is_relevant_change(old: Object, new: Object) -> bool:
    """Say whether a decision may change, or our turn may have come: most updates are status and change neither."""
    before, after = old["metadata"], new["metadata"]
    return (
        before.get("generation") is None
        or before.get("generation") != after.get("generation")
        or before.get("labels") != after.get("labels")
        or before.get("annotations") != after.get("annotations")
        or before.get("deletionTimestamp") != after.get("deletionTimestamp")
    )


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    recorder: Recorder,
    journal: Journal,
    engine: Engine,
    *,
    clock: Clock,
    options: ScheduleOptions | None = None,
    caller: RemoteCaller | None = None,
) -> ScheduleController:
    """Return the wired controller; nothing runs yet. The engine is `Engine(load_plugins(), monotonic=…)`."""
    return ScheduleController(
        client, informers, types, recorder, journal, engine, clock=clock, options=options, caller=caller
    )
