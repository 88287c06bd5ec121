"""Decide which clusters of a rollout get the new pod template now. Pure.

A rollout begins when the wanted template of a cluster changes. Its waves run in order: a wave starts when the gate of
the one before has held for its soak time, and when no pause is in the way. If a wave fails, the rollout stops or rolls
back, as its policy says. The state is in `waverecord.py`.

Reference: docs/reference/rollout.md.

Decision: docs/decisions/0037-waves-are-approvals.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from federation.apimachinery.amounts import first_of
from federation.apimachinery.errors import Bug
from federation.features.waves.rules.newcomers import approve, remember_replaced, track
from federation.features.waves.rules.objectivegate import Judged, ObjectivesDue, soaked, to_due
from federation.features.waves.rules.wavetime import count_time, dues, with_half_left
from federation.planning.changehold import Hold
from federation.planning.failover.clusterbudgets import DisruptionBudgets
from federation.planning.waves.waverecord import (
    PHASES,
    ClusterRecord,
    Event,
    Observed,
    Phase,
    Record,
    WaveRecord,
    clusters_of_wave,
    current_wave,
    disrupted_clusters,
    following_wave,
)
from federation.planning.waves.waverules import HTTPCheck, Rules, Wave, divide_into_waves
from federation.planning.waves.wishes import Wishes

HTTP_INTERVAL_S = 10.0
"""Interval of the requests of a gate, and of its queries."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next state, and what sync may deliver.

    `approved` are revisions by cluster; a cluster that is absent keeps its template. `restored` are the clusters
    that get another template than the wanted one: they return to their earlier one, or have no object and do not
    get the template that is being tried, or that has failed. `waits` says what the rollout waits for, "" for
    nothing; `is_approval_needed` whether that is an approval. `requeue_after_s` is when time alone changes the
    plan, None for never. `disrupted` are the clusters that count as unavailable for ClusterDisruptionBudgets, with
    the time since when. `held` says which budget does not allow a cluster of the current wave to start.
    """

    record: Record
    approved: Mapping[str, str]
    restored: frozenset[str]
    waits: str = ""
    is_approval_needed: bool = False
    requeue_after_s: float | None = None
    disrupted: Mapping[str, datetime] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    is_settled: bool = False
    """Whether every cluster that has the workload has its wanted template, and all gates have held."""


def _changed_clusters(record: Record) -> frozenset[str]:
    return frozenset(name for name, cluster in record.clusters.items() if cluster.is_changed)


def http_check_due(record: Record, rules: Rules, observed: Mapping[str, Observed]) -> HTTPCheck | None:
    """Return the request of the current wave's gate if everything else of the gate holds, else None."""
    record = _begin(track(record, rules, observed), rules, observed)
    current = current_wave(record)
    if current is None or current.started_at is None or record.phase not in (Phase.PROGRESSING, Phase.STOPPED):
        return None
    if any(True for _ in _problems(record, observed, current.name)):
        return None
    return next((wave.gate.http for wave in rules.waves if wave.name == current.name), None)


def objectives_due(record: Record, rules: Rules, observed: Mapping[str, Observed]) -> ObjectivesDue | None:
    """Return what has to be measured about the current wave, None before the rest of its gate holds."""
    record = _begin(track(record, rules, observed), rules, observed)
    current = current_wave(record)
    if current is None or current.held_since is None or record.phase is not Phase.PROGRESSING:
        return None
    if any(True for _ in _problems(record, observed, current.name)):
        return None
    return to_due(record, rules, current)


