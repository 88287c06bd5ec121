"""The steps of status aggregation for one federated object: read the caches, merge, write what differs.

Only clusters of the placement count. Those that do not answer count with their last known status, marked as stale: it
stays in the cache, and after a restart the CollectedStatus replaces the cache. A CollectedStatus is written less often
than a source's status, so for the first seconds after a start no status is written before all caches are complete. A
member object without a status counts as zero.

The merged status and the feedback annotations go in one patch where the server takes annotations with a status, as
Kubernetes does for its workloads; where it does not, the annotations follow in a second one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_COLLECTED_STATUSES, COLLECTED_STATUSES
from federation.apimachinery import conditions
from federation.apimachinery.errors import BadRequest, Invalid, NotFound
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object, Resource
from federation.controllers.statusaggregate.names import (
    REASON_MEMBER_STATUS_INVALID,
    REASON_STATUS_AGGREGATED,
    REASON_STATUS_REFUSED,
    REASON_STATUS_RULE_FAILED,
)
from federation.delivery.rules.plan import is_name_collision
from federation.delivery.rules.status import (
    ClusterStatus,
    clusters_of,
    departing_clusters,
    is_fully_observed,
    outdated_clusters,
    stale_clusters,
)
from federation.planning.aggregation.aggregators import has_own_merge, merge_of, plan_feedback
from federation.planning.aggregation.context import Context
from federation.planning.aggregation.deployment import deadline_in_s, is_stuck
from federation.planning.aggregation.plausibility import plausible
from federation.planning.aggregation.refusal import without_refused
from federation.planning.aggregation.rules import Compile, Computed, apply_rules
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.planning.federatedobject.placements import current_clusters, effective_placement
from federation.planning.federatedobject.provenance import is_from
from federation.planning.status.completeness import (
    has_first_status,
    is_complete,
    is_dispatched,
    is_rolling_out,
    is_worth_waiting,
    replaces_pods_by_itself,
)
from federation.planning.status.debounce import Coalescer
from federation.planning.status.schedulingsummary import scheduled_condition
from federation.planning.status.sourceconditions import (
    is_undelivered,
    is_unselected,
    takes_source_conditions,
    unscheduled_since,
    with_source_conditions,
)
from federation.planning.status.staleness import last_known, with_stale_condition, without_updated
from federation.planning.steps.waveapproval import failure_of
from federation.runtime.assumecache import AssumeCache
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.host import Host

_MESSAGE_LENGTH_MAX = 2048
_FIELDS_NAMED_MAX = 5
_REFUSALS_MAX = 4
"""How often a status is written again without the parts that the host has refused; it may name them one by one."""
_SYNC_WAIT_S_MAX = 15.0
"""How long after a start a source's status stays unchanged while the cache of a cluster with the object is missing.

