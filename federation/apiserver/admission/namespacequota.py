"""Limits on what a namespace stores: ResourceQuotas, and a limit on its bytes that needs none. A `QuotaKeeper`.

It is asked last, right before the store, because it needs the stored size and the outcome of the write. An admission
plugin sees neither, and no writes of controllers. Counts come from `resourcequotas.py`, bytes from `storedbytes.py`.
The server's own writes (without a user, or of its process) are counted and never refused: statuses and federated copies
must stay true in a full namespace. As in Kubernetes, a count does not refuse writes of subresources.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from prometheus_client import Counter, Gauge

from federation.apimachinery.errors import ApiError, Forbidden, StoreError
from federation.apimachinery.quantity import ZERO
from federation.apimachinery.resources import Object
from federation.apiserver.admission.resourcequotas import PREFIX, ResourceQuotas, is_outdated
from federation.apiserver.admission.storedbytes import Account, StoredBytes
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.quota.podusage import Usage
from federation.apiserver.semantics.quota.quota import Quota, find_unspecified
from federation.apiserver.semantics.quota.usage import CHANGING, object_usage, subtract
from federation.apiserver.store.interface import EventBatch, EventType
from federation.apiserver.verbs.context import Options, VerbContext, status_details
from federation.apiserver.verbs.requestoptions import own_user

_namespace_bytes = Gauge("federation_registry_namespace_bytes", "Stored bytes of the largest namespaces", ["namespace"])
_refusals = Counter("federation_registry_quota_refusals_total", "Writes refused by a limit of a namespace", ["limit"])
for _limit in ("resourcequota", "namespace_bytes_max"):
    _refusals.labels(_limit)

_SHOWN_NAMESPACES: Final = 10
_NEGLIGIBLE_SHIFT: Final = 14
"""A growth of the limit's 16,384th part or more is counted exactly: 16 KiB of 256 MiB."""
_MASTERS: Final = "system:masters"


class NamespaceQuota:
    """The limits of one registry's namespaces."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context
        self._options = context.options
        self._stored_bytes = StoredBytes()
        self._quotas = ResourceQuotas(context, self._stored_bytes)
        context.quota = self

    async def load(self) -> None:
        """Load the stored quotas."""
        await self._quotas.load()

    def loops(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the background loops by name; each runs until cancelled."""
        return {"quota-usage": self._follow, "quota-bytes": self._publish_bytes, "quota-recount": self._recount}

    def is_free(self, namespace: str, growth: int) -> bool:
        if self._quotas.of(namespace):
            return False
        limit, stored_bytes = self._options.namespace_bytes_max, self._stored_bytes
        if not limit or not stored_bytes.is_loaded:
            return True
        # A negligible write needs no exact account: all such writes in flight stay below half of the limit.
        return growth << _NEGLIGIBLE_SHIFT < limit and stored_bytes.usage(namespace) << 1 < limit

    def is_full(self, namespace: str) -> bool:
        """Return True if a namespace stores more bytes than the server or one of its ResourceQuotas allows."""
        if not self._stored_bytes.is_loaded:
            return False
        limits = [quota.byte_limits[""] for quota in self._quotas.of(namespace) if "" in quota.byte_limits]
        if self._options.namespace_bytes_max:
            limits.append(self._options.namespace_bytes_max)
        return bool(limits) and self._stored_bytes.usage(namespace) > min(limits)

    async def charge(
        self, info: KindInfo, new: Object | None, old: Object | None, growth: int, options: Options, subresource: str
    ) -> "_Charge | None":
        known = new if new is not None else old
        assert known is not None
        namespace = known["metadata"]["namespace"]
        quotas = self._quotas.of(namespace)
        account = Account(namespace, info.prefix)
        if growth > 0 and self._stored_bytes.is_loaded:
            self._check_bytes(info, known, account, growth, options, quotas)
        charge = _Charge(self._stored_bytes, self._quotas, account)
        kind = (info.stored_as or info.resource).group_resource
        relevant = [quota for quota in quotas if quota.counts(kind)]
        if new is not None and old is not None and kind not in CHANGING:
            relevant = []
        if not options.dry_run:
            # Before waiting for a quota's status, so that concurrent writes see these bytes.
            charge.hold(growth)
        if relevant:
            try:
                await self._charge_counts(info, new, old, options, subresource, charge, relevant)
            except BaseException:
                await charge.refund(is_certain=True)
                raise
        return None if options.dry_run else charge

    def _check_bytes(
        self,
        info: KindInfo,
        obj: Object,
        account: Account,
        growth: int,
        options: Options,
        quotas: list[Quota],
    ) -> None:
        namespace, limit = account.namespace, self._options.namespace_bytes_max
        for quota in quotas:
            for prefix, allowed in quota.byte_limits.items():
                if prefix in {"", account.prefix}:
                    used = self._stored_bytes.usage(namespace, prefix)
                    if used + growth > allowed and not _is_own(options):
                        name = f"bytes/{info.group_resource}" if prefix else "bytes"
                        text = f"requested: {name}={growth}, used: {name}={used}, limited: {name}={allowed}"
                        raise _refused(info, obj, f"exceeded quota: {quota.name}, {text}", "resourcequota")
        if limit:
            used = self._stored_bytes.usage(namespace)
            if used + growth > limit and not _is_own(options) and not _is_administrator(options):
                text = (
                    f"namespace {namespace} stores {used} bytes, this write adds {growth}, and namespace_bytes_max is"
                    f" {limit}: delete objects of the namespace, or ask the administrator to raise namespace_bytes_max"
                )
                raise _refused(info, obj, text, "namespace_bytes_max")

    async def _charge_counts(
        self,
        info: KindInfo,
        new: Object | None,
        old: Object | None,
        options: Options,
        subresource: str,
        charge: "_Charge",
        quotas: list[Quota],
    ) -> None:
        kind = (info.stored_as or info.resource).group_resource
        is_limited = new is not None and not subresource and not _is_own(options)
        usage_new = object_usage(kind, new) if new is not None else {}
        usage_old = object_usage(kind, old) if old is not None else {}
        try:
            for quota in quotas:
                if is_limited and old is None and kind == "pods":
                    assert new is not None
                    if text := find_unspecified(quota, new, quota.names_for(kind, new)):
                        raise Forbidden(text)
                change = subtract(
                    quota.masked(kind, new, usage_new) if new is not None else {},
                    quota.masked(kind, old, usage_old) if old is not None else {},
                )
                grown = {name: amount for name, amount in change.items() if amount > ZERO}
                charge.shrunk[quota.name] = {name: amount for name, amount in change.items() if amount < ZERO}
                if grown and options.dry_run:
                    if is_limited:
                        await self._quotas.check(charge.account.namespace, quota.name, grown)
                elif grown:
                    await self._quotas.add(charge.account.namespace, quota.name, grown, is_limited=is_limited)
                    charge.grown[quota.name] = grown
        except Forbidden as error:
            assert new is not None
            raise _refused(info, new, error.message, "resourcequota") from error

    async def _follow(self) -> None:
        """Count every change of the store, and keep the quotas that other processes write."""
        page = await self._context.store.list("/")
        self._stored_bytes.load(page.entries, page.revision)
        revision = page.revision
        del page  # this loop never ends and must not keep all stored bytes in memory
        await self._quotas.load()
        for namespace, quota in self._quotas.all():
            await self._quotas.refresh(namespace, quota.name)
        async for batch in self._context.store.watch("/", revision):
            self._stored_bytes.apply(batch, batch.revision)
            await self._follow_quotas(batch)

    async def _follow_quotas(self, batch: EventBatch) -> None:
        for event in batch:
            if not event.key.startswith(PREFIX):
                continue
            obj = encoding.decode(event.value)
            if event.type is EventType.DELETED:
                self._quotas.removed(obj)
            else:
                self._quotas.written(obj)
                if is_outdated(obj):
                    await self._quotas.refresh(obj["metadata"]["namespace"], obj["metadata"]["name"])

    async def _publish_bytes(self) -> None:
        """Write stored bytes to the status of quotas and to the metrics, at an interval."""
        shown: set[str] = set()
        while True:
            await self._context.clock.sleep(self._options.quota_bytes_interval_s)
            for namespace, quota in self._quotas.all():
                if quota.byte_limits:
                    await self._quotas.refresh(namespace, quota.name)
            if not self._options.namespace_bytes_max:
                continue
            largest = dict(self._stored_bytes.largest(_SHOWN_NAMESPACES))
            for namespace in shown - largest.keys():
                _namespace_bytes.remove(namespace)
            for namespace, size in largest.items():
                _namespace_bytes.labels(namespace).set(size)
            shown = set(largest)

    async def _recount(self) -> None:
        """Correct the usage that crashes and interrupted writes left behind, at an interval."""
        while True:
            await self._context.clock.sleep(self._options.quota_sync_interval_s)
            await self._quotas.recount()


