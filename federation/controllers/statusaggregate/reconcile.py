"""The steps of status aggregation for one federated object: read the caches, merge, write what differs.

Copies in clusters that do not answer keep counting with what was seen last: their cache stays, and after a restart the
CollectedStatus stands in for it. That one is written less often than a source's status, so for the first seconds after
a start nothing is told about a copy that may still be read. A copy without a status counts as zero.

The merged status and the feedback annotations go in one patch where the server takes annotations with a status, as
Kubernetes does for its workloads; where it does not, the annotations follow in a second one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from federation.api import conditions, names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_COLLECTED_STATUSES, COLLECTED_STATUSES, Object, Resource
from federation.base.clock import Clock
from federation.base.errors import NotFound
from federation.client.protocol import Client, PatchType
from federation.dispatch.ownwrites import OwnWrites
from federation.dispatch.plan import is_other_derived_service
from federation.dispatch.status import ClusterStatus, clusters_of
from federation.planning import pipeline
from federation.planning.aggregation.context import Context, keep_condition_times
from federation.planning.aggregation.registry import merge_of, plan_feedback
from federation.planning.coalescing import Coalescer
from federation.planning.memberobject import effective_placement
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.members import Members
from federation.scheduling.persist import describe_placement

_PROGRESS_S = 4.0
"""How long a status that says "not yet" may wait for one that says "done", which comes with a change of a copy: most
rollouts then cost one write."""
_SETTLE_S = 5.0
"""After a start: how long a source's status stays as it is while a cluster that has a copy was not read yet."""
_OPEN_CONDITIONS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
        ("", "Pod"),
    }
)
"""Kinds whose condition lists are open, so that Scheduled may stand among them."""


def is_fully_observed(source: Object, federated: Object, members: Mapping[str, Mapping[str, Any]]) -> bool:
    """Say whether the source's newest generation is what all clusters hold, and their controllers have seen it."""
    metadata, status = federated["metadata"], federated.get("status") or {}
    template_generation = (federated["spec"]["template"].get("metadata") or {}).get("generation")
    if template_generation != source["metadata"].get("generation"):
        return False
    if status.get("syncedGeneration") != metadata.get("generation"):
        return False
    try:
        if not pipeline.may_dispatch(pipeline.pending(federated)):
            return False
    except pipeline.PipelineError:
        return False
    clusters = clusters_of(federated)
    if not effective_placement(federated) <= clusters.keys():
        return False
    return all(
        entry.get("status") == ClusterStatus.OK
        and _observed(members.get(name)) >= int(entry.get("lastObservedGeneration") or 0)
        for name, entry in clusters.items()
    )


def _is_in_progress(source: Object, status: Object) -> bool:
    """Tell whether a status that is about to be written says that replicas are still missing.

    Not when it also says that the object was not scheduled: that is news, and waiting brings nothing better.
    """
    scheduled = conditions.find(status.get("conditions"), names.SCHEDULED)
    if scheduled is not None and scheduled.get("status") != "True":
        return False
    wanted = (source.get("spec") or {}).get("replicas")
    ready = status.get("readyReplicas", (source.get("status") or {}).get("readyReplicas"))
    return isinstance(wanted, int) and (ready or 0) < wanted


def _observed(member: Mapping[str, Any] | None) -> int:
    return int(((member or {}).get("status") or {}).get("observedGeneration") or 0)


def scheduled_condition(federated: Object) -> dict[str, Any] | None:
    """Return the Scheduled condition for the user's object in one line, None when nothing was decided yet."""
    told = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
    if told is not None and told.get("status") != "True":
        return {
            "type": names.SCHEDULED,
            "status": str(told.get("status")),
            "reason": str(told.get("reason", "")),
            "message": str(told.get("message", "")),
        }
    annotations = federated["metadata"].get("annotations") or {}
    try:
        text = annotations.get(names.SCHEDULING)
        placement = orjson.loads(text)["placement"] if text else {}
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(placement, dict) or not placement:
        return None
    summary = annotations.get(names.SCHEDULING_SUMMARY)
    return {
        "type": names.SCHEDULED,
        "status": "True",
        "reason": names.REASON_SCHEDULED,
        "message": "; ".join(filter(None, (summary, describe_placement(placement)))),
    }


