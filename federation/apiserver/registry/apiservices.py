"""The table of APIServices: which group versions other servers serve, and in which order discovery lists all of them.

It holds one entry per stored APIService that acts here (`apimachinery/effect.py`). It follows the writes of this
process at once, those of others by watch.
`localapis.py` registers the group versions that this server serves; the `aggregation` package contacts the servers of
the others and reports here what they serve. Discovery and the router of requests read the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from federation.apimachinery import conditions, wellknown
from federation.apimachinery.effect import Effect
from federation.apimachinery.resources import API_SERVICES, Object
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.strategies.apiservices import AVAILABLE, SERVICE_PORT
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.context import VerbContext

PREFIX: Final = f"/{API_SERVICES.group}/{API_SERVICES.plural}/"
AUTOMANAGED: Final = wellknown.AUTOMANAGED_API
"""Label of the APIServices that this server manages itself: `onstart` or `true`."""

GroupVersion = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ServiceBackend:
    """The server of a group version: a service, and how to verify it."""

    namespace: str
    name: str
    port: int
    ca_bundle: str = ""
    """Base64 of PEM; "" for the authorities of the system."""
    is_insecure: bool = False


@dataclass(frozen=True, slots=True)
class APIEntry:
    """One APIService. `service` is None for a local one."""

    name: str
    uid: str
    revision: int
    group: str
    version: str
    group_priority: int
    version_priority: int
    service: ServiceBackend | None
    is_available: bool
    managed: str
    """The value of the label `AUTOMANAGED`."""
    spec: Mapping[str, Any]

    @property
    def group_version(self) -> GroupVersion:
        """The group version that it registers."""
        return self.group, self.version


@dataclass(frozen=True, slots=True)
class RemoteDocuments:
    """The documents of a group version's server: entries of an APIVersionDiscovery, and the hash of its OpenAPI."""

    resources: tuple[Mapping[str, Any], ...] = ()
    is_fresh: bool = False
    """False when the server does not answer; the resources are those of its last answer."""
    openapi_hash: str = ""
    """The hash of its OpenAPI 3 document, "" when it has none."""


_NO_DOCUMENTS: Final = RemoteDocuments()


class APIServices:
    """The APIServices of one registry. A `Hook` of that kind."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context
        self.entries: dict[str, APIEntry] = {}
        self.remote: dict[GroupVersion, APIEntry] = {}
        """The group versions whose requests go to another server."""
        self.connected: frozenset[GroupVersion] = frozenset()
        """The group versions that a connector answers; an APIService of the same group takes its place."""
        self._connected: set[GroupVersion] = set()
        self.generation = 1
        """Increases with every change that discovery shows."""
        self._documents: dict[GroupVersion, RemoteDocuments] = {}
        self._listeners: list[Callable[[], None]] = []
        context.hooks[PREFIX] = self

    async def load(self) -> int:
        """Read the stored APIServices and return the revision of that list."""
        page = await self._context.store.list(PREFIX)
        for entry in page.entries:
            self.written(encoding.decode(entry.value))
        return page.revision

    async def run(self) -> None:
        """Follow the writes of other processes until cancelled."""
        revision = await self.load()
        async for batch in self._context.store.watch(PREFIX, revision):
            for event in batch:
                if event.type is EventType.DELETED:
                    self.removed(encoding.decode(event.value))
                else:
                    self.written(encoding.decode(event.value))

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change of an entry."""
        self._listeners.append(listener)

    def connect(self, group: str, version: str) -> None:
        """Serve a group version by a connector, unless an APIService registers another server for its group."""
        self._connected.add((group, version))
        self._changed()

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Do nothing: validation needs no state."""

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Do nothing: validation needs no state."""

    def written(self, obj: Object) -> None:
        """Record a stored APIService, unless a newer state is known; forget one that is data."""
        entry = to_entry(obj)
        known = self.entries.get(entry.name)
        if entry.service is not None and self._context.effect_of(API_SERVICES, obj) is Effect.NONE:
            if known is not None and known.revision < entry.revision:
                del self.entries[entry.name]
                self._changed()
            return
        if known is None or known.revision < entry.revision:
            self.entries[entry.name] = entry
            if known is None or replace(known, revision=entry.revision) != entry:
                self._changed()

    def removed(self, obj: Object) -> None:
        """Forget a removed APIService."""
        metadata = obj["metadata"]
        known = self.entries.get(metadata["name"])
        if known is not None and known.uid == metadata.get("uid"):
            del self.entries[known.name]
            self._changed()

    def documents(self, group_version: GroupVersion) -> RemoteDocuments:
        """Return what the server of a remote group version was last seen to serve."""
        return self._documents.get(group_version, _NO_DOCUMENTS)

    def set_documents(self, group_version: GroupVersion, documents: RemoteDocuments) -> None:
        """Record what the server of a remote group version serves; ignored when it is no longer registered."""
        if group_version in self.remote and self.documents(group_version) != documents:
            self._documents[group_version] = documents
            self.generation += 1

    def _changed(self) -> None:
        self.remote = {
            entry.group_version: entry
            for entry in self.entries.values()
            if entry.service is not None and entry.group != API_SERVICES.group
        }
        taken = {group for group, _ in self.remote}
        self.connected = frozenset(key for key in self._connected if key[0] not in taken)
        self._documents = {key: found for key, found in self._documents.items() if key in self.remote}
        self.generation += 1
        for listener in self._listeners:
            listener()


def to_entry(obj: Object) -> APIEntry:
    """Return the entry of a stored APIService."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    service = spec.get("service")
    return APIEntry(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        revision=int(metadata.get("resourceVersion") or 0),
        group=spec.get("group") or "",
        version=spec.get("version") or "",
        group_priority=spec.get("groupPriorityMinimum") or 0,
        version_priority=spec.get("versionPriority") or 0,
        service=None if service is None else _to_backend(service, spec),
        is_available=conditions.is_true((obj.get("status") or {}).get("conditions"), AVAILABLE),
        managed=(metadata.get("labels") or {}).get(AUTOMANAGED) or "",
        spec=spec,
    )


def _to_backend(service: Mapping[str, Any], spec: Mapping[str, Any]) -> ServiceBackend:
    return ServiceBackend(
        service.get("namespace") or "",
        service.get("name") or "",
        service.get("port") or SERVICE_PORT,
        spec.get("caBundle") or "",
        bool(spec.get("insecureSkipTLSVerify")),
    )
