"""Triggers of the condition of idle autoscalers, and its wiring.

Autoscalers, their targets and their own placement are triggers. A reconcile starts a few seconds later: with `kubectl
apply` of a folder the policy that delivers an autoscaler may come after it.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.features.autoscaling.reconcile import Reconciler
from federation.features.autoscaling.rules.hpamodes import BoundPolicy, mode_of
from federation.features.autoscaling.rules.idleautoscaler import target_of
from federation.planning.federatedobject.builder import source_key
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers
from federation.scheduling.policyusage import PolicyUsage

_WORKERS = 2
_GRACE_S = 3.0
"""Delay between a change and the reconcile; changes until then share it."""
_POLICIES = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)
_BY_TARGET = "autoscalers/target"
_TRIGGERS = Triggers(generation=False, deletion=False, placed=True, entries_of=names.GLOBAL_SCHEDULER)


class AutoscalerController:
    """Marks the autoscalers on the host that do not act. `run` runs until cancelled.

    `acts` returns whether one acts on the host, `usage` knows the policies of the workloads.
    """

    def __init__(self, host: Host, *, acts: Callable[[Object], bool], usage: PolicyUsage) -> None:
        informers = host.informers
        self._objects = host.objects
        self._usage = usage
        self._policies = {resource: informers.for_resource(resource) for resource in _POLICIES}
        self._scalers = informers.for_resource(HORIZONTAL_POD_AUTOSCALERS)
        self._scalers.add_index(_BY_TARGET, _targets)
        reconciler = Reconciler(host, scaler=lambda key: self._scalers.get(*key), acts=acts, policy_of=self._policy_of)
        self.controller: Controller[Key] = Controller(
            "autoscalers", reconciler.reconcile, workers=_WORKERS, clock=host.clock, resync=self._keys
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        self._scalers.add_handler(self._on_scaler)
        self._objects.subscribe(self._on_federated, _TRIGGERS, is_late=True)
        for policies in self._policies.values():
            policies.add_handler(self._on_policy)
        synced = (informer.wait_synced() for informer in (self._scalers, *self._policies.values()))
        await asyncio.gather(self._objects.wait_synced(), *synced)
        await self.controller.run()

    def _keys(self) -> Iterator[Key]:
        return map(key_of, self._scalers.list())

    def _policy_of(self, workload: Object) -> BoundPolicy | None:
        key = self._usage.propagation_policy_of(workload)
        if key is None:
            return None
        policy = self._policies[key.resource].get(key.namespace, key.name)
        return BoundPolicy(key.resource.kind, key.name, None if policy is None else policy["spec"])

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        """Enqueue the autoscalers with a mode, of the policy's namespace or of all."""
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        for scaler in self._scalers.list((new or old or {})["metadata"].get("namespace", "")):
            if mode_of(scaler):
                self.controller.enqueue(key_of(scaler), after_s=_GRACE_S)

    def _on_scaler(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or _facts(old) != _facts(new)):
            self.controller.enqueue(key_of(new), after_s=_GRACE_S)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        api_version, kind, namespace, name = source_key(new if new is not None else old or {})
        group = api_version.rpartition("/")[0]
        if (group, kind) == (HORIZONTAL_POD_AUTOSCALERS.group, HORIZONTAL_POD_AUTOSCALERS.kind):
            self.controller.enqueue(Key(namespace, name), after_s=_GRACE_S)
        for scaler in self._scalers.by_index(_BY_TARGET, f"{group}/{kind}/{namespace}/{name}"):
            self.controller.enqueue(key_of(scaler), after_s=_GRACE_S)


def _targets(scaler: Object) -> Iterator[str]:
    yield "/".join(target_of(scaler))


def _facts(scaler: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata = scaler["metadata"]
    return (
        scaler.get("spec"),
        metadata.get("labels"),
        metadata.get("annotations"),
        (scaler.get("status") or {}).get("conditions"),
    )