def plan_patch(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object:
    """Return the merge patch from one status to another, {} when they are equal: fields that go are null."""
    patch: Object = {key: value for key, value in wanted.items() if present.get(key) != value}
    patch |= {key: None for key in present if key not in wanted}
    return patch


class Reconciler:
    """Merges the statuses of one federated object's copies into its source."""

    def __init__(
        self,
        client: Client,
        federated: Callable[[Key], Object | None],
        source: Callable[[Resource, str, str], Object | None],
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
        self._own: OwnWrites[tuple[Resource, Key]] = OwnWrites(lambda where: source(where[0], *where[1]))
        self._collected: dict[Key, dict[str, Object]] = {}
        self._takes_annotations: dict[Resource, bool] = {}
        self._started_s: float | None = None

    def forget(self, key: Key) -> None:
        """Forget a federated object that is gone."""
        self._pace.forget(key)
        self._collected.pop(key, None)

    def saw(self, resource: Resource, key: Key) -> None:
        """Take down that the cache has a newer state of a source."""
        self._own.saw((resource, key))

    async def reconcile(self, key: Key) -> Result:
        """Bring one source's status and feedback annotations up to date."""
        federated = self._federated(key)
        if federated is None:
            return DONE
        template = federated["spec"].get("template") or {}
        type_ = self._types.for_federated(federated)
        if type_ is None or not type_.aggregate:
            return DONE
        if (remaining_s := self._pace.remaining_s(key, self._clock.monotonic())) > 0:
            return Result(requeue_after_s=remaining_s)
        where = (type_.resource, Key(key.namespace, template["metadata"]["name"]))
        source = self._own.newest(where)
        if source is None or not _is_source_of(source, federated):
            self._pace.take(key)
            return DONE
        if (remaining_s := self._settling_s(source, federated, type_)) > 0:
            return Result(requeue_after_s=remaining_s)
        open_s = self._pace.open_s(key, self._clock.monotonic())
        status = await self._merge(key, source, federated, type_)
        if status and 0 < open_s < _PROGRESS_S and _is_in_progress(source, status):
            return Result(requeue_after_s=_PROGRESS_S - open_s)
        self._pace.take(key)
        if status is not None and await self._write(where, source, federated, status):
            self._pace.wrote(key, self._clock.monotonic())
        return DONE

    def _settling_s(self, source: Object, federated: Object, type_: FederatedType) -> float:
        """Return for how long to wait for clusters whose copies were not read since the start, 0 for not at all."""
        now_s = self._clock.monotonic()
        if self._started_s is None:
            self._started_s = now_s
        remaining_s = self._started_s + _SETTLE_S - now_s
        if remaining_s <= 0 or not source.get("status"):
            return 0.0
        is_read = all(self._members.is_synced(cluster, type_.resource) for cluster in clusters_of(federated))
        return 0.0 if is_read else remaining_s

    async def _merge(self, key: Key, source: Object, federated: Object, type_: FederatedType) -> Object | None:
        """Return the patch of the status, None when it is too early to write anything to the source."""
        merge = merge_of(type_.resource.group, type_.resource.kind)
        if merge is None:
            return {}
        members = await self._copies(key, federated, type_)
        context = Context(
            now=self._clock.now(),
            is_observed=is_fully_observed(source, federated, members),
            placed=frozenset(effective_placement(federated)),
        )
        present = source.get("status") or {}
        if not present and not _has_news(federated, members):
            return None
        status = merge(source, members, context)
        has_open_conditions = (type_.resource.group, type_.resource.kind) in _OPEN_CONDITIONS
        if status is None:
            if not (has_open_conditions and _is_unscheduled(federated)):
                return {}
            status = dict(present)
        if has_open_conditions:
            status = _with_scheduled(status, present, federated, context)
        return plan_patch(present, status)

    async def _copies(self, key: Key, federated: Object, type_: FederatedType) -> dict[str, Object]:
        """Return the copies by cluster, from the caches or, where there is no cache yet, from the CollectedStatus."""
        namespace, name = key.namespace, federated["spec"]["template"]["metadata"]["name"]
        annotations = federated["metadata"].get("annotations") or {}
        found: dict[str, Object] = {}
        unsynced = []
        for cluster in sorted({*self._members.clusters, *clusters_of(federated)}):
            if not self._members.is_synced(cluster, type_.resource):
                unsynced.append(cluster)
                continue
            obj = self._members.get_cached(cluster, type_.resource, namespace, name)
            if obj is not None and not is_other_derived_service(annotations, obj):
                found[cluster] = obj
        if unsynced:
            collected = await self._collected_status(key)
            found |= {cluster: collected[cluster] for cluster in unsynced if cluster in collected}
        else:
            self._collected.pop(key, None)
        return found

    async def _collected_status(self, key: Key) -> dict[str, Object]:
        """Return what was collected before this process started, by cluster; read once."""
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
        """Patch status and feedback as far as they differ, in one request where possible; True when anything did."""
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
        try:
            written = await self._client.patch(
                resource,
                key.name,
                body,
                patch_type=PatchType.MERGE,
                namespace=key.namespace,
                subresource=subresource,
                field_manager=names.FIELD_MANAGER,
            )
        except NotFound:
            self._own.forget(where)
            return None
        self._own.note(where, written)
        return written


def _is_source_of(source: Object, federated: Object) -> bool:
    """Say whether the federated object was made from this very source, not from an earlier one of the same name."""
    uid = source["metadata"].get("uid")
    owners = federated["metadata"].get("ownerReferences") or ()
    controllers = [owner.get("uid") for owner in owners if owner.get("controller")]
    return not controllers or uid in controllers


def _has_news(federated: Object, members: Mapping[str, Mapping[str, Any]]) -> bool:
    """Say whether there is something to tell about an object without a status: a copy reports, or none will come.

    Writing zeros first and numbers a moment later would be one host write more for every object.
    """
    if any(member.get("status") for member in members.values()):
        return True
    return _is_unscheduled(federated)


def _is_unscheduled(federated: Object) -> bool:
    told = scheduled_condition(federated)
    return told is not None and told["status"] != "True"


def _with_scheduled(status: Object, present: Mapping[str, Any], federated: Object, context: Context) -> Object:
    """Return the status with the one-line outcome of scheduling among its conditions."""
    held = [c for c in status.get("conditions") or () if c.get("type") != names.SCHEDULED]
    wanted = scheduled_condition(federated)
    if wanted is not None:
        held += keep_condition_times(present.get("conditions"), [wanted], context.now)
    return {**status, "conditions": held} if held else status
