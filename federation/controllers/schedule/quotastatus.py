"""FederatedResourceQuotas: what objects use, who may go on when something is free again, and the status of each quota.

Without a quota every event costs one look-up. The ledger itself is `scheduling/quotas.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from federation.api import names
from federation.api.resources import FEDERATED_RESOURCE_QUOTAS
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from federation.controllers.schedule.inputcache import InputCache
from federation.runtime.controller import DONE, Controller, Key, Result, key_of
from federation.runtime.host import Host
from federation.scheduling.framework.quotaheadroom import to_text
from federation.scheduling.quotas import charge_of

_COALESCING_S = 1.0
"""Delay between a change and the write of the status; all changes until then share the write."""


class QuotaStatus:
    """Keeps the ledger of quotas, and their status. `retry` enqueues federated objects."""

    def __init__(self, host: Host, cache: InputCache, retry: Callable[[Iterable[Key]], None]) -> None:
        self._client = host.client
        self._objects = host.objects
        self._quotas = host.informers.for_resource(FEDERATED_RESOURCE_QUOTAS)
        self._cache = cache
        self._retry = retry
        self.controller: Controller[Key] = Controller("quota", self.reconcile, workers=1, clock=host.clock)

    def on_quota(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a FederatedResourceQuota: what waits for it is scheduled again."""
        key = key_of(new if new is not None else old or {})
        ledger = self._cache.quotas
        if new is None:
            self._go_on(ledger.remove(*key))
            return
        if old is not None and old.get("spec") == new.get("spec"):
            return
        if ledger.put(new):
            for federated in self._objects.list_namespace(key.namespace):
                self._observe(federated)
        self._go_on(ledger.waiting(key.namespace))
        self.controller.enqueue(key, after_s=_COALESCING_S)

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a federated object: what it has changes what others may get."""
        key, ledger = key_of(new if new is not None else old or {}), self._cache.quotas
        if key.namespace not in ledger:
            return
        is_changed = ledger.observe(key.namespace, key, None) if new is None else self._observe(new)
        if is_changed:
            self._go_on(ledger.waiting(key.namespace) - {key})
            for name in ledger.names(key.namespace):
                self.controller.enqueue(Key(key.namespace, name), after_s=_COALESCING_S)

    async def reconcile(self, key: Key) -> Result:
        """Write the status of a quota if it differs."""
        quota, source = self._cache.quotas.quota(*key), self._quotas.get(*key)
        if quota is None or source is None:
            return DONE
        by_cluster = self._cache.quotas.used(key.namespace, quota, self._cache.clusters.snapshot().by_name)
        total = {name: sum(used[name] for used in by_cluster.values()) for name in quota.hard}
        status = {
            "overall": (source.get("spec") or {}).get("overall"),
            "overallUsed": _texts(total),
            "aggregatedStatus": [{"clusterName": name, "used": _texts(used)} for name, used in by_cluster.items()],
        }
        if source.get("status") != status:
            try:
                await self._client.patch(
                    FEDERATED_RESOURCE_QUOTAS,
                    key.name,
                    {"status": status},
                    namespace=key.namespace,
                    subresource="status",
                    field_manager=names.FIELD_MANAGER,
                )
            except NotFound:
                return DONE
        return DONE

    def _observe(self, federated: Object) -> bool:
        key, charge = key_of(federated), charge_of(federated, self._objects.type_of(federated))
        return self._cache.quotas.observe(key.namespace, key, charge)

    def _go_on(self, waiting: Iterable[object]) -> None:
        self._retry(sorted(cast("Iterable[Key]", waiting)))


def _texts(amounts: Mapping[str, int]) -> dict[str, Any]:
    return {name: to_text(name, amount) for name, amount in amounts.items()}
