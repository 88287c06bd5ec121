"""The usage in the status of ResourceQuotas: computed for a new quota or a changed limit, then kept by every write.

A write adds to `status.used` before it is stored, and a removal subtracts afterwards, each with a compare-and-swap: so
processes that share a store cannot exceed a quota together. A lock per namespace prevents conflicts between writes of
this process. A crash between the two writes leaves the usage too high; `recount` corrects it. `namespacequota.py` uses
this module.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from federation.apimachinery.errors import Forbidden, KeyNotFound, RevisionConflict
from federation.apimachinery.quantity import NANOS, ZERO, Quantity
from federation.apimachinery.resources import Object
from federation.apiserver.admission.storedbytes import StoredBytes
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.quota.podusage import Usage, parse_usage
from federation.apiserver.semantics.quota.quota import Quota, bytes_prefix, find_refusal, is_bytes, parse_quota
from federation.apiserver.semantics.quota.usage import object_usage, total, tracks
from federation.apiserver.store.interface import Entry
from federation.apiserver.verbs.context import VerbContext, object_modified

PREFIX = "/core/resourcequotas/"
_ATTEMPTS_MAX = 20


@dataclass(slots=True)
class _Namespace:
    """The quotas of one namespace by name, each with its uid and revision."""

    quotas: dict[str, tuple[Quota, str, int]] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ResourceQuotas:
    """The ResourceQuotas of one registry. A `Hook` of their kind."""

    def __init__(self, context: VerbContext, stored_bytes: StoredBytes) -> None:
        self._context = context
        self._stored_bytes = stored_bytes
        self._namespaces: dict[str, _Namespace] = {}
        self._revisions_at_recount: dict[str, int] = {}
        context.hooks[PREFIX] = self

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    def written(self, obj: Object) -> None:
        """Use the quota, unless a newer revision is in use."""
        metadata = obj["metadata"]
        revision = int(metadata["resourceVersion"])
        quotas = self._namespaces.setdefault(metadata["namespace"], _Namespace()).quotas
        known = quotas.get(metadata["name"])
        if known is None or known[2] < revision:
            quotas[metadata["name"]] = (parse_quota(obj), metadata["uid"], revision)

    def removed(self, obj: Object) -> None:
        """Remove the quota."""
        metadata = obj["metadata"]
        namespace = self._namespaces.get(metadata["namespace"])
        if namespace is None:
            return
        known = namespace.quotas.get(metadata["name"])
        if known is not None and known[1] == metadata["uid"]:
            del namespace.quotas[metadata["name"]]
        if not namespace.quotas:
            del self._namespaces[metadata["namespace"]]

    async def load(self) -> None:
        """Load the stored quotas."""
        page = await self._context.store.list(PREFIX)
        self._namespaces = {}
        for entry in page.entries:
            self.written(encoding.decode(entry.value))

    def of(self, namespace: str) -> list[Quota]:
        """Return the quotas of a namespace."""
        known = self._namespaces.get(namespace)
        return [] if known is None else [quota for quota, _, _ in known.quotas.values()]

    def all(self) -> Iterator[tuple[str, Quota]]:
        """Yield every quota with its namespace."""
        for namespace, known in list(self._namespaces.items()):
            for quota, _, _ in list(known.quotas.values()):
                yield namespace, quota

    async def add(self, namespace: str, name: str, usage: Usage, *, is_limited: bool) -> None:
        """Add to the usage of a quota, which may be negative; Forbidden beyond a limit if it is limited, Conflict.

        Names that the quota does not limit are ignored.
        """

        def added(quota: Quota, used: Usage) -> Usage:
            requested = {name: amount for name, amount in usage.items() if name in quota.hard}
            if is_limited and (refusal := find_refusal(quota, used, requested)):
                raise Forbidden(refusal)
            sums = {name: used.get(name, ZERO) + amount for name, amount in requested.items()}
            return {**used, **{name: max(amount, ZERO) for name, amount in sums.items()}}

        async with self._lock(namespace):
            for _ in range(_ATTEMPTS_MAX):
                if (found := await self._read(namespace, name)) is None:
                    return
                entry, obj, quota = found
                if await self._write(entry, obj, quota, added(quota, await self._used(namespace, obj, quota))):
                    return
        raise object_modified(self._context.kinds.lookup("", "v1", "resourcequotas"), name)

    async def check(self, namespace: str, name: str, usage: Usage) -> None:
        """Compare usage with a quota without adding it; Forbidden."""
        if (found := await self._read(namespace, name)) is None:
            return
        _, obj, quota = found
        requested = {name: amount for name, amount in usage.items() if name in quota.hard}
        if refusal := find_refusal(quota, await self._used(namespace, obj, quota), requested):
            raise Forbidden(refusal)

    async def refresh(self, namespace: str, name: str) -> None:
        """Compute the status of a new or changed quota, and the stored bytes of any."""
        async with self._lock(namespace):
            if (found := await self._read(namespace, name)) is not None:
                entry, obj, quota = found
                await self._write(entry, obj, quota, await self._used(namespace, obj, quota))

    async def recount(self) -> None:
        """Compare every quota with the stored objects.

        A quota whose revision changed since the last call may have writes in flight, in any process, whose objects are
        not stored yet. It is left alone until it is quiet.
        """
        revisions = {}
        for namespace, quota in list(self.all()):
            async with self._lock(namespace):
                if (found := await self._read(namespace, quota.name)) is None:
                    continue
                entry, obj, current = found
                key = entry.key
                if self._revisions_at_recount.get(key) == entry.revision:
                    counted = await self._count(namespace, current, current.counted)
                    await self._write(entry, obj, current, counted)
                    entry = await self._context.store.get(key) or entry
                revisions[key] = entry.revision
        self._revisions_at_recount = revisions

    def _lock(self, namespace: str) -> asyncio.Lock:
        known = self._namespaces.get(namespace)
        return asyncio.Lock() if known is None else known.lock

    async def _read(self, namespace: str, name: str) -> tuple[Entry, Object, Quota] | None:
        entry = await self._context.store.get(f"{PREFIX}{namespace}/{name}")
        if entry is None:
            return None
        obj = encoding.decode(entry.value)
        return entry, obj, parse_quota(obj)

    async def _used(self, namespace: str, obj: Object, quota: Quota) -> Usage:
        """Return the usage in the status, computed for limits that the status does not have yet."""
        status = obj.get("status") or {}
        used = parse_usage(status.get("used"))
        missing = quota.counted - ((status.get("hard") or {}).keys() & used.keys())
        kept = {name: amount for name, amount in used.items() if name in quota.counted}
        return {**kept, **(await self._count(namespace, quota, missing) if missing else {})}

    async def _count(self, namespace: str, quota: Quota, names: Iterable[str]) -> Usage:
        """Return the usage of the stored objects."""
        wanted = frozenset(names)
        used = dict.fromkeys(wanted, ZERO)
        for info in self._context.kinds.stored():
            kind = (info.stored_as or info.resource).group_resource
            tracked = [name for name in wanted if info.resource.namespaced and tracks(name, kind)]
            if not tracked:
                continue
            entries = (await self._context.store.list(info.collection(namespace))).entries
            if tracked == [f"count/{kind}"] and not quota.scopes:
                used[tracked[0]] = Quantity(len(entries) * NANOS)
                continue
            objects = (encoding.decode(entry.value) for entry in entries)
            used |= total((quota.masked(kind, obj, object_usage(kind, obj)) for obj in objects), tracked)
        return used

    async def _write(self, entry: Entry, obj: Object, quota: Quota, used: Usage) -> bool:
        """Store the status if it differs; return False after a concurrent write."""
        namespace = obj["metadata"]["namespace"]
        for name in filter(is_bytes, quota.hard):
            used[name] = Quantity(self._stored_bytes.usage(namespace, bytes_prefix(name)) * NANOS)
        status = {
            "hard": _texts(quota.hard),
            "used": _texts({name: used[name] for name in quota.hard}),
        }
        if status == obj.get("status"):
            return True
        head = encoding.encode_head(obj["apiVersion"], obj["kind"])
        try:
            # Deletions above the space quota of the store need this write too.
            written = await self._context.store.update(
                entry.key, encoding.encode(head, {**obj, "status": status}), entry.revision, frees_space=True
            )
        except (RevisionConflict, KeyNotFound):
            return False
        self.written(encoding.decode(written.value))
        return True


def is_outdated(obj: Object) -> bool:
    """Return True if the status of a quota does not have its current limits."""
    status = obj.get("status") or {}
    return bool(status.get("hard") != _texts(parse_quota(obj).hard) or "used" not in status)


def _texts(usage: Usage) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(usage.items())}
