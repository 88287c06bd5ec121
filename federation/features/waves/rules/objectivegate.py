"""The soak of a wave, and its objectives: what has to be measured, and what follows from it. Pure.

`objectives.py` judges the measured counts. Missing data is no failure: the wave waits for it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from federation.apimachinery.clock import to_rfc3339
from federation.features.waves.rules.objectives import Judgement, Verdict
from federation.planning.waves.waverecord import Record, WaveRecord, clusters_of_wave
from federation.planning.waves.waverules import Objective, Rules, Wave


@dataclass(frozen=True, slots=True)
class ObjectivesDue:
    """What has to be measured: the objectives of a wave whose gate holds otherwise, since when, and where.

    `started_at` is when the wave began to change its clusters, `waiting` are those that have their earlier template.
    """

    wave: str
    objectives: tuple[Objective, ...]
    held_since: datetime
    started_at: datetime
    soak_s: float
    clusters: tuple[str, ...]
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement about a wave's objectives, measured since a time."""

    wave: str
    since: datetime
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Soak:
    """What a wave waits for whose gate holds, "" for nothing; why it has failed, "" if not; when its soak ends."""

    waits: str = ""
    failure: str = ""
    ends_at: datetime | None = None
    """None after the end."""


def to_due(record: Record, rules: Rules, current: WaveRecord) -> ObjectivesDue | None:
    """Return what has to be measured about the current wave; None without objectives, or before its gate holds."""
    wave = next((wave for wave in rules.waves if wave.name == current.name), None)
    if wave is None or not wave.gate.objectives or current.held_since is None:
        return None
    clusters = clusters_of_wave(record, current.name)
    starts = [at for name in clusters if (at := record.clusters[name].started_at) is not None]
    waiting = (
        name
        for name, cluster in sorted(record.clusters.items())
        if cluster.wave and cluster.started_at is None and not cluster.is_changed and name not in clusters
    )
    return ObjectivesDue(
        wave.name,
        wave.gate.objectives,
        current.held_since,
        min(starts, default=current.held_since),
        wave.gate.soak_s,
        tuple(clusters),
        tuple(waiting),
    )


def soaked(wave: Wave, held_since: datetime, judged: Judged | None, now: datetime, *, is_paused: bool) -> Soak:
    """Return whether a wave is done, waits or has failed whose gate holds since a time; a paused one does not fail."""
    ends_at = held_since + timedelta(seconds=wave.gate.soak_s)
    judgement = _judgement_of(wave, held_since, judged)
    if not is_paused and (failure := _failure(wave, judgement, ends_at, now)):
        return Soak(failure=failure)
    if now >= ends_at and judgement.verdict is Verdict.HOLDS:
        return Soak()
    text = f"soaks until {to_rfc3339(ends_at)}" if now < ends_at else "waits for its objectives"
    detail = f": {judgement.text}" if judgement.text else ""
    return Soak(f"wave {wave.name} {text}{detail}", ends_at=ends_at if now < ends_at else None)


def _judgement_of(wave: Wave, held_since: datetime, judged: Judged | None) -> Judgement:
    """Return the judgement about this wave since its gate holds otherwise; an older one says nothing about it."""
    if not wave.gate.objectives:
        return Judgement(Verdict.HOLDS, "")
    if judged is None or judged.wave != wave.name or judged.since != held_since:
        return Judgement(Verdict.NO_DATA, "objectives are not measured yet")
    return judged.judgement


def _failure(wave: Wave, judgement: Judgement, soaked_at: datetime, now: datetime) -> str:
    """Return why the objectives of a wave have failed, "" while they have not."""
    if judgement.verdict is Verdict.FAILS:
        return f"the objectives of wave {wave.name} were not met: {judgement.text}"
    if judgement.verdict is Verdict.UNSURE and now >= soaked_at + timedelta(seconds=wave.timeout_s):
        limit = f"{wave.timeout_s:g} s after its soak"
        return f"the objectives of wave {wave.name} were not met {limit}: {judgement.text}"
    return ""
