"""Triggers of the policy status, and its wiring; `scheduling/policyusage.py` counts, `reconcile.py` writes.

Changes of an object are matched at once, as they arrive. The status of a policy is written a moment later, so that a
burst of objects is one write. A changed policy may gain or lose all objects of a kind: they wait in a set, as all do
after a start, and the next reconcile of any policy matches them in slices.
"""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object, Resource
from federation.controllers.policystatus.reconcile import Reconciler
from federation.planning.overrides.policymatching import selected_types
from federation.planning.waves.policychanges import is_policy_changed
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers
from federation.runtime.timeslice import replay_slice
from federation.scheduling.policyusage import POLICIES, PolicyKey, PolicyUsage

_TRIGGERS = Triggers(generation=False, template=True, labels=True, deletion=False)
"""Everything that policies match. An object that is being deleted counts until it is gone."""
_SLICE = 10
"""Objects that are matched again before others get a turn."""


@dataclass(frozen=True, slots=True)
class PolicyStatusOptions:
    """Limits of the policy status."""

    coalescing_s: float = 2.0
    """Delay between a change and its write; all changes of a policy until then share the write."""
    workers: int = 2
    """Concurrent writes."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class PolicyStatusController:
    """Keeps the status of every policy up to date. `run` runs until cancelled."""

    def __init__(self, host: Host, usage: PolicyUsage, *, options: PolicyStatusOptions | None = None) -> None:
        chosen = options or PolicyStatusOptions()
        self._objects = host.objects
        self._usage = usage
        self._coalescing_s = chosen.coalescing_s
        self._clock = host.clock
        self._is_matching = False
        self._informers = {resource: host.informers.for_resource(resource) for resource in POLICIES}
        reconciler = Reconciler(host.client, usage, policy=self._policy, match_again=self._match_again)
        self.controller: Controller[PolicyKey] = Controller(
            "policystatus",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            options=chosen.loop,
            resync=self._policies,
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        for resource, informer in self._informers.items():
            informer.add_handler(partial(self._on_policy, resource))
        # Policies and types first, so that each object is matched once.
        synced = (informer.wait_synced() for informer in self._informers.values())
        await asyncio.gather(self._objects.types.wait_synced(), *synced)
        stop = self._objects.types.add_listener(self._on_type, self._on_type)
        self._is_matching = True
        try:
            await self._objects.wait_synced()
            if next(self._policies(), None) is not None:
                self._usage.unmatched.update(self._objects.all_keys())
            self._objects.subscribe(self._on_federated, _TRIGGERS, is_replayed=False)
            self._usage.is_started = True
            self._enqueue(self._policies())
            await self.controller.run()
        finally:
            self._usage.is_started = False
            stop()

    def _policy(self, key: PolicyKey) -> Object | None:
        return self._informers[key.resource].get(key.namespace, key.name)

    def _policies(self) -> Iterator[PolicyKey]:
        for resource, informer in self._informers.items():
            for policy in informer.list():
                yield PolicyKey(resource, *key_of(policy))

    async def _match_again(self) -> None:
        """Match the objects that changed policies and types may have gained or lost."""
        count = 0
        while self._usage.unmatched:
            key = self._usage.unmatched.pop()
            self._enqueue(self._usage.match(key, self._objects.get(Key(*key))))
            count += 1
            if count % _SLICE == 0:
                await replay_slice().turn(self._clock)

    def _enqueue(self, policies: Collection[PolicyKey] | Iterator[PolicyKey]) -> None:
        for policy in policies:
            self.controller.enqueue(policy, after_s=self._coalescing_s)

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        key = key_of(new if new is not None else old or {})
        self._enqueue(self._usage.match(key, new))

    def _on_policy(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        policy = new if new is not None else old or {}
        key = PolicyKey(resource, *key_of(policy))
        if is_policy_changed(old, new):
            if new is not None:
                self._usage.put_policy(key, new)
            else:
                self._usage.drop_policy(key, policy)
            if self._is_matching:
                self._usage.unmatched.update(
                    Key(*found) for keys in self._usage.objects_of(key).values() for found in keys
                )
                for kind in selected_types((old, new)):
                    self._usage.unmatched.update(self._objects.keys_of_kind(kind, key.namespace))
        if self._is_matching:
            self._enqueue((key,))

    def _on_type(self, type_: FederatedType) -> None:
        if not self._is_matching:
            return
        self._usage.unmatched.update(self._objects.keys_of_type(type_))
        if self._usage.unmatched:
            self._enqueue(self._policies())
