"""The steps of status aggregation for one federated object: read the caches, merge, write what differs.

Member objects in clusters that do not answer count with their last known status: it stays in the cache, and after a
restart the CollectedStatus replaces the cache. A CollectedStatus is written less often than a source's status, so for
the first seconds after a start no status is written before all caches are complete. A member object without a status
counts as zero.

The merged status and the feedback annotations go in one patch where the server takes annotations with a status, as
Kubernetes does for its workloads; where it does not, the annotations follow in a second one.
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_COLLECTED_STATUSES, COLLECTED_STATUSES
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import NotFound
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.dispatch.plan import is_name_collision
from federation.dispatch.status import clusters_of, is_fully_observed
from federation.planning.aggregation.aggregators import merge_of, plan_feedback
from federation.planning.aggregation.context import Context
from federation.planning.aggregation.plausibility import with_plausible_status
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.provenance import is_from
from federation.planning.status.completeness import has_first_status, is_in_progress
from federation.planning.status.debounce import Coalescer
from federation.planning.status.schedulingsummary import (
    is_unscheduled,
    takes_scheduled_condition,
    with_scheduled_condition,
)
from federation.runtime.assumecache import AssumeCache
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.members import Members

_PROGRESS_S = 4.0
"""How long the status of an unfinished rollout may wait for the status of the finished one."""
_SYNC_WAIT_S_MAX = 5.0
"""How long after a start a source's status stays unchanged while the cache of a cluster with the object is missing."""


