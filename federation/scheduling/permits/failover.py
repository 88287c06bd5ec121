"""Failover of decisions: replicas leave lost and drained clusters only as far and as fast as they may. Pure.

The scheduler decides where an object goes without the clusters whose NoExecute taints it does not tolerate. Of these
moves, `planning/failover` says which go on now; the rest stays, and the object stays due (docs/reference/failover.md).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from msgspec import structs

from federation.api import names
from federation.apimachinery.resources import POD_DISRUPTION_BUDGETS
from federation.planning.changehold import Hold
from federation.planning.failover import eviction
from federation.planning.failover.departure import stay_of, stay_of_volumes
from federation.planning.failover.eviction import Placement
from federation.planning.failover.evictionrecord import (
    EvictionRecord,
    Stay,
    StayReason,
    eviction_record,
    eviction_text,
)
from federation.planning.failover.podbudgets import unavailable_max
from federation.planning.failover.tolerance import Tolerance
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.planning.guard.losses import lost_clusters
from federation.planning.steps.strategy import can_surge
from federation.scheduling.answers import Wait
from federation.scheduling.chain import Permit
from federation.scheduling.evictions import tolerance
from federation.scheduling.framework.moving import AVOIDED
from federation.scheduling.proposal import Proposal

PASSING = frozenset((StayReason.HALTED, StayReason.BUDGET, StayReason.RATE, StayReason.READY))
"""Reasons that say nothing about the object: they are published once per cluster, not per object."""
_FINAL = frozenset((StayReason.KEPT, StayReason.NEVER, StayReason.STATE))
"""Reasons that only a change of the object or its policy ends."""


class Failover(Permit):
    """Moves away from lost and drained clusters, returns to them, and completions of placements."""

    name = "failover"

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Return the decision less the moves that wait; a completion that waits for its turn waits as a whole."""
        existing = {cluster.name for cluster in proposal.snapshot.clusters if not cluster.is_terminating}
        before = {name: count for name, count in proposal.attempt.current().items() if name in existing}
        eased = _limited(replace(proposal, chosen=proposal.decision.placements), before)
        if isinstance(eased, Wait) or not proposal.due.quiet.completes:
            return eased
        # The guard limits mistakes, and a completion is none: the pace limits it.
        after = eased.decision.placements
        completed = {name: after.get(name, 0) for name in lost_clusters(proposal.attempt.current(), after)}
        return replace(eased, left={**completed, **eased.left})


def _limited(proposal: Proposal, before: Placement) -> Proposal | Wait:
    """Limit what returns, and then what leaves or is completed."""
    decision, evictions = proposal.decision, proposal.world.evictions
    returned, record = _returned(proposal, before)
    gone = [name for name in before if name not in decision.placements]
    avoided = AVOIDED.of(proposal.due.unit)
    leaving = [name for name in gone if name in evictions.clusters.by_name or name in avoided]
    if leaving:
        return _evicted(returned, before, leaving, record)
    if proposal.due.quiet.completes:
        return _completed(returned, before, record)
    evictions.withdraw(proposal.key)
    return returned.recording({names.EVICTION: eviction_text(structs.replace(record, stays={}), proposal.now)})


def _completed(proposal: Proposal, before: Placement, record: EvictionRecord) -> Proposal | Wait:
    """Limit what moves because clusters that were missing are stable: an outage marks many objects."""
    after, now, key = proposal.decision.placements, proposal.now, proposal.key
    evictions, priority = proposal.world.evictions, proposal.due.policy.priority
    moved = sum(max(0, (count or 0) - (after.get(name) or 0)) for name, count in before.items())
    if not moved or not evictions.options.pace.is_on:  # without failover there is no pace
        evictions.withdraw(key)
    elif not evictions.pace.propose(key, key[0], priority, moved, now.timestamp(), is_whole=True):
        return Wait("", "others go first")  # its turn requeues it
    record = structs.replace(record, stays={}, moves=(*record.moves, (now, moved)) if moved else record.moves)
    return proposal.recording({names.EVICTION: eviction_text(record, now)})