A busy machine needs more than 5 s to connect to its members; a status from older reports would show lost replicas."""


class Reconciler:
    """Merges the statuses of one federated object's member objects into its source."""

    def __init__(
        self,
        host: Host,
        source: Callable[[Resource, str, str], Object | None],
        pace: Coalescer[Key],
        compile_rule: Compile,
        rules_s_max: float,
    ) -> None:
        self._client = host.client
        self._objects = host.objects
        self._members = host.members
        self._pace = pace
        self._compile_rule = compile_rule
        self._clock = host.clock
        self._rules_s_max = rules_s_max
        self._assumed: AssumeCache[tuple[Resource, Key]] = AssumeCache(lambda where: source(where[0], *where[1]))
        self._collected: dict[Key, dict[str, Object]] = {}
        self._unfinished: set[Key] = set()
        """Objects that are reconciled again though nothing changed: after a failure, or at a progress deadline."""
        self._invalid: dict[Key, tuple[str, ...]] = {}
        """Impossible reports of members, by object; objects without such reports are missing."""
        self._takes_annotations: dict[Resource, bool] = {}
        self._started_s: float | None = None

    def forget(self, key: Key) -> None:
        """Discard the state of a deleted federated object."""
        self._pace.forget(key)
        self._unfinished.discard(key)
        self._collected.pop(key, None)
        self._invalid.pop(key, None)

    def source_changed(self, resource: Resource, key: Key) -> None:
        """Drop the assumed state of a source if the informer, which has just changed, has caught up."""
        self._assumed.prune((resource, key))

    def is_rolled_out(self, key: Key) -> bool:
        """Return whether every cluster has the object as it is now, with all of its replicas ready.

        Clusters that do not answer or do not take the object are left out: it may be long until they do.
        """
        federated = self._objects.get(key)
        type_ = self._objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None or not is_dispatched(federated):
            return False
        name, placed = federated["spec"]["template"]["metadata"]["name"], effective_placement(federated)
        for cluster, entry in clusters_of(federated).items():
            if cluster not in placed or entry.get("status") != ClusterStatus.OK:
                continue
            member = self._members.get_cached(cluster, type_.resource, key.namespace, name)
            # The answer to sync's write may come before the member's event: then the cache has an older generation.
            written = int(entry.get("lastObservedGeneration") or 0)
            if member is None or member["metadata"].get("generation", 0) < written or not is_complete(member):
                return False
        return True

    async def reconcile(self, key: Key) -> Result:
        """Update one source's status and feedback annotations when the pace allows it."""
        federated = self._objects.get(key)
        if federated is None:
            self.forget(key)
            return DONE
        if (remaining_s := self._pace.remaining_s(key, self._clock.monotonic())) > 0:
            return Result(requeue_after_s=remaining_s)
        if not self._pace.has_changes(key) and key not in self._unfinished:
            return DONE  # An urgent change came before the time of the earlier ones, and took them with it.
        self._unfinished.add(key)
        result = await self._aggregate(key, federated)
        if result.requeue_after_s is None:
            self._unfinished.discard(key)
        return result

    async def _aggregate(self, key: Key, federated: Object) -> Result:
        type_ = self._objects.type_of(federated)
        if type_ is None or not type_.aggregate:
            self._pace.take(key)
            return DONE
        where = (type_.resource, Key(key.namespace, federated["spec"]["template"]["metadata"]["name"]))
        source = self._assumed.get(where)
        # A federated object of another name delivers nothing of this source, so it knows nothing of its status.
        is_regular = self._objects.key_for(type_, *where[1]) == key
        if source is None or not is_regular or not is_from(federated, source):
            self._pace.take(key)
            return DONE
        if (remaining_s := self._sync_wait_s(source, federated, type_)) > 0:
            return Result(requeue_after_s=remaining_s)
        if source["metadata"].get("deletionTimestamp") and (remaining_s := self._hold(key)) > 0:
            return Result(requeue_after_s=remaining_s)
        merged = await self._merge(key, source, federated, type_)
        if merged is None:
            self._pace.take(key)
            return DONE
        status, is_rolled_out = create_merge_patch(source.get("status") or {}, merged.status), self.is_rolled_out(key)
        is_early = status and not is_rolled_out and is_worth_waiting(source, federated, status)
        if is_early and (remaining_s := self._hold(key)) > 0:
            return Result(requeue_after_s=remaining_s)
        self._pace.take(key)
        await self._publish(key, where, source, federated, merged, status)
        is_replacing = not is_rolled_out and replaces_pods_by_itself(source)
        if not (self._pace.has_begun(key) and (is_replacing or is_rolling_out(source, federated, merged.status))):
            self._pace.settle(key)
        # A Deployment without clusters gets another status when its progress deadline has passed.
        now = self._clock.now()
        after_s = deadline_in_s(source, unscheduled_since(merged.status, federated, now), now)
        return Result(requeue_after_s=after_s) if after_s is not None and after_s > 0 else DONE

    def _hold(self, key: Key) -> float:
        """Wait for changes that follow soon; return the seconds that remain."""
        self._pace.hold(key)
        return self._pace.remaining_s(key, self._clock.monotonic())

    async def _publish(
        self,
        key: Key,
        where: tuple[Resource, Key],
        source: Object,
        federated: Object,
        merged: Computed,
        status: Object,
    ) -> None:
        """Write what differs, and report problems of the rules and of the host's schema."""
        problems, reason = merged.problems, REASON_STATUS_RULE_FAILED
        if invalid := self._invalid.get(key):
            problems, reason = (*problems, *invalid), reason if problems else REASON_MEMBER_STATUS_INVALID
        try:
            is_written = await self._write(where, source, federated, status)
        except (BadRequest, Invalid) as error:
            # What members report can be wrong for the host's schema of the kind; repeating it would not help.
            problems, reason = (str(error), *problems), REASON_STATUS_REFUSED
            is_written = await self._write_accepted(where, source, federated, merged, error)
        if is_written:
            self._pace.wrote(key, self._clock.monotonic())
        await self._report(key, federated, problems, reason)

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

    async def _merge(self, key: Key, source: Object, federated: Object, type_: FederatedType) -> Computed | None:
        """Return the source's next status, None when it is too early for a first one."""
        present = source.get("status") or {}
        merge = merge_of(type_)
        if merge is None and not type_.status_rules:
            return Computed(present, present)
        members = await self._member_objects(key, federated, type_)
        failure = failure_of(federated, source)
        context = Context(
            now=self._clock.now(),
            # A cluster that was rolled back has no pods of the wanted template.
            is_observed=not failure and is_fully_observed(source, federated, members),
            placed=effective_placement(federated),
            stale=stale_clusters(federated) & effective_placement(federated),
            unscheduled_since=unscheduled_since(present, federated, self._clock.now()),
            rollout_failure=failure,
            unscheduled=str((scheduled_condition(federated) or {}).get("message", "")),
        )
        if not present and not has_first_status(federated, members):
            return None
        is_merged = bool(members or context.placed or is_stuck(source, context) or not is_unselected(federated))
        # Controllers of the host may run what no policy selects: its status is theirs, but for our conditions.
        status = merge(source, members, context) if is_merged and merge is not None else None
        takes_conditions = takes_source_conditions(type_.resource.group, type_.resource.kind)
        if type_.status_rules and context.placed and not has_own_merge(type_.resource.group, type_.resource.kind):
            until_s = self._clock.monotonic() + self._rules_s_max
            return apply_rules(
                type_.status_rules,
                self._compile_rule,
                lambda: self._clock.monotonic() < until_s,
                present if status is None else status,
                source,
                members,
                context,
            )
        if status is None:
            if not (takes_conditions and is_undelivered(federated)):
                return Computed(present, present)
            status = dict(present)
        if takes_conditions:
            status = with_source_conditions(status, present, federated, context.now)
            status = with_stale_condition(status, present, context.stale, context.now)
        return Computed(status, present)

    async def _member_objects(self, key: Key, federated: Object, type_: FederatedType) -> dict[str, Mapping[str, Any]]:
        """Return the member objects by cluster, from the caches or, without a cache, from the CollectedStatus."""
        namespace, name = key.namespace, federated["spec"]["template"]["metadata"]["name"]
        annotations = federated["metadata"].get("annotations") or {}
        found: dict[str, Mapping[str, Any]] = {}
        unsynced = []
        finished = {
            cluster: {"status": held.get("status") or {}} for cluster, held in evidence_by_cluster(federated).items()
        }
        # Only sync's clusters count: a stray in another one, or one that sync has not brought up to date yet, does not.
        placed = effective_placement(federated) & clusters_of(federated).keys()
        for cluster in sorted(placed | departing_clusters(federated)):
            if not self._members.is_synced(cluster, type_.resource):
                unsynced.append(cluster)
                continue
            obj = self._members.get_cached(cluster, type_.resource, namespace, name)
            if obj is not None and not is_name_collision(annotations, obj):
                found[cluster] = obj
            elif obj is None and cluster in finished:
                found[cluster] = finished[cluster]
        if unsynced:
            collected = await self._collected_status(key)
            found |= {cluster: collected[cluster] for cluster in unsynced if cluster in collected}
            found |= {
                cluster: finished[cluster] for cluster in unsynced if cluster in finished and cluster not in found
            }
        else:
            self._collected.pop(key, None)
        found = self._plausible(key, type_, found)
        if stale := stale_clusters(federated) & found.keys():
            wanted, default = current_clusters(federated, type_), type_.replicas(federated["spec"]["template"])
            for cluster in stale:
                count = wanted.get(cluster)
                found[cluster] = last_known(found[cluster], default if count is None else count, type_.paths)
        for cluster in outdated_clusters(federated) & found.keys():
            found[cluster] = without_updated(found[cluster])
        return found

    def _plausible(
        self, key: Key, type_: FederatedType, members: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Mapping[str, Any]]:
        """Return the member objects without what cannot be in their statuses, and remember what that is."""
        found, problems = {}, []
        for cluster, obj in members.items():
            found[cluster], wrong = plausible(obj, type_.resource.group, type_.resource.kind)
            if wrong:
                fields = ", ".join(wrong[:_FIELDS_NAMED_MAX])
                problems.append(f"cluster {cluster} reports impossible values, which do not count: {fields}")
        if problems:
            self._invalid[key] = tuple(problems)
        else:
            self._invalid.pop(key, None)
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
            # Without an answer the source is gone, or its kind has no status subresource.
            if written is not None and feedback and "metadata" in body:
                held = written["metadata"].get("annotations")
                feedback = plan_feedback(held, federated["metadata"].get("annotations"))
                self._takes_annotations[resource] = not feedback
        if feedback:
            await self._patch(where, {"metadata": {"annotations": feedback}}, "")
        return bool(status or feedback)

    async def _write_accepted(
        self,
        where: tuple[Resource, Key],
        source: Object,
        federated: Object,
        merged: Computed,
        refusal: BadRequest | Invalid,
    ) -> bool:
        """Write the status without what the host refuses, or without the values of rules; return whether it did."""
        present = source.get("status") or {}
        accepted = merged.status
        for _ in range(_REFUSALS_MAX):
            left = without_refused(accepted, present, refusal.details.get("causes") or ())
            if left is None:
                break
            accepted = left
            try:
                return await self._write(where, source, federated, create_merge_patch(present, accepted))
            except (BadRequest, Invalid) as error:
                refusal = error
        try:
            return await self._write(where, source, federated, create_merge_patch(present, merged.fallback))
        except (BadRequest, Invalid):
            return False

    async def _report(self, key: Key, federated: Object, problems: Sequence[str], reason: str) -> None:
        """Report problems, and their end. An object that never had one has no condition and costs no write."""
        held = (federated.get("status") or {}).get("conditions")
        if problems:
            message = "; ".join(problems)[:_MESSAGE_LENGTH_MAX]
            await self._objects.set_condition(
                key, names.STATUS_AGGREGATED, status="False", reason=reason, message=message
            )
        elif conditions.find(held, names.STATUS_AGGREGATED) is not None:
            reason = REASON_STATUS_AGGREGATED
            await self._objects.set_condition(key, names.STATUS_AGGREGATED, status="True", reason=reason)

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
