"""Failover of decisions: replicas leave lost and drained clusters only as far and as fast as they may.

The scheduler decides where an object goes without the clusters whose NoExecute taints it does not tolerate. Of these
moves, `planning/failover` says which go on now. What left is recorded in annotation `names.EVICTION`, the memory after
a restart. `evictingclusters.py` knows the clusters, `evictionstatus.py` publishes them (docs/reference/failover.md).
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import structs
from prometheus_client import Counter

from federation.api import names
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.resources import POD_DISRUPTION_BUDGETS, Object
from federation.controllers.schedule.claimmodes import ClaimModes
from federation.controllers.schedule.decider import AttemptContext
from federation.controllers.schedule.evictingclusters import EvictingClusters
from federation.controllers.schedule.names import EVENT_EVICTION_WAITS
from federation.planning.failover import eviction
from federation.planning.failover.completion import Completion, missing_clusters, plan_completion
from federation.planning.failover.departure import stay_of, stay_of_volumes
from federation.planning.failover.evictionrecord import (
    EvictionRecord,
    Stay,
    StayReason,
    eviction_record,
    eviction_text,
)
from federation.planning.failover.failoveroptions import FailoverOptions
from federation.planning.failover.halts import Halt
from federation.planning.failover.pace import Pace
from federation.planning.failover.podbudgets import unavailable_max
from federation.planning.failover.returning import Returns, may_return, plan_returns
from federation.planning.failover.tolerance import FailoverRules, Tolerance, fixed_volumes_of, tolerance_of
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.planning.federatedobject.placements import current_clusters, departed_clusters, effective_placement
from federation.planning.guard.losses import lost_clusters
from federation.planning.guard.volumepermit import FREE, VolumePermit
from federation.planning.steps.strategy import can_surge
from federation.runtime.controller import Key, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.scheduling.annotationoverrides import overrides_from_annotations
from federation.scheduling.assessment import Due
from federation.scheduling.attempt import Annotations
from federation.scheduling.engine import Decision
from federation.scheduling.policyspec import Policy
from federation.scheduling.snapshot import Snapshot

_evicted = Counter(
    "federation_controllers_evicted_replicas_total",
    "Replicas that left lost and drained clusters, and completed moves",
)
_PASSING = frozenset((StayReason.HALTED, StayReason.BUDGET, StayReason.RATE, StayReason.READY))
"""Reasons that say nothing about the object: they are published once per cluster, not per object."""
_FINAL = frozenset((StayReason.KEPT, StayReason.NEVER, StayReason.STATE))
"""Reasons that only a change of the object or its policy ends."""


@dataclass(frozen=True, slots=True)
class Eased:
    """The decision to write. `left` are the replicas that remain in clusters which the guard must not count.

    `is_partial`: moves wait, so the object stays due; `requeue_after_s` is when one of them may go on by time alone.
    """

    decision: Decision
    left: Mapping[str, int | None] = field(default_factory=dict)
    annotations: Annotations = field(default_factory=dict)
    stays: Mapping[str, Stay] = field(default_factory=dict)
    is_partial: bool = False
    requeue_after_s: float | None = None
    waits_for_turn: bool = False
    """Whether nothing is written: a completion moves all that it moves at a time, and others go first."""

    @property
    def needs_room(self) -> bool:
        """Whether replicas stay because no other cluster can hold them."""
        return any(stay.reason is StayReason.NO_ROOM for stay in self.stays.values())


class Failover:
    """Eases the decisions of all federated objects. It lives as long as the schedule controller."""

    def __init__(self, host: Host, clusters: EvictingClusters, options: FailoverOptions) -> None:
        self.options = options
        self.pace: Pace[Key] = Pace(options.pace)
        self._objects = host.objects
        self._clusters = clusters
        self._recorder = host.recorder
        self._clock = host.clock
        self._presence = host.presence
        self._began_at: datetime | None = None
        self.halted: set[Key] = set()
        """Objects that wait for the end of a halt, or for a ClusterDisruptionBudget."""
        self._disrupted: set[Key] = set()
        """Objects that wait for a PodDisruptionBudget."""

    def begin(self) -> None:
        """Note that this process moves replicas from now on."""
        self._began_at = self._clock.now()

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Count what left clusters before the restart, and forget a deleted object."""
        if new is None:
            self.withdraw(key_of(old or {}))
        elif old is None:
            key = key_of(new)
            for at, count in eviction_record(new).moves:
                self.pace.remember(key, key.namespace, count, min(at, self._clock.now()).timestamp())

    def withdraw(self, key: Key) -> None:
        """Forget the moves of an object that stays where it is."""
        self.pace.withdraw(key)
        self.halted.discard(key)
        self._disrupted.discard(key)

    def waiting_for_pod_budgets(self, namespace: str) -> list[Key]:
        """Return the objects of a namespace that wait for one of its PodDisruptionBudgets."""
        return sorted(key for key in self._disrupted if key.namespace == namespace)

    def confirm(self, key: Key) -> None:
        """Count the moves of an object, which were written."""
        _evicted.inc(self.pace.confirm(key, self._clock.now().timestamp()))

    def returns(self, federated: Object, policy: Policy | None) -> Returns:
        """Return what may return to clusters that were lost or drained."""
        record = eviction_record(federated)
        if not record.left or policy is None or policy.is_sticky or not self._may_return(federated, policy):
            return Returns()
        rules, migrates = policy.failback, policy.has_auto_migration
        type_ = self._objects.type_of(federated)
        replicas = type_.replicas(federated["spec"]["template"]) if type_ is not None else None
        return plan_returns(
            record,
            self._clusters.cluster,
            departed_clusters(federated),
            self._clock.now(),
            batch=rules.batch_of(replicas or 0),
            stable_s=parse_duration(rules.stable_for) if migrates else self.options.stable_s,
            interval_s=self.options.interval_s,
        )

    def completion(self, federated: Object, policy: Policy | None) -> Completion:
        """Return whether a placement that lacks clusters that could not have the object is to be completed now."""
        marks = missing_clusters(federated)
        if not marks or policy is None or policy.is_sticky or policy.disable_rescheduling:
            return Completion()
        claims = ClaimModes(self._objects, federated["metadata"].get("namespace", ""))
        template = federated["spec"]["template"]
        if fixed_volumes_of(template, claims):
            return Completion()
        kind = (str(template["apiVersion"]), str(template["kind"]))
        # Copies are added and nothing moves, so they need no cluster that has been stable for a while.
        stable_s = 0.0 if self._is_copied(federated) else self.options.stable_s
        return plan_completion(marks, self._clusters.cluster, kind, self._clock.now(), stable_s=stable_s)

    def _is_copied(self, federated: Object) -> bool:
        type_ = self._objects.type_of(federated)
        return type_ is not None and all(count is None for count in current_clusters(federated, type_).values())

    def _may_return(self, federated: Object, policy: Policy) -> bool:
        overriding = overrides_from_annotations(federated["metadata"].get("annotations") or {})
        return may_return(
            policy.failover.returning,
            has_state=bool(self._tolerance(federated, policy.failover).state),
            clusters=len(effective_placement(federated)),
            clusters_max=overriding.get("max_clusters", policy.max_clusters),
        )

    def _tolerance(self, federated: Object, rules: FailoverRules) -> Tolerance:
        claims = ClaimModes(self._objects, federated["metadata"].get("namespace", ""))
        return tolerance_of(federated["spec"]["template"], rules, claims)

    @property
    def evicting(self) -> AbstractSet[str]:
        """The clusters that are lost or drained."""
        return self._clusters.by_name.keys()

    def ease(
        self, context: AttemptContext, due: Due, decision: Decision, snapshot: Snapshot, volumes: VolumePermit = FREE
    ) -> Eased:
        """Return what is written for a successful decision; `volumes` says what may leave its volumes behind."""
        existing = {cluster.name for cluster in snapshot.clusters if not cluster.is_terminating}
        before = {name: count for name, count in context.attempt.current().items() if name in existing}
        returned, record = self._returned(context, due, decision, before)
        gone = [name for name in before if name not in decision.placements]
        leaving = [name for name in gone if name in self._clusters.by_name or name in due.unit.avoided]
        if not leaving:
            if due.quiet.completes:
                return self._completed(context, due, returned, before, record)
            self.withdraw(context.key)
            text = eviction_text(structs.replace(record, stays={}), self._clock.now())
            return replace(returned, annotations={names.EVICTION: text})
        evicted = self._evicted(context, due, returned.decision, before, leaving, record, volumes)
        # A return at once would only meet the object waiting again; it comes with the end of that.
        times = [time_s for time_s in (returned.requeue_after_s, evicted.requeue_after_s) if time_s]
        return replace(
            evicted,
            left={**returned.left, **evicted.left},
            is_partial=returned.is_partial or evicted.is_partial,
            requeue_after_s=min(times, default=None),
        )

    def _completed(
        self, context: AttemptContext, due: Due, eased: Eased, before: Mapping[str, int | None], record: EvictionRecord
    ) -> Eased:
        """Limit what moves because clusters that were missing are stable: an outage marks many objects."""
        after, now, key = eased.decision.placements, self._clock.now(), context.key
        moved = sum(max(0, (count or 0) - (after.get(name) or 0)) for name, count in before.items())
        if not moved or self.options.pace.replicas_per_minute <= 0:  # without failover there is no pace
            self.withdraw(key)
        elif not self.pace.propose(key, key.namespace, due.policy.priority, moved, now.timestamp(), is_whole=True):
            return replace(eased, waits_for_turn=True)
        record = structs.replace(record, stays={}, moves=(*record.moves, (now, moved)) if moved else record.moves)
        return replace(eased, annotations={names.EVICTION: eviction_text(record, now)})

    def _returned(
        self, context: AttemptContext, due: Due, decision: Decision, before: Mapping[str, int | None]
    ) -> tuple[Eased, EvictionRecord]:
        """Limit what returns to clusters that were lost; return the record after it too."""
        now, record = self._clock.now(), eviction_record(context.federated)
        returns = self.returns(context.federated, due.policy)
        if due.quiet.homes:
            after = eviction.return_batch(before, decision.placements, returns.allowed, due.unit.max_clusters)
        else:
            rejected = decision.filtered.rejected if decision.filtered is not None else ()
            after = eviction.without_returns(
                before, decision.placements, returns.allowed, rejected, due.unit.max_clusters
            )
        gains = {name: (after.get(name) or 0) - (before.get(name) or 0) for name in returns.allowed}
        # The division does not want more there: nothing is left that could return.
        is_over = {name for name in returns.allowed if due.quiet.homes and returns.allowed[name] and gains[name] <= 0}
        left = {name: record.left[name] - max(0, gains[name]) for name in returns.allowed if name not in is_over}
        has_returned = any(gain > 0 for gain in gains.values())
        record = structs.replace(record, left=left, returned_at=now if has_returned else record.returned_at)
        lost = lost_clusters(before, after) if has_returned else frozenset()
        is_partial = after != decision.placements
        waits_s = returns.wait_s
        if has_returned and any(left.values()):
            waits_s = self.options.interval_s
        elif any(returns.allowed.values()) and not (has_returned or due.quiet.homes or is_partial):
            waits_s = 0.0  # this decision leaves replicas where they are; the next one is about returning
        eased = Eased(
            replace(decision, placements=after),
            {name: after.get(name, 0) for name in lost},
            is_partial=is_partial,
            requeue_after_s=waits_s,
        )
        return eased, record

    def _evicted(
        self,
        context: AttemptContext,
        due: Due,
        decision: Decision,
        before: Mapping[str, int | None],
        leaving: Sequence[str],
        record: EvictionRecord,
        volumes: VolumePermit,
    ) -> Eased:
        """Limit what leaves lost and drained clusters."""
        now = self._clock.now()
        stays = self._stays(context, due, leaving, decision.snapshot.left, now, volumes)
        if volumes.stays:
            decision = replace(decision, placements=eviction.without_shares(before, decision.placements))
        granted, stays = self._granted(context, decision, before, leaving, stays, due.policy.priority)
        evicted = eviction.evict(
            before,
            decision.placements,
            leaving,
            granted,
            excess=decision.waiting,
            unplaced=decision.unplaced,
            clusters_max=due.unit.max_clusters,
        )
        stays = {name: stay for name, stay in stays.items() if name in evicted.placement}
        is_divided = eviction.is_divided(before, decision.placements)
        after = self._recorded(record, evicted, stays, now, due.unit.avoided, is_divided=is_divided)
        self._report(context, record, stays)
        times = [stay.until for stay in stays.values() if stay.until is not None]
        return Eased(
            replace(
                decision,
                placements=evicted.placement,
                unplaced=max(0, decision.unplaced - sum(evicted.stays.values())),
            ),
            {name: evicted.placement.get(name, 0) for name in leaving},
            {names.EVICTION: eviction_text(after, now)},
            stays,
            is_partial=any(stay.reason not in _FINAL for stay in stays.values()),
            requeue_after_s=max(0.0, (min(times) - now).total_seconds()) if times else None,
        )

    def _stays(
        self,
        context: AttemptContext,
        due: Due,
        leaving: Sequence[str],
        outside: Collection[str],
        now: datetime,
        volumes: VolumePermit,
    ) -> dict[str, Stay]:
        """Return why replicas stay in the clusters that they may not leave now, whatever the rate."""
        rules, halt = due.policy.failover, self._clusters.halt()
        tolerance = self._tolerance(context.federated, rules)
        finished = evidence_by_cluster(context.federated)
        # The policy says that an unhealthy workload leaves, and its cluster is ready, so that no copy of it is unknown.
        # Nor does a policy keep what has to leave a cluster that left its project.
        avoided = [name for name in leaving if name not in self._clusters.by_name]
        found = {
            name: _FINISHED
            if name in finished
            else stay_of_volumes(volumes.volumes)
            if name in volumes.waits
            else None
            if name in avoided
            else self._stay(name, tolerance.released if name in volumes.approved else tolerance, rules, halt, now)
            for name in leaving
        }
        for name in leaving:
            evicting = self._clusters.by_name.get(name)
            is_emptied = name in outside if evicting is None else evicting.is_drained and evicting.is_ready
            if found[name] is None and is_emptied:
                found[name] = self._disruption(context, due)
        stays = {name: stay for name, stay in found.items() if stay is not None}
        if any(stay.reason in (StayReason.HALTED, StayReason.BUDGET) for stay in stays.values()):
            self.halted.add(context.key)
        else:
            self.halted.discard(context.key)
        if any(stay.reason is StayReason.DISRUPTION for stay in stays.values()):
            self._disrupted.add(context.key)
        else:
            self._disrupted.discard(context.key)
        return stays

    def _stay(
        self, name: str, tolerance: Tolerance, rules: FailoverRules, halt: Halt | None, now: datetime
    ) -> Stay | None:
        evicting, settle_s = self._clusters.by_name[name], self.options.halts.settle_s
        blocked = self._clusters.blocked(name) if evicting.is_drained else None
        text = blocked.message if blocked is not None else ""
        began_at = max(filter(None, (self._began_at, self._presence.back_at)), default=None)
        return stay_of(evicting, tolerance, rules, halt, now, settle_s=settle_s, blocked=text, began_at=began_at)

    def _disruption(self, context: AttemptContext, due: Due) -> Stay | None:
        """Return the stay of a workload that cannot leave a drained cluster within its PodDisruptionBudgets.

        Replicas of a divided workload are replaced first, unless the workload allows no additional pods. Copies are
        not replaced.
        """
        template, type_ = context.federated["spec"]["template"], context.attempt.federated_type
        replicas, current = due.unit.desired_replicas or 0, context.attempt.current()
        is_copied = None in current.values()
        total = replicas * len(current) if is_copied else replicas
        budgets = POD_DISRUPTION_BUDGETS
        listed = self._objects.of_kind(budgets.group_kind, context.key.namespace)
        most = unavailable_max((each["spec"]["template"] for each in listed), template, total)
        if most is None or not replicas:
            return None
        is_replaced_first = not is_copied and can_surge(type_.resource, template, replicas)
        if is_replaced_first or most >= (replicas if is_copied else 1):
            return None
        text = f"its PodDisruptionBudgets allow {most} unavailable pods over all clusters"
        return Stay(StayReason.DISRUPTION, text)

    def _granted(
        self,
        context: AttemptContext,
        decision: Decision,
        before: Mapping[str, int | None],
        leaving: Sequence[str],
        stays: Mapping[str, Stay],
        priority: int,
    ) -> tuple[dict[str, int], dict[str, Stay]]:
        """Return the replicas that leave now by cluster, and why others stay."""
        after = decision.placements
        found = dict(stays)
        if not eviction.is_divided(before, after) and not after.keys() - before.keys():
            # Nothing would replace an unhealthy copy, which may recover.
            unhealthy = decision.unit.avoided.keys() - decision.snapshot.left.keys()
            found |= {name: _NO_ROOM for name in leaving if name in unhealthy and name not in found}
        free = [name for name in leaving if name not in found]
        wanted = eviction.movable(before, after, free, decision.waiting, decision.unit.desired_replicas or 0)
        is_whole = not eviction.is_divided(before, after)
        now_s, key = self._clock.now().timestamp(), context.key
        count = self.pace.propose(key, key.namespace, priority, wanted, now_s, is_whole=is_whole)
        if not wanted:
            self.pace.withdraw(key)
        granted = _share_out(count, before, free, is_whole=is_whole)
        for name in free:
            if granted.get(name, 0) >= (before[name] or 1):
                continue
            found[name] = Stay(StayReason.RATE, "others go first") if count < wanted else _NO_ROOM
        return granted, found

    def _recorded(
        self,
        record: EvictionRecord,
        evicted: eviction.Eviction,
        stays: Mapping[str, Stay],
        now: datetime,
        avoided: Collection[str],
        *,
        is_divided: bool,
    ) -> EvictionRecord:
        """Return the record after the decision: what left, and why the rest stays.

        Copies return by themselves: the scheduler adds them where it may. Nothing returns to where it was unhealthy.
        """
        left = {name: count for name, count in record.left.items() if name not in avoided}
        for name, count in evicted.moved.items() if is_divided else ():
            if name not in avoided:
                left[name] = left.get(name, 0) + count
        moved = sum(evicted.moved.values()) if is_divided else max(evicted.moved.values(), default=0)
        moves = (*record.moves, (now, moved)) if moved else record.moves
        lasting = {
            name: structs.replace(stay, until=None) for name, stay in stays.items() if stay.reason not in _PASSING
        }
        return structs.replace(record, moves=moves, left=left, stays=lasting)

    def _report(self, context: AttemptContext, record: EvictionRecord, stays: Mapping[str, Stay]) -> None:
        """Emit an event for replicas that stay for a new reason of their own."""
        for name, stay in stays.items():
            old = record.stays.get(name)
            if stay.reason not in _PASSING and (old is None or old.reason is not stay.reason):
                text = f"replicas stay in cluster {name}: {stay.message}"
                self._recorder.event(context.federated, WARNING, EVENT_EVICTION_WAITS, text)


_FINISHED = Stay(StayReason.KEPT, "it has finished there, and would run again elsewhere")
_NO_ROOM = Stay(StayReason.NO_ROOM, "no other cluster can hold them")


def _share_out(
    count: int, before: Mapping[str, int | None], free: Collection[str], *, is_whole: bool
) -> dict[str, int]:
    """Return the granted replicas by cluster; copies leave all of the clusters or none."""
    if is_whole:
        return dict.fromkeys(free, count) if count else {}
    granted = {}
    for name in free:
        granted[name] = min(before[name] or 0, count)
        count -= granted[name]
    return granted