def _returned(proposal: Proposal, before: Placement) -> tuple[Proposal, EvictionRecord]:
    """Limit what returns to clusters that were lost; return the record after it too."""
    now, decision, unit, homes = proposal.now, proposal.decision, proposal.due.unit, proposal.due.quiet.homes
    record, evictions = eviction_record(proposal.attempt.federated), proposal.world.evictions
    if evictions.is_settled:
        return proposal, record
    returns = evictions.returns(proposal.attempt, proposal.modes, now)
    if homes:
        after = eviction.return_batch(before, decision.placements, returns.allowed, unit.max_clusters)
    else:
        rejected = decision.filtered.rejected if decision.filtered is not None else ()
        after = eviction.without_returns(before, decision.placements, returns.allowed, rejected, unit.max_clusters)
    gains = {name: (after.get(name) or 0) - (before.get(name) or 0) for name in returns.allowed}
    # The division does not want more there: nothing is left that could return.
    is_over = {name for name in returns.allowed if homes and returns.allowed[name] and gains[name] <= 0}
    left = {name: record.left[name] - max(0, gains[name]) for name in returns.allowed if name not in is_over}
    has_returned = any(gain > 0 for gain in gains.values())
    record = structs.replace(record, left=left, returned_at=now if has_returned else record.returned_at)
    lost = lost_clusters(before, after) if has_returned else frozenset()
    is_partial = after != decision.placements
    waits_s = returns.wait_s
    if has_returned and any(left.values()):
        waits_s = evictions.options.interval_s
    elif any(returns.allowed.values()) and not (has_returned or homes or is_partial):
        waits_s = 0.0  # this decision leaves replicas where they are; the next one is about returning
    returned = replace(
        proposal,
        decision=replace(decision, placements=after),
        left={name: after.get(name, 0) for name in lost},
        is_partial=is_partial,
        requeue_after_s=waits_s,
    )
    return returned, record


def _evicted(proposal: Proposal, before: Placement, leaving: Sequence[str], record: EvictionRecord) -> Proposal:
    """Limit what leaves lost and drained clusters."""
    now, decision = proposal.now, proposal.decision
    stays = _stays(proposal, leaving)
    if proposal.volumes.stays:
        placements = eviction.without_replacements(before, decision.placements, proposal.volumes.stays & before.keys())
        decision = replace(decision, placements=placements)
        proposal = replace(proposal, decision=decision)
    granted, stays = _granted(proposal, before, leaving, stays)
    evicted = eviction.evict(
        before,
        decision.placements,
        leaving,
        granted,
        excess=decision.waiting,
        unplaced=decision.unplaced,
        clusters_max=proposal.due.unit.max_clusters,
    )
    stays = {name: stay for name, stay in stays.items() if name in evicted.placement}
    is_divided = eviction.is_divided(before, decision.placements)
    after = _recorded(record, evicted, stays, now, AVOIDED.of(proposal.due.unit), is_divided=is_divided)
    # A return at once would only meet the object waiting again; it comes with the end of that.
    ends_s = [max(0.0, (stay.until - now).total_seconds()) for stay in stays.values() if stay.until is not None]
    times = [time_s for time_s in (proposal.requeue_after_s, min(ends_s, default=None)) if time_s]
    unplaced = max(0, decision.unplaced - sum(evicted.stays.values()))
    return replace(
        proposal.recording({names.EVICTION: eviction_text(after, now)}),
        decision=replace(decision, placements=evicted.placement, unplaced=unplaced),
        left={**proposal.left, **{name: evicted.placement.get(name, 0) for name in leaving}},
        stays=stays,
        is_partial=proposal.is_partial or any(stay.reason not in _FINAL for stay in stays.values()),
        requeue_after_s=min(times, default=None),
    )


def _stays(proposal: Proposal, leaving: Sequence[str]) -> dict[str, Stay]:
    """Return why replicas stay in the clusters that they may not leave now, whatever the rate."""
    evictions, volumes, clusters = proposal.world.evictions, proposal.volumes, proposal.world.evictions.clusters
    allowed = tolerance(proposal.attempt, proposal.due.policy.failover, proposal.modes)
    finished, halt = evidence_by_cluster(proposal.attempt.federated), clusters.halt(proposal.now)
    # The policy says that an unhealthy workload leaves, and its cluster is ready, so that no copy of it is unknown.
    # Nor does a policy keep what has to leave a cluster that left its project.
    avoided = [name for name in leaving if name not in clusters.by_name]
    found = {
        name: _FINISHED
        if name in finished
        else stay_of_volumes(volumes.volumes)
        if name in volumes.waits
        else None
        if name in avoided
        else _stay(proposal, name, allowed.released if name in volumes.approved else allowed, halt)
        for name in leaving
    }
    for name in leaving:
        evicting = clusters.by_name.get(name)
        outside = proposal.decision.snapshot.left
        is_emptied = name in outside if evicting is None else evicting.is_drained and evicting.is_ready
        if found[name] is None and is_emptied:
            found[name] = _disruption(proposal)
    stays = {name: stay for name, stay in found.items() if stay is not None}
    reasons = {stay.reason for stay in stays.values()}
    _mark(evictions.halted, proposal, is_waiting=not reasons.isdisjoint((StayReason.HALTED, StayReason.BUDGET)))
    _mark(evictions.disrupted, proposal, is_waiting=StayReason.DISRUPTION in reasons)
    return stays