def plan_waves(
    record: Record,
    rules: Rules,
    observed: Mapping[str, Observed],
    wishes: Wishes,
    now: datetime,
    http_problem: str = "",
    budgets: DisruptionBudgets | None = None,
    judged: Judged | None = None,
    *,
    was_away: bool = False,
) -> Plan:
    """Return the next state of a rollout. `http_problem` is that of the current wave's request, "" without any.

    `judged` is what was measured for its objectives, None before. `was_away`: the process was away since its last look
    at this rollout, or never looked at it.

    `budgets` are the ClusterDisruptionBudgets with what other rollouts and drains use of them.
    """
    record = _begin(track(record, rules, observed), rules, observed)
    record = _measure_pause(record, wishes, now)
    if was_away:
        record = with_half_left(record, rules, now)
    waits, is_approval_needed, due_s = "", False, None
    if wishes.roll_back == record.revision and record.phase in (Phase.PROGRESSING, Phase.STOPPED):
        record = _fail(record, rolls_back=True, reason=record.reason or "rolled back by a user")
    if record.phase is Phase.STOPPED:
        record = _continue_stopped(record, rules, observed, wishes, http_problem, now)
    held: dict[str, Hold] = {}
    if record.phase is Phase.PROGRESSING:
        record, waits, is_approval_needed, due_s = _progress(
            record, rules, observed, wishes, now, http_problem, held, budgets or DisruptionBudgets((), (), now), judged
        )
    if record.phase is Phase.STOPPED:
        waits, is_approval_needed = record.reason, True
    if record.phase is Phase.ROLLING_BACK:
        record, waits = _roll_back(record, observed)
    record = remember_replaced(record)
    approved = approve(record, observed)
    disrupted = disrupted_clusters(record, observed)
    clusters = {
        name: replace(cluster, disrupted_since=disrupted.get(name)) for name, cluster in record.clusters.items()
    }
    record = replace(record, clusters=clusters)
    return Plan(
        record,
        approved,
        frozenset(name for name, revision in approved.items() if revision != observed[name].wanted),
        waits,
        is_approval_needed,
        due_s,
        disrupted,
        {name: blocked.message for name, blocked in held.items()},
        record.phase is Phase.COMPLETE and any(seen.live is not None for seen in observed.values()),
    )


def _move(record: Record, event: Event) -> Record:
    following = PHASES.get((record.phase, event))
    if following is None:
        raise Bug(f"rollout revision {record.revision}: {event} in phase {record.phase}")
    return replace(record, phase=following)


def _begin(record: Record, rules: Rules, observed: Mapping[str, Observed]) -> Record:
    """Return the record of a new rollout if the wanted template of a cluster changed, else the same record."""
    present = {name: seen for name, seen in observed.items() if seen.live is not None}
    if all(name in record.clusters and record.clusters[name].target == seen.wanted for name, seen in present.items()):
        return record
    # Until a rollout is complete, the template to return to is the one before it.
    good = {name: cluster.good for name, cluster in record.clusters.items()}
    since = {name: cluster.disrupted_since for name, cluster in record.clusters.items()}
    clusters: dict[str, ClusterRecord] = {}
    for name, seen in present.items():
        earlier = good.get(name, seen.live or seen.wanted)
        clusters[name] = ClusterRecord(
            "", seen.wanted, earlier, is_changed=seen.live != earlier, disrupted_since=since.get(name)
        )
    changed = {
        name: seen for name, seen in present.items() if clusters[name].good != seen.wanted or seen.live != seen.wanted
    }
    waves = divide_into_waves(
        rules,
        {name: seen.labels for name, seen in changed.items()},
        {name: seen.labels for name, seen in present.items()},
    )
    clusters |= {name: replace(clusters[name], wave=wave) for wave, taken in waves for name in taken}
    begun = replace(
        record,
        revision=record.revision + 1,
        clusters=clusters,
        waves=tuple(WaveRecord(wave) for wave, _ in waves),
        reason="",
        paused_since=None,
        replaced={},
    )
    return _move(begun, Event.CHANGED) if waves else _complete(begun)


def _complete(record: Record) -> Record:
    """Return the record with every cluster's target as the template to return to."""
    clusters = {
        name: replace(cluster, good=cluster.target, is_changed=False) for name, cluster in record.clusters.items()
    }
    return _move(replace(record, clusters=clusters, reason=""), Event.REACHED)


def _measure_pause(record: Record, wishes: Wishes, now: datetime) -> Record:
    """Return the record with the start of a pause, or after its end; its time counts against no timeout."""
    if wishes.is_paused == (record.paused_since is not None):
        return record
    if record.paused_since is None:
        return replace(record, paused_since=now) if record.phase is Phase.PROGRESSING else record
    current = current_wave(record)
    stopped = {  # an earlier version did not stop them
        name: replace(cluster, stopped_at=record.paused_since)
        for name, cluster in record.clusters.items()
        if current is not None and cluster.wave == current.name and cluster.started_at and cluster.stopped_at is None
    }
    return replace(record, clusters={**record.clusters, **stopped}, paused_since=None)


def _with_wave(record: Record, changed: WaveRecord) -> Record:
    return replace(record, waves=tuple(changed if wave.name == changed.name else wave for wave in record.waves))


def _is_approved(record: Record, wishes: Wishes, wave: str) -> bool:
    """Return whether the wave, or one after it, is approved for this rollout."""
    if wishes.approved_revision != record.revision:
        return False
    order = [each.name for each in record.waves]
    return wishes.approved_wave in order[order.index(wave) :]


