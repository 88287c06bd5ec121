"""Read a fleet for its twin: the objects of its host, from a backup or from a running host.

Copied are namespaces, definitions, our kinds, and the objects of federated types. Not copied is what belongs to the
host itself (roles, webhooks, credentials, Leases, Events), and what records the state of members, which the twin makes
anew. Nothing of the fleet is written.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.federatedtype import parse_configs, template_kind
from federation.api.resources import (
    CLUSTER_COLLECTED_STATUSES,
    CLUSTER_PROPAGATED_VERSIONS,
    COLLECTED_STATUSES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    LEFTOVERS,
    PROPAGATED_VERSIONS,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
)
from federation.apimachinery.errors import ConfigurationError, Forbidden, NotFound
from federation.apimachinery.resources import CRDS, NAMESPACES, PODS, Object, Resource
from federation.apiserver.store import backup
from federation.apiserver.store.encryptionkeys import EncryptionOptions
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore
from federation.client.client import Client
from federation.features.catalogue import decision_chain
from federation.journal.inputlog import SQLInputLog
from federation.scheduling.replay.logentries import Chunk

_PAGE = 500
_NOT_COPIED = frozenset(
    each.group_resource
    for each in (
        COLLECTED_STATUSES,
        CLUSTER_COLLECTED_STATUSES,
        PROPAGATED_VERSIONS,
        CLUSTER_PROPAGATED_VERSIONS,
        LEFTOVERS,
    )
)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The objects of a host by their keys in a store, the time of the copy, and its records of decisions."""

    at: datetime
    objects: Mapping[str, Object]
    records: tuple[Chunk, ...] = field(default=(), repr=False)

    def of(self, resource: Resource) -> Iterator[Object]:
        """Yield the objects of a kind."""
        prefix = _prefix(resource)
        return (obj for key, obj in self.objects.items() if key.startswith(prefix))

    @property
    def has_remote_plugins(self) -> bool:
        """Whether a policy or profile may name a plugin that the twin does not call."""
        return any(self.of(SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS))


def key_of(resource: Resource, namespace: str, name: str) -> str:
    """Return the key of an object in a store."""
    return _prefix(resource) + (f"{namespace}/{name}" if resource.namespaced else name)


def _prefix(resource: Resource) -> str:
    return f"/{resource.group or 'core'}/{resource.plural}/"


async def from_backup(file: Path, encryption: EncryptionOptions, since_us: int) -> Fleet:
    """Return the fleet in a backup, with the records since a time; ConfigurationError for another file."""
    about, _ = backup.read_backup(file)
    async with _restored(file, encryption) as store:
        entries = (await store.list("/")).entries
        records = await _records(store, since_us)
    parsed = {entry.key: orjson.loads(entry.value) for entry in entries if entry.value}
    return Fleet(about.created_at, _selected(parsed), tuple(records))


async def records_of_backup(file: Path, encryption: EncryptionOptions, since_us: int) -> list[Chunk]:
    """Return the records of decisions in a backup that reach a time; ConfigurationError for another file."""
    backup.read_backup(file)
    async with _restored(file, encryption) as store:
        return await _records(store, since_us)


async def _records(store: SQLStore, since_us: int) -> list[Chunk]:
    return list(await SQLInputLog(store.database, store.cipher).read(since_us, (0, 0), 1 << 40))