def _mark(waiting: set[tuple[str, str]], proposal: Proposal, *, is_waiting: bool) -> None:
    if is_waiting:
        waiting.add(proposal.key)
    else:
        waiting.discard(proposal.key)


def _stay(proposal: Proposal, name: str, allowed: Tolerance, halt: Hold | None) -> Stay | None:
    evictions, rules, now = proposal.world.evictions, proposal.due.policy.failover, proposal.now
    evicting = evictions.clusters.by_name[name]
    blocked = evictions.clusters.blocked(name, now) if evicting.is_drained else None
    stay = stay_of(
        evicting,
        allowed,
        rules,
        halt,
        now,
        settle_s=evictions.options.halts.settle_s,
        blocked=blocked.message if blocked is not None else "",
        began_at=evictions.began_at,
    )
    if stay is None or not evictions.is_settled:
        return stay
    until = blocked.until if stay.reason is StayReason.BUDGET and blocked is not None else stay.until
    return None if until is not None or stay.reason is StayReason.READY else stay


def _disruption(proposal: Proposal) -> Stay | None:
    """Return the stay of a workload that cannot leave a drained cluster within its PodDisruptionBudgets.

    Replicas of a divided workload are replaced first, unless the workload allows no additional pods. Copies are
    not replaced.
    """
    attempt, kind = proposal.attempt, POD_DISRUPTION_BUDGETS.group_kind
    template, current = attempt.federated["spec"]["template"], attempt.current()
    replicas, is_copied = proposal.due.unit.desired_replicas or 0, None in current.values()
    total = replicas * len(current) if is_copied else replicas
    listed = proposal.world.federated_objects.of_kind(kind, proposal.key[0])
    most = unavailable_max((each["spec"]["template"] for each in listed), template, total)
    if most is None or not replicas:
        return None
    is_replaced_first = not is_copied and can_surge(attempt.federated_type.resource, template, replicas)
    if is_replaced_first or most >= (replicas if is_copied else 1):
        return None
    text = f"its PodDisruptionBudgets allow {most} unavailable pods over all clusters"
    return Stay(StayReason.DISRUPTION, text)


def _granted(
    proposal: Proposal, before: Placement, leaving: Sequence[str], stays: Mapping[str, Stay]
) -> tuple[dict[str, int], dict[str, Stay]]:
    """Return the replicas that leave now by cluster, and why others stay."""
    decision, key, pace = proposal.decision, proposal.key, proposal.world.evictions.pace
    after, found = decision.placements, dict(stays)
    if not eviction.is_divided(before, after) and not after.keys() - before.keys():
        # Nothing would replace an unhealthy copy, which may recover.
        unhealthy = AVOIDED.of(decision.unit).keys() - decision.snapshot.left.keys()
        found |= {name: _NO_ROOM for name in leaving if name in unhealthy and name not in found}
    free = [name for name in leaving if name not in found]
    wanted = eviction.movable(before, after, free, decision.waiting, decision.unit.desired_replicas or 0)
    is_whole = not eviction.is_divided(before, after)
    now_s, priority = proposal.now.timestamp(), proposal.due.policy.priority
    count = pace.propose(key, key[0], priority, wanted, now_s, is_whole=is_whole)
    if not wanted:
        pace.withdraw(key)
    granted = _share_out(count, before, free, is_whole=is_whole)
    for name in free:
        if granted.get(name, 0) < (before[name] or 1):
            found[name] = (
                _NO_ROOM if count >= wanted else _OTHERS_FIRST if proposal.world.evictions.options.pace.is_on else _OFF
            )
    return granted, found


def _recorded(
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
    lasting = {name: structs.replace(stay, until=None) for name, stay in stays.items() if stay.reason not in PASSING}
    return structs.replace(record, moves=moves, left=left, stays=lasting)


_FINISHED = Stay(StayReason.KEPT, "it has finished there, and would run again elsewhere")
_OTHERS_FIRST = Stay(StayReason.RATE, "others go first")
_OFF = Stay(StayReason.RATE, "failover is off: no replicas leave")
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
