"""Choose the cluster that a workload leaves because it is unhealthy there. Pure.

Evidence is in memory and lasts from the first bad report on; it ends when the copy was healthy for a while, and starts
again when more of it becomes available than ever before. One cluster leaves at a time, and the toleration doubles with
each. A template that no copy was healthy with is a bad template, and one that is bad in all of its clusters has a cause
that no move removes: both stay where they are.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import structs

from federation.apimachinery.annotationrecords import to_time
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.listening import Wait
from federation.features.applicationfailover.names import (
    REASON_BAD_TEMPLATE,
    REASON_HEALTHY,
    REASON_LIMIT,
    REASON_NOT_KNOWN,
    REASON_UNHEALTHY,
    REASON_UNHEALTHY_EVERYWHERE,
)
from federation.planning.failover.application import ApplicationRecord, ApplicationRules, Eviction, Purge, PurgeMode
from federation.planning.status.copyhealth import Health, Observed

_SETTLED_S_MAX = 60.0
"""For how long a copy has to be healthy before that counts; a shorter toleration shortens it."""
_BRIEF_S = 10.0
_BACKOFF_S_MAX = 3600.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Since when a copy has been bad or good, in monotonic seconds, and the best it was while it was bad."""

    bad_since_s: float | None = None
    good_since_s: float | None = None
    best: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The published facts about a workload."""

    reason: str
    message: str

    @property
    def status(self) -> str:
        """The status of the condition."""
        return {REASON_HEALTHY: "True", REASON_NOT_KNOWN: "Unknown"}.get(self.reason, "False")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The record and evidence after an observation, the cluster that it leaves now, and when to look again."""

    record: ApplicationRecord
    evidence: Mapping[str, Evidence]
    verdict: Verdict | None
    """None while it was bad for a short time only, which each rollout is: what is published stays."""
    leaves: str = ""
    after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """A workload at one time. `placed` has the replicas by cluster, None for whole copies."""

    template: str
    placed: Mapping[str, int | None]
    observed: Mapping[str, Observed]
    now: datetime
    now_s: float
    holders: frozenset[str] = field(default_factory=frozenset)
    """The clusters that may hold a copy: placed ones, and those that it has left and not yet gone from."""


def settled_s(rules: ApplicationRules) -> float:
    """Return for how long a copy has to be healthy before that counts."""
    return min(_SETTLED_S_MAX, float(rules.toleration_s))


def patience_s(rules: ApplicationRules, moves: int) -> float:
    """Return how long a copy may be unhealthy after so many moves."""
    return float(min(rules.toleration_s * 2**moves, max(rules.toleration_s, _BACKOFF_S_MAX)))


def decide(
    record: ApplicationRecord, rules: ApplicationRules, evidence: Mapping[str, Evidence], situation: Situation
) -> Outcome:
    """Return what follows from what the members report."""
    record = _current(record, situation)
    revised = {
        name: _revise(evidence.get(name, Evidence()), found, rules, situation.now_s)
        for name, found in situation.observed.items()
    }
    good = {name for name, each in revised.items() if is_settled(each, rules, situation.now_s)}
    if good and not record.was_healthy:
        record = structs.replace(record, was_healthy=True)
    record = _without_recovered(record, good, situation)
    bad = {
        name: each.bad_since_s
        for name, each in revised.items()
        if each.bad_since_s is not None and situation.observed[name].health is Health.UNHEALTHY
    }
    outcome = _choose(record, rules, bad, situation)
    waits_s = [
        each.good_since_s + settled_s(rules) - situation.now_s
        for name, each in revised.items()
        if each.good_since_s is not None and name not in good
    ]
    waits_s += [] if outcome.after_s is None else [outcome.after_s]
    return replace(outcome, evidence=revised, after_s=min((max(0.1, each) for each in waits_s), default=None))


def _current(record: ApplicationRecord, situation: Situation) -> ApplicationRecord:
    """Return the record for the present template: another one starts again. Old copies and state are kept."""
    if record.template != situation.template:
        record = structs.replace(record, template=situation.template, was_healthy=False, evicted={})
    over = situation.placed.keys() - record.evicted.keys()
    purges = {name: each for name, each in record.purges.items() if name in situation.holders - over}
    return record if purges == record.purges else structs.replace(record, purges=purges)


def _revise(evidence: Evidence, found: Observed, rules: ApplicationRules, now_s: float) -> Evidence:
    if found.health is Health.UNKNOWN:
        return Evidence()
    if found.health is Health.HEALTHY:
        since_s = now_s if evidence.good_since_s is None else evidence.good_since_s
        if now_s - since_s >= settled_s(rules):
            return Evidence(good_since_s=since_s)
        return replace(evidence, good_since_s=since_s)
    is_better = evidence.bad_since_s is not None and found.progress > evidence.best
    since_s = now_s if evidence.bad_since_s is None or is_better else evidence.bad_since_s
    return Evidence(bad_since_s=since_s, best=max(evidence.best, found.progress))