def _problems(record: Record, observed: Mapping[str, Observed], wave: str) -> Iterable[tuple[str, str, bool]]:
    """Yield each cluster of the wave whose gate does not hold, why, and whether it has failed."""
    for name in clusters_of_wave(record, wave):
        seen = observed[name]
        if seen.live != record.clusters[name].target:
            yield name, "it does not have the new template yet", False
        elif seen.problem:
            yield name, seen.problem, seen.has_failed


def _describe(problems: Sequence[tuple[str, str, bool]]) -> str:
    return first_of([f"{name}: {why}" for name, why, _ in problems], 5, separator="; ")


def _fail(record: Record, rolls_back: bool, reason: str) -> Record:
    return _move(replace(record, reason=reason), Event.REVERSED if rolls_back else Event.FAILED)


def _progress(
    record: Record,
    rules: Rules,
    observed: Mapping[str, Observed],
    wishes: Wishes,
    now: datetime,
    http_problem: str,
    held: dict[str, Hold],
    budgets: DisruptionBudgets,
    judged: Judged | None,
) -> tuple[Record, str, bool, float | None]:
    """Return the record after all waves that can start or end now; what it waits for; when time changes that.

    `held` receives the clusters of the current wave that ClusterDisruptionBudgets hold.
    """
    if wishes.abort == record.revision:
        return _fail(record, rules.rolls_back, "aborted by a user"), "", False, None
    by_name = {wave.name: wave for wave in rules.waves}
    while (current := current_wave(record)) is not None:
        # A wave whose policy has lost it meanwhile has the default gate.
        wave = by_name.get(current.name, Wave(current.name))
        following = following_wave(record, current.name)
        if following is not None:
            record = _fill(record, wave, rules, observed)
            if clusters_of_wave(record, current.name):
                continue
            is_holding = current.name in by_name and wave.holds_empty({})
            if is_holding and not _is_approved(record, wishes, following):
                return record, _describe_empty(wave, record, following), True, None
            record = _with_wave(record, replace(current, is_done=True, held_since=None))
            continue
        if current.started_at is None:
            if wishes.is_paused:
                return record, "paused by a user", False, None
            if wave.is_paused and not _is_approved(record, wishes, current.name):
                return record, f"wave {current.name} waits for approval", True, None
            record = _with_wave(record, replace(current, started_at=now))
            http_problem = "its request has not been sent yet" if wave.gate.http is not None else ""
            continue
        held.clear()
        if not wishes.is_paused:
            record = _start_clusters(record, wave, rules, observed, held, budgets, now)
        problems = [
            (name, held[name].message if name in held else why, failed)
            for name, why, failed in _problems(record, observed, current.name)
        ]
        if not problems and http_problem:
            problems = [(wave.gate.http.url if wave.gate.http else "http", http_problem, False)]
        record = count_time(record, wave, observed, now, problems, is_paused=wishes.is_paused)
        due_at, limit_s = min(dues(record, wave, observed), default=(None, 0.0))
        if problems:
            record = _with_wave(record, replace(current, held_since=None))
            why = _describe(problems)
            has_failed = any(failed for _, _, failed in problems)
            if not wishes.is_paused and (has_failed or (due_at is not None and now >= due_at)):
                after = "" if has_failed else f" for {limit_s:g} s"
                text = f"the gate of wave {current.name} did not hold{after}: {why}"
                return _fail(record, rules.rolls_back, text), text, False, None
            times = () if wishes.is_paused else (due_at, *(each.until for each in held.values()))
            return record, f"wave {current.name}: {why}", False, _due_s(wave, now, *times)
        held_since = current.held_since or now
        soak = soaked(wave, held_since, judged, now, is_paused=wishes.is_paused)
        if soak.failure:
            return _fail(record, rules.rolls_back, soak.failure), soak.failure, False, None
        record = _with_wave(record, replace(current, held_since=held_since, is_done=not soak.waits))
        if soak.waits:
            return record, soak.waits, False, _due_s(wave, now, soak.ends_at)
        http_problem = ""
    return _complete(record), "", False, None


