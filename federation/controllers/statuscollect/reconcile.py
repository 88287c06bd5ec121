"""The steps of status collection for one federated object: read the caches, compare, write once.

A cluster that does not answer keeps its entry: its cache stays, and after a restart the stored entry stays. An object
that is being deleted is collected until its last member object is gone, if it has a CollectedStatus. A missing field
is reported in the entry's `error` only: every new object lacks its status at first, and KubeAdmiral's event for that
would cost more writes than the status itself.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_COLLECTED_STATUSES, COLLECTED_STATUSES
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import NotFound
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import Object, Resource
from federation.delivery.rules.plan import is_name_collision
from federation.delivery.rules.status import stale_clusters
from federation.planning.rendering.memberobject import content_hash
from federation.planning.status.collection import replicaset_digests, to_entry
from federation.planning.status.debounce import Coalescer
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedobjects import resource_of
from federation.runtime.host import Host


class Reconciler:
    """Collects fields of one federated object's member objects."""

    def __init__(self, host: Host, pace: Coalescer[Key]) -> None:
        self._client = host.client
        self._objects = host.objects
        self._members = host.members
        self._pace = pace
        self._clock = host.clock
        self._written: dict[Key, str] = {}
        """Hash of the last write; a CollectedStatus is read only once, after a restart."""
        self._incomplete: dict[Key, Resource] = {}
        """Objects, with their kind, that were collected while the cache of a cluster was incomplete."""

    def forget(self, key: Key) -> None:
        """Discard the state of a deleted federated object."""
        self._written.pop(key, None)
        self._incomplete.pop(key, None)
        self._pace.forget(key)

    def take_incomplete(self, resource: Resource) -> list[Key]:
        """Return the objects of the kind that are due because the cache of a cluster became complete."""
        keys = [key for key, kind in self._incomplete.items() if kind == resource]
        for key in keys:
            del self._incomplete[key]
        return keys

    async def reconcile(self, key: Key) -> Result:
        """Write one federated object's CollectedStatus when it changed and the pace allows it."""
        federated = self._objects.get(key)
        type_ = self._objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None or not type_.collect or not type_.status_fields:
            self._pace.take(key)
            return DONE
        if (remaining_s := self._pace.remaining_s(key, self._clock.monotonic())) > 0:
            return Result(requeue_after_s=remaining_s)
        self._pace.take(key)
        found, uncached = self._read(federated, type_)
        if uncached:
            self._incomplete[key] = type_.resource
        found = _marked(found, stale_clusters(federated))
        if key in self._written and not uncached and self._written[key] == _hash(federated, found):
            return DONE
        await self._write(key, federated, found, uncached)
        return DONE

    def _read(self, federated: Object, type_: FederatedType) -> tuple[dict[str, Object], set[str]]:
        """Return the entries by cluster, and the clusters whose cache is incomplete."""
        namespace = federated["metadata"].get("namespace", "")
        name = federated["spec"]["template"]["metadata"]["name"]
        annotations = federated["metadata"].get("annotations") or {}
        found: dict[str, Object] = {}
        uncached = set()
        for cluster in self._members.clusters:
            if not self._members.is_synced(cluster, type_.resource):
                uncached.add(cluster)
                continue
            obj = self._members.get_cached(cluster, type_.resource, namespace, name)
            if obj is not None and not is_name_collision(annotations, obj):
                found[cluster] = obj
        holds_secrets = (type_.resource.group, type_.resource.kind) == ("", "Secret")
        entries = {
            cluster: to_entry(cluster, obj, type_.status_fields, holds_secrets=holds_secrets)
            for cluster, obj in found.items()
        }
        if (digests := replicaset_digests(found)) is not None:
            entries[""] = {"digests": digests}
        return entries, uncached

    async def _write(
        self, key: Key, federated: Object, entries: Mapping[str, Object], uncached: AbstractSet[str]
    ) -> None:
        """Create the CollectedStatus or patch its changed fields."""
        resource = COLLECTED_STATUSES if key.namespace else CLUSTER_COLLECTED_STATUSES
        is_deleted = bool(federated["metadata"].get("deletionTimestamp"))
        present: Object | None = None
        if uncached or key not in self._written:
            try:
                present = await self._client.get(resource, key.name, key.namespace)
            except NotFound:
                present = None
            kept = {
                entry["cluster"]: entry
                for entry in (present or {}).get("clusters") or ()
                if entry["cluster"] in uncached
            }
            entries = _marked({**kept, **entries}, stale_clusters(federated))
            if present is not None and _hash_stored(present) == _hash(federated, entries):
                self._written[key] = _hash(federated, entries)
                return
            if present is None and (is_deleted or not any(entries)):
                return  # a namespace that is being deleted takes no new objects, and removes those that it has
        body = _to_object(resource, key, federated, entries, to_rfc3339(self._clock.now()))
        try:
            if present is None and key not in self._written:
                await self._client.create(resource, body, field_manager=names.FIELD_MANAGER)
            else:
                await self._patch(resource, key, body)
        except NotFound:
            self._written.pop(key, None)
            if is_deleted:
                return
            raise
        self._written[key] = _hash(federated, entries)
        self._pace.wrote(key, self._clock.monotonic())

    async def _patch(self, resource: Resource, key: Key, body: Object) -> None:
        patch = {
            "metadata": {"labels": body["metadata"]["labels"], "annotations": body["metadata"]["annotations"]},
            "clusters": body["clusters"],
            "lastUpdateTime": body["lastUpdateTime"],
        }
        await self._client.patch(resource, key.name, patch, namespace=key.namespace, field_manager=names.FIELD_MANAGER)


def _marked(entries: Mapping[str, Object], stale: AbstractSet[str]) -> dict[str, Object]:
    """Return the entries with `stale` set for clusters that do not answer, and unset for the others."""
    marked = {}
    for cluster, entry in entries.items():
        fresh = {key: value for key, value in entry.items() if key != "stale"} if "stale" in entry else entry
        marked[cluster] = {**fresh, "stale": True} if cluster in stale else fresh
    return marked


def _to_object(resource: Resource, key: Key, federated: Object, entries: Mapping[str, Object], now: str) -> Object:
    metadata = federated["metadata"]
    owner = resource_of(key)
    reference = controller_reference(federated, owner.api_version, owner.kind)
    digests = entries.get("", {}).get("digests")
    own: Object = {
        "name": key.name,
        "labels": metadata.get("labels") or {},
        "annotations": {names.LATEST_REPLICASET_DIGESTS: digests} if digests else {},
        "ownerReferences": [reference],
    }
    if key.namespace:
        own["namespace"] = key.namespace
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": own,
        "clusters": [entries[cluster] for cluster in sorted(entries) if cluster],
        "lastUpdateTime": now,
    }


def _hash(federated: Object, entries: Mapping[str, Object]) -> str:
    clusters = [entries[cluster] for cluster in sorted(entries) if cluster]
    return content_hash(
        {
            "labels": federated["metadata"].get("labels") or {},
            "digests": entries.get("", {}).get("digests"),
            "clusters": clusters,
        }
    )


def _hash_stored(present: Mapping[str, Any]) -> str:
    metadata = present["metadata"]
    return content_hash(
        {
            "labels": metadata.get("labels") or {},
            "digests": (metadata.get("annotations") or {}).get(names.LATEST_REPLICASET_DIGESTS),
            "clusters": orjson.loads(orjson.dumps(present.get("clusters") or [])),
        }
    )