@asynccontextmanager
async def _restored(file: Path, encryption: EncryptionOptions) -> AsyncIterator[SQLStore]:
    """Yield a store with the content of a backup, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="federation-twin-") as folder:
        url = f"sqlite:///{folder}/state.db"
        await asyncio.to_thread(
            backup.restore_backup, file, url, is_replacement=False, transform=lambda _, value: value
        )
        store = SQLStore(url, StoreOptions(encryption=encryption))
        try:
            await store.ready()
            yield store
        finally:
            await store.close()


async def from_host(host: Client, now: datetime, records: Iterable[Chunk]) -> Fleet:
    """Return the fleet of a running host; ConfigurationError names what the user may not read.

    The lists are not of one moment: what changes meanwhile may be in one of them only.
    """
    objects: dict[str, Object] = {}
    configs = await _list(host, FEDERATED_TYPE_CONFIGS)
    sources = [type_.resource for type_ in parse_configs(configs)]
    for resource in dict.fromkeys((NAMESPACES, CRDS, *_ours(), *sources)):
        for obj in await _list(host, resource):
            metadata = obj["metadata"]
            key = key_of(resource, str(metadata.get("namespace") or ""), str(metadata["name"]))
            objects[key] = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    return Fleet(now, _selected(objects), tuple(records))


async def _list(host: Client, resource: Resource) -> list[Object]:
    try:
        return [obj async for obj in host.list_all(resource, limit=_PAGE)]
    except NotFound:
        return []  # not served there
    except Forbidden as error:
        raise ConfigurationError(
            f"a twin copies objects of everybody: it needs the right to list {resource.group_resource} in all"
            f" namespaces, as an administrator has it: {error.message}"
        ) from error


def _ours() -> Iterator[Resource]:
    yield from decision_chain().kinds
    for manifest in crd_manifests():
        spec = manifest["spec"]
        version = next(each["name"] for each in spec["versions"] if each["storage"])
        kind, plural = spec["names"]["kind"], spec["names"]["plural"]
        yield Resource(spec["group"], version, kind, plural, spec["scope"] == "Namespaced")


def _selected(objects: Mapping[str, Object]) -> dict[str, Object]:
    """Return what is copied, without references to owners that are not."""
    configs = [obj for key, obj in objects.items() if key.startswith(_prefix(FEDERATED_TYPE_CONFIGS))]
    sources = {_prefix(type_.resource) for type_ in parse_configs(configs)}
    kept = {_prefix(each) for each in (NAMESPACES, CRDS, *_ours())} | sources
    unwanted = tuple(_prefix(each) for each in _ours() if each.group_resource in _NOT_COPIED)
    system = f"/{names.SYSTEM_NAMESPACE}/"
    found = {
        key: obj
        for key, obj in objects.items()
        if "/".join(key.split("/", 3)[:3]) + "/" in kept and not key.startswith(unwanted) and system not in key
    }
    _drop_pods_of_members(found)
    uids = {obj["metadata"].get("uid") for obj in found.values()}
    return {key: _with_owners(obj, uids) for key, obj in found.items()}


def _drop_pods_of_members(objects: dict[str, Object]) -> None:
    """Remove the pods of members, which an embedded host serves among its own; those that are federated stay."""
    own = {
        (str(obj["metadata"].get("namespace")), str(obj["spec"]["template"]["metadata"]["name"]))
        for key, obj in objects.items()
        if key.startswith(_prefix(FEDERATED_OBJECTS)) and template_kind(obj) == PODS.group_kind
    }
    for key in [key for key in objects if key.startswith(_prefix(PODS))]:
        metadata: Mapping[str, Any] = objects[key]["metadata"]
        if (str(metadata.get("namespace")), str(metadata["name"])) not in own:
            del objects[key]


def _with_owners(obj: Object, uids: set[Any]) -> Object:
    metadata = obj["metadata"]
    owners = metadata.get("ownerReferences")
    if not owners:
        return obj
    kept = [owner for owner in owners if owner.get("uid") in uids]
    return obj if kept == owners else {**obj, "metadata": {**metadata, "ownerReferences": kept}}


def clusters_of(fleet: Fleet) -> dict[str, Object]:
    """Return the FederatedClusters that have joined, by name."""
    return {
        str(cluster["metadata"]["name"]): cluster
        for cluster in fleet.of(FEDERATED_CLUSTERS)
        if (cluster.get("status") or {}).get("joinPerformed") and not cluster["metadata"].get("deletionTimestamp")
    }
