"""The Leftovers of the host: records of objects of ours in members that nothing delivers (docs/decisions/0026).

Sync writes a record before it lets go of an object in a member that does not answer, and writes nothing over an object
with a pending record. The view has our own writes before the informer has them: otherwise a new object of the same name
could be delivered over the old one. It lives as long as the control plane; `controllers/leftovers` acts on records.
"""

import contextlib
from collections.abc import Iterable

import structlog

from federation.api import names
from federation.api.resources import LEFTOVERS
from federation.apimachinery.errors import AlreadyExists, Conflict, NotFound
from federation.apimachinery.objectshape import revision_of, to_revision
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.client.client import Client
from federation.delivery.rules.memberrecord import MemberKey
from federation.planning.leftovers.record import Record, from_manifest, record_name, to_manifest
from federation.planning.leftovers.restoration import Restoration
from federation.runtime.handlers import Handler
from federation.runtime.informers import Informers

_log = structlog.get_logger(__name__)
_BY_CLUSTER = "leftover-cluster"
_BY_OBJECT = "leftover-object"


class Tombstones:
    """The records by cluster and object."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._informer = informers.for_resource(LEFTOVERS)
        self._namespaces = informers.for_resource(NAMESPACES)
        self._informer.add_index(_BY_CLUSTER, lambda leftover: (str(leftover["spec"].get("cluster", "")),))
        self._informer.add_index(_BY_OBJECT, _objects_of)
        self._written: dict[str, Object] = {}
        """Our own writes that the informer has not seen yet."""
        self._informer.add_handler(self._prune)

    async def wait_synced(self) -> None:
        """Return once every record that exists is known."""
        await self._informer.wait_synced()
        await self._namespaces.wait_synced()

    @property
    def restoration(self) -> Restoration | None:
        """The restore of a backup of the host, None without one."""
        return Restoration.of(self._namespaces.get("", names.SYSTEM_NAMESPACE))

    def is_forgotten(self, live: Object) -> bool:
        """Return whether a member object was created after the backup from which the host was restored."""
        restoration = self.restoration
        return restoration is not None and restoration.is_forgotten(live)

    def add_handler(self, handler: Handler) -> None:
        """Call the handler for every change of a Leftover."""
        self._informer.add_handler(handler)

    def get(self, name: str) -> Record | None:
        """Return the record of this name; None for a missing or malformed one."""
        leftover = self._written.get(name) or self._informer.get("", name)
        return parse(leftover) if leftover is not None else None

    def find(self, cluster: str, resource: Resource, namespace: str, name: str) -> Record | None:
        """Return the record of an object in a cluster, None without one."""
        return self.get(record_name(cluster, resource, namespace, name))

    def pending(self, key: MemberKey, cluster_uid: str) -> Record | None:
        """Return the record of an object that is to be removed or released in the cluster with this uid."""
        record = self.find(*key)
        return record if record is not None and record.is_pending and record.is_in(cluster_uid) else None

    def of_object(self, key: MemberKey) -> list[Record]:
        """Return the records of an object in all clusters; the key's own cluster does not matter."""
        return _parsed(self._informer.by_index(_BY_OBJECT, _identity(key.resource.kind, key.namespace, key.name)))

    def in_cluster(self, cluster: str) -> list[Record]:
        """Return all records of a cluster."""
        return _parsed(self._informer.by_index(_BY_CLUSTER, cluster))

    def all(self) -> list[Record]:
        """Return all records."""
        return _parsed(self._informer.list())

    async def limit(self, cluster: str, count_max: int) -> None:
        """Delete the oldest records of a cluster beyond `count_max`."""
        records = sorted(self.in_cluster(cluster), key=lambda record: to_revision(record.revision))
        for record in records[: max(len(records) - count_max, 0)]:
            await self.remove(record)

    async def put(self, record: Record) -> None:
        """Store a record, in the place of an existing one of the same object; it is durable when this returns."""
        manifest = to_manifest(record)
        try:
            written = await self._client.create(LEFTOVERS, manifest, field_manager=names.FIELD_MANAGER)
        except AlreadyExists:
            present = await self._client.get(LEFTOVERS, record.record_name)
            if present["spec"] == manifest["spec"]:
                return
            metadata = {**manifest["metadata"], "resourceVersion": present["metadata"]["resourceVersion"]}
            written = await self._client.update(LEFTOVERS, {**manifest, "metadata": metadata})
        if not self._informer.has_seen(written["metadata"]["resourceVersion"]):
            self._written[record.record_name] = written

    async def remove(self, record: Record) -> None:
        """Delete the record that was read; a newer record stays."""
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(LEFTOVERS, record.record_name, resource_version=record.revision)
            self._written.pop(record.record_name, None)

    def _prune(self, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old or {}
        written = self._written.get(obj["metadata"]["name"])
        if written is not None and revision_of(obj) >= revision_of(written):
            del self._written[obj["metadata"]["name"]]


def _objects_of(leftover: Object) -> tuple[str, ...]:
    record = parse(leftover)
    return (_identity(record.resource.kind, record.namespace, record.name),) if record is not None else ()


def _identity(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


def _parsed(leftovers: Iterable[Object]) -> list[Record]:
    return [record for leftover in leftovers if (record := parse(leftover)) is not None]


def parse(leftover: Object) -> Record | None:
    """Return the record of a Leftover; None for a malformed one, which an administrator may have written."""
    try:
        return from_manifest(leftover)
    except (ValueError, KeyError, TypeError) as error:
        _log.info("leftover ignored", name=leftover["metadata"]["name"], error=str(error))
        return None