def is_settled(evidence: Evidence, rules: ApplicationRules, now_s: float) -> bool:
    """Return whether the copy has been healthy for long enough to count as that."""
    return evidence.good_since_s is not None and now_s - evidence.good_since_s >= settled_s(rules)


def _without_recovered(record: ApplicationRecord, good: set[str], situation: Situation) -> ApplicationRecord:
    """Withdraw a move that found no other cluster, once the copy is healthy again."""
    kept = {
        name: each
        for name, each in record.evicted.items()
        if not (name in good and name in situation.placed and situation.placed[name] == each.replicas)
    }
    if len(kept) == len(record.evicted):
        return record
    purges = {name: each for name, each in record.purges.items() if name in kept or name not in record.evicted}
    return structs.replace(record, evicted=kept, purges=purges)


def _choose(
    record: ApplicationRecord, rules: ApplicationRules, bad: Mapping[str, float], situation: Situation
) -> Outcome:
    if not bad:
        unknown = [name for name, each in situation.observed.items() if each.health is not Health.HEALTHY]
        if unknown:
            text = f"its health in {', '.join(sorted(unknown))} is not known"
            return Outcome(record, {}, Verdict(REASON_NOT_KNOWN, text))
        return Outcome(record, {}, Verdict(REASON_HEALTHY, _left_text(record)))
    brief_s = min(_BRIEF_S, rules.toleration_s / 2)
    if (left_s := brief_s - (situation.now_s - min(bad.values()))) > 0:
        return Outcome(record, {}, None, after_s=left_s)
    first = min(bad, key=lambda name: (bad[name], name))
    at = f"in {first}: {situation.observed[first].reason}"
    leaving = sorted(record.evicted.keys() & situation.placed.keys())
    if leaving:
        text = f"it leaves {', '.join(leaving)} as soon as another cluster takes it; {at}"
        return Outcome(record, {}, Verdict(REASON_UNHEALTHY, text))
    if not record.was_healthy:
        text = f"no copy of its template has been healthy since it was written, so it stays; {at}"
        return Outcome(record, {}, Verdict(REASON_BAD_TEMPLATE, text))
    if len(record.evicted) >= rules.max_moves:
        left = ", ".join(sorted(record.evicted))
        text = f"its template has left {left}, as many clusters as maxMoves allows; {at}"
        return Outcome(record, {}, Verdict(REASON_LIMIT, text))
    running = {name for name, count in situation.placed.items() if count != 0}
    if len(running) > 1 and not running - bad.keys():
        text = f"it is unhealthy in all of its clusters, so none of them is the cause; {at}"
        return Outcome(record, {}, Verdict(REASON_UNHEALTHY_EVERYWHERE, text))
    patience = patience_s(rules, len(record.evicted))
    wait_s = patience - (situation.now_s - bad[first])
    for each in record.evicted.values():
        wait_s = max(wait_s, patience - (situation.now - each.at).total_seconds())
    if wait_s > 0:
        text = f"it leaves after {patience:g} s; {at}"
        return Outcome(record, {}, Verdict(REASON_UNHEALTHY, text), after_s=wait_s)
    now, reason = to_time(situation.now), situation.observed[first].reason
    told = f"unhealthy there, {reason}, at {to_rfc3339(now)}"
    evicted = {**record.evicted, first: Eviction(now, told, situation.placed.get(first))}
    purges = {**record.purges, first: Purge(rules.purge_mode, now)}
    text = f"it leaves {first}, where it was unhealthy for {patience:g} s: {reason}"
    moved = structs.replace(record, evicted=evicted, purges=purges)
    return Outcome(moved, {}, Verdict(REASON_UNHEALTHY, text), leaves=first)


def _left_text(record: ApplicationRecord) -> str:
    left = sorted(record.evicted)
    return f"it left {', '.join(left)}, where it was unhealthy" if left else ""


def with_half_left(record: ApplicationRecord, grace_s: float, now: datetime) -> ApplicationRecord:
    """Return the record after a time in which new copies were not observed: half of the grace time is left."""
    purges = {
        name: structs.replace(purge, at=to_time(Wait(purge.at).with_half_left(grace_s, now).since))
        for name, purge in record.purges.items()
    }
    return structs.replace(record, purges=purges)


def without_ended_purges(
    record: ApplicationRecord, grace_s: float, situation: Situation, confirmed: Collection[str]
) -> tuple[ApplicationRecord, float | None]:
    """Return the record without the old copies that may be removed now, and when the next one may be by time alone.

    `confirmed` are the clusters whose old copies a user gave up.
    """
    found = situation.observed
    has_new = bool(situation.placed) and all(
        name in found and found[name].health is Health.HEALTHY for name, count in situation.placed.items() if count != 0
    )
    kept: dict[str, Purge] = {}
    waits_s = []
    for name, purge in record.purges.items():
        if name not in situation.placed:
            if purge.mode is PurgeMode.GRACIOUSLY:
                left_s = grace_s - (situation.now - purge.at).total_seconds()
                if has_new or left_s <= 0:
                    continue
                waits_s.append(left_s)
            elif name in confirmed:
                continue
        kept[name] = purge
    return structs.replace(record, purges=kept), min(waits_s, default=None)
