"""Triggers of changes of policies in waves, and their wiring; the steps are in `reconcile.py`.

A policy with `spec.changeRollout` is reconciled when it changes, and while its change runs, a moment after a change of
its objects or their copies. Other policies cost one look at an event of theirs.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.selectors import SelectorError
from federation.features.waves.metricsgate import MetricsGate
from federation.features.waves.policies.objectlook import Observer
from federation.features.waves.policies.reconcile import Reconciler
from federation.guard.suspensions import Suspensions
from federation.planning.followers.references import NEEDED_BY_PODS
from federation.planning.overrides.policymatching import Bindings
from federation.planning.status.copyhealth import Compile
from federation.planning.waves.policychanges import FIELD, record_of
from federation.planning.waves.waverecord import Phase
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import PolicyRef, compile_policy
from federation.scheduling.policyusage import POLICIES, PolicyKey, PolicyUsage

_TRIGGERS = Triggers(annotations=True, status=lambda federated: federated.get("status"))
_OVERRIDES = ("OverridePolicy", "ClusterOverridePolicy")
_RUNNING = (Phase.PROGRESSING, Phase.STOPPED, Phase.ROLLING_BACK)


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Limits of the controller."""

    workers: int = 2
    """Concurrent reconciles; queries for objectives keep one busy."""
    coalescing_s: float = 2.0
    """Delay between a change of an object and the reconcile; all changes of a policy's objects until then share it."""


class PolicyChangeController:
    """Owns the queue of policies that change in waves. `run` runs until cancelled."""

    def __init__(
        self,
        host: Host,
        usage: PolicyUsage,
        metrics: MetricsGate,
        compile_: Compile,
        *,
        options: ChangeOptions | None = None,
    ) -> None:
        chosen = options or ChangeOptions()
        self._coalescing_s = chosen.coalescing_s
        self._objects = host.objects
        self._usage = usage
        self._informers = {resource: host.informers.for_resource(resource) for resource in POLICIES}
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._policies, self._bindings = PolicyIndex(), Bindings()
        self._clock, self._suspensions = host.clock, Suspensions(host.informers, host.clock)
        self._edits: dict[str, str] = {}
        """By namespace, when a user last changed a policy of it, in RFC 3339."""
        self._removals: dict[str, str] = {}
        """By namespace, when something that pods need was last deleted, in RFC 3339."""
        self._running: set[PolicyKey] = set()
        """Policies whose objects matter now."""
        observer = Observer(
            host,
            usage,
            self._policies,
            self._bindings,
            lambda name: self._clusters.get("", name),
            compile_,
            self._edits,
            self._removals,
            self._suspensions,
        )
        self._reconciler = Reconciler(host, usage, observer, metrics, self._cached)
        self.controller: Controller[PolicyKey] = Controller(
            "policychange",
            self._reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            resync=lambda: iter(tuple(self._running)),
        )
        host.members.add_handler(self._on_member_object)

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        for resource, informer in self._informers.items():
            informer.add_handler(partial(self._on_policy, resource))
        synced = (informer.wait_synced() for informer in self._informers.values())
        await asyncio.gather(self._objects.types.wait_synced(), self._clusters.wait_synced(), *synced)
        self._objects.subscribe(self._on_federated, _TRIGGERS, is_late=True)
        await self._objects.wait_synced()
        await self._suspensions.wait_synced()
        await self.controller.run()

    def _cached(self, key: PolicyKey) -> Object | None:
        return self._informers[key.resource].get(key.namespace, key.name)

    def _on_policy(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        policy = new if new is not None else old or {}
        key = PolicyKey(resource, *key_of(policy))
        self._reconciler.assumed.prune(key)
        self._compile(key, old, new)
        if key.namespace and (old or {}).get("spec") != (new or {}).get("spec"):
            self._edits[key.namespace] = self._edit_of(old, new)
        record = record_of(new) if new is not None else None
        if record is not None and record.phase in _RUNNING:
            self._running.add(key)
        else:
            self._running.discard(key)
        if new is not None and ((new.get("spec") or {}).get(FIELD) or record is not None):
            self.controller.enqueue(key)

    def _edit_of(self, old: Object | None, new: Object | None) -> str:
        """Return when a policy was created, changed or deleted; the first list has it as it was."""
        if old is None and new is not None:
            created = str(new["metadata"].get("creationTimestamp") or "")
            return max(created, self._edits.get(new["metadata"]["namespace"], ""))
        return to_rfc3339(self._clock.now())

    def _compile(self, key: PolicyKey, old: Object | None, new: Object | None) -> None:
        """Keep the versions of policies as the scheduler and the override controller have them."""
        if key.resource.kind in _OVERRIDES:
            if new is not None:
                self._bindings.put(new)
            elif old is not None:
                self._bindings.drop(old)
            return
        if new is None:
            self._policies.remove(PolicyRef(key.namespace, key.name))
            return
        try:
            self._policies.put(compile_policy(new))
        except (SelectorError, ValueError, TypeError):
            return  # as for the scheduler, the previous version stays in force

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None and old["spec"]["template"].get("kind") in NEEDED_BY_PODS:
            self._removals[old["metadata"].get("namespace") or ""] = to_rfc3339(self._clock.now())
        if self._running:
            self._wake(key_of(new if new is not None else old or {}))

    def _on_member_object(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if self._running and (type_ := self._objects.types.for_resource(resource)) is not None:
            self._wake(self._objects.key_of_source(type_, new if new is not None else old or {}))

    def _wake(self, key: Key) -> None:
        for policy in self._policies_of(key):
            self.controller.enqueue(policy, after_s=self._coalescing_s)

    def _policies_of(self, key: Key) -> Iterator[PolicyKey]:
        """Yield the policies that apply to an object and change now."""
        for policy in tuple(self._running):
            if any(key in found for found in self._usage.objects_of(policy).values()):
                yield policy