class _Charge:
    """The `Charge` of one write: its held bytes, and by quota the usage that it added and that it will return."""

    __slots__ = ("_growth", "_quotas", "_stored_bytes", "account", "grown", "shrunk")

    def __init__(self, stored_bytes: StoredBytes, quotas: ResourceQuotas, account: Account) -> None:
        self._stored_bytes = stored_bytes
        self._quotas = quotas
        self._growth = 0
        self.account = account
        self.grown: dict[str, Usage] = {}
        self.shrunk: dict[str, Usage] = {}

    def hold(self, growth: int) -> None:
        """Hold the bytes of the write; those that it frees are free only when it is stored."""
        self._growth = growth
        if growth > 0:
            self._stored_bytes.hold(self.account, growth)

    async def settle(self, revision: int) -> None:
        if self._growth < 0:
            self._stored_bytes.hold(self.account, self._growth)
        self._stored_bytes.settle(self.account, self._growth, revision)
        if self.shrunk:
            await self._add(self.shrunk)

    async def refund(self, *, is_certain: bool) -> None:
        if self._growth > 0:
            self._stored_bytes.hold(self.account, -self._growth)
        if is_certain:
            returned = {name: {each: -amount for each, amount in usage.items()} for name, usage in self.grown.items()}
            await self._add(returned)

    async def _add(self, usages: dict[str, Usage]) -> None:
        for name, usage in usages.items():
            if usage:
                # The write itself is done, so its outcome stands; the recount corrects a usage that stays too high.
                with contextlib.suppress(ApiError, StoreError):
                    await self._quotas.add(self.account.namespace, name, usage, is_limited=False)


def _is_own(options: Options) -> bool:
    """Return True for a write of the server itself or of a controller in its process."""
    return options.user is None or options.user is own_user


def _is_administrator(options: Options) -> bool:
    return options.user is not None and _MASTERS in (options.user().get("groups") or ())


def _refused(info: KindInfo, obj: Object, text: str, limit: str) -> Forbidden:
    _refusals.labels(limit).inc()
    name = obj["metadata"].get("name", "")
    return Forbidden(f'{info.group_resource} "{name}" is forbidden: {text}', details=status_details(info, name))
