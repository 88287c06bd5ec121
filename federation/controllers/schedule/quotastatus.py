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
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.runtime.controller import DONE, Controller, Key, Result, key_of
from federation.runtime.host import Host
from federation.scheduling.framework.quotaheadroom import to_text
from federation.scheduling.quotas import is_outdated

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
        """Handle an event of a FederatedResourceQuota: what it concerns is scheduled again."""
        key, quotas = key_of(new if new is not None else old or {}), self._cache.quotas
        if new is None:
            self._go_on(quotas.remove(*key))
            return
        if old is not None and old.get("spec") == new.get("spec"):
            return
        if quotas.put(new):
            listed = tuple(self._objects.list_namespace(key.namespace))
            for federated in listed:
                self._observe(federated)
            self._go_on(map(key_of, listed))  # their claims are written
        self._go_on(quotas.waiting(key.namespace))
        self.controller.enqueue(key, after_s=_COALESCING_S)

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a federated object: what it has changes what others may get."""
        key, quotas = key_of(new if new is not None else old or {}), self._cache.quotas
        if key.namespace not in quotas:
            return
        is_changed = quotas.forget(key.namespace, key) if new is None else self._observe(new)
        if new is not None and (old is None or _may_use_other(old, new)):
            type_ = self._objects.type_of(new)
            if type_ is not None and is_outdated(new, type_):
                self._go_on((key,))
        if is_changed:
            self._go_on(quotas.waiting(key.namespace) - {key})
            for name in quotas.names(key.namespace):
                self.controller.enqueue(Key(key.namespace, name), after_s=_COALESCING_S)

    async def reconcile(self, key: Key) -> Result:
        """Write the status of a quota if it differs."""
        source = self._quotas.get(*key)
        if source is None or key.name not in self._cache.quotas.names(key.namespace):
            return DONE
        total, by_cluster = self._cache.quotas.used(*key, self._cache.clusters.snapshot().by_name)
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
        return self._cache.quotas.observe(key_of(federated), federated, self._objects.type_of(federated))

    def _go_on(self, waiting: Iterable[object]) -> None:
        self._retry(sorted(cast("Iterable[Key]", waiting)))


def _may_use_other(old: Object, new: Object) -> bool:
    """Return whether content or ends have changed, so that the object may use more or less."""
    return old.get("spec") != new.get("spec") or evidence_by_cluster(old).keys() != evidence_by_cluster(new).keys()


def _texts(amounts: Mapping[str, int]) -> dict[str, Any]:
    return {name: to_text(name, amount) for name, amount in amounts.items()}
