"""The next state of a policy's change in waves of objects. Pure over its record, its rules, the objects and the time.

A wave starts by a bound: the hash of the last object that it takes, in an order that differs from change to change.
From then on the scheduler and the override controller give its objects the present version
(`planning/waves/policychanges.py`). The record is the only memory, and the objects follow from it, so a restart changes
nothing.

Reference: docs/reference/policy-changes.md.
Decision: docs/decisions/0254-what-users-change-proves-nothing.md
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Any, Protocol

from federation.apimachinery.amounts import first_of
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import Bug
from federation.apimachinery.listening import Wait
from federation.features.waves.rules.objectives import Judgement, Verdict
from federation.planning.waves.changerules import ChangeRules, ObjectWave, current_wave, is_approved, rule_of
from federation.planning.waves.policychanges import (
    ALL_BELOW,
    ChangeRecord,
    ChangeWave,
    Reach,
    content_of,
    hash_of_object,
    is_in,
    salt_of,
    version_of,
    with_wave,
)
from federation.planning.waves.waverecord import Phase
from federation.planning.waves.waverules import REMAINING

UNHEALTHY_MAX = 1000
"""Objects of a wave that are recorded as proving nothing, one by one; of more, whole namespaces are."""
_ALL = "*"
_DESCRIBED = 5
_POLL_S = 10.0
"""Between two measurements of objectives."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An object of the policy: its identity, labels, and RFC 3339 time of creation."""

    identity: str
    labels: Mapping[str, str]
    created: str