class Reconciler:
    """Merges the statuses of one federated object's member objects into its source."""

    def __init__(
        self,
        client: Client,
        objects: FederatedObjects,
        source: Callable[[Resource, str, str], Object | None],
        members: Members,
        pace: Coalescer[Key],
        clock: Clock,
    ) -> None:
        self._client = client
        self._objects = objects
        self._members = members
        self._pace = pace
        self._clock = clock
        self._assumed: AssumeCache[tuple[Resource, Key]] = AssumeCache(lambda where: source(where[0], *where[1]))
        self._collected: dict[Key, dict[str, Object]] = {}
        self._takes_annotations: dict[Resource, bool] = {}
        self._started_s: float | None = None

    def forget(self, key: Key) -> None:
        """Discard the state of a deleted federated object."""
        self._pace.forget(key)
        self._collected.pop(key, None)

    def source_changed(self, resource: Resource, key: Key) -> None:
        """Drop the assumed state of a source if the informer, which has just changed, has caught up."""
        self._assumed.prune((resource, key))

    async def reconcile(self, key: Key) -> Result:
        """Update one source's status and feedback annotations."""
        federated = self._objects.get(key)
        if federated is None:
            return DONE
        template = federated["spec"].get("template") or {}
        type_ = self._objects.type_of(federated)
        if type_ is None or not type_.aggregate:
            return DONE
        if (remaining_s := self._pace.remaining_s(key, self._clock.monotonic())) > 0:
            return Result(requeue_after_s=remaining_s)
        where = (type_.resource, Key(key.namespace, template["metadata"]["name"]))
        source = self._assumed.get(where)
        if source is None or not is_from(federated, source):
            self._pace.take(key)
            return DONE
        if (remaining_s := self._sync_wait_s(source, federated, type_)) > 0:
            return Result(requeue_after_s=remaining_s)
        open_s = self._pace.open_s(key, self._clock.monotonic())
        status = await self._merge(key, source, federated, type_)
        if status and 0 < open_s < _PROGRESS_S and is_in_progress(source, status):
            return Result(requeue_after_s=_PROGRESS_S - open_s)
        self._pace.take(key)
        if status is not None and await self._write(where, source, federated, status):
            self._pace.wrote(key, self._clock.monotonic())
        return DONE

    def _sync_wait_s(self, source: Object, federated: Object, type_: FederatedType) -> float:
        """Return how long to wait for caches that are missing since the start, 0 if they are complete or time is up."""
        now_s = self._clock.monotonic()
        if self._started_s is None:
            self._started_s = now_s
        remaining_s = self._started_s + _SYNC_WAIT_S_MAX - now_s
        if remaining_s <= 0 or not source.get("status"):
            return 0.0
        is_synced = all(self._members.is_synced(cluster, type_.resource) for cluster in clusters_of(federated))
        return 0.0 if is_synced else remaining_s

    async def _merge(self, key: Key, source: Object, federated: Object, type_: FederatedType) -> Object | None:
        """Return the patch of the status, None when it is too early for a first status."""
        merge = merge_of(type_.resource.group, type_.resource.kind)
        if merge is None:
            return {}
        members = await self._member_objects(key, federated, type_)
        context = Context(
            now=self._clock.now(),
            is_observed=is_fully_observed(source, federated, members),
            placed=effective_placement(federated),
        )
        present = source.get("status") or {}
        if not present and not has_first_status(federated, members):
            return None
        status = merge(source, members, context)
        takes_condition = takes_scheduled_condition(type_.resource.group, type_.resource.kind)
        if status is None:
            if not (takes_condition and is_unscheduled(federated)):
                return {}
            status = dict(present)
        if takes_condition:
            status = with_scheduled_condition(status, present, federated, context.now)
        return create_merge_patch(present, status)

    async def _member_objects(self, key: Key, federated: Object, type_: FederatedType) -> dict[str, Mapping[str, Any]]:
        """Return the member objects by cluster, from the caches or, without a cache, from the CollectedStatus."""
        namespace, name = key.namespace, federated["spec"]["template"]["metadata"]["name"]
        annotations = federated["metadata"].get("annotations") or {}
        found: dict[str, Mapping[str, Any]] = {}
        unsynced = []
        for cluster in sorted({*self._members.clusters, *clusters_of(federated)}):
            if not self._members.is_synced(cluster, type_.resource):
                unsynced.append(cluster)
                continue
            obj = self._members.get_cached(cluster, type_.resource, namespace, name)
            if obj is not None and not is_name_collision(annotations, obj):
                found[cluster] = with_plausible_status(obj)
        if unsynced:
            collected = await self._collected_status(key)
            found |= {
                cluster: with_plausible_status(collected[cluster]) for cluster in unsynced if cluster in collected
            }
        else:
            self._collected.pop(key, None)
        return found

    async def _collected_status(self, key: Key) -> dict[str, Object]:
        """Return the fields that were collected before this process started, by cluster; read once."""
        known = self._collected.get(key)
        if known is not None:
            return known
        resource = COLLECTED_STATUSES if key.namespace else CLUSTER_COLLECTED_STATUSES
        try:
            stored = await self._client.get(resource, key.name, key.namespace)
        except NotFound:
            stored = {}
        known = {entry["cluster"]: entry.get("collectedFields") or {} for entry in stored.get("clusters") or ()}
        self._collected[key] = known
        return known

    async def _write(self, where: tuple[Resource, Key], source: Object, federated: Object, status: Object) -> bool:
        """Patch status and feedback if they differ, in one request where possible; return whether they did."""
        resource, _ = where
        feedback = plan_feedback(source["metadata"].get("annotations"), federated["metadata"].get("annotations"))
        if status:
            body: Object = {"status": status}
            if feedback and self._takes_annotations.get(resource, True):
                body["metadata"] = {"annotations": feedback}
            written = await self._patch(where, body, "status")
            if written is None:
                return True
            if feedback and "metadata" in body:
                held = written["metadata"].get("annotations")
                feedback = plan_feedback(held, federated["metadata"].get("annotations"))
                self._takes_annotations[resource] = not feedback
        if feedback:
            await self._patch(where, {"metadata": {"annotations": feedback}}, "")
        return bool(status or feedback)

    async def _patch(self, where: tuple[Resource, Key], body: Object, subresource: str) -> Object | None:
        resource, key = where
        patch = self._client.patch(
            resource,
            key.name,
            body,
            namespace=key.namespace,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
        )
        return await self._assumed.assume_result(where, patch)
