"""Workloads that have rules about each other: keep the index of them, and enqueue those that a change concerns.

The index (`scheduling/affinity/index.py`) stays empty until a policy has such a rule. A workload that waits is enqueued
when one that it has a rule about, or that has a rule about it, is placed, moves or goes; nothing is polled.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import cast

from federation.apimachinery.resources import Object
from federation.controllers.schedule.inputcache import InputCache
from federation.runtime.controller import Key, key_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.scheduling.affinity.index import Waiters
from federation.scheduling.policyspec import Policy
from federation.scheduling.relatedworkloads import to_workload


class Partners:
    """Feeds the index of workloads. `retry` enqueues federated objects, and marks those that wait."""

    def __init__(self, objects: FederatedObjects, cache: InputCache, retry: Callable[[Iterable[Key]], None]) -> None:
        self._objects = objects
        self._cache = cache
        self._retry = retry

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a federated object."""
        if self._cache.workloads.is_active:
            self._wake(self._observe(key_of(new if new is not None else old or {}), new))

    def on_policies(self, versions: Iterable[Policy | None], keys: Iterable[Key]) -> None:
        """Handle a change of a policy: `versions` are those before and after it, `keys` the objects that it affects."""
        index = self._cache.workloads
        if not index.is_active:
            if not any(policy is not None and policy.workload_rules for policy in versions):
                return
            index.is_active = True
            keys = list(self._objects.all_keys())
        waiting = [self._observe(key, self._objects.get(key)) for key in keys]
        for waiters in waiting:
            self._wake(waiters)

    def _observe(self, key: Key, federated: Object | None) -> Waiters:
        type_ = self._objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None or federated["metadata"].get("deletionTimestamp"):
            return self._cache.workloads.observe(key, None)
        policy = self._cache.policies.policy_of(federated)
        return self._cache.workloads.observe(key, to_workload(federated, type_, policy))

    def _wake(self, waiters: Waiters) -> None:
        cache = self._cache
        waiting = [key for key in _keys(waiters.to_retry) if key in cache.unschedulable or key in cache.unplaced]
        if found := [*_keys(waiters.to_check), *waiting]:
            self._retry(found)


def _keys(keys: Iterable[Hashable]) -> list[Key]:
    return sorted(Key(*cast("Key", key)) for key in keys)