def _fill(record: Record, wave: Wave, rules: Rules, observed: Mapping[str, Observed]) -> Record:
    """Return the record with clusters of later waves in one that has lost its own, or never had any."""
    free = [name for name, each in record.clusters.items() if each.wave and each.started_at is None]
    later = rules.sort({name: observed[name].labels for name in free})
    matched = [name for name in later if wave.matches(name, observed[name].labels)]
    taken = matched[: -(-len(matched) * wave.share // 100)] or wave.first_of(later)
    moved = {name: replace(record.clusters[name], wave=wave.name) for name in taken}
    return replace(record, clusters={**record.clusters, **moved})


def _describe_empty(wave: Wave, record: Record, following: str) -> str:
    """Return what an empty wave waits for. The clusters of its policy may lie outside the project of those who read."""
    reached = ", ".join([name for name, each in sorted(record.clusters.items()) if each.wave][:5])
    return (
        f"wave {wave.name} has no cluster: none that it matches is among those that the change reaches, {reached};"
        f" approve wave {following} to go on without it, or write whenEmpty: TakeFirst in the policy"
    )


def _start_clusters(
    record: Record,
    wave: Wave,
    rules: Rules,
    observed: Mapping[str, Observed],
    held: dict[str, Hold],
    budgets: DisruptionBudgets,
    now: datetime,
) -> Record:
    """Return the record after the start of the wave's clusters that no budget or freeze holds; others go to `held`.

    No more than `wave.at_a_time` of them change at a time: those that have started, and whose gate does not hold.
    """
    clusters = dict(record.clusters)
    unsettled = {name for name, _, _ in _problems(record, observed, wave.name) if clusters[name].started_at is not None}
    for name in disrupted_clusters(record, observed):
        budgets.take(name)
    for name in rules.sort({name: observed[name].labels for name in clusters_of_wave(record, wave.name)}):
        cluster, seen = clusters[name], observed[name]
        if (frozen := budgets.frozen.get(name)) is not None and seen.live != cluster.target:
            # Nothing is delivered there now: what has started before the freeze starts again after it.
            held[name] = frozen
            is_changed = seen.live != cluster.good
            clusters[name] = replace(
                cluster, started_at=None, stopped_at=None, broken_since=None, is_changed=is_changed
            )
            continue
        if cluster.started_at is not None:
            continue
        # A change of what an earlier template broke makes nothing worse, and may be what others wait for.
        is_repair = cluster.is_changed and bool(seen.problem)
        if not is_repair and (blocked := budgets.find_blocked(name)) is not None:
            held[name] = blocked
            continue
        if wave.at_a_time is not None and len(unsettled) >= wave.at_a_time and seen.live != cluster.target:
            held[name] = Hold("", f"at most {wave.at_a_time} clusters of wave {wave.name} change at a time", None)
            continue
        budgets.take(name)
        unsettled.add(name)
        clusters[name] = replace(cluster, is_changed=True, started_at=now)
    return replace(record, clusters=clusters)


def _due_s(wave: Wave, now: datetime, *times: datetime | None) -> float | None:
    left = [max(0.0, (at - now).total_seconds()) for at in times if at is not None]
    return min(left + ([HTTP_INTERVAL_S] if wave.gate.http or wave.gate.objectives else []), default=None)


def _continue_stopped(
    record: Record,
    rules: Rules,
    observed: Mapping[str, Observed],
    wishes: Wishes,
    http_problem: str,
    now: datetime,
) -> Record:
    """Return the record after an approval of the next wave; a last wave whose gate holds after all is complete.

    One with objectives is not: nothing is measured any more.
    """
    current = current_wave(record)
    assert current is not None  # a rollout stops in a wave
    names = [wave.name for wave in record.waves]
    following = names[names.index(current.name) + (current.started_at is not None) :]
    if following:
        if wishes.abort == record.revision or not _is_approved(record, wishes, following[0]):
            return record
        passed = record
        if current.started_at is not None:
            # A user lets the rollout go on: budgets do not hold the rest of the wave that failed.
            started = Wave(current.name)
            passed = _start_clusters(record, started, rules, observed, {}, DisruptionBudgets((), (), now), now)
            passed = _with_wave(passed, replace(current, is_done=True))
        return _move(replace(passed, reason=""), Event.APPROVED)
    has_objectives = any(wave.gate.objectives for wave in rules.waves if wave.name == current.name)
    if has_objectives or http_problem or any(True for _ in _problems(record, observed, current.name)):
        return record
    return _complete(_with_wave(record, replace(current, held_since=now, is_done=True)))


def _roll_back(record: Record, observed: Mapping[str, Observed]) -> tuple[Record, str]:
    """Return the record, rolled back once every changed cluster has its earlier template."""
    left = [name for name in sorted(_changed_clusters(record)) if observed[name].live != record.clusters[name].good]
    if left:
        return record, f"rolling back {', '.join(left[:5])}: {record.reason}"
    return _move(record, Event.RETURNED), record.reason
