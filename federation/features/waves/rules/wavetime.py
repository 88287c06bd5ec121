"""Which time of a wave counts against its timeouts: that without the gate, in clusters that can report. Pure.

A cluster's time does not count while its gate holds, while it is out of reach for a reason of ours, and while the
rollout is paused. Time in which no process looked at the rollout counts for half of a limit at most.

Decision: docs/decisions/0228-a-timeout-counts-time-without-the-gate.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from federation.apimachinery.listening import Wait
from federation.planning.waves.waverecord import Observed, Record, clusters_of_wave
from federation.planning.waves.waverules import Rules, Wave


def with_half_left(record: Record, rules: Rules, now: datetime) -> Record:
    """Return the record in which clusters whose time counts have at least half of it left."""
    by_name = {wave.name: wave for wave in rules.waves}
    clusters = dict(record.clusters)
    for name, cluster in record.clusters.items():
        wave = by_name.get(cluster.wave, Wave(cluster.wave))
        if cluster.started_at is None or cluster.stopped_at is not None:
            continue
        waited, broken = Wait(cluster.started_at).with_half_left(wave.timeout_s, now), cluster.broken_since
        if broken is not None:
            broken = Wait(broken).with_half_left(wave.broken_s, now).since
        clusters[name] = replace(cluster, started_at=waited.since, broken_since=broken)
    return replace(record, clusters=clusters)


def count_time(
    record: Record,
    wave: Wave,
    observed: Mapping[str, Observed],
    now: datetime,
    problems: Sequence[tuple[str, str, bool]],
    *,
    is_paused: bool,
) -> Record:
    """Return the record after a look at the wave: only time without the gate, in clusters that can report, counts."""
    names = clusters_of_wave(record, wave.name)
    failing = {name for name, _, _ in problems}
    if failing.isdisjoint(names):
        failing = set(names) if problems else set()  # the problem is that of the wave's request
    waited = {
        name: record.clusters[name].waited(observed[name], now, holds=name not in failing, counts=not is_paused)
        for name in names
    }
    return replace(record, clusters={**record.clusters, **waited})


def dues(record: Record, wave: Wave, observed: Mapping[str, Observed]) -> Iterable[tuple[datetime, float]]:
    """Yield when the wave's clusters whose time counts have failed, and after how long."""
    for name in clusters_of_wave(record, wave.name):
        cluster = record.clusters[name]
        if cluster.started_at is None or cluster.stopped_at is not None:
            continue  # The time that a cluster waits for a budget does not count, either.
        yield cluster.started_at + timedelta(seconds=wave.timeout_s), wave.timeout_s
        if cluster.broken_since is not None and observed[name].is_broken:
            yield cluster.broken_since + timedelta(seconds=wave.broken_s), wave.broken_s
