"""What all verbs need: the store, the kinds, the clock, the limits, and how a store's answer becomes a Kubernetes one.

One `Access` per registry, shared by readers, writers and the background loops. It decides nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from federation.api.resources import Object, Resource
from federation.base.clock import Clock
from federation.base.errors import AlreadyExists, Conflict, NotFound
from federation.registry import encoding
from federation.registry.admission.webhooks import WebhookCaller
from federation.registry.cel.authorizer import Question, Verdict
from federation.registry.conversion import Converter
from federation.registry.entropy import Entropy
from federation.registry.filters import LabelCache
from federation.registry.kinds import KindInfo, Kinds
from federation.registry.options import DeleteOptions, RegistryOptions, WriteOptions
from federation.store.interface import Body, Entry, Store


class Hook(Protocol):
    """What must happen around the writes of one kind beyond its strategy, because it needs I/O or shared state."""

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Complete a validated new object, e.g. allocate its address; ApiError refuses it."""
        ...

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Complete a validated changed object; ApiError refuses it."""
        ...

    def written(self, obj: Object) -> None:
        """React to a stored object before the writer is answered."""
        ...

    def removed(self, obj: Object) -> None:
        """React to a removed object, or give back what `before_create` took when the write failed."""
        ...


Decide = Callable[[Mapping[str, Any], Question], Verdict]
"""Answers whether a user (UserInfo) may do something."""


class AdmissionChain(Protocol):
    """Who is asked about writes before they are stored (`admission/chain.py`)."""

    is_active: bool

    async def mutate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> Object:
        """Return the object as admission leaves it; ApiError refuses it."""
        ...

    async def validate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> None:
        """Accept what is going to be stored; ApiError refuses it."""
        ...

    async def validate_delete(self, info: KindInfo, old: Object, options: DeleteOptions) -> None:
        """Accept a deletion; ApiError refuses it."""
        ...

    async def admit_posted(
        self, info: KindInfo, parent: Object, posted: Object, options: WriteOptions, *, subresource: str
    ) -> Object:
        """Return what is posted to an object's subresource as admission leaves it; ApiError refuses it."""
        ...


FirstFinalizers = Callable[[Resource, Object], Sequence[str]]
"""Names the finalizers that a controller of this process wants on a new object from its first moment on."""


@dataclass(slots=True)
class Access:
    """The registry's surroundings."""

    store: Store
    kinds: Kinds
    clock: Clock
    options: RegistryOptions
    entropy: Entropy
    webhooks: WebhookCaller | None = None
    """How conversion webhooks are reached."""
    label_cache: LabelCache = field(init=False)
    converter: Converter = field(init=False)
    hooks: dict[str, Hook] = field(default_factory=dict)
    """By store prefix of the kind."""
    admission: AdmissionChain | None = None
    """None until the registry has one; then always there, and mostly idle."""
    decide: Decide | None = None
    """Who answers the questions of `authorizer` in admission's expressions; None: they have no answer."""
    first_finalizers: FirstFinalizers | None = None
    """None: nobody holds new objects."""

    def __post_init__(self) -> None:
        self.label_cache = LabelCache(self.options.label_cache_entries)
        self.converter = Converter(self.webhooks, self.entropy)

    @property
    def asks(self) -> AdmissionChain | None:
        """The admission chain when anybody is configured there."""
        admission = self.admission
        return admission if admission is not None and admission.is_active else None

    async def entry(self, info: KindInfo, namespace: str, name: str) -> Entry:
        """Return the stored entry of an object; NotFound in Kubernetes' words."""
        entry = await self.store.get(info.key(namespace, name))
        if entry is None:
            raise object_not_found(info, name)
        return entry

    async def present(self, info: KindInfo, values: Sequence[bytes]) -> list[bytes]:
        """Return stored bytes as objects of the kind's version; InternalError when a conversion webhook fails."""
        if info.conversion is None:
            return [info.to_version(value) for value in values]
        return await info.conversion.to_version(values, info.resource.version, self.converter)

    async def present_one(self, info: KindInfo, value: bytes) -> bytes:
        """Return one object's stored bytes as `present` does."""
        conversion = info.conversion
        if conversion is None:
            return info.to_version(value)
        if conversion.is_current(info.head, value):
            return value
        return (await self.present(info, [value]))[0]

    async def to_storage(self, info: KindInfo, obj: Object) -> Body:
        """Return an object of the kind's version as it is stored; InternalError when a conversion webhook fails."""
        conversion = info.conversion
        if conversion is None or conversion.storage_version == info.resource.version:
            return encoding.encode(info.storage_head, obj)
        return await conversion.to_storage(obj, self.converter)

    async def objects(self, info: KindInfo, namespace: str = "") -> list[Object]:
        """Return every object of a kind, parsed: for the small collections that rules are kept in."""
        page = await self.store.list(info.collection(namespace))
        return [encoding.decode(entry.value) for entry in page.entries]


def object_not_found(info: KindInfo, name: str) -> NotFound:
    """Return the 404 for an object."""
    return NotFound(f'{info.group_resource} "{name}" not found', details=details(info, name))


def details(info: KindInfo, name: str, uid: str = "") -> dict[str, str]:
    """Return the `details` of a Status about one object."""
    found = {"name": name, "group": info.resource.group, "kind": info.resource.plural, "uid": uid}
    return {key: value for key, value in found.items() if value}


def modified(info: KindInfo, name: str) -> Conflict:
    """Return the 409 of optimistic concurrency."""
    return Conflict(
        f'Operation cannot be fulfilled on {info.group_resource} "{name}": the object has been modified; please apply'
        " your changes to the latest version and try again",
        details=details(info, name),
    )


def already_exists(info: KindInfo, name: str) -> AlreadyExists:
    """Return the 409 of a create."""
    return AlreadyExists(f'{info.group_resource} "{name}" already exists', details=details(info, name))
