"""Everything the verbs share: store, kinds, clock, limits, admission, conversion between stored and served versions.

One `VerbContext` per registry, used by readers, writers and background controllers. It makes no decisions. Read
`writes.py` next.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from federation.apimachinery.clock import Clock
from federation.apimachinery.effect import EffectOf, acts_fully
from federation.apimachinery.entropy import Entropy
from federation.apimachinery.errors import AlreadyExists, Conflict, KeyExists, KeyNotFound, NotFound, RevisionConflict
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.webhooks import WebhookCaller
from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision
from federation.apiserver.semantics.conversion.conversion import WebhookConverter
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo, Kinds
from federation.apiserver.store.interface import Body, Entry, EventType, Store
from federation.apiserver.verbs.filters import LabelCache
from federation.apiserver.verbs.requestoptions import (
    DeleteOptions,
    RegistryOptions,
    Requester,
    WriteOptions,
    own_user,
)


class Hook(Protocol):
    """Extra work around the writes of one kind that needs I/O or shared state, so it cannot be in the strategy."""

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Complete a validated new object, for example allocate its address; raise ApiError to refuse it."""
        ...

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Complete a validated changed object; raise ApiError to refuse it."""
        ...

    def written(self, obj: Object) -> None:
        """React to a stored object before the writer gets its answer."""
        ...

    def removed(self, obj: Object) -> None:
        """React to a removed object, or undo `before_create` when the write failed."""
        ...


async def run_hook(store: Store, prefix: str, since: int, hook: Hook) -> None:
    """Pass the changes under `prefix` after revision `since`, also of other processes, to the hook until cancelled."""
    async for batch in store.watch(prefix, since):
        for event in batch:
            obj = encoding.decode(event.value)
            if event.type is EventType.DELETED:
                hook.removed(obj)
            else:
                hook.written(obj)


Authorize = Callable[[Mapping[str, Any], AccessCheck], AccessDecision]
"""Returns whether a user (UserInfo) has a permission."""


class AdmissionChain(Protocol):
    """Admission of writes before they are stored (`admission/chain.py`)."""

    is_active: bool

    @property
    def guarded(self) -> Collection[str]:
        """Resources with admission plugins, as `Resource.group_resource`."""
        ...

    async def mutate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> Object:
        """Return the object after mutating admission; ApiError when it is denied."""
        ...

    async def validate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> None:
        """Raise ApiError when validating admission denies the object."""
        ...

    async def validate_delete(self, info: KindInfo, old: Object, options: DeleteOptions) -> None:
        """Raise ApiError when admission denies the deletion."""
        ...

    async def admit_posted(
        self, info: KindInfo, parent: Object, posted: Object, options: WriteOptions, *, subresource: str
    ) -> Object:
        """Return an object posted to a subresource after admission; ApiError when it is denied."""
        ...


Options = WriteOptions | DeleteOptions


class Charge(Protocol):
    """The usage that one write added to its namespace before it was stored."""

    async def settle(self, revision: int) -> None:
        """Record that the write is stored at `revision`."""
        ...

    async def refund(self, *, is_certain: bool) -> None:
        """Return the usage of a failed write. Without `is_certain` the write may have been stored."""
        ...


class QuotaKeeper(Protocol):
    """Limits on what a namespace stores (`admission/namespacequota.py`), checked last, right before the store."""

    def is_free(self, namespace: str, growth: int) -> bool:
        """Return True if a write of `growth` bytes needs no charge. Most writes need none, so it must be fast."""
        ...

    async def charge(
        self, info: KindInfo, new: Object | None, old: Object | None, growth: int, options: Options, subresource: str
    ) -> Charge | None:
        """Return the charge of a write that is not free; Forbidden beyond a limit.

        `old` is None for a creation, `new` for a removal. A dry run is checked and not charged: None.
        """
        ...


class DefaultAdmission(Protocol):
    """The admission that needs no configuration (`admission/defaultplugins.py`)."""

    def mutate(self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions) -> None:
        """Complete an object of valid types that has its defaults; Forbidden."""
        ...

    async def validate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, subresource: str
    ) -> None:
        """Judge a user's object as it would be stored; Forbidden, Invalid."""
        ...


Annotate = Callable[[Resource, Object, Object | None, Requester], None]
"""Changes annotations of an object that a user is about to write over an old one, None for a creation."""
CreationFinalizers = Callable[[Resource, Object], Sequence[str]]
"""Returns the finalizers that controllers of this process need on a new object."""