class Seen(Protocol):
    """What is known of the objects of the policy, by their identity. It must not change while a plan is made."""

    def problem(self, identity: str) -> str:
        """Return why an object is not delivered or not healthy, "" if it is."""
        ...

    def obstacle(self, identity: str) -> str:
        """Return why an object does not have the version yet that is meant for it, "" if it has."""
        ...

    def is_silent(self, identity: str) -> bool:
        """Return whether its problem is that its clusters cannot report, for a reason of ours."""
        ...

    def is_of_users(self, identity: str, since: datetime) -> bool:
        """Return whether its own users have changed it since a time, or hold its delivery."""
        ...


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The next record, and after how many seconds time alone can change it."""

    record: ChangeRecord
    requeue_after_s: float | None = None


def begin(policy: Mapping[str, Any], record: ChangeRecord | None, rules: ChangeRules, now: datetime) -> ChangeRecord:
    """Return the record about the policy's present spec: a new change if that differs, else the same record.

    A change during another one begins from the last version that was complete. Without a record there is no version
    before: what is there applies to all objects.
    """
    content = content_of(policy)
    if record is None:
        return ChangeRecord(0, Phase.COMPLETE, content, version_of(policy))
    if record.content == content:
        return record
    begun = ChangeRecord(record.revision + 1, Phase.PROGRESSING, content, record.earlier, now.replace(microsecond=0))
    if content == content_of(record.earlier):  # it is taken back
        return replace(begun, phase=Phase.COMPLETE)
    return replace(begun, waves=tuple(ChangeWave(wave.name, wave.labels) for wave in rules.waves))


def plan_change(
    policy: Mapping[str, Any],
    before: ChangeRecord | None,
    rules: ChangeRules,
    subjects: Sequence[Subject],
    seen: Seen,
    now: datetime,
    judgement: Judgement | None = None,
    *,
    was_away: bool = False,
) -> ChangePlan:
    """Return the next state. `judgement` is that of the current wave's objectives since its gate holds otherwise.

    `was_away`: the process was away since its last look at this policy, or never looked at it.
    """
    record = begin(policy, before, rules, now)
    if record.phase is Phase.COMPLETE:
        return ChangePlan(replace(record, earlier=version_of(policy), message=""))
    record = _measure_pause(record, rules, now)
    if was_away:
        record = _with_half_left(record, rules, now)
    message, due_s = "", None
    if record.phase is Phase.STOPPED:
        record, message = _continue_stopped(record, rules, now), record.reason
    if record.phase is Phase.PROGRESSING:
        record, message, due_s = _progress(policy, record, rules, subjects, seen, now, judgement)
    if record.phase is Phase.ROLLING_BACK:
        # What is known of objects is about the version that they should have by the record before.
        is_known = before is not None and before.phase is Phase.ROLLING_BACK
        record, message = _roll_back(policy, record, subjects, seen) if is_known else (record, record.reason)
        due_s = None if is_known else 0.0
    if record.phase is Phase.COMPLETE:
        return ChangePlan(replace(record, earlier=version_of(policy), message=""))
    return ChangePlan(replace(record, message=message), due_s)


def members_of(
    policy: Mapping[str, Any], record: ChangeRecord, subjects: Sequence[Subject], *, with_new: bool = False
) -> dict[str, str]:
    """Return the objects that waves have reached, with the name of their wave.

    Objects that did not exist when the change began are in the last wave; `with_new` has them at all times.
    """
    reach = Reach(salt_of(policy, record.revision), tuple(wave for wave in record.waves if wave.bound))
    begun_at = _begun_at(record)
    found: dict[str, str] = {}
    for subject in subjects:
        is_new = subject.created > begun_at
        if is_new and (reach.is_wide or with_new):
            found[subject.identity] = REMAINING
        elif not is_new and (wave := reach.wave_of(subject.identity, subject.labels)) is not None:
            found[subject.identity] = wave
    return found


def _begun_at(record: ChangeRecord) -> str:
    return to_rfc3339(record.begun_at) if record.begun_at is not None else ""


def _measure_pause(record: ChangeRecord, rules: ChangeRules, now: datetime) -> ChangeRecord:
    """Return the record with the start of a pause, or after its end; its time counts against no timeout."""
    if rules.wishes.is_paused == (record.paused_since is not None):
        return record
    if record.paused_since is None:
        return replace(record, paused_since=now) if record.phase is Phase.PROGRESSING else record
    current = current_wave(record)
    if current is not None and current.started_at is not None and current.stopped_at is None:
        record = with_wave(record, replace(current, stopped_at=record.paused_since))  # an earlier version did not
    return replace(record, paused_since=None)


def _with_half_left(record: ChangeRecord, rules: ChangeRules, now: datetime) -> ChangeRecord:
    """Return the record whose current wave, if its time counts, has at least half of it left."""
    current = current_wave(record)
    if current is None or current.started_at is None or current.stopped_at is not None:
        return record
    wait = Wait(current.started_at).with_half_left(rule_of(rules, current.name).timeout_s, now)
    return with_wave(record, replace(current, started_at=wait.since))


def _progress(
    policy: Mapping[str, Any],
    record: ChangeRecord,
    rules: ChangeRules,
    subjects: Sequence[Subject],
    seen: Seen,
    now: datetime,
    judgement: Judgement | None,
) -> tuple[ChangeRecord, str, float | None]:
    """Return the record after all waves that can start or end now; what it waits for; when time changes that."""
    if rules.wishes.roll_back == record.revision:
        return replace(record, phase=Phase.ROLLING_BACK, reason="rolled back by a user"), "rolled back by a user", None
    if rules.wishes.abort == record.revision:
        return _fail(record, rules, "aborted by a user"), "aborted by a user", None
    while (current := current_wave(record)) is not None:
        rule = rule_of(rules, current.name)
        if not current.bound:
            if rules.wishes.is_paused:
                return record, "paused by a user", None
            if rule.is_paused and not is_approved(record, rules, current.name):
                return record, f"wave {current.name} waits for approval", None
            record = _start(policy, record, rule, subjects, seen, now)
            if record.waves[-1].bound == ALL_BELOW:
                return record, f"wave {current.name} has started", 0.0
            current = current_wave(record)
            assert current is not None
            if current.objects:  # what is known of its objects is from before
                return record, f"wave {current.name} has started", 0.0
        record, message, due_s = _judge(policy, record, rule, rules, subjects, seen, now, judgement)
        if message:
            return record, message, due_s
        judgement = None
    return replace(record, phase=Phase.COMPLETE, waves=(), unhealthy=frozenset()), "", None


def _start(
    policy: Mapping[str, Any],
    record: ChangeRecord,
    rule: ObjectWave,
    subjects: Sequence[Subject],
    seen: Seen,
    now: datetime,
) -> ChangeRecord:
    """Return the record with the bound of a wave that starts: the hash of its last object."""
    wave = next(each for each in record.waves if each.name == rule.name)
    taken = members_of(policy, record, subjects)
    salt = salt_of(policy, record.revision)
    begun_at = _begun_at(record)
    is_last = rule.name == REMAINING
    free = {
        hash_of_object(salt, subject.identity): subject.identity
        for subject in subjects
        if subject.identity not in taken and is_in(wave, subject.labels) and (is_last or subject.created <= begun_at)
    }
    chosen = sorted(free) if rule.objects is None or is_last else nsmallest(rule.objects, free)
    bound = ALL_BELOW if is_last or rule.objects is None else (chosen[-1] if chosen else "0")
    record = _spare(replace(record, unhealthy=frozenset()), (free[each] for each in chosen if seen.problem(free[each])))
    return with_wave(record, replace(wave, bound=bound, objects=len(chosen), started_at=now, taken_at=now))


def _spare(record: ChangeRecord, identities: Iterable[str]) -> ChangeRecord:
    """Return the record in which these objects prove nothing either: of too many, the namespaces with the most."""
    spared = set(record.unhealthy).union(identities)
    while len(spared) > UNHEALTHY_MAX:
        counts = Counter(namespace_of(each) for each in spared)
        namespace, count = max(counts.items(), key=lambda each: (each[1], each[0]))
        if count == 1:
            break
        spared = {each for each in spared if namespace_of(each) != namespace} | {f"{namespace}/{_ALL}"}
    return replace(record, unhealthy=frozenset(spared))


def namespace_of(identity: str) -> str:
    """Return the namespace of an object, "" without one."""
    return identity.partition("/")[0]


def proves(record: ChangeRecord, identity: str) -> bool:
    """Return whether an object of the current wave shows how the change works, as far as the record says."""
    return identity not in record.unhealthy and f"{namespace_of(identity)}/{_ALL}" not in record.unhealthy


def judged_of(policy: Mapping[str, Any], record: ChangeRecord, subjects: Sequence[Subject], wave: str) -> list[str]:
    """Return the objects that a started wave is judged by: they are older than the change, and prove something."""
    begun_at = _begun_at(record)
    old = [each for each in subjects if each.created <= begun_at]
    return [name for name, of in members_of(policy, record, old).items() if of == wave and proves(record, name)]


def _judge(
    policy: Mapping[str, Any],
    record: ChangeRecord,
    rule: ObjectWave,
    rules: ChangeRules,
    subjects: Sequence[Subject],
    seen: Seen,
    now: datetime,
    judgement: Judgement | None,
) -> tuple[ChangeRecord, str, float | None]:
    """Return the record after a look at the started wave; "" as the message when the wave is done."""
    wave = next(each for each in record.waves if each.name == rule.name)
    problems, is_silent, of_users = [], True, []
    for name in judged_of(policy, record, subjects, rule.name):
        why, is_obstacle = seen.obstacle(name), True
        if not why and rule.is_health_required:
            why, is_obstacle = seen.problem(name), False
        if why and seen.is_of_users(name, wave.taken_at or wave.started_at or now):
            of_users.append(name)
        elif why:
            problems.append((name, why))
            is_silent = is_silent and not is_obstacle and seen.is_silent(name)
    record = _spare(record, of_users)
    wave = wave.waited(now, counts=bool(problems) and not is_silent and not rules.wishes.is_paused)
    record = with_wave(record, wave)
    if problems:
        why = first_of([f"{name}: {text}" for name, text in sorted(problems)], _DESCRIBED, separator="; ")
        record = with_wave(record, replace(wave, held_since=None))
        assert wave.started_at is not None  # a wave that was looked at has started
        ends_at = wave.started_at + timedelta(seconds=rule.timeout_s)
        if wave.stopped_at is None and now >= ends_at:
            text = f"the gate of wave {rule.name} did not hold for {rule.timeout_s:g} s: {why}"
            return _fail(record, rules, text), text, None
        return record, f"wave {rule.name}: {why}", (ends_at - now).total_seconds() if wave.stopped_at is None else None
    held_since = wave.held_since or now
    record = with_wave(record, replace(wave, held_since=held_since))
    soaked_at = held_since + timedelta(seconds=rule.soak_s)
    if rule.objectives:
        judged = judgement or Judgement(Verdict.NO_DATA, "objectives are not measured yet")
        is_late = judged.verdict is Verdict.UNSURE and now >= soaked_at + timedelta(seconds=rule.timeout_s)
        if not rules.wishes.is_paused and (judged.verdict is Verdict.FAILS or is_late):
            text = f"the objectives of wave {rule.name} were not met: {judged.text}"
            return _fail(record, rules, text), text, None
        if judged.verdict is not Verdict.HOLDS:
            return record, f"wave {rule.name} waits for its objectives: {judged.text}", _POLL_S
    if now < soaked_at:
        left_s = (soaked_at - now).total_seconds()
        text = f"wave {rule.name} soaks until {to_rfc3339(soaked_at)}"
        return record, text, min(left_s, _POLL_S) if rule.objectives else left_s
    return with_wave(record, replace(wave, held_since=held_since, is_done=True)), "", None


def _fail(record: ChangeRecord, rules: ChangeRules, reason: str) -> ChangeRecord:
    return replace(record, phase=Phase.ROLLING_BACK if rules.rolls_back else Phase.STOPPED, reason=reason)


def _continue_stopped(record: ChangeRecord, rules: ChangeRules, now: datetime) -> ChangeRecord:
    """Return the record after an approval of the wave that follows the one that failed."""
    current = current_wave(record)
    if current is None:
        raise Bug(f"change {record.revision} has stopped without a wave")
    order = [wave.name for wave in record.waves]
    following = order[order.index(current.name) + bool(current.bound) :]
    if rules.wishes.roll_back == record.revision or (rules.wishes.abort == record.revision and rules.rolls_back):
        return replace(record, phase=Phase.ROLLING_BACK)
    if rules.wishes.abort == record.revision:
        return record
    if not is_approved(record, rules, following[0] if following else current.name):
        return record
    if current.bound:
        record = with_wave(record, replace(current, is_done=True, started_at=current.started_at or now))
    return replace(record, phase=Phase.PROGRESSING, reason="")


def _roll_back(
    policy: Mapping[str, Any], record: ChangeRecord, subjects: Sequence[Subject], seen: Seen
) -> tuple[ChangeRecord, str]:
    """Return the record, rolled back once every object has the earlier version again."""
    names = members_of(policy, record, subjects, with_new=True)
    since = record.begun_at
    left = sorted(
        name for name in names if seen.obstacle(name) and (since is None or not seen.is_of_users(name, since))
    )
    if left:
        return record, f"rolling back {first_of(left, _DESCRIBED)}: {record.reason}"
    return replace(record, phase=Phase.ROLLED_BACK), record.reason
