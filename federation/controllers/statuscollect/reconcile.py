"""The steps of status collection for one federated object: read the caches, compare, write once.

A cluster that does not answer keeps the entry that it had: its cache stays, and after a restart the stored entry does.
A field that is not there yet is told in the entry's `error` and nowhere else: every new object lacks its status for a
moment, and KubeAdmiral's event for that would cost more writes than the status itself.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_COLLECTED_STATUSES,
    CLUSTER_FEDERATED_OBJECTS,
    COLLECTED_STATUSES,
    FEDERATED_OBJECTS,
    Object,
    Resource,
)
from federation.base.clock import Clock, to_rfc3339
from federation.base.errors import NotFound
from federation.client.protocol import Client, PatchType
from federation.dispatch.plan import is_other_derived_service
from federation.planning.coalescing import Coalescer
from federation.planning.collection import replicaset_digests, to_entry
from federation.planning.memberobject import content_hash
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.members import Members


class Reconciler:
    """Collects the statuses of one federated object's copies."""

    def __init__(
        self,
        client: Client,
        federated: Callable[[Key], Object | None],
        types: FederatedTypes,
        members: Members,
        pace: Coalescer[Key],
        clock: Clock,
    ) -> None:
        self._client = client
        self._federated = federated
        self._types = types
        self._members = members
        self._pace = pace
        self._clock = clock
        self._written: dict[Key, str] = {}
        """Hash of what was written last; a CollectedStatus is read only once, after a restart."""

    def forget(self, key: Key) -> None:
        """Forget a federated object that is gone."""
        self._written.pop(key, None)
        self._pace.forget(key)

    async def reconcile(self, key: Key) -> Result:
        """Write one federated object's CollectedStatus when it changed and its time has come."""
        federated = self._federated(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        type_ = self._types.for_federated(federated)
        if type_ is None or not type_.collect or not type_.status_fields:
            return DONE
        if (remaining_s := self._pace.remaining_s(key, self._clock.monotonic())) > 0:
            return Result(requeue_after_s=remaining_s)
        self._pace.take(key)
        found, is_partial = self._read(federated, type_)
        if key in self._written and not is_partial and self._written[key] == _hash(federated, found):
            return DONE
        await self._write(key, federated, found, is_partial=is_partial)
        return DONE

    def _read(self, federated: Object, type_: FederatedType) -> tuple[dict[str, Object], bool]:
        """Return the copies by cluster, and whether a cluster's cache is not there yet."""
        namespace = federated["metadata"].get("namespace", "")
        name = federated["spec"]["template"]["metadata"]["name"]
        annotations = federated["metadata"].get("annotations") or {}
        found, is_partial = {}, False
        for cluster in self._members.clusters:
            if not self._members.is_synced(cluster, type_.resource):
                is_partial = True
                continue
            obj = self._members.get_cached(cluster, type_.resource, namespace, name)
            if obj is not None and not is_other_derived_service(annotations, obj):
                found[cluster] = obj
        entries = {cluster: to_entry(cluster, obj, type_.status_fields) for cluster, obj in found.items()}
        if (digests := replicaset_digests(found)) is not None:
            entries[""] = {"digests": digests}
        return entries, is_partial

    async def _write(self, key: Key, federated: Object, entries: Mapping[str, Object], *, is_partial: bool) -> None:
        """Create the CollectedStatus or patch what changed of it."""
        resource = COLLECTED_STATUSES if key.namespace else CLUSTER_COLLECTED_STATUSES
        present: Object | None = None
        if is_partial or key not in self._written:
            try:
                present = await self._client.get(resource, key.name, key.namespace)
            except NotFound:
                present = None
            entries = {**self._kept(present, entries), **entries}
            if present is not None and _hash_stored(present) == _hash(federated, entries):
                self._written[key] = _hash(federated, entries)
                return
            if present is None and not any(entries):
                return
        body = _to_object(resource, key, federated, entries, to_rfc3339(self._clock.now()))
        try:
            if present is None and key not in self._written:
                await self._client.create(resource, body, field_manager=names.FIELD_MANAGER)
            else:
                await self._patch(resource, key, body)
        except NotFound:
            self._written.pop(key, None)
            raise
        self._written[key] = _hash(federated, entries)
        self._pace.wrote(key, self._clock.monotonic())

    def _kept(self, present: Object | None, entries: Mapping[str, Object]) -> dict[str, Object]:
        """Return the stored entries of joined clusters whose cache is not there yet."""
        joined = set(self._members.clusters)
        return {
            entry["cluster"]: entry
            for entry in (present or {}).get("clusters") or ()
            if entry["cluster"] in joined and entry["cluster"] not in entries
        }

    async def _patch(self, resource: Resource, key: Key, body: Object) -> None:
        patch = {
            "metadata": {"labels": body["metadata"]["labels"], "annotations": body["metadata"]["annotations"]},
            "clusters": body["clusters"],
            "lastUpdateTime": body["lastUpdateTime"],
        }
        await self._client.patch(
            resource,
            key.name,
            patch,
            patch_type=PatchType.MERGE,
            namespace=key.namespace,
            field_manager=names.FIELD_MANAGER,
        )


def _to_object(resource: Resource, key: Key, federated: Object, entries: Mapping[str, Object], now: str) -> Object:
    metadata = federated["metadata"]
    owner = FEDERATED_OBJECTS if key.namespace else CLUSTER_FEDERATED_OBJECTS
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": key.name,
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
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