@dataclass(slots=True)
class VerbContext:
    """Shared dependencies of one registry's verbs."""

    store: Store
    kinds: Kinds
    clock: Clock
    options: RegistryOptions
    entropy: Entropy
    webhooks: WebhookCaller | None = None
    """Calls conversion webhooks."""
    label_cache: LabelCache = field(init=False)
    converter: WebhookConverter = field(init=False)
    hooks: dict[str, Hook] = field(default_factory=dict)
    """By store prefix of the kind."""
    admission: AdmissionChain | None = None
    """Set by the registry right after construction; inactive until something is configured."""
    defaults: DefaultAdmission | None = None
    """Set by the registry right after construction."""
    protections: dict[str, Callable[[Object], str]] = field(default_factory=dict)
    """By resource (`Resource.group_resource`): return why an object must not be deleted, "" if it may."""
    quota: QuotaKeeper | None = None
    """Limits on namespaces; None if nothing is limited."""
    authorize: Authorize | None = None
    """Answers `authorizer` in admission's CEL expressions; None makes those expressions fail."""
    annotate: Annotate | None = None
    """Annotates what users write."""
    effect_of: EffectOf = acts_fully
    """Tells which configurations act on this server."""
    creation_finalizers: CreationFinalizers | None = None
    creation_finalizers_manager: str = ""
    """The field manager that owns `creation_finalizers`."""

    def __post_init__(self) -> None:
        self.label_cache = LabelCache(self.options.label_cache_entries)
        self.converter = WebhookConverter(self.webhooks, self.entropy)

    @property
    def active_admission(self) -> AdmissionChain | None:
        """The admission chain, None while no webhook or policy is configured."""
        admission = self.admission
        return admission if admission is not None and admission.is_active else None

    def admission_for(self, info: KindInfo, user: Requester | None) -> AdmissionChain | None:
        """Return the admission chain for a create or update, None if no webhook, policy or plugin can concern it."""
        admission = self.admission
        if admission is None or admission.is_active:
            return admission
        # Writes of this process skip the plugins: controllers must not pay for them.
        if user is None or user is own_user or not admission.guarded:
            return None
        return admission if info.group_resource in admission.guarded else None

    async def store_charged(
        self,
        info: KindInfo,
        new: Object | None,
        old: Object | None,
        growth: int,
        options: Options,
        write: Callable[[], Awaitable[Entry]],
        *,
        subresource: str = "",
    ) -> Entry:
        """Call `write` if the namespace's limits allow it, and keep the usage exact whatever its outcome; Forbidden."""
        quota = self._quota_for(info, new, old, growth)
        charge = None if quota is None else await quota.charge(info, new, old, growth, options, subresource)
        if charge is None:
            return await write()
        try:
            entry = await write()
        except (KeyExists, KeyNotFound, RevisionConflict):
            await charge.refund(is_certain=True)
            raise
        except BaseException:
            await charge.refund(is_certain=False)
            raise
        await charge.settle(entry.revision)
        return entry

    async def check_charge(
        self, info: KindInfo, new: Object, old: Object | None, growth: int, options: Options, subresource: str = ""
    ) -> None:
        """Check a dry run against the namespace's limits; Forbidden."""
        if quota := self._quota_for(info, new, old, growth):
            await quota.charge(info, new, old, growth, options, subresource)

    def _quota_for(self, info: KindInfo, new: Object | None, old: Object | None, growth: int) -> QuotaKeeper | None:
        """Return what limits a write, None if nothing does."""
        known = old if new is None else new
        if self.quota is None or known is None or not info.resource.namespaced:
            return None
        return None if self.quota.is_free(known["metadata"]["namespace"], growth) else self.quota

    async def get_entry(self, info: KindInfo, namespace: str, name: str) -> Entry:
        """Return the stored entry of an object; NotFound."""
        entry = await self.store.get(info.key(namespace, name))
        if entry is None:
            raise object_not_found(info, name)
        return entry

    async def list_from_storage(self, info: KindInfo, values: Sequence[bytes]) -> list[bytes]:
        """Return stored bytes as objects of the kind's version; InternalError when a conversion webhook fails."""
        if info.conversion is None:
            return [info.to_version(value) for value in values]
        return await info.conversion.to_version(values, info.resource.version, self.converter)

    async def from_storage(self, info: KindInfo, value: bytes) -> bytes:
        """Return one object's stored bytes like `list_from_storage`."""
        conversion = info.conversion
        if conversion is None:
            return info.to_version(value)
        if conversion.is_current(info.head, value):
            return value
        return (await self.list_from_storage(info, [value]))[0]

    async def to_storage(self, info: KindInfo, obj: Object) -> Body:
        """Encode an object of the kind's version for storage; InternalError when a conversion webhook fails."""
        conversion = info.conversion
        if conversion is None or conversion.storage_version == info.resource.version:
            return encoding.encode(info.storage_head, obj)
        return await conversion.to_storage(obj, self.converter)

    async def list_objects(self, info: KindInfo, namespace: str = "") -> list[Object]:
        """Return every object of a kind, parsed. For small collections."""
        page = await self.store.list(info.collection(namespace))
        return [encoding.decode(entry.value) for entry in page.entries]


def object_not_found(info: KindInfo, name: str) -> NotFound:
    """Return the 404 for an object."""
    return NotFound(f'{info.group_resource} "{name}" not found', details=status_details(info, name))


def status_details(info: KindInfo, name: str, uid: str = "") -> dict[str, str]:
    """Return the `details` of a Status about one object."""
    found = {"name": name, "group": info.resource.group, "kind": info.resource.plural, "uid": uid}
    return {key: value for key, value in found.items() if value}


def object_modified(info: KindInfo, name: str) -> Conflict:
    """Return the 409 of optimistic concurrency."""
    return Conflict(
        f'Operation cannot be fulfilled on {info.group_resource} "{name}": the object has been modified; please apply'
        " your changes to the latest version and try again",
        details=status_details(info, name),
    )


def object_already_exists(info: KindInfo, name: str) -> AlreadyExists:
    """Return the 409 of a create."""
    return AlreadyExists(f'{info.group_resource} "{name}" already exists', details=status_details(info, name))
