"""The state of a rollout in waves: its phases, and what survives a restart. Pure.

`waveplan.py` computes the next state, `report.py` stores it in the status of the FederatedRollout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from federation.apimachinery.listening import Wait


class Phase(StrEnum):
    """The phase of a rollout."""

    COMPLETE = "Complete"
    PROGRESSING = "Progressing"
    STOPPED = "Stopped"
    ROLLING_BACK = "RollingBack"
    ROLLED_BACK = "RolledBack"


class Event(StrEnum):
    """Events that change the phase of a rollout."""

    CHANGED = "Changed"
    """The wanted template of a cluster has changed, and clusters differ from it."""
    REACHED = "Reached"
    """Every cluster has its wanted template, and all gates have held."""
    FAILED = "Failed"
    """A wave failed or the rollout was aborted, and the policy says Pause."""
    REVERSED = "Reversed"
    """A wave failed or the rollout was aborted, and the policy says RollBack; or a user says it."""
    APPROVED = "Approved"
    """The next wave was approved after a failure."""
    RETURNED = "Returned"
    """Every changed cluster has its earlier template again."""


PHASES: Mapping[tuple[Phase, Event], Phase] = {
    **{(phase, Event.CHANGED): Phase.PROGRESSING for phase in Phase},
    **{(phase, Event.REACHED): Phase.COMPLETE for phase in Phase},
    (Phase.PROGRESSING, Event.FAILED): Phase.STOPPED,
    (Phase.PROGRESSING, Event.REVERSED): Phase.ROLLING_BACK,
    (Phase.STOPPED, Event.APPROVED): Phase.PROGRESSING,
    (Phase.STOPPED, Event.REVERSED): Phase.ROLLING_BACK,
    (Phase.ROLLING_BACK, Event.RETURNED): Phase.ROLLED_BACK,
}
"""The next phase; all other pairs are errors."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A cluster that the workload is placed in.

    `live` is the template revision of its object, None without an object. `problem` says why the gate of its wave does
    not hold in it, "" when it does. `has_failed`: the problem will not go away by itself. `settled` is what it would
    have got after the last complete rollout, "" for what is wanted.
    """

    wanted: str
    live: str | None
    labels: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    has_failed: bool = False
    settled: str = ""
    is_broken: bool = False
    """Whether pods crash, or cannot start."""
    is_out_of_reach: bool = False
    """Whether its state cannot be known for a reason of ours: it cannot report, so its time does not count."""


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """The wave of a cluster, "" if the rollout does not change it; the revision to bring, and that to return to.

    `is_changed`: this rollout, or one before that was never complete, may have changed its template. `started_at` is
    when its wave had started and no ClusterDisruptionBudget held it any more, moved forward by the time that does not
    count; since `stopped_at` no time counts. Since `broken_since` its pods crash or cannot start, counted in the same
    way. Since `disrupted_since` it counts as unavailable for ClusterDisruptionBudgets.
    """

    wave: str
    target: str
    good: str
    is_changed: bool = False
    started_at: datetime | None = None
    disrupted_since: datetime | None = None
    stopped_at: datetime | None = None
    broken_since: datetime | None = None

    def waited(self, seen: Observed, now: datetime, *, holds: bool, counts: bool) -> "ClusterRecord":
        """Return the record after a look: the time without the gate counts, unless the cluster cannot report."""
        if self.started_at is None:
            return self
        counts = counts and not holds and not seen.is_out_of_reach
        waited = Wait(self.started_at, self.stopped_at).at(now, counts=counts)
        broken = None if holds else self.broken_since
        if broken is not None:
            broken = Wait(broken, self.stopped_at).at(now, counts=counts).since
        elif counts and seen.is_broken:
            broken = now
        return replace(self, started_at=waited.since, stopped_at=waited.stopped_at, broken_since=broken)


@dataclass(frozen=True, slots=True)
class WaveRecord:
    """The progress of a wave. One that is done without `held_since` had no clusters, or was passed by approval."""

    name: str
    started_at: datetime | None = None
    held_since: datetime | None = None
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """The state of a rollout that survives restarts. `revision` counts the rollouts; `reason` is that of a failure.

    `replaced` has, by wanted revision, the one that clusters have had before this rollout, also those that have left.
    """

    revision: int = 0
    phase: Phase = Phase.COMPLETE
    clusters: Mapping[str, ClusterRecord] = field(default_factory=dict)
    waves: tuple[WaveRecord, ...] = ()
    reason: str = ""
    paused_since: datetime | None = None
    replaced: Mapping[str, str] = field(default_factory=dict)


def current_wave(record: Record) -> WaveRecord | None:
    """Return the first wave that is not done, None if all are."""
    return next((wave for wave in record.waves if not wave.is_done), None)


def clusters_of_wave(record: Record, wave: str) -> list[str]:
    """Return the clusters of a wave, sorted."""
    return sorted(name for name, cluster in record.clusters.items() if cluster.wave == wave)


def following_wave(record: Record, wave: str) -> str | None:
    """Return the next wave with clusters after one that has none; None if this one has some, or no other does."""
    if clusters_of_wave(record, wave):
        return None
    names = [each.name for each in record.waves]
    later = names[names.index(wave) + 1 :]
    return next((name for name in later if clusters_of_wave(record, name)), None)


def disrupted_clusters(record: Record, observed: Mapping[str, Observed]) -> dict[str, datetime]:
    """Return the clusters that a wave or a rollback is changing: from the start until the template is there and ready.

    A cluster whose gate holds does not count while its wave soaks, nor does one of a rollout that has stopped. One that
    is broken by an earlier template still counts when the next template begins a rollout.
    """
    first = min((wave.started_at for wave in record.waves if wave.started_at is not None), default=None)
    done = {wave.name for wave in record.waves if wave.is_done}
    found = {}
    for name, cluster in record.clusters.items():
        since, seen = cluster.disrupted_since or cluster.started_at or first, observed[name]
        is_changing = record.phase is Phase.PROGRESSING and cluster.started_at is not None and cluster.wave not in done
        is_returning = record.phase is Phase.ROLLING_BACK and cluster.is_changed
        is_broken = record.phase is Phase.PROGRESSING and cluster.disrupted_since is not None and bool(seen.problem)
        is_unsettled = seen.live != (cluster.good if is_returning else cluster.target) or bool(seen.problem)
        if since is not None and (((is_changing or is_returning) and is_unsettled) or is_broken):
            found[name] = since
    return found
